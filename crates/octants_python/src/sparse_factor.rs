//! Factorisations of sparse matrices, for `octants.linalg`. Numbers come and go as the bytes of numpy arrays.

use std::sync::Arc;

use octants::direct::{
    Cholesky, CholeskyAnalysis, ColumnOrdering, Lu, LuAnalysis, Pattern, Pivots, Symmetric, SymmetricAnalysis,
};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::gateway::errors::gateway;
use crate::gateway::under_way::Outside;

enum Analysis {
    Cholesky(Arc<CholeskyAnalysis>),
    Symmetric(SymmetricAnalysis),
    Lu(Arc<LuAnalysis>),
}

/// What follows from the places of a matrix' entries alone.
#[pyclass(frozen, module = "octants._octants")]
pub struct SparseAnalysis {
    analysis: Analysis,
    size: usize,
    entries: usize,
}

enum Factor {
    Cholesky(Cholesky),
    Symmetric(Symmetric),
    Lu(Lu),
}

/// The factors of a matrix.
#[pyclass(frozen, module = "octants._octants")]
pub struct SparseFactor {
    factor: Factor,
    size: usize,
}

#[pymethods]
impl SparseAnalysis {
    /// Of a matrix by columns: `starts` are the bytes of i64, `rows` those of i32.
    #[new]
    fn new(py: Python<'_>, solver: &str, ordering: &str, starts: &[u8], rows: &[u8]) -> PyResult<Self> {
        gateway(|| {
            let starts = numbers(starts, |bytes| i64::from_ne_bytes(bytes) as usize)?;
            let rows = numbers(rows, |bytes| i32::from_ne_bytes(bytes) as u32)?;
            let Some(pattern) = Pattern::new(starts, rows) else {
                return Err(PyValueError::new_err("these are no columns of a square matrix"));
            };
            let (size, entries) = (pattern.size(), pattern.entries());
            let column_ordering =
                if ordering == "COLAMD" { ColumnOrdering::Columns } else { ColumnOrdering::Symmetric };
            let analysis = py.outside(|| match solver {
                "LLT" => Analysis::Cholesky(Arc::new(CholeskyAnalysis::new(&pattern))),
                "LDLT" => Analysis::Symmetric(SymmetricAnalysis::new(pattern)),
                _ => Analysis::Lu(Arc::new(LuAnalysis::new(pattern, column_ordering))),
            });
            Ok(Self { analysis, size, entries })
        })
    }

    /// The factors of the matrix with these values, the bytes of f64; `None` if it has none.
    fn factorise(&self, py: Python<'_>, values: &[u8]) -> PyResult<Option<SparseFactor>> {
        gateway(|| {
            let values = numbers(values, f64::from_ne_bytes)?;
            if values.len() != self.entries {
                return Err(PyValueError::new_err("a value for each entry"));
            }
            let factor = py.outside(|| match &self.analysis {
                Analysis::Cholesky(analysis) => {
                    analysis.factorise(&values, Pivots::Positive).map(Factor::Cholesky)
                }
                Analysis::Symmetric(analysis) => analysis.factorise(&values).map(Factor::Symmetric),
                Analysis::Lu(analysis) => analysis.factorise(&values).map(Factor::Lu),
            });
            Ok(factor.map(|factor| SparseFactor { factor, size: self.size }))
        })
    }
}

#[pymethods]
impl SparseFactor {
    /// The solution, the bytes of f64, for a right-hand side in the same form.
    fn solve<'py>(&self, py: Python<'py>, right: &[u8]) -> PyResult<Bound<'py, PyBytes>> {
        gateway(|| {
            let right = numbers(right, f64::from_ne_bytes)?;
            if right.len() != self.size {
                return Err(PyValueError::new_err("a number for each row"));
            }
            let solution = py.outside(|| match &self.factor {
                Factor::Cholesky(factor) => factor.solve(&right),
                Factor::Symmetric(factor) => factor.solve(&right),
                Factor::Lu(factor) => factor.solve(&right),
            });
            let bytes: Vec<u8> = solution.into_iter().flat_map(f64::to_ne_bytes).collect();
            Ok(PyBytes::new(py, &bytes))
        })
    }
}

fn numbers<const N: usize, T>(bytes: &[u8], number: impl Fn([u8; N]) -> T) -> PyResult<Vec<T>> {
    let (chunks, rest) = bytes.as_chunks::<N>();
    if !rest.is_empty() {
        return Err(PyValueError::new_err(format!("{} bytes are no numbers of {N} bytes", bytes.len())));
    }
    Ok(chunks.iter().map(|&bytes| number(bytes)).collect())
}
