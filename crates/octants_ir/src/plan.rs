//! What a launch does with a kernel: how arguments, temporaries and results lie in memory, and which tasks run over which
//! bounds. Data, the layouts that follow from a kernel, and the evaluation of bounds; making a plan is a pass's work.

mod schedule;
mod text;

pub use schedule::{Branch, Schedule, Work};
pub use text::print;

use serde::{Deserialize, Serialize};

use crate::ids::Value;
use crate::kernel::Kernel;
use crate::ops::{ArithOp, Effects, OpKind, TensorOp};
use crate::site::SiteTable;
use crate::types::{ArrayType, Data, Scalar, ScalarClass, Type};

/// A kernel in its tasks phase, as a launch sees it. It refers to no op and no value, so that it can be stored without the kernel;
/// a task's number names the kernel's op ([`Kernel::tasks`]).
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Plan {
    pub args: ArgLayout,
    pub temps: TempLayout,
    pub results: ResultLayout,
    /// By number. The code of task `k` is the function `<kernel>_t<k>`.
    pub tasks: Vec<Task>,
    /// In which order they run.
    pub schedule: Schedule,
    /// What the kernel does with each parameter's memory; nothing for parameters that are no arrays.
    pub access: Vec<Access>,
    /// The tasks are right only if no two array arguments overlap, unless both are only read.
    pub needs_noalias: bool,
    pub uses: LaunchUses,
    pub run_time: RunTime,
    /// What the tasks report to the host, by the numbers that their code uses.
    pub sites: SiteTable,
}

/// What is known of a kernel's running time before its launch.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub enum RunTime {
    /// Some task may run for any time.
    #[default]
    Unknown,
    /// Every loop's bounds are known at launch. Serial tasks run for about this many instructions together.
    Bounded { serial_cost: u64 },
}

/// What a kernel wants of a launch, apart from memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct LaunchUses {
    /// It prints.
    pub output: bool,
    /// It reads the launch's key: it has random numbers.
    pub key: bool,
}

impl LaunchUses {
    pub fn of(kernel: &Kernel) -> Self {
        let mut uses = Self::default();
        crate::rewrite::walk_all(kernel, &mut |op| {
            let effects = kernel.ops[op].kind.effects();
            uses.output |= effects.contains(Effects::OUTPUT);
            uses.key |= effects.contains(Effects::KEY);
        });
        uses
    }
}

/// What a kernel does with the memory of an array.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Access {
    pub read: bool,
    pub written: bool,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum Task {
    /// The region of a `serial` op, run once.
    Serial,
    /// The region of a `parallel_for` op, run for each point of its domain.
    Range {
        /// `lo` and `hi` of each axis, outermost first; the last axis runs fastest.
        axes: Vec<(Bound, Bound)>,
        /// At most this many threads; 1 means strictly in order.
        max_threads: Option<u32>,
        /// Iterations that one thread takes at once, where the user said so.
        block_dim: Option<u32>,
        name: Option<String>,
        /// Roughly how many instructions an iteration runs.
        cost: u32,
        /// How many neighbouring iterations its threads run together: what their number is a multiple of.
        multiple: Option<u32>,
        /// Arrays that its code adds to without regard to other threads: each thread has a copy of its own.
        copied: Vec<Copied>,
    },
}

/// An array that a parallel loop only adds to. Each thread adds to a copy, which is neutral at first; the copies are added to the
/// array when the loop is done.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Copied {
    pub param: usize,
    /// What its elements are made of: integers or reals of 32 or 64 bits.
    pub scalar: Scalar,
    /// Roughly how many additions an iteration makes.
    pub updates: u32,
    /// Bytes from the first element to behind the last one, of a field. Those of an array are known at launch.
    pub span: Option<u64>,
}

impl Copied {
    /// Bytes of the array in this block of arguments.
    ///
    /// # Panics
    /// If the block is smaller than its layout.
    pub fn bytes(&self, args: &ArgLayout, block: &[u8]) -> u64 {
        let slot = &args.slots[self.param];
        let rank = slot.array().map_or(0, |array| array.rank);
        self.span.unwrap_or_else(|| {
            let extents = (0..rank).map(|axis| read_integer(block, slot.extent_offset(axis), Scalar::I32));
            extents.fold(slot.bytes.into(), |bytes: u64, extent| bytes.saturating_mul(extent.max(0) as u64))
        })
    }
}

impl Task {
    /// Whether every bound that needs a temporary is one, so that it can be read where it lies.
    pub fn has_plain_bounds(&self) -> bool {
        let plain = |bound: &Bound| matches!(bound, Bound::Temp(_)) || !bound.needs_temps();
        match self {
            Self::Serial => true,
            // The host looks whether blocks are whole.
            Self::Range { axes, multiple, .. } => {
                multiple.is_none() && axes.iter().all(|(lo, hi)| plain(lo) && plain(hi))
            }
        }
    }

    /// Whether its bounds are known only once an earlier task has run.
    pub fn needs_temps(&self) -> bool {
        match self {
            Self::Serial => false,
            Self::Range { axes, .. } => axes.iter().any(|(lo, hi)| lo.needs_temps() || hi.needs_temps()),
        }
    }
}

/// An integer that the host evaluates at launch.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Bound {
    Const(i64),
    /// An integer parameter, by position.
    Param(usize),
    Extent {
        param: usize,
        axis: u8,
    },
    /// An integer inside a parameter that is a tensor or a struct, by where it lies in the block of arguments.
    Part {
        offset: u32,
        ty: Scalar,
    },
    /// What an earlier task stored in a temporary, by its place in [`TempLayout::slots`].
    Temp(usize),
    /// Wraps to the type, as the op does.
    Arith {
        op: ArithOp,
        ty: Scalar,
        a: Box<Bound>,
        b: Box<Bound>,
    },
    /// From an integer to an integer.
    Cast {
        to: Scalar,
        value: Box<Bound>,
    },
}

impl Bound {
    /// Whether an earlier task must have run.
    pub fn needs_temps(&self) -> bool {
        match self {
            Self::Const(_) | Self::Param(_) | Self::Extent { .. } | Self::Part { .. } => false,
            Self::Temp(_) => true,
            Self::Arith { a, b, .. } => a.needs_temps() || b.needs_temps(),
            Self::Cast { value, .. } => value.needs_temps(),
        }
    }

    /// The bound's value; `args` and `temps` are blocks in the plan's layouts. A `u64` comes as its bits.
    ///
    /// # Panics
    /// If a block is smaller than its layout, or the bound names what the layouts do not have.
    pub fn evaluate(&self, plan: &Plan, args: &[u8], temps: &[u8]) -> i64 {
        match self {
            Self::Const(value) => *value,
            Self::Param(param) => {
                let slot = &plan.args.slots[*param];
                let ArgKind::Data(Data::Scalar(ty)) = slot.kind else {
                    panic!("the bound names parameter {param}, which is no scalar")
                };
                read_integer(args, slot.offset, ty)
            }
            Self::Extent { param, axis } => {
                read_integer(args, plan.args.slots[*param].extent_offset(*axis), Scalar::I32)
            }
            Self::Part { offset, ty } => read_integer(args, *offset, *ty),
            Self::Temp(temp) => {
                let slot = &plan.temps.slots[*temp];
                let ty = slot.data.scalar().expect("a bound's temporary holds a scalar");
                read_integer(temps, slot.offset, ty)
            }
            Self::Arith { op, ty, a, b } => {
                integer_arith(*op, *ty, a.evaluate(plan, args, temps), b.evaluate(plan, args, temps))
            }
            Self::Cast { to, value } => wrap(*to, value.evaluate(plan, args, temps)),
        }
    }
}

/// An integer of a block, extended to 64 bits.
///
/// # Panics
/// If it lies behind the end of the block.
pub fn read_integer(block: &[u8], offset: u32, ty: Scalar) -> i64 {
    let offset = offset as usize;
    let mut bytes = [0; 8];
    let width = ty.bytes() as usize;
    bytes[..width].copy_from_slice(&block[offset..offset + width]);
    let raw = i64::from_le_bytes(bytes);
    // A `u1` in memory is 0 or 1 already; what else a caller wrote there means true.
    if ty == Scalar::U1 { (raw != 0).into() } else { reduce(ty, raw) }
}

/// The low bits of `value`, extended as the type's sign says.
fn reduce(ty: Scalar, value: i64) -> i64 {
    let shift = 64 - ty.bits();
    match ty.class() {
        ScalarClass::Signed => (value << shift) >> shift,
        ScalarClass::Bool | ScalarClass::Unsigned => (((value as u64) << shift) >> shift) as i64,
        ScalarClass::Real => panic!("a bound is an integer"),
    }
}

/// A cast between integers: to `u1` means non-zero.
fn wrap(to: Scalar, value: i64) -> i64 {
    if to == Scalar::U1 { (value != 0).into() } else { reduce(to, value) }
}

/// Two-operand integer arithmetic as the ops' table says: wraps, and division by zero gives 0. Unary ops ignore `b`.
fn integer_arith(op: ArithOp, ty: Scalar, a: i64, b: i64) -> i64 {
    // Wide enough that nothing here overflows, for both signs of 64 bits.
    let wide = |v: i64| if ty.is_signed() { i128::from(v) } else { i128::from(v as u64) };
    let (a, b) = (wide(a), wide(b));
    let value = match op {
        ArithOp::Add => a + b,
        ArithOp::Sub => a - b,
        ArithOp::Mul => a.wrapping_mul(b),
        ArithOp::FloorDiv if b == 0 => 0,
        ArithOp::FloorDiv => a.div_euclid(b) - i128::from(b < 0 && a.rem_euclid(b) != 0),
        ArithOp::Mod if b == 0 => 0,
        ArithOp::Mod => {
            let rest = a.rem_euclid(b);
            if b < 0 && rest != 0 { rest + b } else { rest }
        }
        ArithOp::Div | ArithOp::RawDiv => a.checked_div(b).unwrap_or(0),
        ArithOp::RawMod => a.checked_rem(b).unwrap_or(0),
        ArithOp::Min => a.min(b),
        ArithOp::Max => a.max(b),
        ArithOp::Neg => -a,
        ArithOp::Abs => a.abs(),
    };
    reduce(ty, value as i64)
}

/// The block of arguments: natural alignment, in order of the parameters.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct ArgLayout {
    pub bytes: u32,
    pub slots: Vec<ArgSlot>,
    /// For each slot the scalars that its data is made of, from the slot's beginning; none for an array.
    pub leaves: Vec<Vec<(u32, Scalar)>>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ArgSlot {
    pub offset: u32,
    /// Of the value; of one element, if it is an array.
    pub bytes: u32,
    /// Of all of a field, from its first element to its last; otherwise the same as `bytes`.
    pub span: u64,
    pub kind: ArgKind,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum ArgKind {
    /// The bytes of the value; a `u1` takes one.
    Data(Data),
    /// An address of eight bytes, then an `i32` for each extent, padded to a multiple of eight; then, unless the array is dense, an `i64`
    /// for each stride, in scalars. A field is the address alone.
    Array(ArrayType),
}

impl ArgSlot {
    /// Where an array's extent of an axis lies; a field has none here.
    pub fn extent_offset(&self, axis: u8) -> u32 {
        self.offset + 8 + 4 * u32::from(axis)
    }

    /// Where the stride of an axis lies, of an array that is not dense.
    pub fn stride_offset(&self, axis: u8) -> u32 {
        let rank = self.array().map_or(0, |array| u32::from(array.rank));
        self.offset + 8 + (4 * rank).next_multiple_of(8) + 8 * u32::from(axis)
    }

    /// Of an array that is not dense, in this block of arguments: the lowest byte of its elements, and the end of the highest.
    ///
    /// # Panics
    /// If the block is smaller than its layout.
    pub fn spaced_range(&self, block: &[u8]) -> (u64, u64) {
        let rank = self.array().map_or(0, |array| array.rank);
        let scalar = self.array().and_then(|array| array.elem.elem()).map_or(1, Scalar::bytes);
        let start = read_integer(block, self.offset, Scalar::I64).cast_unsigned();
        let (mut below, mut above) = (0_u64, u64::from(self.bytes));
        for axis in 0..rank {
            let extent = read_integer(block, self.extent_offset(axis), Scalar::I32);
            let stride = read_integer(block, self.stride_offset(axis), Scalar::I64);
            let reach = stride.wrapping_mul(scalar.into()).wrapping_mul(extent - 1);
            match extent {
                0 => return (start, start),
                _ if reach < 0 => below = below.wrapping_add(reach.unsigned_abs()),
                _ => above = above.wrapping_add(reach.unsigned_abs()),
            }
        }
        (start.wrapping_sub(below), start.wrapping_add(above))
    }

    pub fn array(&self) -> Option<ArrayType> {
        match self.kind {
            ArgKind::Array(array) => Some(array),
            ArgKind::Data(_) => None,
        }
    }
}

impl ArgLayout {
    pub fn of(kernel: &Kernel) -> Self {
        let mut block = Block::default();
        let params = &kernel.regions[kernel.body].params;
        let slots = params
            .iter()
            .map(|&param| match kernel.ty(param) {
                Type::Array(array) => {
                    let extents = if array.layout.is_some() { 0 } else { array.rank };
                    let strides = if array.has_strides() { array.rank } else { 0 };
                    let bytes = 8 + (4 * u32::from(extents)).next_multiple_of(8) + 8 * u32::from(strides);
                    let element = size_and_align(kernel, array.elem).0;
                    let span = kernel.layout(array).map_or(element.into(), |layout| layout.span(element));
                    let offset = block.put(bytes, 8);
                    ArgSlot { offset, bytes: element, span, kind: ArgKind::Array(array) }
                }
                Type::Data(data) | Type::Local(data) | Type::Temp(data) => {
                    let (bytes, offset) = (size_and_align(kernel, data).0, block.put_data(kernel, data));
                    ArgSlot { offset, bytes, span: bytes.into(), kind: ArgKind::Data(data) }
                }
                Type::Tape(_) => unreachable!("no parameter is a tape"),
            })
            .collect();
        let leaves = params.iter().map(|&param| match kernel.ty(param) {
            Type::Array(_) | Type::Tape(_) => Vec::new(),
            Type::Data(data) | Type::Local(data) | Type::Temp(data) => leaves_of(kernel, data),
        });
        Self { bytes: block.bytes(), leaves: leaves.collect(), slots }
    }
}

/// The cells that tasks of one launch share; zero at first.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct TempLayout {
    pub bytes: u32,
    /// One for each temporary, in the order of [`Kernel::temps`].
    pub slots: Vec<TempSlot>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct TempSlot {
    pub offset: u32,
    pub data: Data,
}

impl TempLayout {
    pub fn of(kernel: &Kernel) -> Self {
        let mut block = Block::default();
        let slots = kernel
            .temps()
            .filter_map(|value| {
                let (data, _) = kernel.ty(value).place()?;
                Some(TempSlot { offset: block.put_data(kernel, data), data })
            })
            .collect();
        Self { bytes: block.bytes(), slots }
    }
}

/// The block that the kernel's results are written to.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct ResultLayout {
    pub bytes: u32,
    pub slots: Vec<ResultSlot>,
    /// For each slot the scalars that its data is made of, from the slot's beginning.
    pub leaves: Vec<Vec<(u32, Scalar)>>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ResultSlot {
    pub offset: u32,
    pub data: Data,
}

impl ResultLayout {
    pub fn of(kernel: &Kernel) -> Self {
        let mut block = Block::default();
        let slots = kernel
            .results
            .iter()
            .map(|&data| ResultSlot { offset: block.put_data(kernel, data), data })
            .collect();
        let leaves = kernel.results.iter().map(|&data| leaves_of(kernel, data)).collect();
        Self { bytes: block.bytes(), slots, leaves }
    }
}

/// Bytes and alignment of data in memory: entries of a tensor lie close, members of a struct are aligned as in C.
pub fn size_and_align(kernel: &Kernel, data: Data) -> (u32, u32) {
    match data {
        Data::Scalar(scalar) => (scalar.bytes(), scalar.bytes()),
        Data::Tensor(tensor) => (tensor.elem.bytes() * tensor.shape.count(), tensor.elem.bytes()),
        Data::Struct(id) => {
            let mut block = Block::default();
            for &(_, member) in &kernel.structs[id].members {
                block.put_data(kernel, member);
            }
            (block.end.next_multiple_of(block.align.max(1)), block.align.max(1))
        }
    }
}

/// Where a member of a struct begins.
pub fn member_offset(kernel: &Kernel, structure: crate::StructId, member: u32) -> u32 {
    let mut block = Block::default();
    let mut offset = 0;
    for &(_, data) in &kernel.structs[structure].members[..=member as usize] {
        offset = block.put_data(kernel, data);
    }
    offset
}

/// Where a part of a parameter lies, if the value is one: which parameter, how many bytes from its beginning, and what it is. A
/// parameter is a part of itself.
pub fn part_of_param(kernel: &Kernel, value: Value) -> Option<(usize, u32, Data)> {
    let data = kernel.ty(value).data()?;
    if let Some(param) = kernel.as_param(value) {
        return Some((param, 0, data));
    }
    let op = kernel.def(value)?;
    let whole = || part_of_param(kernel, *op.operands.first()?);
    match op.kind {
        OpKind::StructGet(member) => {
            let (param, offset, whole) = whole()?;
            let Data::Struct(id) = whole else { return None };
            Some((param, offset + member_offset(kernel, id, member), data))
        }
        OpKind::Tensor(TensorOp::Get) => {
            let (param, offset, whole) = whole()?;
            let shape = whole.tensor_shape()?;
            let mut position = 0;
            for (&component, extent) in op.operands[1..].iter().zip(shape.dims()) {
                let component = u32::try_from(kernel.as_const(component)?.as_i128()?).ok();
                position = position * extent + component.filter(|&component| component < extent)?;
            }
            Some((param, offset + position * whole.elem()?.bytes(), data))
        }
        _ => None,
    }
}

/// The scalars that data is made of, each with its place in memory, from the beginning of the whole.
pub fn leaves_of(kernel: &Kernel, data: Data) -> Vec<(u32, Scalar)> {
    match data {
        Data::Scalar(scalar) => vec![(0, scalar)],
        Data::Tensor(tensor) => {
            (0..tensor.shape.count()).map(|entry| (entry * tensor.elem.bytes(), tensor.elem)).collect()
        }
        Data::Struct(id) => {
            let members = kernel.structs[id].members.iter().zip(0..);
            members
                .flat_map(|(&(_, data), member)| {
                    let begin = member_offset(kernel, id, member);
                    leaves_of(kernel, data).into_iter().map(move |(offset, leaf)| (begin + offset, leaf))
                })
                .collect()
        }
    }
}

/// A block that grows by naturally aligned pieces.
#[derive(Default)]
struct Block {
    end: u32,
    align: u32,
}

impl Block {
    fn put(&mut self, bytes: u32, align: u32) -> u32 {
        let offset = self.end.next_multiple_of(align);
        self.end = offset + bytes;
        self.align = self.align.max(align);
        offset
    }

    fn put_data(&mut self, kernel: &Kernel, data: Data) -> u32 {
        let (bytes, align) = size_and_align(kernel, data);
        self.put(bytes, align)
    }

    /// The whole block's size, a multiple of eight.
    fn bytes(&self) -> u32 {
        self.end.next_multiple_of(8)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Boundary;

    #[test]
    fn arguments_lie_as_the_layout_says_and_bounds_read_them() {
        let mut kernel = Kernel::new("k");
        kernel.add_param("flag", Scalar::U1.into());
        let array = ArrayType::array(Scalar::F32, 3, Boundary::Unsafe);
        kernel.add_param("a", Type::Array(array));
        kernel.add_param("n", Scalar::I16.into());
        kernel.add_param("x", Type::F64);
        let args = ArgLayout::of(&kernel);
        let offsets: Vec<_> = args.slots.iter().map(|slot| slot.offset).collect();
        assert_eq!((offsets, args.bytes), (vec![0, 8, 32, 40], 48));

        let plan = Plan {
            args,
            temps: TempLayout::default(),
            results: ResultLayout::default(),
            tasks: Vec::new(),
            schedule: Schedule::in_order(0),
            access: Vec::new(),
            needs_noalias: false,
            uses: LaunchUses::default(),
            run_time: RunTime::Unknown,
            sites: SiteTable::default(),
        };
        let mut block = [0; 48];
        block[24..28].copy_from_slice(&7_i32.to_le_bytes());
        block[32..34].copy_from_slice(&(-2_i16).to_le_bytes());
        let extent = Box::new(Bound::Extent { param: 1, axis: 2 });
        let n = Box::new(Bound::Cast { to: Scalar::I32, value: Box::new(Bound::Param(2)) });
        let evaluate = |op, a: &Bound, b: &Bound| {
            let (a, b) = (Box::new(a.clone()), Box::new(b.clone()));
            Bound::Arith { op, ty: Scalar::I32, a, b }.evaluate(&plan, &block, &[])
        };
        assert_eq!(evaluate(ArithOp::FloorDiv, &extent, &n), -4);
        assert_eq!(evaluate(ArithOp::Mod, &extent, &n), -1);
        assert_eq!(evaluate(ArithOp::RawDiv, &extent, &n), -3);
        assert_eq!(evaluate(ArithOp::RawMod, &extent, &n), 1);
        assert_eq!(evaluate(ArithOp::Mod, &extent, &Bound::Const(0)), 0);
        assert_eq!(
            evaluate(ArithOp::FloorDiv, &Bound::Const(i32::MIN.into()), &Bound::Const(-1)),
            i32::MIN.into()
        );
        assert_eq!(evaluate(ArithOp::Add, &Bound::Const(i32::MAX.into()), &Bound::Const(1)), i32::MIN.into());
    }
}
