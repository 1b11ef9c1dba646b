//! Puts tapes into arrays that whoever launches provides, for devices whose threads have no memory that grows.
//!
//! Before:
//! ```text
//! parallel_for (%i: i32) in (%zero..%n) {
//!   %t: tape<f32> = tape %m
//!   …
//!   store %t[%k], %v
//! }
//! ```
//! After (`%tapes` is a new parameter):
//! ```text
//! parallel_for (%i: i32) in (%zero..%n) {
//!   %u: local<i32> = local
//!   %1: i32 = load %u
//!   %2: i32 = max %m, 0
//!   %3: i32 = add %1, %2
//!   store %u, %3
//!   …
//!   %4: i32 = add %1, %k
//!   store %tapes[%4, %i], %v
//! }
//! ```
//! An array has a row for each cell that an iteration needs and a column for each iteration: neighbouring iterations have neighbouring cells.
//! How many cells that are is what a [`TapePlan`](crate::TapePlan) computes. What a region took is free again when it has run.
//!
//! Expects and leaves the structured phase.

use octants_ir::ops::ArithOp;
use octants_ir::rewrite::ops_in;
use octants_ir::{
    ArrayType, Boundary, Builder, Const, Kernel, Op, OpKind, Region, Scalar, SideTable, Type, Value,
};

/// An array that holds the tapes of one loop.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TapeArray {
    /// The number of the loop among those with tapes.
    pub task: usize,
    pub scalar: Scalar,
    pub param: usize,
}

/// Gives the new parameters.
pub fn place_tapes(kernel: &mut Kernel) -> Vec<TapeArray> {
    let is_taped = |op: &Op| {
        let data = &kernel.ops[*op];
        matches!(data.kind, OpKind::ParallelFor(_))
            && ops_in(kernel, data.regions[0]).into_iter().any(|op| kernel.ops[op].kind == OpKind::Tape)
    };
    let tasks: Vec<_> = kernel.top_ops().into_iter().filter(is_taped).collect();
    let mut arrays = Vec::new();
    for (task, op) in tasks.into_iter().enumerate() {
        let body = kernel.ops[op].regions[0];
        let mut scalars: Vec<_> = ops_in(kernel, body)
            .into_iter()
            .filter(|&op| kernel.ops[op].kind == OpKind::Tape)
            .filter_map(|op| scalar_of(kernel, kernel.ops[op].results[0]))
            .collect();
        scalars.sort_unstable();
        scalars.dedup();
        let ops = std::mem::take(&mut kernel.regions[body].ops);
        let loc = kernel.ops[op].loc;
        let column = column(kernel, op, body);
        let mut stacks = Vec::new();
        for scalar in scalars {
            let ty = Type::Array(ArrayType::array(scalar, 2, Boundary::Unsafe));
            arrays.push(TapeArray { task, scalar, param: kernel.params.len() });
            let array = kernel.add_param(format!("tape{task}.{scalar}"), ty);
            let used = Builder::at(kernel, body, loc).local(Scalar::I32.into());
            stacks.push(Stack { scalar, array, used });
        }
        let mut placement = Placement { kernel, stacks, column, tapes: SideTable::new(None) };
        placement.ops(body, ops);
    }
    arrays
}

fn scalar_of(kernel: &Kernel, value: Value) -> Option<Scalar> {
    match kernel.ty(value) {
        Type::Tape(scalar) => Some(scalar),
        _ => None,
    }
}

/// The number of an iteration, at the end of the region.
pub(crate) fn column(kernel: &mut Kernel, op: Op, region: Region) -> Value {
    let parallel = kernel.parallel_loop(op).expect("it is one");
    let (indices, bounds): (Vec<_>, Vec<_>) = (parallel.indices().to_vec(), parallel.bounds().collect());
    let loc = kernel.ops[op].loc;
    let b = &mut Builder::at(kernel, region, loc);
    let mut column = None;
    for (&index, (lo, hi)) in indices.iter().zip(bounds) {
        let distance = distance(b, lo, index);
        column = Some(match column {
            None => distance,
            Some(outer) => {
                let extent = self::distance(b, lo, hi);
                let rows = b.arith(ArithOp::Mul, outer, extent);
                b.arith(ArithOp::Add, rows, distance)
            }
        });
    }
    column.expect("a loop has an axis")
}

fn distance(b: &mut Builder<'_>, from: Value, to: Value) -> Value {
    if b.kernel.as_const(from).is_some_and(Const::is_zero) {
        return b.cast(to, Scalar::I32);
    }
    let difference = b.arith(ArithOp::Sub, to, from);
    b.cast(difference, Scalar::I32)
}

struct Stack {
    scalar: Scalar,
    array: Value,
    /// The variable that says how many cells are taken.
    used: Value,
}

struct Placement<'k> {
    kernel: &'k mut Kernel,
    stacks: Vec<Stack>,
    column: Value,
    /// Of a tape: its array, and its first row.
    tapes: SideTable<Value, Option<(Value, Value)>>,
}

impl Placement<'_> {
    fn ops(&mut self, region: Region, ops: Vec<Op>) {
        // What was taken before the first tape of each type.
        let mut before: Vec<(Value, Value)> = Vec::new();
        for op in ops {
            let data = self.kernel.ops[op].clone();
            let place = data.operands.first().and_then(|&base| self.tapes[base]);
            for &inner in &data.regions {
                let ops = std::mem::take(&mut self.kernel.regions[inner].ops);
                self.ops(inner, ops);
            }
            let mut b = Builder::at(self.kernel, region, data.loc);
            match (&data.kind, place) {
                (OpKind::Tape, _) => {
                    let scalar = scalar_of(b.kernel, data.results[0]);
                    let stack = self.stacks.iter().find(|stack| Some(stack.scalar) == scalar);
                    let &Stack { array, used, .. } = stack.expect("every type of a tape has an array");
                    let first = b.load(used, &[]);
                    let (count, none) = (b.cast(data.operands[0], Scalar::I32), b.i32(0));
                    let count = b.arith(ArithOp::Max, count, none);
                    let next = b.arith(ArithOp::Add, first, count);
                    b.store(used, &[], next);
                    if !before.iter().any(|&(known, _)| known == used) {
                        before.push((used, first));
                    }
                    self.tapes.set(data.results[0], Some((array, first)));
                }
                (OpKind::Load | OpKind::Store, Some((array, first))) => {
                    let index = b.cast(data.operands[1], Scalar::I32);
                    let row = b.arith(ArithOp::Add, first, index);
                    let place = [array, row, self.column];
                    self.kernel.ops[op].operands = place.iter().chain(&data.operands[2..]).copied().collect();
                    self.kernel.regions[region].ops.push(op);
                }
                (kind, _) => {
                    if kind.is_terminator() {
                        for &(used, first) in &before {
                            b.store(used, &[], first);
                        }
                    }
                    self.kernel.regions[region].ops.push(op);
                }
            }
        }
    }
}
