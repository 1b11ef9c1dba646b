//! Factors of a symmetric matrix that need not be definite.
//!
//! `LDLᵀ` in the order that leaves the fewest entries has no choice of pivots. **Where one of them would let rounding spoil the factors, or is zero, the
//! matrix is factorised as one without symmetry**, `LU` with the rows in an order that keeps it stable: no more than twice the work and the memory, besides what the
//! pivots fill in. So whatever has an inverse has factors, and these solve it.

use std::sync::{Arc, OnceLock};

use crate::cholesky::{Cholesky, CholeskyAnalysis, Pivots};
use crate::lu::{ColumnOrdering, Lu, LuAnalysis};
use crate::pattern::Pattern;

/// All that follows from the places of a symmetric matrix' entries. Entries above the diagonal are not looked at.
pub struct SymmetricAnalysis {
    cholesky: Arc<CholeskyAnalysis>,
    pattern: Pattern,
    /// Made when a matrix first needs it.
    both_triangles: OnceLock<BothTriangles>,
}

/// The matrix with its entries above the diagonal, as `LU` takes it.
struct BothTriangles {
    analysis: Arc<LuAnalysis>,
    /// The numbers that the entries have in the matrix.
    sources: Vec<usize>,
}

/// The factors of a symmetric matrix.
pub enum Symmetric {
    Cholesky(Cholesky),
    Lu(Lu),
}

impl SymmetricAnalysis {
    pub fn new(pattern: Pattern) -> Self {
        Self { cholesky: Arc::new(CholeskyAnalysis::new(&pattern)), pattern, both_triangles: OnceLock::new() }
    }

    /// Factorises the matrix that has these values. Nothing if it has no inverse.
    pub fn factorise(&self, values: &[f64]) -> Option<Symmetric> {
        if let Some(factor) = self.cholesky.factorise(values, Pivots::Stable) {
            return Some(Symmetric::Cholesky(factor));
        }
        let BothTriangles { analysis, sources } = self.both_triangles.get_or_init(|| self.mirrored());
        let values: Vec<_> = sources.iter().map(|&entry| values[entry]).collect();
        analysis.factorise(&values).map(Symmetric::Lu)
    }

    fn mirrored(&self) -> BothTriangles {
        let n = self.pattern.size();
        let mut columns = vec![Vec::new(); n];
        for column in 0..n {
            for entry in self.pattern.range(column) {
                let row = self.pattern.row(entry) as usize;
                if row >= column {
                    columns[column].push((row as u32, entry));
                }
                if row > column {
                    columns[row].push((column as u32, entry));
                }
            }
        }
        let mut starts = vec![0];
        let (mut rows, mut sources) = (Vec::new(), Vec::new());
        for column in columns {
            rows.extend(column.iter().map(|&(row, _)| row));
            sources.extend(column.iter().map(|&(_, entry)| entry));
            starts.push(rows.len());
        }
        let pattern = Pattern::new(starts, rows).expect("columns of a square matrix");
        BothTriangles { analysis: Arc::new(LuAnalysis::new(pattern, ColumnOrdering::Symmetric)), sources }
    }
}

impl Symmetric {
    /// The `x` with `A x = right`.
    pub fn solve(&self, right: &[f64]) -> Vec<f64> {
        match self {
            Self::Cholesky(factor) => factor.solve(right),
            Self::Lu(factor) => factor.solve(right),
        }
    }
}
