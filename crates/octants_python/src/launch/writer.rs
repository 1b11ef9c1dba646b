//! The block of a launch's arguments, and what keeps the memory behind its addresses.

use std::sync::Arc;

use octants::ir::Scalar;
use octants::{
    CompiledKernel, ExternalStream, FieldLeaf, HostQueue, HostRange, KeptMemory, LiveStream, Memory, Mirror,
    NdArray, Tree,
};
use pyo3::prelude::*;
use smallvec::SmallVec;

use super::block::Words;
use super::staging::{self, StagingCopy};
use crate::arrays::ndarray::Ndarray;
use crate::gateway::{errors, interrupt};
use crate::host::evaluation::LaunchEvaluations;
use crate::interop::numpy;

/// Members that were read for a launch, by their numbers; none for those that it need not read. Their memory must live until it is over,
/// whatever happens to the objects that had them.
pub type Members<'py> = SmallVec<[Option<Bound<'py, PyAny>>; 32]>;

/// Streams of other libraries; all arrays of a library are usually used in one.
type Streams = SmallVec<[ExternalStream; 1]>;

/// Trees whose fields a launch uses. To count references to each would take as long as all else that is done for a field.
type Trees = SmallVec<[UsedTree; 4]>;

/// A tree of a field that the launch's arguments, its members or its code hold, for as long as the launch.
#[derive(Clone, Copy)]
struct UsedTree(*const Tree);

impl UsedTree {
    fn get(&self) -> &Tree {
        // SAFETY: the field holds the tree as long as it lives, and whoever launches holds the field: arguments by the call, members in
        // `LaunchArguments::members`, and others in the code.
        unsafe { &*self.0 }
    }

    fn shared(self) -> Arc<Tree> {
        // SAFETY: as above; the pointer is one of an `Arc`.
        unsafe {
            Arc::increment_strong_count(self.0);
            Arc::from_raw(self.0)
        }
    }
}

/// An array of the host that the device does not see.
struct MirroredArray {
    /// Where its address lies in the block.
    at: usize,
    range: HostRange,
    /// Bytes from the beginning of the range to the element that the address is of.
    first: u64,
}

/// The arguments of one launch as the device takes them.
pub struct LaunchArguments<'py> {
    /// In place for 256 arguments of eight bytes: Genesis has kernels of 150 fields.
    block: Words<256>,
    pub(super) staged: Vec<StagingCopy<'py>>,
    trees: Trees,
    /// Whether anything was written.
    is_used: bool,
    /// Likewise, all at once: those of an earlier launch with the same arguments.
    kept_trees: Option<Arc<[Arc<Tree>]>>,
    /// How many early releases there were when the arguments were looked at.
    deferred_frees: u64,
    members: Members<'py>,
    /// Arrays of the host that the device does not see: where their addresses lie in the block.
    host: Vec<MirroredArray>,
    /// Streams of other libraries whose arrays are among the arguments.
    pub(super) streams: Streams,
    /// What a launch in a stream beside the default one uses.
    pub(super) tracked: Option<Tracked<'py>>,
    /// What Python has evaluated for the launch, if there was code that it is not for.
    pub evaluated: LaunchEvaluations<'py>,
    /// Whether what the kernel prints was printed by an earlier launch.
    pub is_silent: bool,
}

/// Arguments of a launch that may not be over when it returns.
#[derive(Default)]
pub struct Tracked<'py> {
    /// Arrays of the session.
    pub(super) arrays: SmallVec<[Bound<'py, Ndarray>; 4]>,
    /// Arrays of the host that the device works on in place: the caller waits for the launch.
    pub(super) host: SmallVec<[Bound<'py, PyAny>; 2]>,
    /// Arrays of other libraries in the device's memory.
    pub(super) foreign: SmallVec<[Bound<'py, PyAny>; 2]>,
    /// What the trees have: whoever destroys one meanwhile must find the launch recorded when the memory goes back.
    pub(super) tree_memories: Vec<Arc<Memory>>,
}

impl<'py> LaunchArguments<'py> {
    /// For a launch in the default stream, or in another one.
    #[inline]
    pub fn new(in_stream: bool) -> Self {
        Self {
            tracked: in_stream.then(Tracked::default),
            block: Words::new(),
            staged: Vec::new(),
            trees: Trees::new(),
            is_used: false,
            kept_trees: None,
            deferred_frees: 0,
            members: Members::new(),
            host: Vec::new(),
            streams: Streams::new(),
            evaluated: LaunchEvaluations::default(),
            is_silent: false,
        }
    }

    /// Starts again, for a kernel; only what was evaluated stays.
    #[inline]
    pub fn writer<'a>(
        &'a mut self,
        compiled: &'a CompiledKernel,
    ) -> (ArgumentWriter<'a, 'py>, &'a mut Members<'py>, &'a mut LaunchEvaluations<'py>) {
        self.block.resize(compiled.args().bytes as usize);
        if std::mem::replace(&mut self.is_used, true) {
            self.start_again();
        }
        let tracked = self.tracked.as_mut();
        self.deferred_frees = compiled.deferred_frees().count();
        let deferred_frees = self.deferred_frees;
        let (block, staged) = (self.block.bytes_mut(), &mut self.staged);
        let (trees, kept_trees) = (&mut self.trees, &mut self.kept_trees);
        let (host, streams) = (&mut self.host, &mut self.streams);
        let writer = ArgumentWriter {
            compiled,
            block,
            staged,
            trees,
            kept_trees,
            deferred_frees,
            host,
            streams,
            tracked,
        };
        (writer, &mut self.members, &mut self.evaluated)
    }

    /// Forgets what was written for other code.
    #[cold]
    fn start_again(&mut self) {
        self.staged.clear();
        self.trees.clear();
        self.kept_trees = None;
        self.members.clear();
        self.host.clear();
        self.streams.clear();
        if let Some(tracked) = &mut self.tracked {
            *tracked = Tracked::default();
        }
    }

    /// Whether all arrays are the session's, or the host's where the device works on these in place, and nobody need be told of the launch.
    #[inline]
    pub fn is_plain(&self) -> bool {
        self.tracked.is_none() && self.host.is_empty() && self.staged.is_empty() && self.streams.is_empty()
    }

    /// Copies arrays of the host to a device that does not see them; the block has the copies' addresses then. What the launch writes
    /// comes back by [`Uses::copy_back`](super::uses::Uses::copy_back).
    #[inline]
    pub fn upload(
        &mut self,
        py: Python<'_>,
        compiled: &CompiledKernel,
        on: Option<&LiveStream>,
    ) -> PyResult<Option<Mirror>> {
        for &stream in &self.streams {
            compiled.launch_after(stream, on).map_err(|error| errors::from_error(py, &error))?;
        }
        if let Some(on) = on {
            self.follow_host_writes(compiled, on).map_err(|error| errors::from_error(py, &error))?;
        }
        if self.host.is_empty() {
            return Ok(None);
        }
        let ranges: Vec<_> = self.host.iter().map(|array| array.range.clone()).collect();
        let mirror = interrupt::waiting(py, |cancel| compiled.mirror(&ranges, on, cancel))?;
        for MirroredArray { at, range, first } in &self.host {
            let address = mirror.address(range.address()).0 + first;
            self.block.bytes_mut()[*at..*at + 8].copy_from_slice(&address.to_le_bytes());
        }
        Ok(Some(mirror))
    }

    /// The block, laid out as the kernel's plan says.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        self.block.bytes()
    }

    /// The members that were read.
    pub fn members(&self) -> &Members<'py> {
        &self.members
    }

    /// Whether a copy stands for the array of a parameter.
    pub fn is_staged(&self, param: usize) -> bool {
        self.staged.iter().any(|one| one.is_for(param))
    }

    /// Refuses copies that the kernel would see in two places at once.
    #[inline]
    pub fn check_overlaps(&self, py: Python<'_>, compiled: &CompiledKernel) -> PyResult<()> {
        if self.staged.is_empty() {
            return Ok(());
        }
        staging::check_overlaps(py, &self.staged, compiled, self.bytes())
    }

    /// A launch in a stream comes after what the host wrote to its arguments.
    #[cold]
    fn follow_host_writes(
        &mut self,
        compiled: &CompiledKernel,
        on: &LiveStream,
    ) -> Result<(), octants::Error> {
        let Some(tracked) = &mut self.tracked else { return Ok(()) };
        for array in &tracked.arrays {
            compiled.before_launch(on, array.get().array.memory())?;
        }
        tracked.tree_memories =
            self.trees.iter().map(|tree| tree.get().memory()).collect::<Result<_, _>>()?;
        tracked.tree_memories.iter().try_for_each(|memory| compiled.before_launch(on, memory))
    }

    /// Bytes of an array that was put into the block of a launch in a stream. `None` if the host cannot look at it.
    pub fn read(&self, begin: u64, bytes: usize) -> PyResult<Option<Vec<u8>>> {
        let arrays = self.tracked.iter().flat_map(|tracked| &tracked.arrays);
        let of_arrays = arrays.map(|array| Arc::clone(array.get().array.memory()));
        let of_trees = self.trees.iter().filter_map(|tree| tree.get().memory().ok());
        let found = of_arrays.chain(of_trees).find_map(|memory| {
            let first = memory.address().ok()?.0;
            let inside = first <= begin && begin + bytes as u64 <= first + memory.bytes() as u64;
            inside.then(|| (memory, (begin - first) as usize))
        });
        let mut out = vec![0; bytes];
        if let Some((memory, offset)) = found {
            memory
                .read(HostQueue::default(), offset, &mut out)
                .map_err(|error| errors::bug(&format!("memory of an argument cannot be read: {error}")))?;
            return Ok(Some(out));
        }
        let on_host = self.tracked.iter().any(|tracked| !tracked.host.is_empty()) || !self.host.is_empty();
        if !on_host {
            return Ok(None);
        }
        // SAFETY: what is in no memory of the session's is an array of the host, which the caller keeps.
        out.copy_from_slice(unsafe { std::slice::from_raw_parts(begin as *const u8, bytes) });
        Ok(Some(out))
    }

    /// Keeps the memory of fields until a launch is over, also if another thread destroys the tree meanwhile.
    #[inline]
    pub fn keep_memory<'a>(&self, py: Python<'_>, compiled: &'a CompiledKernel) -> PyResult<KeptMemory<'a>> {
        let releases = compiled.deferred_frees();
        let kept = releases.keep_memory();
        if releases.count() != self.deferred_frees {
            self.check_trees(py)?;
        }
        Ok(kept)
    }

    /// As [`Self::keep_memory`], where the launch uses fields at all.
    #[inline]
    pub fn keep_trees<'a>(
        &self,
        py: Python<'_>,
        compiled: &'a CompiledKernel,
    ) -> PyResult<Option<KeptMemory<'a>>> {
        let any = !self.trees.is_empty() || self.kept_trees.as_ref().is_some_and(|trees| !trees.is_empty());
        if any { self.keep_memory(py, compiled).map(Some) } else { Ok(None) }
    }

    /// The launch failed or was interrupted.
    #[cold]
    pub fn note_interrupted(&self) {
        self.all_trees().for_each(Tree::note_interrupted);
    }

    /// Refuses trees that were destroyed since the arguments were looked at.
    #[cold]
    fn check_trees(&self, py: Python<'_>) -> PyResult<()> {
        let unknown = self.all_trees().try_for_each(|tree| tree.memory().map(drop));
        unknown.map_err(|error| errors::from_error(py, &error))
    }

    fn all_trees(&self) -> impl Iterator<Item = &Tree> {
        let kept = self.kept_trees.iter().flat_map(|trees| trees.iter());
        self.trees.iter().map(UsedTree::get).chain(kept.map(|tree| &**tree))
    }
}

/// Writes one argument after the other. `at` is always a position in the block, in bytes.
pub struct ArgumentWriter<'a, 'py> {
    pub compiled: &'a CompiledKernel,
    block: &'a mut [u8],
    staged: &'a mut Vec<StagingCopy<'py>>,
    trees: &'a mut Trees,
    kept_trees: &'a mut Option<Arc<[Arc<Tree>]>>,
    /// How many early releases there were before anything was written.
    pub deferred_frees: u64,
    host: &'a mut Vec<MirroredArray>,
    streams: &'a mut Streams,
    tracked: Option<&'a mut Tracked<'py>>,
}

impl<'py> ArgumentWriter<'_, 'py> {
    /// The array whose address was put there lies in this range of the host's memory, which the device does not see.
    #[cold]
    pub fn mirror(&mut self, at: usize, address: u64, (begin, bytes): (u64, usize), written: bool) {
        // SAFETY: whoever passes the array keeps it, or the copy that stands for it, until the launch is over.
        let range = unsafe { HostRange::new(begin, bytes, written) };
        self.host.push(MirroredArray { at, range, first: address - begin });
    }

    /// Whether the launch keeps a list of the arrays that it uses.
    #[inline]
    pub fn is_tracking(&self) -> bool {
        self.tracked.is_some()
    }

    pub fn block(&self) -> &[u8] {
        self.block
    }

    /// Each tree whose fields were put into the block.
    pub fn distinct_trees(&self) -> Arc<[Arc<Tree>]> {
        let mut trees: Vec<_> = self.trees.iter().map(|tree| tree.shared()).collect();
        trees.sort_unstable_by_key(|tree| Arc::as_ptr(tree).addr());
        trees.dedup_by(|a, b| Arc::ptr_eq(a, b));
        trees.into()
    }

    /// Makes the block what it was at another launch of the same code, with fields of these trees.
    #[inline]
    pub fn set_block(&mut self, block: &[u8], trees: &Arc<[Arc<Tree>]>) {
        self.block.copy_from_slice(block);
        *self.kept_trees = (!trees.is_empty()).then(|| Arc::clone(trees));
    }

    /// Makes the block that of another launch of the same code.
    pub fn copy_block(&mut self, block: &[u8]) {
        self.block.copy_from_slice(block);
    }

    /// Makes all of the block zero.
    pub fn clear(&mut self) {
        self.block.fill(0);
    }

    /// Where an array of the session lies, which the launch's stream is about to use.
    #[inline]
    pub fn address_of(&self, array: &NdArray) -> Result<u64, octants::Error> {
        if self.is_tracking() {
            array.noted_address_for(self.compiled)
        } else {
            array.address_for(self.compiled)
        }
    }

    /// What was put into the block is kept: launches in the default stream may use it, too.
    pub fn note_default_uses(&self) {
        let arrays = self.tracked.iter().flat_map(|tracked| &tracked.arrays);
        arrays.for_each(|array| array.get().array.memory().note_default_use());
    }

    /// An array of the session was put there.
    #[inline]
    pub fn track_array(&mut self, array: &Bound<'py, Ndarray>) {
        if let Some(tracked) = &mut self.tracked {
            tracked.arrays.push(array.clone());
        }
    }

    /// An array of the host was put there, which the device works on in place.
    #[inline]
    pub fn track_host(&mut self, array: &Bound<'py, PyAny>) {
        if let Some(tracked) = &mut self.tracked {
            tracked.host.push(array.clone());
        }
    }

    /// An array of another library, in the device's memory, was put there. The library uses it in its stream, or in the default one.
    #[cold]
    pub fn track_foreign(&mut self, array: &Bound<'py, PyAny>, stream: Option<u64>) {
        match (&mut self.tracked, stream) {
            (None, None) => {}
            (None, Some(stream)) => self.use_stream(stream),
            (Some(tracked), stream) => {
                tracked.foreign.push(array.clone());
                self.use_stream(stream.unwrap_or(0));
            }
        }
    }

    /// An array that another library uses in this stream is among the arguments.
    #[cold]
    fn use_stream(&mut self, handle: u64) {
        // SAFETY: the library keeps its current stream.
        let stream = unsafe { ExternalStream::new(handle) };
        if !self.streams.contains(&stream) {
            self.streams.push(stream);
        }
    }

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
        let (place, rest) = self.block[at..].split_at_mut(8);
        place.copy_from_slice(&address.to_le_bytes());
        for (place, extent) in rest.chunks_exact_mut(4).zip(extents) {
            place.copy_from_slice(&extent.to_le_bytes());
        }
    }

    /// The strides of an array that is not dense, in scalars.
    #[cold]
    pub fn put_strides(&mut self, param: usize, strides: impl Iterator<Item = isize>) {
        let first = self.compiled.args().slots[param].stride_offset(0) as usize;
        for (axis, stride) in strides.enumerate() {
            let at = first + 8 * axis;
            self.block[at..at + 8].copy_from_slice(&(stride as i64).to_le_bytes());
        }
    }

    /// The address of a field's leaf.
    #[inline]
    pub fn put_leaf(&mut self, py: Python<'_>, at: usize, leaf: &FieldLeaf) -> PyResult<()> {
        let address = leaf.address_for(self.compiled).map_err(|error| errors::from_error(py, &error))?;
        self.block[at..at + 8].copy_from_slice(&address.to_le_bytes());
        self.use_tree(leaf.tree());
        Ok(())
    }

    /// The address of a tree's memory from an offset on.
    #[inline]
    pub fn put_view(&mut self, py: Python<'_>, at: usize, leaf: &FieldLeaf, offset: u64) -> PyResult<()> {
        let address = leaf.view_for(self.compiled, offset).map_err(|error| errors::from_error(py, &error))?;
        self.block[at..at + 8].copy_from_slice(&address.to_le_bytes());
        self.use_tree(leaf.tree());
        Ok(())
    }

    /// A tree may be noted more than once: a kernel may use hundreds, and to look for one of them among all took longer than the launch.
    #[inline]
    fn use_tree(&mut self, tree: &Arc<Tree>) {
        let tree = Arc::as_ptr(tree);
        if self.trees.last().is_none_or(|last| last.0 != tree) {
            self.trees.push(UsedTree(tree));
        }
    }

    /// The address of a copy that is passed for a parameter in place of the array.
    pub fn copied(&mut self, view: &numpy::View<'_, 'py>, param: usize) -> PyResult<u64> {
        staging::add(self.staged, view, param)
    }
}
