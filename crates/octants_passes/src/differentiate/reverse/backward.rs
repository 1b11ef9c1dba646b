//! The backward sweep over ops, and over ops with regions that are no loops.

use octants_ir::ops::{ArithOp, Derivative, ParallelFor};
use octants_ir::{Op, OpKind, Value};

use super::Reverse;
use crate::differentiate::primal::is_no_primal;

impl Reverse<'_> {
    pub(super) fn backward(&mut self, op: Op) {
        let data = self.kernel.ops[op].clone();
        match data.kind {
            OpKind::Load | OpKind::VolatileLoad => self.backward_load(op),
            OpKind::Store => self.backward_store(op),
            OpKind::Atomic(kind) => self.backward_update(op, kind),
            OpKind::If | OpKind::Fork | OpKind::ParallelFor(_) => {
                self.restore_places(op);
                if self.facts.differentiates[op] {
                    match data.kind {
                        OpKind::ParallelFor(attributes) => self.backward_parallel(op, &attributes),
                        OpKind::Fork => self.backward_fork(op),
                        // What loops in it keep lies on tapes.
                        _ if self.at_top => self.as_task(op, |reverse| reverse.backward_if(op)),
                        _ => self.backward_if(op),
                    }
                }
            }
            OpKind::For | OpKind::While if self.at_top => {
                self.restore_places(op);
                if self.facts.differentiates[op] {
                    self.as_task(op, |reverse| {
                        reverse.forward_taped(op);
                        reverse.backward_loop(op);
                    });
                }
            }
            OpKind::For | OpKind::While => self.backward_loop(op),
            OpKind::Local | OpKind::Yield | OpKind::Return => {}
            kind => match kind.info().derivative {
                Derivative::Flat => {}
                Derivative::Rule => self.backward_computed(op),
                Derivative::ByName => is_no_primal(&kind),
            },
        }
    }

    fn backward_if(&mut self, op: Op) {
        let data = self.kernel.ops[op].clone();
        let mut seeds = Vec::new();
        for (slot, &result) in data.results.iter().enumerate() {
            seeds.extend(self.adjoint_of(result).map(|adjoint| (slot, adjoint)));
        }
        let condition = self.names.map(data.operands[0]);
        let at_top = std::mem::replace(&mut self.at_top, false);
        let mut regions = Vec::new();
        for &region in &data.regions {
            regions.push(self.fill(&[], |reverse, _| {
                reverse.pair(region, &seeds);
                Vec::new()
            }));
        }
        self.at_top = at_top;
        self.b().op(OpKind::If, [condition], [], regions);
    }

    fn backward_fork(&mut self, op: Op) {
        let mut regions = Vec::new();
        for region in self.kernel.ops[op].regions.clone() {
            regions.push(self.fill(&[], |reverse, _| {
                reverse.pair(region, &[]);
                Vec::new()
            }));
        }
        self.b().op(OpKind::Fork, [], [], regions);
    }

    /// Iterations forward and backward; those that run in order, the last one first.
    fn backward_parallel(&mut self, op: Op, attributes: &ParallelFor) {
        let data = self.kernel.ops[op].clone();
        let bounds = self.map(&data.operands);
        let body = data.regions[0];
        let params = self.kernel.regions[body].params.clone();
        let types: Vec<_> = params.iter().map(|&param| self.kernel.ty(param)).collect();
        let outer = (self.task.replace(body), std::mem::replace(&mut self.at_top, false));
        self.updating = Some(op);
        let region = self.fill(&types, |reverse, indices| {
            for (axis, (&param, &index)) in params.iter().zip(indices).enumerate() {
                let (lo, hi) = (bounds[2 * axis], bounds[2 * axis + 1]);
                let index = if attributes.keeps_order() { reverse.mirrored(index, lo, hi) } else { index };
                reverse.names.insert(param, index);
            }
            reverse.pair(body, &[]);
            Vec::new()
        });
        let task = self.b().op(data.kind.clone(), bounds.clone(), [], [region]);
        self.tasks.push((task, op));
        if self.facts.mended[op] {
            // Once all have taken their share.
            self.mends = true;
            let region = self.forward_copy(body);
            self.mends = false;
            self.b().op(data.kind, bounds, [], [region]);
        }
        self.updating = None;
        (self.task, self.at_top) = outer;
    }

    /// The index that is as far from the end as this one is from the beginning.
    pub(super) fn mirrored(&mut self, index: Value, lo: Value, hi: Value) -> Value {
        let one = self.one(index);
        let b = &mut self.b();
        let last = b.arith(ArithOp::Sub, hi, one);
        let distance = b.arith(ArithOp::Sub, index, lo);
        b.arith(ArithOp::Sub, last, distance)
    }
}
