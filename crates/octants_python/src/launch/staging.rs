//! Staging copies of arrays of other libraries that kernels cannot use in place: unaligned ones, and column-major ones whose elements
//! are vectors or matrices.
//!
//! A copy is made when a launch's arguments are written and copied back when it is over, if the kernel writes it. What the kernel would see
//! in two places at once cannot be copied: overlaps with another array of the launch are refused if one of the two is written.

use octants::CompiledKernel;
use octants::diag::{Code, Diagnostic, SourceMap};
use octants::ir::plan::Access;
use pyo3::prelude::*;

use crate::gateway::errors;
use crate::interop::numpy;

/// A copy that is passed to one launch in place of an array.
pub struct StagingCopy<'py> {
    /// The parameter that the copy is passed for.
    param: usize,
    /// Row-major and aligned.
    copy: Bound<'py, PyAny>,
    original: Bound<'py, PyAny>,
    /// The bytes of the original.
    begin: u64,
    end: u64,
}

impl StagingCopy<'_> {
    pub fn is_for(&self, param: usize) -> bool {
        self.param == param
    }

    /// Keeps the copy for good: a kernel that nobody waits for may be at work on it.
    pub fn leak(&self) {
        std::mem::forget(self.copy.clone());
    }
}

/// The address of a copy of the array, which is there until the launch is over. The same elements given twice are copied once.
pub fn add<'py>(
    staged: &mut Vec<StagingCopy<'py>>,
    view: &numpy::View<'_, 'py>,
    param: usize,
) -> PyResult<u64> {
    let same = |other: &&StagingCopy<'py>| {
        numpy::View::of(&other.original).is_some_and(|other| {
            (other.data(), other.scalar()) == (view.data(), view.scalar())
                && (other.shape(), other.strides()) == (view.shape(), view.strides())
        })
    };
    let copy = match staged.iter().find(same) {
        Some(other) => other.copy.clone(),
        None => numpy::dense_copy(view.object())?,
    };
    let address = numpy::View::of(&copy).ok_or_else(|| errors::bug("numpy.array made no array"))?.data();
    let (begin, bytes) = view.elements().range();
    let end = begin + bytes as u64;
    staged.push(StagingCopy { param, copy, original: view.object().clone(), begin, end });
    Ok(address as u64)
}

/// Copies back what the kernel writes.
pub fn copy_back(py: Python<'_>, staged: &[StagingCopy<'_>], access: &[Access]) -> PyResult<()> {
    for one in staged {
        if access[one.param].written {
            py.import("numpy")?.call_method1("copyto", (&one.original, &one.copy))?;
        }
    }
    Ok(())
}

/// Refuses a copy of memory that another array of the launch reaches, if one of the two is written: neither would see what the
/// kernel writes to the other. `block` has the addresses of all arrays.
pub fn check_overlaps(
    py: Python<'_>,
    staged: &[StagingCopy<'_>],
    compiled: &CompiledKernel,
    block: &[u8],
) -> PyResult<()> {
    let (slots, access) = (&compiled.args().slots, compiled.access());
    for one in staged {
        for (param, slot) in slots.iter().enumerate() {
            let Some(array) = slot.array().filter(|_| param != one.param) else { continue };
            let (this, other) = (access[one.param], access[param]);
            if !(this.written && (other.read || other.written) || other.written && this.read) {
                continue;
            }
            let (begin, end) = match staged.iter().find(|other| other.param == param) {
                Some(other) if other.copy.is(&one.copy) => continue,
                Some(other) => (other.begin, other.end),
                None if array.has_strides() => slot.spaced_range(block),
                None => {
                    let begin = u64::from_le_bytes(word(block, slot.offset));
                    let extents = if array.layout.is_some() { 0 } else { array.rank };
                    let bytes = (0..extents).fold(slot.span, |bytes, axis| {
                        bytes * u64::from(u32::from_le_bytes(word(block, slot.extent_offset(axis))))
                    });
                    (begin, begin + bytes)
                }
            };
            if one.begin < end && begin < one.end {
                return Err(refusal(py, compiled.param_name(one.param), compiled.param_name(param)));
            }
        }
    }
    Ok(())
}

fn refusal(py: Python<'_>, name: &str, other: &str) -> PyErr {
    let message = format!(
        "Invalid value for argument {name} - required an array apart from {other}, got one that shares memory with it, is written or \
         read while that is written, and has to be copied"
    );
    let help = "arrays that are not aligned, and column-major arrays of vectors or matrices, are copied for a launch; pass a copy of \
                one of the two, such as numpy.ascontiguousarray(array)";
    errors::from_diagnostic(py, Diagnostic::new(Code::ArrayMismatch, message).help(help), &SourceMap::new())
}

fn word<const N: usize>(block: &[u8], offset: u32) -> [u8; N] {
    let offset = offset as usize;
    block[offset..offset + N].try_into().expect("a slice of that length")
}
