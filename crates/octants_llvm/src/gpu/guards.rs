//! Conditions on indices around a body's accesses, such as `if 0 < i < n - 1`, that hold for most points.
//!
//! Accesses under a condition of each point's own are not joined. So the conditions of all points of a group are asked first, and where
//! they all hold, the group is written without them, and without what stands in their `else`: of the two sides one has to be empty. A condition is such a *guard* if it compares indices, moved by something that is the
//! same for all points, and nothing else: one that picks every second point would hold for no group.

use octants_ir::ops::{ArithOp, BitOp};
use octants_ir::rewrite::ops_in;
use octants_ir::{Kernel, Op, OpData, OpKind, Region, SideTable, Value, ValueDef};

use crate::emitter::Emitter;
use crate::value::Val;

/// The guards of a body, outermost first, and the ops that their conditions are computed by.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Guards {
    pub ifs: Vec<Op>,
    /// In the order of the body.
    computed_by: Vec<Op>,
}

impl Guards {
    pub fn of(kernel: &Kernel, body: Region) -> Self {
        let ops = ops_in(kernel, body);
        let mut guards = Self::default();
        guards.find(kernel, &ops, body);
        guards
    }

    /// Whether something is left to points for which a guard does not hold.
    pub fn leave_work(&self, kernel: &Kernel) -> bool {
        self.ifs.iter().any(|&op| !kernel.is_bare(kernel.ops[op].regions[1]))
    }

    fn find(&mut self, kernel: &Kernel, ops: &[Op], region: Region) {
        for &op in &kernel.regions[region].ops {
            let data = &kernel.ops[op];
            // Of two sides, one does nothing.
            let plain = data.regions.iter().any(|&side| kernel.is_bare(side));
            if data.kind != OpKind::If || !data.results.is_empty() || !plain {
                continue;
            }
            let none = || SideTable::new(false);
            let mut slice = Slice { inside: none(), seen: none(), needed: none() };
            for &op in ops {
                slice.inside.set(op, true);
            }
            if slice.mark(kernel, data.operands[0]) {
                self.ifs.push(op);
                self.computed_by.extend(ops.iter().filter(|&&op| slice.needed[op]));
                self.find(kernel, ops, data.regions[0]);
            }
        }
    }
}

/// The ops of a body without those that stand where a guard does not hold.
pub(super) fn common_ops(kernel: &Kernel, body: Region, guards: &Guards) -> Vec<Op> {
    let mut ops = Vec::new();
    for &op in &kernel.regions[body].ops {
        ops.push(op);
        let regions = &kernel.ops[op].regions;
        if guards.ifs.contains(&op) {
            ops.extend(common_ops(kernel, regions[0], guards));
        } else {
            ops.extend(regions.iter().flat_map(|&region| ops_in(kernel, region)));
        }
    }
    ops
}

/// What a value is computed by.
struct Slice {
    /// The ops of the body.
    inside: SideTable<Op, bool>,
    /// Ops that were looked at: each once, however deep it lies.
    seen: SideTable<Op, bool>,
    needed: SideTable<Op, bool>,
}

impl Slice {
    /// Marks the ops of the body that a value is computed by; false if some of them do more than compare and move indices.
    fn mark(&mut self, kernel: &Kernel, value: Value) -> bool {
        let ValueDef::Result(op, _) = kernel.values[value].def else { return true };
        // What is computed outside is there already.
        if self.seen[op] || !self.inside[op] {
            return true;
        }
        self.seen.set(op, true);
        self.needed.set(op, true);
        let data = &kernel.ops[op];
        match data.kind {
            OpKind::Const(_) | OpKind::Extent(_) => true,
            OpKind::Compare(_)
            | OpKind::Select
            | OpKind::Arith(ArithOp::Add | ArithOp::Sub | ArithOp::Min | ArithOp::Max)
            | OpKind::Bit(BitOp::And | BitOp::Or) => {
                data.operands.iter().all(|&operand| self.mark(kernel, operand))
            }
            OpKind::If => {
                let inside: Vec<_> = data.regions.iter().flat_map(|&region| ops_in(kernel, region)).collect();
                let plain = self.mark(kernel, data.operands[0])
                    && inside.iter().all(|&op| {
                        let OpData { kind, operands, results, .. } = &kernel.ops[op];
                        let values = if *kind == OpKind::Yield { &operands[..] } else { &results[..] };
                        (*kind == OpKind::Yield || !results.is_empty())
                            && values.iter().all(|&value| self.mark(kernel, value))
                    });
                // The op writes its regions itself.
                for op in inside {
                    self.needed.set(op, false);
                }
                plain
            }
            _ => false,
        }
    }
}

impl Emitter<'_> {
    /// Whether all guards hold for the point whose indices are set.
    pub(super) fn guards_hold(&mut self, guards: &Guards) -> Option<Val> {
        for &op in &guards.computed_by {
            self.op(op);
        }
        let mut all = None;
        for &guard in &guards.ifs {
            let holds = self.get(self.kernel.ops[guard].operands[0]);
            all = Some(match all {
                Some(others) => self.binary("and", others, holds),
                None => holds,
            });
        }
        all
    }
}
