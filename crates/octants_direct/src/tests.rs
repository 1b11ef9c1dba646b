//! Solutions of random systems and of grids, held against the systems themselves.

use std::sync::Arc;

use crate::min_degree::min_degree;
use crate::{CholeskyAnalysis, ColumnOrdering, LuAnalysis, Pattern, Pivots, Symmetric, SymmetricAnalysis};

/// Numbers that look random, from a generator by Marsaglia.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 >> 11
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }

    fn real(&mut self) -> f64 {
        self.below(2001) as f64 / 1000.0 - 1.0
    }
}

/// A matrix by columns, made of a dense one.
struct Matrix {
    dense: Vec<Vec<f64>>,
}

impl Matrix {
    fn zero(n: usize) -> Self {
        Self { dense: vec![vec![0.0; n]; n] }
    }

    fn columns(&self) -> (Pattern, Vec<f64>) {
        let n = self.dense.len();
        let (mut starts, mut rows, mut values) = (vec![0], Vec::new(), Vec::new());
        for j in 0..n {
            for i in 0..n {
                if self.dense[i][j] != 0.0 {
                    rows.push(i as u32);
                    values.push(self.dense[i][j]);
                }
            }
            starts.push(rows.len());
        }
        (Pattern::new(starts, rows).expect("columns of a square matrix"), values)
    }

    fn times(&self, x: &[f64]) -> Vec<f64> {
        self.dense.iter().map(|row| row.iter().zip(x).map(|(a, b)| a * b).sum()).collect()
    }
}

fn sparse(random: &mut Random, n: usize, per_row: usize, symmetric: bool) -> Matrix {
    let mut matrix = Matrix::zero(n);
    for _ in 0..n * per_row {
        let (i, j, value) = (random.below(n), random.below(n), random.real());
        matrix.dense[i][j] += value;
        if symmetric && i != j {
            matrix.dense[j][i] += value;
        }
    }
    matrix
}

fn assert_solves(matrix: &Matrix, x: &[f64], right: &[f64]) {
    for (found, wanted) in matrix.times(x).iter().zip(right) {
        assert!((found - wanted).abs() < 1e-8, "{found} is not {wanted}");
    }
}

#[test]
fn positive_definite_systems_are_solved() {
    let mut random = Random(1);
    for round in 0..60 {
        let n = 1 + random.below(60);
        let mut matrix = sparse(&mut random, n, round % 5, true);
        for i in 0..n {
            let row: f64 = matrix.dense[i].iter().map(|value| value.abs()).sum();
            matrix.dense[i][i] = row + 0.5;
        }
        let (pattern, values) = matrix.columns();
        let right: Vec<_> = (0..n).map(|_| random.real()).collect();
        let analysis = Arc::new(CholeskyAnalysis::new(&pattern));
        let factor = analysis.factorise(&values, Pivots::Positive).expect("it is positive definite");
        assert_solves(&matrix, &factor.solve(&right), &right);
        // The same analysis does for other values.
        let twice: Vec<_> = values.iter().map(|value| 2.0 * value).collect();
        let half: Vec<_> = analysis.factorise(&twice, Pivots::Stable).expect("it is").solve(&right);
        let wanted: Vec<_> = right.iter().map(|value| value / 2.0).collect();
        assert_solves(&matrix, &half, &wanted);
        let lu = Arc::new(LuAnalysis::new(pattern, ColumnOrdering::Symmetric));
        assert_solves(&matrix, &lu.factorise(&values).expect("it has an inverse").solve(&right), &right);
    }
}

#[test]
fn systems_without_symmetry_are_solved() {
    let mut random = Random(2);
    for round in 0..60 {
        let n = 1 + random.below(50);
        let mut matrix = sparse(&mut random, n, round % 4, false);
        // A permutation, far off the diagonal, so that there is an inverse.
        for i in 0..n {
            matrix.dense[i][(i * 7 + 3) % n] += if n.is_multiple_of(7) { 0.0 } else { 9.0 };
            matrix.dense[i][i] += if n.is_multiple_of(7) { 9.0 } else { 0.0 };
        }
        let (pattern, values) = matrix.columns();
        let right: Vec<_> = (0..n).map(|_| random.real()).collect();
        for ordering in [ColumnOrdering::Symmetric, ColumnOrdering::Columns] {
            let (pattern, _) = matrix.columns();
            let analysis = Arc::new(LuAnalysis::new(pattern, ordering));
            if let Some(factor) = analysis.factorise(&values) {
                assert_solves(&matrix, &factor.solve(&right), &right);
            } else {
                panic!("no pivot: {:?}", matrix.dense);
            }
        }
        assert_eq!(pattern.size(), n);
    }
}

#[test]
fn matrices_without_an_inverse_are_refused() {
    let mut matrix = Matrix::zero(3);
    for (i, j, value) in [(0, 0, 1.0), (0, 1, 2.0), (1, 0, 2.0), (1, 1, 4.0), (2, 2, 1.0)] {
        matrix.dense[i][j] = value;
    }
    let (pattern, values) = matrix.columns();
    let analysis = Arc::new(CholeskyAnalysis::new(&pattern));
    assert!(analysis.factorise(&values, Pivots::Stable).is_none());
    let lu = Arc::new(LuAnalysis::new(pattern, ColumnOrdering::Columns));
    assert!(lu.factorise(&values).is_none());
    assert!(lu.factorise(&[1.0, f64::NAN, 2.0, 4.0, 1.0]).is_none());
    // Neither is one that has no entries in a column.
    let (empty, _) = Matrix::zero(2).columns();
    assert!(Arc::new(CholeskyAnalysis::new(&empty)).factorise(&[], Pivots::Stable).is_none());
    assert!(Arc::new(LuAnalysis::new(empty, ColumnOrdering::Symmetric)).factorise(&[]).is_none());
}

#[test]
fn only_definite_matrices_have_positive_pivots() {
    let mut matrix = Matrix::zero(2);
    matrix.dense[0][0] = 2.0;
    matrix.dense[1][1] = -3.0;
    let (pattern, values) = matrix.columns();
    let analysis = Arc::new(CholeskyAnalysis::new(&pattern));
    assert!(analysis.factorise(&values, Pivots::Positive).is_none());
    assert_eq!(analysis.factorise(&values, Pivots::Stable).expect("it is").solve(&[2.0, 3.0]), [1.0, -1.0]);
}

/// The same numbers as a matrix whose entries above the diagonal are wrong.
fn lower_alone(matrix: &Matrix) -> Matrix {
    let n = matrix.dense.len();
    let entry = |i: usize, j: usize| if i >= j { matrix.dense[i][j] } else { 77.0 };
    Matrix { dense: (0..n).map(|i| (0..n).map(|j| entry(i, j)).collect()).collect() }
}

#[test]
fn symmetric_systems_are_solved_whatever_their_pivots_are() {
    let solved = |dense: &[&[f64]], right: &[f64]| {
        let matrix = Matrix { dense: dense.iter().map(|row| row.to_vec()).collect() };
        let (pattern, values) = lower_alone(&matrix).columns();
        let factor = SymmetricAnalysis::new(pattern).factorise(&values).expect("it has an inverse");
        assert_solves(&matrix, &factor.solve(right), right);
        factor
    };
    // Pivots that are zero, tiny, and tiny in a corner of much smaller numbers than the rest.
    assert!(matches!(solved(&[&[0.0, 1.0], &[1.0, 0.0]], &[2.0, 3.0]), Symmetric::Lu(_)));
    for tiny in [1e-20, -1e-12, 1e-9] {
        solved(&[&[tiny, 1.0], &[1.0, 1.0]], &[2.0, 3.0]);
        solved(&[&[1.0, 1.0], &[1.0, tiny]], &[2.0, 3.0]);
        let corner = 1e-25;
        let matrix = [&[corner, 1e-12, 0.0][..], &[1e-12, 1e-12, 0.0], &[0.0, 0.0, 1.0]];
        let x = solved(&matrix, &[1e-12, 2e-12, 1.0]).solve(&[1e-12, 2e-12, 1.0]);
        assert!((x[0] - 1.0).abs() < 1e-9 && (x[1] - 1.0).abs() < 1e-9, "{x:?}");
    }
    assert!(matches!(solved(&[&[4.0, 1.0], &[1.0, -3.0]], &[2.0, 3.0]), Symmetric::Cholesky(_)));
    // Saddle points: a matrix of zeros in the corner.
    let mut random = Random(4);
    let mut by_lu = 0;
    for _ in 0..60 {
        let (n, m) = (4 + random.below(30), 1 + random.below(4));
        let mut matrix = sparse(&mut random, n + m, 2, true);
        for i in 0..n {
            matrix.dense[i][i] += 3.0 * random.real();
        }
        for i in n..n + m {
            for j in n..n + m {
                matrix.dense[i][j] = 0.0;
            }
            (matrix.dense[i][i - n], matrix.dense[i - n][i]) = (9.0, 9.0);
        }
        let (pattern, values) = lower_alone(&matrix).columns();
        let right: Vec<_> = (0..n + m).map(|_| random.real()).collect();
        if let Some(factor) = SymmetricAnalysis::new(pattern).factorise(&values) {
            by_lu += usize::from(matches!(factor, Symmetric::Lu(_)));
            let x = factor.solve(&right);
            let size = x.iter().fold(1.0_f64, |size, value| size.max(value.abs()));
            for (found, wanted) in matrix.times(&x).iter().zip(&right) {
                assert!((found - wanted).abs() < 1e-8 * size, "{found} is not {wanted}");
            }
        }
    }
    assert!(by_lu > 0, "some have no stable pivots in a fixed order");
    let (singular, values) = Matrix { dense: vec![vec![1.0, 2.0], vec![2.0, 4.0]] }.columns();
    assert!(SymmetricAnalysis::new(singular).factorise(&values).is_none());
}

#[test]
fn orderings_are_permutations_and_leave_few_entries() {
    let mut random = Random(3);
    for _ in 0..40 {
        let n = 1 + random.below(200);
        let mut neighbours = vec![Vec::new(); n];
        for _ in 0..n * random.below(6) {
            let (a, b) = (random.below(n), random.below(n));
            if a != b && !neighbours[a].contains(&(b as u32)) {
                neighbours[a].push(b as u32);
                neighbours[b].push(a as u32);
            }
        }
        let mut order = min_degree(neighbours);
        order.sort_unstable();
        assert!(order.iter().enumerate().all(|(at, &node)| at == node as usize) && order.len() == n);
    }
    // A grid of 60 by 60: row by row the factor has 60 entries in a column, 216,000 in all.
    let (starts, rows) = grid(60);
    let analysis = CholeskyAnalysis::new(&Pattern::new(starts, rows).expect("a grid"));
    assert!(analysis.factor_entries() < 60_000, "{}", analysis.factor_entries());
}

#[test]
fn an_arrow_is_eliminated_from_its_ends() {
    // A first row and column that is full: in this order all entries are there, in a good one no new ones.
    let n = 500;
    let mut starts = vec![0, n];
    let mut rows: Vec<_> = (0..n as u32).collect();
    for j in 1..n as u32 {
        rows.extend([0, j]);
        starts.push(rows.len());
    }
    let analysis = CholeskyAnalysis::new(&Pattern::new(starts, rows).expect("an arrow"));
    assert_eq!(analysis.factor_entries(), n - 1);
}

/// The places of the five-point stencil's entries.
fn grid(side: usize) -> (Vec<usize>, Vec<u32>) {
    let (mut starts, mut rows) = (vec![0], Vec::new());
    for at in 0..side * side {
        let (i, j) = (at / side, at % side);
        let around = [
            (i > 0).then(|| at - side),
            (j > 0).then(|| at - 1),
            Some(at),
            (j + 1 < side).then(|| at + 1),
            (i + 1 < side).then(|| at + side),
        ];
        rows.extend(around.into_iter().flatten().map(|node| node as u32));
        starts.push(rows.len());
    }
    (starts, rows)
}

#[test]
fn what_is_no_pattern_is_not_taken() {
    assert!(Pattern::new(Vec::new(), Vec::new()).is_none());
    assert!(Pattern::new(vec![0, 1], vec![1]).is_none());
    assert!(Pattern::new(vec![0, 2], vec![0]).is_none());
    assert!(Pattern::new(vec![0, 2, 1], vec![0]).is_none());
    assert_eq!(Pattern::new(vec![0, 1], vec![0]).map(|pattern| pattern.entries()), Some(1));
}
