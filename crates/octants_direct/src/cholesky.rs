//! `LDLᵀ` of a symmetric matrix, row by row: row `k` of `L` solves a triangular system with the rows before it, whose unknowns the elimination tree gives.

use std::sync::Arc;

use crate::elimination_tree::{NONE, parents, parents_and_counts, postorder};
use crate::min_degree::min_degree;
use crate::pattern::Pattern;

/// How many times as large as a row of the matrix what it is the sum of may be: ten of sixteen digits are left. Chosen, not measured.
const MOST_GROWTH: f64 = 1e6;

/// What the entries of `D` must be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pivots {
    /// The matrix is positive definite.
    Positive,
    /// They leave the factors about as large as the matrix, so that rounding does no more harm than to the matrix itself.
    Stable,
}

/// All that follows from the places of a symmetric matrix' entries. Entries above the diagonal are not looked at.
pub struct CholeskyAnalysis {
    /// The row and column that comes `k`-th.
    order: Vec<u32>,
    /// The reordered matrix' entries above and on the diagonal by column, with the numbers that they have in the matrix.
    starts: Vec<usize>,
    rows: Vec<u32>,
    sources: Vec<usize>,
    parents: Vec<u32>,
    /// Where each column of `L` begins.
    factor_starts: Vec<usize>,
    entries: usize,
}

/// `L` by columns, without its diagonal of ones, and `D`.
pub struct Cholesky {
    analysis: Arc<CholeskyAnalysis>,
    rows: Vec<u32>,
    values: Vec<f64>,
    diagonal: Vec<f64>,
}

impl CholeskyAnalysis {
    pub fn new(pattern: &Pattern) -> Self {
        let n = pattern.size();
        let order = min_degree(pattern.neighbours());
        let (starts, rows, _) = reordered(pattern, &order);
        let parents = parents(n, |k| &rows[starts[k]..starts[k + 1]]);
        // Columns of one subtree side by side are used one after the other.
        let order: Vec<_> = postorder(&parents).into_iter().map(|node| order[node as usize]).collect();
        let (starts, rows, sources) = reordered(pattern, &order);
        let (parents, counts) = parents_and_counts(n, |k| &rows[starts[k]..starts[k + 1]]);
        let mut factor_starts = Vec::with_capacity(n + 1);
        factor_starts.push(0);
        for count in counts {
            factor_starts.push(factor_starts[factor_starts.len() - 1] + count);
        }
        Self { order, starts, rows, sources, parents, factor_starts, entries: pattern.entries() }
    }

    /// How many entries `L` has below its diagonal.
    pub fn factor_entries(&self) -> usize {
        self.factor_starts[self.order.len()]
    }

    /// Factorises the matrix that has these values. Nothing if its pivots are not what they must be.
    pub fn factorise(self: &Arc<Self>, values: &[f64], pivots: Pivots) -> Option<Cholesky> {
        assert_eq!(values.len(), self.entries, "a value for each entry of the pattern");
        let n = self.order.len();
        let mut rows = vec![0_u32; self.factor_entries()];
        let mut factor = vec![0.0; self.factor_entries()];
        let mut diagonal = vec![0.0; n];
        let mut ends = self.factor_starts.clone();
        // Row `k`, dense; where its entries are, in an order in which each comes after those that it depends on; a path up the tree.
        let (mut row, mut pattern, mut path) = (vec![0.0; n], vec![0_u32; n], Vec::new());
        let mut seen = vec![NONE; n];
        let largest = match pivots {
            Pivots::Positive => Vec::new(),
            Pivots::Stable => self.largest_of_rows(values),
        };
        for k in 0..n {
            let mut top = n;
            seen[k] = k as u32;
            for entry in self.starts[k]..self.starts[k + 1] {
                let mut at = self.rows[entry] as usize;
                row[at] += values[self.sources[entry]];
                while seen[at] != k as u32 {
                    path.push(at as u32);
                    seen[at] = k as u32;
                    at = self.parents[at] as usize;
                }
                while let Some(node) = path.pop() {
                    top -= 1;
                    pattern[top] = node;
                }
            }
            let mut pivot = std::mem::take(&mut row[k]);
            // Row `k` of `|L| |D| |Lᵀ|` on the diagonal, where it is largest.
            let mut size = 0.0;
            for &column in &pattern[top..] {
                let column = column as usize;
                let value = std::mem::take(&mut row[column]);
                let (start, end) = (self.factor_starts[column], ends[column]);
                for (&at, &entry) in rows[start..end].iter().zip(&factor[start..end]) {
                    row[at as usize] -= entry * value;
                }
                let entry = value / diagonal[column];
                pivot -= entry * value;
                size += (entry * value).abs();
                rows[end] = k as u32;
                factor[end] = entry;
                ends[column] = end + 1;
            }
            let is_right = match pivots {
                Pivots::Positive => pivot > 0.0,
                Pivots::Stable => pivot != 0.0 && size + pivot.abs() <= MOST_GROWTH * largest[k],
            };
            if !is_right || !pivot.is_finite() {
                return None;
            }
            diagonal[k] = pivot;
        }
        Some(Cholesky { analysis: Arc::clone(self), rows, values: factor, diagonal })
    }

    /// The largest number of each row, without its sign.
    fn largest_of_rows(&self, values: &[f64]) -> Vec<f64> {
        let mut largest = vec![0.0_f64; self.order.len()];
        for k in 0..self.order.len() {
            for entry in self.starts[k]..self.starts[k + 1] {
                let (row, value) = (self.rows[entry] as usize, values[self.sources[entry]].abs());
                largest[k] = largest[k].max(value);
                largest[row] = largest[row].max(value);
            }
        }
        largest
    }
}

impl Cholesky {
    /// The `x` with `A x = right`.
    pub fn solve(&self, right: &[f64]) -> Vec<f64> {
        let CholeskyAnalysis { order, factor_starts, .. } = &*self.analysis;
        let mut x: Vec<f64> = order.iter().map(|&node| right[node as usize]).collect();
        let column = |k: usize| {
            let range = factor_starts[k]..factor_starts[k + 1];
            self.rows[range.clone()].iter().zip(&self.values[range])
        };
        for k in 0..x.len() {
            let value = x[k];
            for (&row, &entry) in column(k) {
                x[row as usize] -= entry * value;
            }
        }
        for k in (0..x.len()).rev() {
            let mut value = x[k] / self.diagonal[k];
            for (&row, &entry) in column(k) {
                value -= entry * x[row as usize];
            }
            x[k] = value;
        }
        let mut solution = vec![0.0; x.len()];
        for (&node, value) in order.iter().zip(x) {
            solution[node as usize] = value;
        }
        solution
    }
}

/// The entries below and on the diagonal, as entries above and on it of the reordered matrix, by column; with the numbers that they had.
fn reordered(pattern: &Pattern, order: &[u32]) -> (Vec<usize>, Vec<u32>, Vec<usize>) {
    let n = pattern.size();
    let mut place = vec![0_u32; n];
    for (k, &node) in order.iter().enumerate() {
        place[node as usize] = k as u32;
    }
    let lower = || {
        (0..n).flat_map(|column| pattern.range(column).map(move |entry| (column, entry))).filter_map(
            |(column, entry)| {
                let row = pattern.row(entry) as usize;
                (row >= column).then(|| (place[row].min(place[column]), place[row].max(place[column]), entry))
            },
        )
    };
    let mut starts = vec![0; n + 1];
    for (_, column, _) in lower() {
        starts[column as usize + 1] += 1;
    }
    for k in 0..n {
        starts[k + 1] += starts[k];
    }
    let (mut rows, mut sources) = (vec![0; starts[n]], vec![0; starts[n]]);
    let mut next = starts.clone();
    for (row, column, entry) in lower() {
        let at = &mut next[column as usize];
        rows[*at] = row;
        sources[*at] = entry;
        *at += 1;
    }
    (starts, rows, sources)
}
