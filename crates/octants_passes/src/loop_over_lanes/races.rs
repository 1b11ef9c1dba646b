//! Finds races on shared arrays while a block runs: two lanes touch an element, one of them writes it, and there is no barrier between.
//!
//! **What is reported is what the interpreter reports** (`shared.rs` there): lanes may write the same value, and what they do as one step they may all do.
//!
//! Who touched an element is in shadow arrays, with a word for each scalar: for the last write, and for two reads. Two are enough: if lanes of two subgroups read an
//! element, each write by another lane meets one of them; and of one subgroup only reads since its last barrier matter, of which any two lanes stand for all.
//!
//! A word holds when and who, and 0 is nobody:
//! ```text
//! 63        40 39            16 15      14     0
//! epoch        subgroup epoch   update  lane
//! ```
//! The epoch counts the barriers of the block from 1 on, the subgroup epoch those of the lane's subgroup.

use octants_ir::ops::{ArithOp, AssertKind, BitOp, BitUnary, CompareOp, SUBGROUP};
use octants_ir::rewrite::ops_in;
use octants_ir::{
    Builder, Const, Data, Kernel, Loc, Op, OpKind, Region, Scalar, SideTable, Type, Value, ValueDef,
};

const EPOCH: u32 = 40;
const SUBGROUP_EPOCH: u32 = 16;
const UPDATE: i64 = 1 << 15;
const LANE: i64 = UPDATE - 1;

/// What is known of the shared arrays of a block.
pub(super) struct Races {
    /// A variable.
    epoch: Value,
    /// An element for each subgroup.
    subgroup_epochs: Value,
    /// Of a shared array: the last write, a read, and another read.
    shadows: SideTable<Value, Option<[Value; 3]>>,
}

/// What an access does to an element.
enum Touch {
    Reads,
    Writes(Value),
    Updates,
}

impl Races {
    /// Shadows of the arrays that a body makes, empty at the beginning of the block, where `top` ends.
    pub fn of(kernel: &mut Kernel, top: Region, loc: Loc, threads: u32, body: Region) -> Option<Self> {
        let made: Vec<_> =
            ops_in(kernel, body).into_iter().filter(|&op| kernel.ops[op].kind.makes_shared()).collect();
        if made.is_empty() {
            return None;
        }
        let mut b = Builder::at(kernel, top, loc);
        let epoch = b.local(Data::Scalar(Scalar::I64));
        let one = i64_const(&mut b, 1);
        b.store(epoch, &[], one);
        let subgroup_epochs = zeros(&mut b, threads.div_ceil(SUBGROUP));
        let mut shadows = SideTable::new(None);
        for op in made {
            let array = b.kernel.ops[op].results[0];
            let Some(scalars) = scalars_of(b.kernel, array) else { continue };
            shadows.set(array, Some([(); 3].map(|()| zeros(&mut b, scalars))));
        }
        Some(Self { epoch, subgroup_epochs, shadows })
    }

    /// The copy of an array has its shadows.
    pub fn copied(&mut self, array: Value, copy: Value) {
        let shadows = self.shadows[array];
        self.shadows.set(copy, shadows);
    }

    /// All threads of the block have come here.
    pub fn pass_block(&self, b: &mut Builder<'_>) {
        let (epoch, one) = (b.load(self.epoch, &[]), i64_const(b, 1));
        let next = b.arith(ArithOp::Add, epoch, one);
        b.store(self.epoch, &[], next);
    }

    /// All lanes of a subgroup have come here.
    pub fn pass_subgroup(&self, b: &mut Builder<'_>, first: Option<Value>) {
        let number = match first {
            Some(first) => subgroup_of(b, first),
            None => b.i32(0),
        };
        let (epoch, one) = (b.load(self.subgroup_epochs, &[number]), i64_const(b, 1));
        let next = b.arith(ArithOp::Add, epoch, one);
        b.store(self.subgroup_epochs, &[number], next);
    }

    /// Checks the accesses of what the lane of that number does.
    pub fn check(&self, kernel: &mut Kernel, region: Region, number: Value) {
        let is_checked = |op: Op| self.access(kernel, op).is_some();
        if !ops_in(kernel, region).into_iter().any(is_checked) {
            return;
        }
        // The word of this lane, now.
        let loc = kernel.ops[kernel.regions[region].ops[0]].loc;
        let first = kernel.add_region();
        let mut b = Builder::at(kernel, first, loc);
        let subgroup = subgroup_of(&mut b, number);
        let epoch = b.load(self.epoch, &[]);
        let epoch = shifted(&mut b, BitOp::Shl, epoch, EPOCH);
        let of_subgroup = b.load(self.subgroup_epochs, &[subgroup]);
        let of_subgroup = shifted(&mut b, BitOp::Shl, of_subgroup, SUBGROUP_EPOCH);
        let lane = b.cast(number, Scalar::I64);
        let now = b.bit(BitOp::Or, epoch, of_subgroup);
        let now = b.bit(BitOp::Or, now, lane);
        self.check_region(kernel, region, now);
        let begin = std::mem::take(&mut kernel.regions[first].ops);
        let ops = &mut kernel.regions[region].ops;
        let behind = match kernel.values[number].def {
            ValueDef::Result(op, _) => ops.iter().position(|&other| other == op).map_or(0, |at| at + 1),
            ValueDef::Param(..) => 0,
        };
        ops.splice(behind..behind, begin);
    }

    fn check_region(&self, kernel: &mut Kernel, region: Region, now: Value) {
        let ops = std::mem::take(&mut kernel.regions[region].ops);
        let mut all = Vec::new();
        for op in ops {
            if let Some((shadows, touch)) = self.access(kernel, op) {
                let checks = kernel.add_region();
                check_access(kernel, checks, op, shadows, &touch, now);
                all.append(&mut kernel.regions[checks].ops);
            }
            for inner in kernel.ops[op].regions.clone() {
                self.check_region(kernel, inner, now);
            }
            all.push(op);
        }
        kernel.regions[region].ops = all;
    }

    fn access(&self, kernel: &Kernel, op: Op) -> Option<([Value; 3], Touch)> {
        let data = &kernel.ops[op];
        let shadows = self.shadows[kernel.cell_access(op)?.place.base()]?;
        let touch = match data.kind {
            OpKind::Load => Touch::Reads,
            OpKind::Store => Touch::Writes(*data.operands.last()?),
            OpKind::Atomic(_) | OpKind::AtomicCas => Touch::Updates,
            // It looks at what others may write now.
            _ => return None,
        };
        Some((shadows, touch))
    }
}

fn check_access(
    kernel: &mut Kernel,
    region: Region,
    op: Op,
    [written, read, other_read]: [Value; 3],
    touch: &Touch,
    now: Value,
) {
    let loc = kernel.ops[op].loc;
    let Some(place) = kernel.cell_access(op).map(|access| access.place) else { return };
    let (base, path, indices) = (place.base(), place.path().to_vec(), place.indices().to_vec());
    let components = place.components().to_vec();
    let Some((shape, dims)) = extents_of(kernel, base) else { return };
    let mut b = Builder::at(kernel, region, loc);
    let mut at = i64_const(&mut b, 0);
    let digits = indices.iter().chain(&components).zip(shape.iter().chain(&dims));
    for (&digit, &extent) in digits {
        let extent = i64_const(&mut b, extent.into());
        at = b.arith(ArithOp::Mul, at, extent);
        let digit = b.cast(digit, Scalar::I64);
        at = b.arith(ArithOp::Add, at, digit);
    }
    let words = [written, read, other_read].map(|shadow| b.load(shadow, &[at]));
    let [write, first, second] = words.map(|word| Apart::new(&mut b, word, now));
    let [by_write, by_first, by_second] = [&write, &first, &second].map(|apart| apart.is_open(&mut b));
    let is_update = |b: &mut Builder<'_>, word: Value| {
        let flag = i64_const(b, UPDATE);
        let (flag, none) = (b.bit(BitOp::And, word, flag), i64_const(b, 0));
        b.compare(CompareOp::Ne, flag, none)
    };
    let conflicts = match *touch {
        Touch::Reads => vec![(by_write, words[0])],
        Touch::Writes(value) => {
            // All may write the same.
            let old = b.load(base, &path);
            let differs = differ(&mut b, old, value);
            let update = is_update(&mut b, words[0]);
            let other = b.bit(BitOp::Or, differs, update);
            let by_write = b.bit(BitOp::And, by_write, other);
            vec![(by_write, words[0]), (by_first, words[1]), (by_second, words[2])]
        }
        Touch::Updates => {
            let update = is_update(&mut b, words[0]);
            let plain = b.bit_unary(BitUnary::Not, update);
            let by_write = b.bit(BitOp::And, by_write, plain);
            vec![(by_write, words[0]), (by_first, words[1]), (by_second, words[2])]
        }
    };
    let mut conflicts = conflicts.into_iter().rev();
    let (mut any, mut with) = conflicts.next().expect("there is one");
    for (open, word) in conflicts {
        with = b.select(open, word, with);
        any = b.bit(BitOp::Or, any, open);
    }
    let mask = i64_const(&mut b, LANE);
    let lanes = [with, now].map(|word| b.bit(BitOp::And, word, mask));
    let none = b.bit_unary(BitUnary::Not, any);
    let message =
        "lanes {} and {} of a block touch the same element of shared memory without a barrier between";
    b.assert(AssertKind::Condition, none, message, &lanes);
    match touch {
        Touch::Reads => {
            // The first one is replaced by what stands for it, else this one is the other.
            let old = b.bit_unary(BitUnary::Not, first.same_epoch);
            let same = b.bit_unary(BitUnary::Not, first.other_lane);
            let closed = b.bit(BitOp::And, first.same_subgroup, first.passed);
            let replaces = b.bit(BitOp::Or, old, same);
            let replaces = b.bit(BitOp::Or, replaces, closed);
            let between = Apart::new(&mut b, words[2], words[1]);
            let elsewhere = b.bit_unary(BitUnary::Not, between.same_subgroup);
            let keeps = b.bit(BitOp::And, second.same_epoch, elsewhere);
            let keeps = b.bit(BitOp::Or, keeps, replaces);
            let next = [b.select(replaces, now, words[1]), b.select(keeps, words[2], now)];
            b.store(read, &[at], next[0]);
            b.store(other_read, &[at], next[1]);
        }
        Touch::Writes(_) => b.store(written, &[at], now),
        Touch::Updates => {
            let flag = i64_const(&mut b, UPDATE);
            let word = b.bit(BitOp::Or, now, flag);
            b.store(written, &[at], word);
        }
    }
}

/// How two words differ.
struct Apart {
    same_epoch: Value,
    other_lane: Value,
    same_subgroup: Value,
    /// The subgroup's barrier was passed between.
    passed: Value,
}

impl Apart {
    fn new(b: &mut Builder<'_>, word: Value, now: Value) -> Self {
        let bits = b.bit(BitOp::Xor, word, now);
        let none = i64_const(b, 0);
        let part = |b: &mut Builder<'_>, op: CompareOp, mask: i64| {
            let mask = i64_const(b, mask);
            let part = b.bit(BitOp::And, bits, mask);
            b.compare(op, part, none)
        };
        Self {
            same_epoch: part(b, CompareOp::Eq, -1 << EPOCH),
            other_lane: part(b, CompareOp::Ne, LANE),
            same_subgroup: part(b, CompareOp::Eq, LANE & !i64::from(SUBGROUP - 1)),
            passed: part(b, CompareOp::Ne, (1 << EPOCH) - (1 << SUBGROUP_EPOCH)),
        }
    }

    /// Whether what was done then may as well be done behind what is done now.
    fn is_open(&self, b: &mut Builder<'_>) -> Value {
        let closed = b.bit(BitOp::And, self.same_subgroup, self.passed);
        let open = b.bit_unary(BitUnary::Not, closed);
        let open = b.bit(BitOp::And, open, self.other_lane);
        b.bit(BitOp::And, open, self.same_epoch)
    }
}

/// Whether two scalars have different bits.
fn differ(b: &mut Builder<'_>, old: Value, new: Value) -> Value {
    let bits = |b: &mut Builder<'_>, value: Value| {
        let unsigned = match b.kernel.ty(value).scalar() {
            Some(Scalar::F16) => Scalar::U16,
            Some(Scalar::F32) => Scalar::U32,
            Some(Scalar::F64) => Scalar::U64,
            _ => return value,
        };
        b.bit_cast(value, unsigned)
    };
    let (old, new) = (bits(b, old), bits(b, new));
    b.compare(CompareOp::Ne, old, new)
}

fn i64_const(b: &mut Builder<'_>, value: i64) -> Value {
    b.constant(Const::from_i128(Scalar::I64, value.into()))
}

fn shifted(b: &mut Builder<'_>, op: BitOp, value: Value, by: u32) -> Value {
    let by = i64_const(b, by.into());
    b.bit(op, value, by)
}

fn subgroup_of(b: &mut Builder<'_>, lane: Value) -> Value {
    let shift = b.i32(SUBGROUP.ilog2().cast_signed());
    b.bit(BitOp::Shr, lane, shift)
}

/// An array of so many zeros.
fn zeros(b: &mut Builder<'_>, count: u32) -> Value {
    let array = b.shared(Data::Scalar(Scalar::I64), &[count]);
    let (lo, hi) = (b.i32(0), b.i32(count.cast_signed()));
    b.for_range(lo, hi, &[], |b, index, _| {
        let zero = i64_const(b, 0);
        b.store(array, &[index], zero);
        Vec::new()
    });
    array
}

/// The extents of a shared array, and of its elements.
fn extents_of(kernel: &Kernel, array: Value) -> Option<(Vec<u32>, Vec<u32>)> {
    let Type::Array(ty) = kernel.ty(array) else { return None };
    let shape = kernel.layout(ty)?.shape.clone();
    let dims = ty.elem.tensor_shape().map_or_else(Vec::new, octants_ir::TensorShape::dims);
    Some((shape, dims))
}

fn scalars_of(kernel: &Kernel, array: Value) -> Option<u32> {
    let (shape, dims) = extents_of(kernel, array)?;
    shape.iter().chain(&dims).try_fold(1_u32, |count, &extent| count.checked_mul(extent))
}
