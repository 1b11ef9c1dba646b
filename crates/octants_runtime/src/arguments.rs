//! The block of arguments of one launch, and blocks that are made of another.

use std::marker::PhantomData;

use octants_hal::Address;
use octants_ir::Scalar;
use octants_ir::plan::{Access, ArgKind, ArgLayout, ArgSlot};

use crate::memory::Memory;
use crate::stream_memory::{StreamMemory, StreamMemoryPart};

/// Memory that an argument may be an array of.
pub trait ArrayMemory: sealed::Owner {}

impl<M: sealed::Owner> ArrayMemory for M {}

mod sealed {
    use octants_hal::Address;

    /// Only what owns its memory vouches for an address.
    pub trait Owner {
        /// Where it lies, and how many bytes it has; `None` if its session has ended.
        fn range(&self) -> Option<(Address, usize)>;
    }
}

impl sealed::Owner for Memory {
    fn range(&self) -> Option<(Address, usize)> {
        self.address().ok().map(|address| (address, self.bytes()))
    }
}

impl sealed::Owner for StreamMemory<'_> {
    fn range(&self) -> Option<(Address, usize)> {
        Some((self.address(), self.bytes()))
    }
}

impl sealed::Owner for StreamMemoryPart<'_> {
    fn range(&self) -> Option<(Address, usize)> {
        Some((self.address, self.bytes))
    }
}

/// A kernel's arguments as bytes, in the layout of its plan. Whoever makes one vouches for the addresses in it.
#[derive(Clone, Copy)]
pub struct Arguments<'a>(&'a [u8]);

impl<'a> Arguments<'a> {
    /// # Safety
    /// For each array parameter of the kernel that the block is launched with, the block holds the address of memory that lives
    /// until the launch is over, and extents such that all elements lie inside that memory; the memory may be written if the kernel
    /// writes the parameter. An array with an extent of zero may have any address. For each field it holds the address of the first
    /// element of a field that is laid out as the parameter's layout says.
    pub unsafe fn new(block: &'a [u8]) -> Self {
        Self(block)
    }

    pub fn bytes(self) -> &'a [u8] {
        self.0
    }
}

/// A block that is made of another launch's: with arrays of the launch's own memory in the place of some, or for another kernel. Borrows their
/// memory, and that of the other block.
pub struct DerivedArguments<'a> {
    block: Vec<u8>,
    slots: Vec<ArgSlot>,
    borrows: PhantomData<&'a ()>,
}

impl<'a> DerivedArguments<'a> {
    /// The same block, for the same kernel. `None` if it is not in the kernel's layout.
    pub fn same(args: Arguments<'a>, layout: &ArgLayout) -> Option<Self> {
        let block = args.bytes().to_vec();
        let fits = block.len() == layout.bytes as usize;
        fits.then(|| Self { block, slots: layout.slots.clone(), borrows: PhantomData })
    }

    /// For a kernel whose first parameters are the first ones of the block's kernel, and which only reads those. Arrays behind them are
    /// empty. `None` if its parameters are others, or it writes one of them.
    pub fn for_reader(
        args: Arguments<'a>,
        layout: &ArgLayout,
        shared: usize,
        reader: &ArgLayout,
        access: &[Access],
    ) -> Option<Self> {
        let same = layout.slots.get(..shared)? == reader.slots.get(..shared)?;
        let reads = !access.get(..shared)?.iter().any(|access| access.written);
        let may_be_empty = |slot: &ArgSlot| slot.array().is_some_and(|array| array.layout.is_none());
        let others = reader.slots[shared..].iter().all(may_be_empty);
        if !same || !reads || !others || args.bytes().len() != layout.bytes as usize {
            return None;
        }
        let end = reader.slots[shared..].first().map_or(reader.bytes, |slot| slot.offset) as usize;
        let mut block = args.bytes().get(..end.min(args.bytes().len()))?.to_vec();
        block.resize(reader.bytes as usize, 0);
        Some(Self { block, slots: reader.slots.clone(), borrows: PhantomData })
    }

    /// The parameter gets this memory, as a dense array. `false` if it does not fit: another type or rank, or more elements than there are.
    pub fn set_array(
        &mut self,
        param: usize,
        memory: &'a impl ArrayMemory,
        scalar: Scalar,
        shape: &[i32],
    ) -> bool {
        let Some(slot) = self.slots.get(param).copied() else { return false };
        let fits = slot.array().is_some_and(|array| {
            let plain = array.layout.is_none() && !array.has_strides();
            plain && array.elem == scalar.into() && usize::from(array.rank) == shape.len()
        });
        let bytes = shape.iter().try_fold(scalar.bytes() as usize, |bytes, &extent| {
            usize::try_from(extent).ok().and_then(|extent| bytes.checked_mul(extent))
        });
        let (Some((address, size)), Some(bytes), true) = (memory.range(), bytes, fits) else { return false };
        if bytes > size {
            return false;
        }
        let mut put = |offset: u32, bytes: &[u8]| {
            self.block[offset as usize..][..bytes.len()].copy_from_slice(bytes);
        };
        put(slot.offset, &address.0.to_le_bytes());
        for (axis, extent) in (0..).zip(shape) {
            put(slot.extent_offset(axis), &extent.to_le_bytes());
        }
        true
    }

    /// The parameter, an `i32`, gets this value. `false` if it is another one.
    pub fn set_i32(&mut self, param: usize, value: i32) -> bool {
        let Some(slot) = self.slots.get(param).filter(|slot| slot.kind == ArgKind::Data(Scalar::I32.into()))
        else {
            return false;
        };
        self.block[slot.offset as usize..][..4].copy_from_slice(&value.to_le_bytes());
        true
    }

    pub fn arguments(&self) -> Arguments<'_> {
        // What whoever made the first block vouched for holds of it still; what was put in its place is borrowed, and large enough.
        Arguments(&self.block)
    }
}
