//! The body of a task: walks regions and hands each op to its family. A family's file has the name of its file in `octants_ir::ops`.

mod arith;
mod assert;
pub(crate) mod atomic;
mod bits;
pub(crate) mod block;
mod call;
pub(crate) mod call_facts;
mod compare;
pub(crate) mod control;
mod convert;
pub(crate) mod loop_length;
mod math;
mod memory;
mod print;
mod tensor;

use std::collections::HashMap;

use octants_ir::ops::ArithOp;
use octants_ir::{Op, OpKind, Region};

use crate::emitter::Emitter;
use crate::softened::Softened;
use crate::value::Val;

impl Emitter<'_> {
    /// Emits the ops of a region and gives what it yields.
    pub(crate) fn region(&mut self, region: Region) -> Vec<Val> {
        let ops = &self.kernel.regions[region].ops;
        let (last, ops) = ops.split_last().expect("a region ends in a terminator");
        self.ops(ops);
        self.release_tapes(ops);
        self.kernel.ops[*last].operands.iter().map(|&value| self.get(value)).collect()
    }

    /// Emits ops that stand one behind the other.
    pub(crate) fn ops(&mut self, ops: &[Op]) {
        let joined = self.lowering.joined_sums(self, ops);
        let of_op: HashMap<_, _> =
            joined.iter().flat_map(|sums| sums.ops.iter().map(move |&op| (op, sums))).collect();
        let all = ops;
        let mut ops = ops.iter();
        while let Some(&op) = ops.next() {
            if self.kernel.ops[op].kind == OpKind::Tape {
                self.tape(op, all);
                continue;
            }
            if let Some(sums) = of_op.get(&op) {
                if sums.last == op {
                    self.lowering.add_joined(self, sums);
                }
                continue;
            }
            if let Some(&next) = ops.as_slice().first()
                && self.lowering.fuse(self, op, next)
            {
                ops.next();
                continue;
            }
            self.op(op);
        }
    }

    pub(crate) fn op(&mut self, op: Op) {
        let around = std::mem::replace(&mut self.rounding, self.facts.roundings[op]);
        if self.is_counted(op) {
            self.counted_op(op);
        } else {
            self.rounded_op(op);
        }
        self.rounding = around;
    }

    /// An op of any family, with the flags of its rounding.
    pub(crate) fn rounded_op(&mut self, op: Op) {
        let data = &self.kernel.ops[op];
        let operands = &data.operands[..];
        let result = match &data.kind {
            OpKind::Const(c) => Val::constant(*c),
            OpKind::Arith(arith) => {
                let mut a = self.get(operands[0]);
                let b = operands.get(1).map_or(a, |&b| self.get(b));
                match self.facts.softened[op] {
                    Softened::No => {}
                    Softened::From(constant) => a = self.arith(ArithOp::Add, a, Val::constant(constant)),
                    Softened::Through(sum) => {
                        let sum = self.get(sum);
                        return self.set(data.results[0], sum);
                    }
                }
                if self.divides_unsigned(*arith, operands) {
                    self.unsigned_quotient(*arith, a, b)
                } else {
                    self.arith(*arith, a, b)
                }
            }
            OpKind::Bit(bit) => {
                let (a, b) = (self.get(operands[0]), self.get(operands[1]));
                self.bit(*bit, a, b)
            }
            OpKind::BitUnary(bit) => {
                let a = self.get(operands[0]);
                self.bit_unary(*bit, a)
            }
            OpKind::Compare(compare) => {
                let (a, b) = (self.get(operands[0]), self.get(operands[1]));
                self.comparison(*compare, a, b)
            }
            OpKind::Select => {
                let (c, a, b) = (self.get(operands[0]), self.get(operands[1]), self.get(operands[2]));
                self.select(c, a, b)
            }
            OpKind::Math(math) => {
                let (a, b) = (self.get(operands[0]), self.get(operands[1]));
                self.math(*math, a, b)
            }
            OpKind::MathUnary(math) => {
                let a = self.get(operands[0]);
                match self.sine_or_cosine_of_pair(op, a) {
                    Some(one) => one,
                    None => self.math_unary(*math, a),
                }
            }
            OpKind::Convert(convert) => {
                let a = self.get(operands[0]);
                let to = self.scalar(data.results[0]);
                self.conversion(*convert, a, to)
            }
            OpKind::Extent(axis) => {
                let param = self.array_param(operands[0]);
                self.extent(param, *axis).0
            }
            OpKind::Address => self.address_of(operands),
            OpKind::Load if self.lanes.hoisted[op] => return,
            OpKind::Load if self.holds_structs(operands[0]) => {
                return self.load_struct(operands, data.results[0]);
            }
            OpKind::Load => self.load(operands),
            OpKind::VolatileLoad => self.volatile_load(operands),
            OpKind::Atomic(atomic) => {
                let (&value, path) = operands.split_last().expect("an update has a value");
                let value = self.get(value);
                if self.lanes.count > 1 {
                    return self.atomic_by_lane(*atomic, path, value);
                }
                self.atomic(*atomic, path, value)
            }
            OpKind::AtomicCas => {
                let (path, values) = operands.split_at(operands.len() - 2);
                let (expected, desired) = (self.get(values[0]), self.get(values[1]));
                self.atomic_cas(path, expected, desired)
            }
            OpKind::GrowPool => {
                let (&wanted, path) = operands.split_last().expect("it says how many are wanted");
                let lowering = self.lowering;
                lowering.grow_pool(self, path, wanted)
            }
            OpKind::Store => {
                let (&value, path) = operands.split_last().expect("a store has a value");
                if self.holds_structs(path[0]) {
                    return self.store_struct(path, value);
                }
                let value = self.get(value);
                return self.store(path, value);
            }
            OpKind::Local => return self.local(data.results[0]),
            OpKind::Tape => unreachable!("{op} is emitted with the tapes beside it"),
            OpKind::StoreResult(index) => return self.store_result(*index, operands[0]),
            OpKind::Assert(..) => return self.assertion(op),
            OpKind::If => return self.if_op(op),
            OpKind::For | OpKind::ForLanes => return self.for_op(op),
            OpKind::While => return self.while_op(op),
            OpKind::Print(_) => return self.print(op),
            OpKind::LaunchKey => self.launch_key(),
            OpKind::Clock => self.clock(),
            OpKind::Call(function) => return self.call(op, *function),
            OpKind::Tensor(_) | OpKind::StructNew | OpKind::StructGet(_) | OpKind::StructSet(_) => {
                return self.assembly(op);
            }
            OpKind::Shared => return self.shared_array(op),
            OpKind::Barrier(scope) => {
                let lowering = self.lowering;
                return lowering.barrier(self, *scope);
            }
            OpKind::Fence(scope) => {
                let lowering = self.lowering;
                return lowering.fence(self, *scope);
            }
            OpKind::BarrierCount => {
                let (lowering, holds) = (self.lowering, self.get(operands[0]));
                lowering.barrier_count(self, holds)
            }
            OpKind::Ballot => {
                let (lowering, holds) = (self.lowering, self.get(operands[0]));
                lowering.ballot(self, holds)
            }
            OpKind::Shuffle(shuffle) => {
                let (lowering, value, lane) = (self.lowering, self.get(operands[0]), self.get(operands[1]));
                self.in_words(value, |e, word| lowering.shuffle(e, *shuffle, word, lane))
            }
            OpKind::Random => panic!("{op} (random) should have become integer ops"),
            OpKind::ForCells(_) => panic!("{op} (for_cells) should have become loops over ranges"),
            // The laws of the tasks phase: tasks stand at the top.
            OpKind::Temp
            | OpKind::Serial
            | OpKind::ParallelFor(_)
            | OpKind::Fork
            | OpKind::Yield
            | OpKind::Return => {
                panic!("{op} ({}) stands inside a task", data.kind.name())
            }
        };
        self.set(data.results[0], result);
    }
}
