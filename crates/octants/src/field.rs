//! Trees in a session's memory, and the fields whose elements lie there.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use octants_front::{FieldKind, SparseLeaf};
use octants_hal::Cancel;
use octants_ir::{Const, Data, Layout, Scalar, SparseTree, TensorShape, sparse};
use octants_runtime::{Context, HostQueue, HostSide, Memory, MemoryError, Stride, Strided};

use crate::array::{Encoded, decode, not_allocated};
use crate::compiled::CompiledKernel;
use crate::error::Error;
use crate::pool_growth::{GrowthHandle, PoolGrowth};
use crate::session::Session;
use crate::sparse_repair::adopt_marks;
use crate::sparse_tree::lay_out;
use crate::tree::{LeafId, Outline, Sizes, element_bytes};
use crate::wait::{runs_at_once, told_late, wait_for_memory};

/// A tree with its memory: one zeroed allocation of the session, given back when nothing refers to the tree, or by
/// [`Tree::destroy`].
///
/// After [`Session::reset`], and after `destroy`, everything that would touch the memory gives an error.
#[derive(Debug)]
pub struct Tree {
    outline: Outline,
    sizes: Sizes,
    /// Where everything lies, if cells of some node come and go.
    sparse: Option<SparseMemory>,
    context: Arc<Context>,
    memory: RwLock<Option<Arc<Memory>>>,
    /// Where the memory begins; zero after `destroy`. Kept beside it for launches, which look often and for a moment.
    base: AtomicU64,
}

/// What kernels know of a tree with sparse nodes, and by what they tell it from others.
#[derive(Debug)]
struct SparseMemory {
    tree: Arc<SparseTree>,
    serial: u64,
    /// Of a device whose memory is not there by itself.
    growth: Option<GrowthHandle>,
    /// Whether a kernel that used it did not come to its end.
    interrupted: AtomicBool,
}

/// Tells kernels what pools have, where memory is there as soon as it is touched: their first slots if kernels ask for more, else all.
fn begin_pools(tree: &SparseTree, memory: &Memory, asks: bool) -> Result<(), MemoryError> {
    let root = &tree.pools[0];
    memory.commit(root.first + root.slot_bytes)?;
    for (number, pool) in tree.pools.iter().enumerate() {
        let (most, slot_bytes) = (pool.slots - 1, pool.bytes_of_slot());
        let capacity =
            if asks { most.min((sparse::GROWTH_STEP_BYTES / slot_bytes.max(1)) as u32) } else { most };
        if asks {
            memory.commit(u64::from(capacity) * slot_bytes)?;
        }
        let words = [
            (sparse::state::CAPACITY, capacity),
            (sparse::state::WARNING, i32::MAX as u32),
            (sparse::state::LIMIT, most),
            (sparse::state::SLOT_BYTES, slot_bytes as u32),
            (sparse::state::SLOT_BYTES + 1, (slot_bytes >> 32) as u32),
        ];
        for (word, value) in words {
            let at = sparse::state_offset(number, word);
            memory.write(HostQueue::default(), at, &value.to_le_bytes())?;
        }
    }
    Ok(())
}

/// What a pool has at least, however little memory there is.
const LEAST_POOL_BYTES: u64 = 1 << 20;

impl Tree {
    /// Allocates the memory of a whole tree.
    pub fn new(session: &Session, outline: Outline) -> Result<Arc<Self>, Error> {
        Self::new_or_cancel(session, outline, &Cancel::new())
    }

    /// Likewise; raising `cancel` ends a wait for memory that is on its way back.
    pub fn new_or_cancel(session: &Session, outline: Outline, cancel: &Cancel) -> Result<Arc<Self>, Error> {
        let sizes = outline.sizes();
        if outline.is_sparse() {
            return Self::sparse(session, outline, sizes, cancel);
        }
        let bytes = isize::try_from(sizes.tree()).ok().map(isize::cast_unsigned);
        let bytes = bytes.ok_or(Error::OutOfMemory { bytes: sizes.tree() })?;
        let context = Arc::clone(session.context());
        let memory = Memory::allocate_or_cancel(&context, bytes, cancel)
            .map_err(|error| not_allocated(error, refused))?;
        let base = memory.address().map_err(|_| STALE)?.0;
        let memory = RwLock::new(Some(Arc::new(memory)));
        Ok(Arc::new(Self { outline, sizes, sparse: None, context, memory, base: AtomicU64::new(base) }))
    }

    /// Reserves memory for the root's cell and the pools.
    fn sparse(
        session: &Session,
        outline: Outline,
        sizes: Sizes,
        cancel: &Cancel,
    ) -> Result<Arc<Self>, Error> {
        let context = Arc::clone(session.context());
        let grows = context.has_growing_ranges();
        let reserve = if grows { Memory::reserve_range } else { Memory::reserve };
        let limit = session.options().sparse_memory_limit.unwrap_or(u64::MAX);
        let mut pool_bytes = Memory::reservable(&context).min(limit);
        let (mut tree, memory) = loop {
            let (tree, bytes) = lay_out(&outline, &sizes, pool_bytes)?;
            let bytes = isize::try_from(bytes).ok().map(isize::cast_unsigned);
            let bytes = bytes.ok_or(Error::OutOfMemory { bytes: u64::MAX })?;
            match reserve(&context, bytes, cancel) {
                Ok(memory) => break (tree, Arc::new(memory)),
                // Less for each pool: an error when they are full is better than none of them.
                Err(MemoryError::Device(_)) if pool_bytes > LEAST_POOL_BYTES => pool_bytes /= 2,
                Err(error) => return Err(not_allocated(error, refused)),
            }
        };
        let growth = if grows {
            let growth = PoolGrowth::new(&context, &mut tree, &memory);
            Some(session.keep_growing(growth.map_err(|error| not_allocated(error, refused))?)?)
        } else {
            let asks = context.commits_on_demand();
            begin_pools(&tree, &memory, asks).map_err(|error| not_allocated(error, refused))?;
            None
        };
        let base = AtomicU64::new(memory.address().map_err(|_| STALE)?.0);
        let memory = RwLock::new(Some(memory));
        let serial = session.next_tree();
        let interrupted = AtomicBool::new(false);
        let sparse = Some(SparseMemory { tree: Arc::new(tree), serial, growth, interrupted });
        Ok(Arc::new(Self { outline, sizes, sparse, context, memory, base }))
    }

    /// Where everything lies, if cells of some node come and go, and the number of this tree.
    pub fn sparse_tree(&self) -> Option<(&Arc<SparseTree>, u64)> {
        self.sparse.as_ref().map(|sparse| (&sparse.tree, sparse.serial))
    }

    /// A word of a pool's state.
    pub fn pool_state(&self, pool: usize, word: u32, queue: HostQueue<'_>) -> Result<i32, Error> {
        let mut bytes = [0; 4];
        let at = sparse::state_offset(pool, word);
        self.memory()?.read(queue, at, &mut bytes).map_err(refused)?;
        Ok(i32::from_le_bytes(bytes))
    }

    /// The memory from an offset on, for code that knows what lies there.
    pub fn view(self: &Arc<Self>, session: &Session, offset: u64) -> FieldLeaf {
        let layout = session.intern_layout(Layout::row_major(&[], 4));
        let element = Scalar::I32.into();
        FieldLeaf { tree: Arc::clone(self), element, layout, offset, name: "".into(), sparse: None }
    }

    pub fn outline(&self) -> &Outline {
        &self.outline
    }

    pub fn sizes(&self) -> &Sizes {
        &self.sizes
    }

    /// Gives the memory back as soon as no launch is in the middle of using it. Fields of the tree refuse from now on.
    pub fn destroy(&self) -> Result<(), Error> {
        self.context.check().map_err(|_| STALE)?;
        let releases = self.context.deferred_frees();
        releases.announce();
        self.base.store(0, Ordering::SeqCst);
        let memory = self.memory.write().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(growth) = self.growth() {
            growth.retire();
        }
        releases.give_back(memory.ok_or(Error::Destroyed { what: TREE })?);
        Ok(())
    }

    /// The memory, kept from being given back while the handle lives.
    pub fn memory(&self) -> Result<Arc<Memory>, Error> {
        self.context.check().map_err(|_| STALE)?;
        self.memory
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
            .ok_or(Error::Destroyed { what: TREE })
    }

    /// A kernel that used the tree failed or was interrupted: the next launch puts in order what it left.
    pub fn note_interrupted(&self) {
        if let Some(sparse) = &self.sparse {
            sparse.interrupted.store(true, Ordering::Release);
            // Addresses are put together anew, so that the next launch comes by.
            self.context.deferred_frees().announce();
        }
    }

    /// Puts in order what an interrupted kernel left, unless some kernel is at work: then a later launch does. Whoever launches sees to it that no
    /// other launch begins meanwhile.
    #[cold]
    fn repair(&self, sparse: &SparseMemory) -> Result<(), Error> {
        let memory = self.memory()?;
        if memory.is_in_use() {
            self.context.deferred_frees().announce();
            return Ok(());
        }
        sparse.interrupted.store(false, Ordering::Release);
        adopt_marks(&sparse.tree, &memory).map_err(|error| {
            // Some marks are left: a later launch tries again.
            self.note_interrupted();
            refused(error)
        })
    }

    fn growth(&self) -> Option<&GrowthHandle> {
        self.sparse.as_ref()?.growth.as_ref()
    }

    /// Bytes of a pool that are there, where memory is not there by itself.
    pub fn backed_bytes(&self, pool: usize) -> Option<u64> {
        let (slots, slot_bytes) = self.growth()?.growth().backed(pool);
        Some((u64::from(slots) + 1) * slot_bytes)
    }

    #[inline]
    fn base(&self) -> Result<u64, Error> {
        self.context.check().map_err(|_| STALE)?;
        if let Some(sparse) = &self.sparse {
            if let Some(growth) = &sparse.growth {
                growth.touch();
            }
            if sparse.interrupted.load(Ordering::Acquire) {
                self.repair(sparse)?;
            }
        }
        match self.base.load(Ordering::Acquire) {
            0 => Err(Error::Destroyed { what: TREE }),
            base => Ok(base),
        }
    }

    /// The elements of a leaf.
    pub fn leaf(self: &Arc<Self>, session: &Session, leaf: LeafId, name: Arc<str>) -> FieldLeaf {
        let (layout, mut offset) = self.outline.leaf_layout(leaf, &self.sizes);
        let element = self.outline.leaf(leaf).element;
        let layout = session.intern_layout(layout);
        let mut place = None;
        if let Some(SparseMemory { tree, serial, .. }) = &self.sparse {
            offset += tree.pools[0].first;
            place = layout.is_sparse().then(|| {
                Arc::new(SparseLeaf {
                    tree: Arc::clone(tree),
                    serial: *serial,
                    leaf: leaf.number(),
                    entry: None,
                })
            });
        }
        FieldLeaf { tree: Arc::clone(self), element, layout, offset, name, sparse: place }
    }
}

const STALE: Error = Error::Stale { what: "field" };
const TREE: &str = "field's tree";

/// Elements of one scalar or tensor type that lie in a tree: a field, or one member or entry of it.
#[derive(Clone, Debug)]
pub struct FieldLeaf {
    tree: Arc<Tree>,
    element: Data,
    layout: Arc<Layout>,
    /// Bytes from the tree's beginning to the first element.
    offset: u64,
    name: Arc<str>,
    /// Where it lies in its tree, if some elements may not be there; the offset means nothing then.
    sparse: Option<Arc<SparseLeaf>>,
}

impl FieldLeaf {
    /// A scalar, or a tensor whose entries lie side by side.
    pub fn elem(&self) -> Data {
        self.element
    }

    /// The type of a scalar, or of a tensor's entries.
    pub fn scalar(&self) -> Scalar {
        self.element.elem().expect("checked when the leaf was placed")
    }

    /// How many scalars lie in one element.
    pub fn entries(&self) -> usize {
        self.element.tensor_shape().map_or(1, TensorShape::count) as usize
    }

    /// Interned by the session: two leaves are laid out alike if these are the same.
    pub fn layout(&self) -> &Arc<Layout> {
        &self.layout
    }

    /// What a field of this leaf alone is.
    pub fn kind(&self) -> FieldKind {
        let (layout, sparse) = (Arc::clone(&self.layout), self.sparse.clone());
        FieldKind::Leaf { elem: self.element, layout, sparse }
    }

    pub fn name(&self) -> &Arc<str> {
        &self.name
    }

    #[inline]
    pub fn tree(&self) -> &Arc<Tree> {
        &self.tree
    }

    /// Where the first element lies.
    #[inline]
    pub fn address(&self) -> Result<u64, Error> {
        Ok(self.tree.base()?.wrapping_add(self.offset))
    }

    /// Where its first element lies in its tree, if elements may not be there: of slot 0, in bytes from the tree's beginning.
    pub fn sparse_offset(&self) -> Option<u64> {
        let leaf = self.sparse.as_deref()?;
        let entry = u64::from(leaf.entry.unwrap_or(0)) * u64::from(self.scalar().bytes());
        Some(leaf.tree.leaf_view(leaf.leaf as usize).0 + entry)
    }

    /// Where its first element lies, of slot 0 if elements may not be there: no other leaf's does.
    pub fn first_address(&self) -> Result<u64, Error> {
        Ok(self.tree.base()? + self.sparse_offset().unwrap_or(self.offset))
    }

    /// Whether another leaf has its elements in the same cells.
    pub fn shares_cells(&self, other: &Self) -> bool {
        match (self.sparse.as_deref(), other.sparse.as_deref()) {
            (Some(one), Some(other)) => {
                let parent = |leaf: &SparseLeaf| leaf.tree.leaves[leaf.leaf as usize].parent;
                one.serial == other.serial && parent(one) == parent(other)
            }
            _ => false,
        }
    }

    /// The tree's memory from an offset on, as [`Tree::view`].
    #[must_use]
    pub fn view(&self, session: &Session, offset: u64) -> Self {
        self.tree.view(session, offset)
    }

    /// Whether a launch takes nothing of it but its address, which is the same until the tree is destroyed.
    pub fn is_fixed(&self) -> bool {
        self.tree.growth().is_none()
    }

    /// Whether elements may not be there. The host reaches them by kernels only.
    pub fn is_sparse(&self) -> bool {
        self.sparse.is_some()
    }

    /// The address of the tree's memory from an offset on, in the session of a kernel.
    #[inline]
    pub fn view_for(&self, kernel: &CompiledKernel, offset: u64) -> Result<u64, Error> {
        self.address_for(kernel).map(|address| address.wrapping_sub(self.offset).wrapping_add(offset))
    }

    /// As [`FieldLeaf::address`], in the session of a kernel: a field of another one is refused.
    #[inline]
    pub fn address_for(&self, kernel: &CompiledKernel) -> Result<u64, Error> {
        let address = self.address()?;
        if Arc::ptr_eq(&self.tree.context, kernel.context()) {
            Ok(address)
        } else {
            Err(Error::OtherSession { what: "field" })
        }
    }

    /// One entry of the elements, as scalars.
    pub fn entry(&self, entry: usize, name: Arc<str>) -> Result<Self, Error> {
        if entry >= self.entries() {
            return Err(Error::invalid(format!(
                "an element has {} entries, there is no {entry}",
                self.entries()
            )));
        }
        let offset = self.offset + entry as u64 * u64::from(self.scalar().bytes());
        let sparse = self
            .sparse
            .as_deref()
            .map(|leaf| Arc::new(SparseLeaf { entry: Some(entry as u32), ..leaf.clone() }));
        Ok(Self { element: self.scalar().into(), offset, name, sparse, ..self.clone() })
    }

    /// The element's offset in the tree, if the index lies inside the shape. That of a sparse leaf is of no use but to know this.
    pub fn place(&self, index: &[i64]) -> Option<Place> {
        self.layout.offset_of(index).map(|offset| Place((self.offset + offset) as usize))
    }

    /// Whether no work can be under way that a copy to the host would wait for.
    pub fn is_at_rest(&self) -> bool {
        runs_at_once(&self.tree.context) && !self.is_used_by_streams()
    }

    /// Whether a stream beside the default one may be at work on the tree.
    pub fn is_used_by_streams(&self) -> bool {
        self.tree.memory().is_ok_and(|memory| memory.is_used_by_streams())
    }

    /// Waits for what was launched before in the queue's stream, and in others that use the tree; a copy to the host is soon over then.
    pub fn wait(&self, queue: HostQueue<'_>) -> Result<(), Error> {
        wait_for_memory(&*self.tree.memory()?, queue)
    }

    /// An element: one constant for each entry.
    pub fn get(&self, place: Place, queue: HostQueue<'_>) -> Result<Vec<Const>, Error> {
        let width = self.scalar().bytes() as usize;
        let mut bytes = vec![0; width * self.entries()];
        self.tree.memory()?.read(queue, place.0, &mut bytes).map_err(refused)?;
        told_late(&self.tree.context)?;
        Ok(bytes.chunks_exact(width).map(|one| decode(self.scalar(), one)).collect())
    }

    /// Sets entries of an element, from one on; each constant has the leaf's scalar type.
    pub fn set(
        &self,
        place: Place,
        first: usize,
        values: &[Const],
        queue: HostQueue<'_>,
    ) -> Result<(), Error> {
        if first + values.len() > self.entries() {
            return Err(Error::invalid(format!("an element has {} entries", self.entries())));
        }
        let bytes = self.encode(values)?;
        let offset = place.0 + first * self.scalar().bytes() as usize;
        self.tree.memory()?.write(queue, offset, &bytes).map_err(refused)
    }

    /// Sets every element: one constant for all entries, or one for each.
    pub fn fill(&self, value: &[Const], queue: HostQueue<'_>) -> Result<(), Error> {
        let mut bytes = self.encode(value)?;
        if value.len() == 1 {
            bytes = bytes.repeat(self.entries());
        }
        if bytes.len() as u64 != element_bytes(self.element) {
            let (found, entries) = (value.len(), self.entries());
            return Err(Error::invalid(format!(
                "an element has {entries} entries, but the value has {found}"
            )));
        }
        let memory = self.tree.memory()?;
        if self.is_whole_tree() {
            return memory.fill(queue, &bytes).map_err(refused);
        }
        let mut what = self.strided(element_bytes(self.element));
        what.loops.iter_mut().for_each(|one| one.host = 0);
        // Lay the loops as they lie in memory.
        what.loops.sort_by_key(|one| std::cmp::Reverse(one.device));
        memory.write_strided(queue, &what.merged(), &bytes).map_err(refused)
    }

    /// Copies all elements to the host, in row-major order of the indices. They may be a part of larger elements
    /// there: `host` says how those lie; else nothing lies between them.
    pub fn read(&self, to: &mut [u8], host: Option<HostStride>, queue: HostQueue<'_>) -> Result<(), Error> {
        let HostStride { stride, offset } = self.host_stride(to.len(), host)?;
        let what = self.strided(stride as u64).merged();
        self.tree.memory()?.read_strided(queue, &what, &mut to[offset..]).map_err(refused)?;
        told_late(&self.tree.context)
    }

    /// Sets all elements from the host; see [`FieldLeaf::read`].
    pub fn write(&self, from: &[u8], host: Option<HostStride>, queue: HostQueue<'_>) -> Result<(), Error> {
        let HostStride { stride, offset } = self.host_stride(from.len(), host)?;
        let what = self.strided(stride as u64).merged();
        self.tree.memory()?.write_strided(queue, &what, &from[offset..]).map_err(refused)
    }

    /// Copies the elements of several leaves to the host, or from there, where those of one index lie side by side in the order of the leaves.
    pub fn copy_together(leaves: &[&Self], host: HostSide<'_>, queue: HostQueue<'_>) -> Result<(), Error> {
        let stride: u64 = leaves.iter().map(|leaf| element_bytes(leaf.element)).sum();
        let (mut offset, mut copies) = (0, Vec::new());
        for leaf in leaves {
            leaf.host_stride(host.len(), Some(HostStride { stride: stride as usize, offset }))?;
            copies.push((leaf.tree.memory()?, leaf.strided(stride)));
            offset += element_bytes(leaf.element) as usize;
        }
        octants_runtime::copy_together(&copies, host, queue).map_err(refused)?;
        leaves.first().map_or(Ok(()), |leaf| told_late(&leaf.tree.context))
    }

    /// Copies all elements of other leaves to these, without a detour over the host's order, if both have the same elements and lie in memory that the host sees; says
    /// whether they are such.
    pub fn copy_leaves(to: &[&Self], from: &[&Self], queue: HostQueue<'_>) -> Result<bool, Error> {
        let Some(first) = to.first() else { return Ok(false) };
        let is_beside =
            |leaf: &&Self| !leaf.is_sparse() && Arc::ptr_eq(&leaf.tree.context, &first.tree.context);
        if to.len() != from.len() || !to.iter().chain(from).all(is_beside) {
            return Ok(false);
        }
        let is_alike = |(one, other): (&&Self, &&Self)| {
            one.element == other.element && one.offset == other.offset && one.layout.lies_like(&other.layout)
        };
        let are_alike = to.iter().zip(from).all(is_alike);
        if are_alike && Self::are_whole_tree(to) && Self::are_whole_tree(from) {
            let (target, source) = (to[0].tree.memory()?, from[0].tree.memory()?);
            if target.bytes() == source.bytes() && matches!(target.host_pointer(), Ok(Some(_))) {
                target.copy_from(queue, &source).map_err(refused)?;
                return Ok(true);
            }
        }
        let copies = to.iter().zip(from).map(|(one, other)| one.strided_from(other));
        let Some(copies) = copies.collect::<Option<Vec<_>>>() else { return Ok(false) };
        for ((one, other), what) in to.iter().zip(from).zip(copies) {
            let (target, source) = (one.tree.memory()?, other.tree.memory()?);
            let offset = other.offset as usize;
            // The first says it of all that lie in its tree; what was copied is copied again else.
            if !target.copy_strided(queue, &what, &source, offset).map_err(refused)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// A copy of all elements of another leaf, whose memory stands for the host's; `None` if there is no nest of loops that says it.
    fn strided_from(&self, other: &Self) -> Option<Strided> {
        if self.element != other.element {
            return None;
        }
        let to_stride = |[count, device, host]: [u64; 3]| Stride {
            count: count as usize,
            device: device as usize,
            host: host as usize,
        };
        let mut loops: Vec<Stride> =
            self.layout.loops_with(&other.layout)?.into_iter().map(to_stride).collect();
        loops.sort_by_key(|one| std::cmp::Reverse((one.device, one.host)));
        Some(
            Strided { offset: self.offset as usize, loops, run: element_bytes(self.element) as usize }
                .merged(),
        )
    }

    /// Whether leaves are all that lies in one dense tree.
    fn are_whole_tree(leaves: &[&Self]) -> bool {
        let Some(first) = leaves.first() else { return false };
        let in_one = leaves.iter().all(|leaf| Arc::ptr_eq(&leaf.tree, &first.tree) && !leaf.is_sparse());
        in_one && leaves.iter().map(|leaf| leaf.bytes()).sum::<u64>() == first.tree.sizes.tree()
    }

    /// Bytes that all elements have together.
    pub fn bytes(&self) -> u64 {
        self.layout.count() * element_bytes(self.element)
    }

    /// Bytes from one element to the next, by axis, if there is one such number for each.
    pub fn strides(&self) -> Option<Vec<u64>> {
        let axes = 0..self.layout.rank();
        axes.map(|axis| {
            let mut digits = self.layout.digits_of(axis);
            match (digits.next(), digits.next()) {
                (None, _) => Some(element_bytes(self.element)),
                (Some(digit), None) => Some(digit.stride),
                (Some(_), Some(_)) => None,
            }
        })
        .collect()
    }

    /// Whether nothing else lies between the elements.
    pub fn is_compact(&self) -> bool {
        if self.is_sparse() {
            return false;
        }
        let element = element_bytes(self.element) as u32;
        self.layout.span(element) == self.bytes()
    }

    fn is_whole_tree(&self) -> bool {
        self.offset == 0 && self.bytes() == self.tree.sizes.tree()
    }

    /// Where the elements lie on both sides of a copy, in row-major order of the host's, where they have this stride in bytes.
    fn strided(&self, host_stride: u64) -> Strided {
        let element = element_bytes(self.element);
        let mut axis_stride = host_stride;
        let mut loops = Vec::new();
        for axis in (0..self.layout.rank()).rev() {
            for digit in self.layout.digits_of(axis).rev() {
                loops.push(Stride {
                    count: digit.extent as usize,
                    device: digit.stride as usize,
                    host: (axis_stride * u64::from(digit.below)) as usize,
                });
            }
            axis_stride *= u64::from(self.layout.shape[axis]);
        }
        loops.reverse();
        Strided { offset: self.offset as usize, loops, run: element as usize }
    }

    /// How elements lie on the host, if that many bytes hold all.
    fn host_stride(&self, bytes: usize, host: Option<HostStride>) -> Result<HostStride, Error> {
        let element = element_bytes(self.element) as usize;
        let host = host.unwrap_or(HostStride { stride: element, offset: 0 });
        let expected = self.layout.count() * host.stride as u64;
        if host.offset + element > host.stride || bytes as u64 != expected {
            return Err(Error::invalid(format!(
                "the elements have {expected} bytes on the host, not {bytes}"
            )));
        }
        Ok(host)
    }

    fn encode(&self, values: &[Const]) -> Result<Vec<u8>, Error> {
        let mut bytes = Vec::with_capacity(8 * values.len());
        for &value in values {
            if value.ty() != self.scalar() {
                let (expected, found) = (self.scalar().name(), value.ty().name());
                return Err(Error::invalid(format!("the field holds {expected}, but the value is {found}")));
            }
            bytes.extend_from_slice(Encoded::of(value).as_slice());
        }
        Ok(bytes)
    }
}

/// How elements that are parts of larger ones lie on the host, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HostStride {
    /// From one element to the next.
    pub stride: usize,
    /// Of the first element.
    pub offset: usize,
}

/// An element inside the shape of the leaf that gave it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Place(usize);

fn refused(error: MemoryError) -> Error {
    match error {
        MemoryError::Range => Error::internal("field", "a range does not lie inside the tree"),
        other => Error::of_memory(other, "field"),
    }
}
