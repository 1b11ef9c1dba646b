//! The block of a launch's arguments, and what keeps the memory behind its addresses.

use std::sync::Arc;

use octants::ir::Scalar;
use octants::{CompiledKernel, FieldLeaf, Memory, Tree};
use pyo3::prelude::*;
use smallvec::SmallVec;

use super::block::Words;
use super::staging::{self, StagingCopy};
use crate::{errors, numpy};

/// Members that were read for a launch. Their memory must live until it is over, whatever happens to the objects that had them.
pub type Members<'py> = SmallVec<[Bound<'py, PyAny>; 16]>;

/// Trees whose fields a launch uses.
type Trees = SmallVec<[Arc<Tree>; 4]>;

/// The arguments of one launch as the device takes them.
pub struct LaunchArguments<'py> {
    block: Words<32>,
    staged: Vec<StagingCopy<'py>>,
    trees: Trees,
    members: Members<'py>,
}

impl<'py> LaunchArguments<'py> {
    #[inline]
    pub fn new() -> Self {
        Self { block: Words::new(), staged: Vec::new(), trees: Trees::new(), members: Members::new() }
    }

    /// Starts again, for a kernel.
    #[inline]
    pub fn writer<'a>(
        &'a mut self,
        compiled: &'a CompiledKernel,
    ) -> (ArgumentWriter<'a, 'py>, &'a mut Members<'py>) {
        self.block.resize(compiled.args().bytes as usize);
        self.staged.clear();
        self.trees.clear();
        self.members.clear();
        let (block, staged) = (self.block.bytes_mut(), &mut self.staged);
        (ArgumentWriter { compiled, block, staged, trees: &mut self.trees }, &mut self.members)
    }

    /// The block, laid out as the kernel's plan says.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        self.block.bytes()
    }

    /// Refuses copies that the kernel would see in two places at once.
    #[inline]
    pub fn check_overlaps(&self, py: Python<'_>, compiled: &CompiledKernel) -> PyResult<()> {
        if self.staged.is_empty() {
            return Ok(());
        }
        staging::check_overlaps(py, &self.staged, compiled, self.bytes())
    }

    /// Copies back what the kernel wrote to copies of arguments.
    #[inline]
    pub fn copy_back(&self, py: Python<'_>, compiled: &CompiledKernel) -> PyResult<()> {
        staging::copy_back(py, &self.staged, compiled.access())
    }

    /// Keeps the memory of fields until a launch is over, also if another thread destroys the tree meanwhile.
    pub fn keep_memory(&self, py: Python<'_>) -> PyResult<SmallVec<[Arc<Memory>; 4]>> {
        self.trees.iter().map(|tree| tree.memory().map_err(|error| errors::from_error(py, &error))).collect()
    }
}

/// Writes one argument after the other. `at` is always a position in the block, in bytes.
pub struct ArgumentWriter<'a, 'py> {
    pub compiled: &'a CompiledKernel,
    block: &'a mut [u8],
    staged: &'a mut Vec<StagingCopy<'py>>,
    trees: &'a mut Trees,
}

impl<'py> ArgumentWriter<'_, 'py> {
    #[inline]
    pub fn put(&mut self, at: usize, scalar: Scalar, bits: u64) {
        match scalar.bytes() {
            1 => self.block[at] = bits as u8,
            2 => self.block[at..at + 2].copy_from_slice(&(bits as u16).to_le_bytes()),
            4 => self.block[at..at + 4].copy_from_slice(&(bits as u32).to_le_bytes()),
            _ => self.block[at..at + 8].copy_from_slice(&bits.to_le_bytes()),
        }
    }

    #[inline]
    pub fn put_array(&mut self, at: usize, address: u64, extents: impl Iterator<Item = i32>) {
        self.block[at..at + 8].copy_from_slice(&address.to_le_bytes());
        for (axis, extent) in extents.enumerate() {
            let at = at + 8 + 4 * axis;
            self.block[at..at + 4].copy_from_slice(&extent.to_le_bytes());
        }
    }

    /// The address of a field's leaf.
    #[inline]
    pub fn put_leaf(&mut self, py: Python<'_>, at: usize, leaf: &FieldLeaf) -> PyResult<()> {
        let address = leaf.address_for(self.compiled).map_err(|error| errors::from_error(py, &error))?;
        self.block[at..at + 8].copy_from_slice(&address.to_le_bytes());
        if !self.trees.iter().any(|known| Arc::ptr_eq(known, leaf.tree())) {
            self.trees.push(Arc::clone(leaf.tree()));
        }
        Ok(())
    }

    /// The address of a copy that is passed for a parameter in place of the array.
    pub fn copied(&mut self, view: &numpy::View<'_, 'py>, param: usize) -> PyResult<u64> {
        staging::add(self.staged, view, param)
    }
}
