//! A checked way to launch: arguments one by one, in the order of the parameters.

use std::fmt;
use std::sync::Arc;

use octants_ir::plan::{ArgKind, ArgSlot};
use octants_ir::{Const, Data, Order, TensorShape};

use crate::arguments::Arguments;
use crate::memory::Memory;
use crate::plan::{LaunchEnv, LaunchFailure, LaunchPlan};
use crate::version::MakeVersion;

/// Arguments for one launch of a plan. Borrows the memory until the launch is over.
pub struct Invocation<'a, M: MakeVersion> {
    plan: &'a LaunchPlan<M>,
    block: Vec<u8>,
    memories: Vec<&'a Memory>,
    given: usize,
}

/// An argument that does not fit its parameter.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ArgumentError {
    /// Another number of arguments than parameters.
    Count { expected: usize, found: usize },
    /// The parameter at this position takes something else.
    Type { position: usize, expected: ArgKind },
    /// The elements do not fit into the memory.
    Size { position: usize },
    /// The memory's session was reset.
    Stale,
    /// The memory belongs to another session.
    OtherSession,
}

impl fmt::Display for ArgumentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Count { expected, found } => write!(f, "{expected} arguments are expected, not {found}"),
            Self::Type { position, expected: ArgKind::Array(array) } if array.layout.is_some() => {
                write!(
                    f,
                    "argument {position} is to be a field of {:?} with the parameter's layout",
                    array.elem
                )
            }
            Self::Type { position, expected: ArgKind::Array(array) } => {
                write!(f, "argument {position} is to be an array of rank {} of {:?}", array.rank, array.elem)
            }
            Self::Type { position, expected: ArgKind::Data(data) } => {
                write!(f, "argument {position} is to be {data:?}")
            }
            Self::Size { position } => write!(f, "argument {position} has more elements than memory"),
            Self::Stale => f.write_str("this array belongs to a session that was reset"),
            Self::OtherSession => f.write_str("this array belongs to another session"),
        }
    }
}

impl std::error::Error for ArgumentError {}

impl<'a, M: MakeVersion> Invocation<'a, M> {
    pub fn new(plan: &'a LaunchPlan<M>) -> Self {
        Self { plan, block: vec![0; plan.args().bytes as usize], memories: Vec::new(), given: 0 }
    }

    /// The next argument is an array in this memory, of the parameter's element type and rank, row-major and dense.
    pub fn array(self, memory: &'a Memory, element: Data, shape: &[i32]) -> Result<Self, ArgumentError> {
        self.ordered_array(memory, element, shape, Order::ROW_MAJOR)
    }

    /// Likewise, with its axes in another order.
    pub fn ordered_array(
        mut self,
        memory: &'a Memory,
        element: Data,
        shape: &[i32],
        order: Order,
    ) -> Result<Self, ArgumentError> {
        let (position, slot) = self.next()?;
        let fits = slot.array().is_some_and(|array| {
            array.layout.is_none()
                && shape.len() == array.rank.into()
                && (array.elem, array.order, array.has_strides()) == (element, order, false)
        });
        if !fits {
            return Err(ArgumentError::Type { position, expected: slot.kind });
        }
        let address = memory.noted_address().map_err(|_| ArgumentError::Stale)?;
        if !Arc::ptr_eq(memory.context(), self.plan.context()) {
            return Err(ArgumentError::OtherSession);
        }
        let mut bytes = Some(bytes_of(element));
        for &extent in shape {
            bytes = bytes.zip(usize::try_from(extent).ok()).and_then(|(b, extent)| b.checked_mul(extent));
        }
        if bytes.is_none_or(|bytes| bytes > memory.bytes()) {
            return Err(ArgumentError::Size { position });
        }
        self.memories.push(memory);
        self.put(slot.offset, &address.0.to_le_bytes());
        for (axis, extent) in shape.iter().enumerate() {
            self.put(slot.extent_offset(axis as u8), &extent.to_le_bytes());
        }
        Ok(self)
    }

    /// The next argument is a field in this memory: `offset` bytes from its beginning lies the first element, and the last ends `span`
    /// bytes behind that. Whoever calls has compared its layout with the parameter's.
    pub fn field(
        mut self,
        memory: &'a Memory,
        element: Data,
        offset: usize,
        span: u64,
    ) -> Result<Self, ArgumentError> {
        let (position, slot) = self.next()?;
        let fits = slot.array().is_some_and(|array| array.elem == element && array.layout.is_some());
        if !fits || slot.span != span {
            return Err(ArgumentError::Type { position, expected: slot.kind });
        }
        let address = memory.noted_address().map_err(|_| ArgumentError::Stale)?;
        if !Arc::ptr_eq(memory.context(), self.plan.context()) {
            return Err(ArgumentError::OtherSession);
        }
        let end = usize::try_from(span).ok().and_then(|span| offset.checked_add(span));
        if end.is_none_or(|end| end > memory.bytes()) {
            return Err(ArgumentError::Size { position });
        }
        self.memories.push(memory);
        self.put(slot.offset, &address.offset(offset).0.to_le_bytes());
        Ok(self)
    }

    /// The next argument is a scalar, or a tensor or struct given by its scalars in the order of memory, of the parameter's type.
    pub fn data(mut self, scalars: &[Const]) -> Result<Self, ArgumentError> {
        let (position, slot) = self.next()?;
        let mismatch = ArgumentError::Type { position, expected: slot.kind };
        let leaves = &self.plan.args().leaves[position];
        let fits = matches!(slot.kind, ArgKind::Data(_))
            && leaves.len() == scalars.len()
            && leaves.iter().zip(scalars).all(|(&(_, ty), scalar)| scalar.ty() == ty);
        if !fits {
            return Err(mismatch);
        }
        let places: Vec<_> = leaves.iter().map(|&(offset, _)| slot.offset + offset).collect();
        for (offset, scalar) in places.into_iter().zip(scalars) {
            let width = scalar.ty().bytes() as usize;
            self.put(offset, &scalar.bits().to_le_bytes()[..width]);
        }
        Ok(self)
    }

    /// Runs the kernel. Who launches in another stream than the default one notes the uses: [`Memory::after_launch`].
    pub fn launch(
        self,
        results: &mut [u8],
        env: LaunchEnv<'_>,
    ) -> Result<Result<(), LaunchFailure<M::Error>>, ArgumentError> {
        let expected = self.plan.args().slots.len();
        if self.given != expected {
            return Err(ArgumentError::Count { expected, found: self.given });
        }
        if env.stream == self.plan.context().default_stream() {
            self.memories.iter().for_each(|memory| memory.note_default_use());
        }
        // SAFETY: every array parameter was given memory that holds its elements and is borrowed until now; memory of a session may
        // be written.
        let arguments = unsafe { Arguments::new(&self.block) };
        Ok(self.plan.launch(arguments, results, env))
    }

    /// Hands the block to a launch of the same plan that gives all but the first so many arguments itself. Until then they are zero: numbers, and
    /// arrays without elements.
    pub fn with_arguments<R>(
        self,
        expected: usize,
        launch: impl FnOnce(Arguments<'_>) -> R,
    ) -> Result<R, ArgumentError> {
        if self.given != expected {
            return Err(ArgumentError::Count { expected, found: self.given });
        }
        self.memories.iter().for_each(|memory| memory.note_default_use());
        // SAFETY: as above; extents that were not given are zero.
        Ok(launch(unsafe { Arguments::new(&self.block) }))
    }

    fn next(&mut self) -> Result<(usize, ArgSlot), ArgumentError> {
        let (position, slots) = (self.given, &self.plan.args().slots);
        self.given += 1;
        match slots.get(position) {
            Some(slot) => Ok((position, *slot)),
            None => Err(ArgumentError::Count { expected: slots.len(), found: self.given }),
        }
    }

    fn put(&mut self, offset: u32, bytes: &[u8]) {
        let offset = offset as usize;
        self.block[offset..offset + bytes.len()].copy_from_slice(bytes);
    }
}

/// Bytes of a scalar or a tensor; a struct has no arguments of its own.
fn bytes_of(data: Data) -> usize {
    let scalar = data.elem().map_or(0, octants_ir::Scalar::bytes) as usize;
    scalar * data.tensor_shape().map_or(1, TensorShape::count) as usize
}
