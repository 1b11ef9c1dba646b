//! Looks a cell of a sparse tree up once for all neighbouring iterations that lie in it.
//!
//! Before:
//! ```text
//! parallel_for (%i: i32) in (0..4096) {
//!   %1: i32 = shr %i, 2
//!   %2: i32 = load %words[%1]
//!   %3: u1 = gt %2, 0
//!   %4: i32 = if %3 { yield %2 } else { %5: i32 = call func0 %1   yield %5 }
//!   %6: i32 = and %i, 3
//!   store %x[%4, %6], %a
//! }
//! ```
//! After:
//! ```text
//! parallel_for (%strip: i32) in (0..1024) {
//!   %7: i32 = mul %strip, 4
//!   %1: i32 = shr %7, 2
//!   %2: i32 = load %words[%1]
//!   %3: u1 = gt %2, 0
//!   %4: i32 = if %3 { yield %2 } else { %5: i32 = call func0 %1   yield %5 }
//!   for %k: i32 in 0..4 {
//!     %i: i32 = add %7, %k
//!     %6: i32 = and %i, 3
//!     store %x[%4, %6], %a
//!   }
//! }
//! ```
//! Calls keep LLVM from vectorising a loop; the inner one has none any more. Acts on the last axis, where its bounds are constants and cells are two or more
//! iterations wide, on cells that stay for as long as the kernel runs (*stable* makers), and that all iterations look up before they do anything that could
//! tell. Devices on which neighbouring iterations are different threads, which ask for few tasks, have nothing in common to look up.
//!
//! Behind `reuse_cells`, which leaves one look for each cell. Structured phase.

use octants_ir::ops::{ArithOp, BitOp, Domain, Effects};
use octants_ir::rewrite::{ValueMap, clone_op, insert_before, ops_in, replace_values, use_counts};
use octants_ir::{Builder, Const, Kernel, Op, OpKind, Region, Scalar, SideTable, Type, Value};

use crate::assumptions::Assumptions;
use crate::reuse_cells::made_where_missing;
use crate::simplify::simplify;

/// The longest strips, as a power of two. Chosen, not measured: blocks of cells are rarely wider.
const MOST_BITS: u32 = 6;

/// Strips that a loop must have, where its bounds say how many: many more than there are threads. Chosen, not measured.
const LEAST_STRIPS: i128 = 1024;

pub fn strip_by_cells(kernel: &mut Kernel, assumptions: Assumptions) {
    if assumptions.few_tasks || !kernel.functions.iter().any(|(_, function)| function.is_stable) {
        return;
    }
    let mut stripped = false;
    for region in kernel.top_regions() {
        for op in kernel.regions[region].ops.clone() {
            if let Some(bits) = strip_bits(kernel, op) {
                strip(kernel, region, op, bits);
                stripped = true;
            }
        }
    }
    if stripped {
        simplify(kernel);
    }
}

/// How long strips of a loop are, as a power of two: as many iterations as have all of its cells in common.
fn strip_bits(kernel: &Kernel, op: Op) -> Option<u32> {
    let parallel = kernel.parallel_loop(op)?;
    let attributes = parallel.attributes;
    let plain = attributes.domain == Domain::Ranges
        && attributes.reductions.is_empty()
        && attributes.block_dim.is_none()
        && kernel.ty(parallel.last_index()) == Type::I32
        && !kernel.has_effects(parallel.body, Effects::CONVERGENT);
    if !plain {
        return None;
    }
    let constant = |value: Value| kernel.as_const(value).and_then(Const::as_i128);
    let (lo, hi) = parallel.bounds().next_back()?;
    let (lo, hi) = (constant(lo)?, constant(hi)?);
    let others: i128 = parallel
        .bounds()
        .rev()
        .skip(1)
        .map(|(lo, hi)| constant(hi).zip(constant(lo)).map_or(1, |(hi, lo)| (hi - lo).max(0)))
        .fold(1, i128::saturating_mul);
    let fits = |&bits: &u32| {
        let strips = (hi - lo) >> bits;
        let whole = lo % (1 << bits) == 0 && hi % (1 << bits) == 0;
        whole && strips.saturating_mul(others) >= LEAST_STRIPS && {
            let shared = Shared::new(kernel, parallel.body, parallel.last_index(), bits);
            shared.cells > 0 && shared.cells == lookups(kernel, parallel.body)
        }
    };
    (1..=MOST_BITS).rev().find(fits)
}

/// How often a body looks up a cell in each iteration.
fn lookups(kernel: &Kernel, body: Region) -> usize {
    kernel.regions[body].ops.iter().filter(|&&op| made_where_missing(kernel, op).is_some()).count()
}

/// What the iterations of a strip have in common.
struct Shared {
    /// For each value of the body: the least shift to the right after which it is the same in all iterations, if there is one.
    shifts: SideTable<Value, Option<u32>>,
    /// Ops at the top of the body that all iterations may leave to the first one.
    ops: Vec<Op>,
    /// How many of them look up a cell.
    cells: usize,
}

impl Shared {
    fn new(kernel: &Kernel, body: Region, index: Value, bits: u32) -> Self {
        let counts = use_counts(kernel);
        // Values from outside are the same everywhere.
        let mut shifts = SideTable::new(Some(0));
        let all = ops_in(kernel, body);
        for &op in &all {
            let data = &kernel.ops[op];
            let params = data.regions.iter().flat_map(|&region| &kernel.regions[region].params);
            data.results.iter().chain(params).for_each(|&value| shifts.set(value, None));
        }
        shifts.set(index, Some(bits));
        let mut shared = Self { shifts, ops: Vec::new(), cells: 0 };
        let structure = structure_of(kernel, &all);
        let mut undisturbed = true;
        for &op in &kernel.regions[body].ops {
            let data = &kernel.ops[op];
            if data.kind.is_pure() {
                let &[result] = &data.results[..] else { continue };
                let shift = shared.shift(kernel, op);
                shared.shifts.set(result, shift);
                if shift == Some(0) {
                    shared.ops.push(op);
                }
            } else if undisturbed && shared.is_entry(kernel, op, &counts, body) {
                shared.shifts.set(data.results[0], Some(0));
                shared.ops.push(op);
            } else if let Some(cell) = made_where_missing(kernel, op).filter(|_| undisturbed)
                && cell.arguments.iter().chain([&data.operands[0]]).all(|&value| shared.is_same(value))
            {
                shared.shifts.set(cell.slot, Some(0));
                shared.ops.push(op);
                shared.cells += 1;
            } else {
                undisturbed &= disturbs_nobody(kernel, op, &structure);
            }
        }
        shared
    }

    fn is_same(&self, value: Value) -> bool {
        self.shifts[value] == Some(0)
    }

    /// Whether an op loads an entry, which all iterations share, for nothing but a look at its cell.
    fn is_entry(&self, kernel: &Kernel, op: Op, counts: &SideTable<Value, u32>, body: Region) -> bool {
        let data = &kernel.ops[op];
        data.kind == OpKind::Load
            && data.operands.iter().all(|&value| self.is_same(value))
            // Whether it is one, and which.
            && counts[data.results[0]] == 2
            && kernel.regions[body].ops.iter().any(|&look| {
                let condition = kernel.ops[look].operands.first();
                made_where_missing(kernel, look).is_some_and(|cell| cell.found == data.results[0])
                    && condition.is_some_and(|&condition| {
                        let test = kernel.def(condition).filter(|_| counts[condition] == 1);
                        test.is_some_and(|test| test.operands.contains(&data.results[0]))
                    })
            })
    }

    /// After which shift the result of a pure op is the same in all iterations.
    fn shift(&self, kernel: &Kernel, op: Op) -> Option<u32> {
        let data = &kernel.ops[op];
        if data.operands.iter().all(|&value| self.is_same(value)) {
            return Some(0);
        }
        let &[a, b] = &data.operands[..] else { return None };
        let by = kernel.as_const(b)?.as_i128()?;
        let of_a = self.shifts[a].filter(|_| kernel.ty(a) == Type::I32)?;
        let power = || (by > 0 && by.count_ones() == 1).then(|| by.trailing_zeros());
        match data.kind {
            // The digits above stay what they are, or become zero.
            OpKind::Bit(BitOp::And) => Some(of_a),
            OpKind::Arith(ArithOp::Mod) => power().map(|_| of_a),
            OpKind::Bit(BitOp::Shr) => {
                u32::try_from(by).ok().filter(|&by| by < 32).map(|by| of_a.saturating_sub(by))
            }
            OpKind::Arith(ArithOp::FloorDiv) => power().map(|by| of_a.saturating_sub(by)),
            _ => None,
        }
    }
}

/// Arrays that say what trees look like: those that makers are passed.
fn structure_of(kernel: &Kernel, ops: &[Op]) -> Vec<Value> {
    let calls = ops.iter().map(|&op| &kernel.ops[op]).filter(|op| matches!(op.kind, OpKind::Call(_)));
    let arrays = calls.flat_map(|call| &call.operands).copied();
    arrays.filter(|&value| kernel.ty(value).place().is_some()).collect()
}

/// Whether it is all the same for an op if cells are made before it.
fn disturbs_nobody(kernel: &Kernel, op: Op, structure: &[Value]) -> bool {
    let data = &kernel.ops[op];
    let elsewhere = || !data.operands.iter().any(|operand| structure.contains(operand));
    match data.kind {
        OpKind::Load | OpKind::Store | OpKind::Atomic(_) | OpKind::Local => elsewhere(),
        OpKind::If | OpKind::For => data.regions.iter().all(|&region| {
            ops_in(kernel, region).iter().all(|&inner| disturbs_nobody(kernel, inner, structure))
        }),
        _ => data.kind.is_pure() || data.kind.is_terminator(),
    }
}

fn strip(kernel: &mut Kernel, top: Region, op: Op, bits: u32) {
    let Some(parallel) = kernel.parallel_loop(op) else { return };
    let (body, strip, loc) = (parallel.body, parallel.last_index(), kernel.ops[op].loc);
    let shared = Shared::new(kernel, body, strip, bits);
    let last = parallel.bound_operands().len() - 2;

    let bounds = [last, last + 1].map(|position| {
        let bound = kernel.as_const(kernel.ops[op].operands[position]).and_then(Const::as_i128).unwrap_or(0);
        kernel.make_op(OpKind::Const(Const::from_i128(Scalar::I32, bound >> bits)), [], [Type::I32], [], loc)
    });
    insert_before(kernel, top, op, bounds);
    for (position, bound) in [last, last + 1].into_iter().zip(bounds) {
        kernel.ops[op].operands[position] = kernel.ops[bound].results[0];
    }

    let ops = std::mem::take(&mut kernel.regions[body].ops);
    let each = kernel.add_region();
    let inside = kernel.add_region_param(each, Type::I32);
    let mut builder = Builder::at(kernel, body, loc);
    let (zero, length) = (builder.i32(0), builder.i32(1 << bits));
    let first = builder.arith(ArithOp::Mul, strip, length);
    let index = builder.within(each, |builder| builder.arith(ArithOp::Add, first, inside));

    // As the first iteration of the strip sees it.
    let mut at_first = ValueMap::new();
    at_first.insert(strip, first);
    // What all of them see.
    let mut in_all = ValueMap::new();
    in_all.insert(strip, index);
    for op in ops {
        let data = &kernel.ops[op];
        let (results, is_shared) = (data.results.clone(), shared.ops.contains(&op));
        if is_shared || data.kind.is_pure() && results.iter().all(|&result| shared.shifts[result].is_some()) {
            let copy = clone_op(kernel, op, &mut at_first);
            kernel.regions[body].ops.push(copy);
        }
        if is_shared {
            results.iter().for_each(|&result| in_all.insert(result, at_first.map(result)));
        } else {
            kernel.regions[each].ops.push(op);
        }
    }
    replace_values(kernel, each, &in_all);
    let end = kernel.make_op(OpKind::Yield, [], [], [], loc);
    let around = kernel.make_op(OpKind::For, [zero, length], [], [each], loc);
    kernel.regions[body].ops.extend([around, end]);
}
