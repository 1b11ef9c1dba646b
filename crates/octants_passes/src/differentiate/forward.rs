//! Forward mode: tangents beside the values, in place. Control flow stays as it is; what varies is carried twice.

use octants_ir::ops::{ArithOp, AtomicOp, Derivative};
use octants_ir::rewrite::use_counts;
use octants_ir::{Builder, Const, Kernel, Op, OpKind, Region, Scalar, SideTable, Type, Value};

use super::activity::Activity;
use super::forward_extremes::{Deferred, Loops, add_loops};
use super::rules::{flows, partial, through};
use crate::differentiate::primal::is_no_primal;
use crate::differentiate::primal::is_real;
use crate::differentiate::refusal::Refusal;
use crate::differentiate::refusal::RefusalKind;
use crate::edit::slots::{add_result, add_yielded};

pub(super) fn add_tangents(
    kernel: &mut Kernel,
    activity: &Activity,
    companion_of: SideTable<Value, Option<Value>>,
    refusals: &mut Vec<Refusal>,
) {
    let uses = use_counts(kernel);
    let body = kernel.body;
    let params = &kernel.regions[body].params;
    let own = params.len() - params.iter().filter(|&&param| companion_of[param].is_some()).count();
    let mut tangents = Tangents {
        kernel,
        activity,
        companion_of,
        tangent: SideTable::new(None),
        uses,
        in_parallel: false,
        deferred: Vec::new(),
        loops: Vec::new(),
        refusals,
    };
    tangents.region(body, &[]);
    let loops = tangents.loops;
    for one in loops {
        add_loops(kernel, own, one, refusals);
    }
}

struct Tangents<'k> {
    kernel: &'k mut Kernel,
    activity: &'k Activity,
    /// The place of the tangents of what a place holds.
    companion_of: SideTable<Value, Option<Value>>,
    /// `None` where it is zero.
    tangent: SideTable<Value, Option<Value>>,
    uses: SideTable<Value, u32>,
    /// Whether a parallel loop is around.
    in_parallel: bool,
    /// Its updates that wait for all iterations.
    deferred: Vec<Deferred>,
    /// Parallel loops with such updates.
    loops: Vec<Loops>,
    refusals: &'k mut Vec<Refusal>,
}

impl Tangents<'_> {
    /// The region's ops with their tangents; the terminator also hands on the tangents of what it yields at these positions.
    fn region(&mut self, region: Region, handed_on: &[usize]) {
        for op in std::mem::take(&mut self.kernel.regions[region].ops) {
            if self.kernel.ops[op].kind.is_terminator() {
                let yielded = self.kernel.ops[op].operands.clone();
                let values: Vec<_> = handed_on
                    .iter()
                    .map(|&position| self.tangent_or_zero(region, op, yielded[position]))
                    .collect();
                self.kernel.regions[region].ops.push(op);
                for value in values {
                    add_yielded(self.kernel, region, value);
                }
            } else {
                self.op(region, op);
            }
        }
    }

    fn builder(&mut self, region: Region, op: Op) -> Builder<'_> {
        let loc = self.kernel.ops[op].loc;
        Builder::at(self.kernel, region, loc)
    }

    /// The tangent of the value, at the end of the region; a constant zero if it does not vary.
    fn tangent_or_zero(&mut self, region: Region, op: Op, value: Value) -> Value {
        self.tangent[value].unwrap_or_else(|| {
            let scalar = self.kernel.ty(value).scalar().unwrap_or(Scalar::F32);
            self.builder(region, op).constant(Const::from_f64(scalar, 0.0))
        })
    }

    fn op(&mut self, region: Region, op: Op) {
        let data = self.kernel.ops[op].clone();
        match data.kind {
            OpKind::Local => {
                self.kernel.regions[region].ops.push(op);
                let local = data.results[0];
                if let (true, Type::Local(data)) = (self.activity.varies(local), self.kernel.ty(local)) {
                    let companion = self.builder(region, op).local(data);
                    self.companion_of.set(local, Some(companion));
                }
            }
            OpKind::Tape => {
                self.kernel.regions[region].ops.push(op);
                let tape = data.results[0];
                if let (true, Type::Tape(scalar)) = (self.activity.varies(tape), self.kernel.ty(tape)) {
                    let companion = self.builder(region, op).tape(scalar, data.operands[0]);
                    self.companion_of.set(tape, Some(companion));
                }
            }
            OpKind::Load | OpKind::VolatileLoad => {
                self.kernel.regions[region].ops.push(op);
                if let (true, Some(companion)) =
                    (self.activity.varies(data.results[0]), self.companion_of[data.operands[0]])
                {
                    let tangent = self.builder(region, op).load(companion, &data.operands[1..]);
                    self.tangent.set(data.results[0], Some(tangent));
                }
            }
            OpKind::Store => {
                self.kernel.regions[region].ops.push(op);
                let (&value, place) = data.operands.split_last().expect("a store has a value");
                if let (true, Some(companion)) = (is_real(self.kernel, value), self.companion_of[place[0]]) {
                    let tangent = self.tangent_or_zero(region, op, value);
                    self.builder(region, op).store(companion, &place[1..], tangent);
                }
            }
            OpKind::Atomic(kind) => self.atomic(region, op, kind),
            OpKind::If => {
                let slots = self.varied_slots(&data.results);
                for &inner in &data.regions {
                    self.region(inner, &slots);
                }
                self.kernel.regions[region].ops.push(op);
                self.add_results(op, &data.results, &slots);
            }
            OpKind::For | OpKind::While => self.serial_loop(region, op),
            OpKind::ParallelFor(_) | OpKind::Fork => {
                self.in_parallel = matches!(data.kind, OpKind::ParallelFor(_));
                for &inner in &data.regions {
                    self.region(inner, &[]);
                }
                self.in_parallel = false;
                self.kernel.regions[region].ops.push(op);
                let deferred = std::mem::take(&mut self.deferred);
                if !deferred.is_empty() {
                    self.loops.push(Loops { region, parallel: op, deferred });
                }
            }
            kind => match kind.info().derivative {
                Derivative::Flat => self.kernel.regions[region].ops.push(op),
                Derivative::Rule => {
                    self.kernel.regions[region].ops.push(op);
                    self.computed(region, op);
                }
                Derivative::ByName => is_no_primal(&kind),
            },
        }
    }

    /// The sum over the operands that vary.
    fn computed(&mut self, region: Region, op: Op) {
        let data = self.kernel.ops[op].clone();
        let result = data.results[0];
        if !self.activity.varies(result) {
            return;
        }
        let to = self.kernel.ty(result).scalar().unwrap_or(Scalar::F32);
        let mut sum = None;
        for (index, &operand) in data.operands.iter().enumerate() {
            let Some(tangent) = self.tangent[operand].filter(|_| flows(&data.kind, index)) else { continue };
            let b = &mut self.builder(region, op);
            let partial = partial(b, &data.kind, &data.operands, result, index);
            let Some(share) = through(b, partial, tangent, to) else { continue };
            sum = Some(sum.map_or(share, |sum| b.arith(ArithOp::Add, sum, share)));
        }
        self.tangent.set(result, sum);
    }

    fn atomic(&mut self, region: Region, op: Op, kind: AtomicOp) {
        let data = self.kernel.ops[op].clone();
        self.kernel.regions[region].ops.push(op);
        let (&value, place) = data.operands.split_last().expect("an update has a value");
        let (true, Some(companion)) = (is_real(self.kernel, value), self.companion_of[place[0]]) else {
            return;
        };
        match kind {
            AtomicOp::Add | AtomicOp::Sub => {
                let asked = self.uses[data.results[0]] > 0;
                if asked || self.tangent[value].is_some() {
                    let tangent = self.tangent_or_zero(region, op, value);
                    let old = self.builder(region, op).atomic(kind, companion, &place[1..], tangent);
                    self.tangent.set(data.results[0], Some(old));
                }
            }
            AtomicOp::Mul | AtomicOp::Min | AtomicOp::Max if self.in_parallel => {
                let tangent = self.tangent[value];
                self.deferred.push(Deferred { op, kind, companion, tangent });
            }
            AtomicOp::Mul
            | AtomicOp::Min
            | AtomicOp::Max
            | AtomicOp::And
            | AtomicOp::Or
            | AtomicOp::Xor
            | AtomicOp::Exchange => {
                self.refusals.push(Refusal::new(RefusalKind::NoRule(kind.name()), data.loc));
            }
        }
    }

    fn varied_slots(&self, results: &[Value]) -> Vec<usize> {
        (0..results.len()).filter(|&slot| self.activity.varies(results[slot])).collect()
    }

    fn add_results(&mut self, op: Op, results: &[Value], slots: &[usize]) {
        for &slot in slots {
            let ty = self.kernel.ty(results[slot]);
            let tangent = add_result(self.kernel, op, ty);
            self.tangent.set(results[slot], Some(tangent));
        }
    }

    fn serial_loop(&mut self, region: Region, op: Op) {
        let data = self.kernel.ops[op].clone();
        let slots = self.varied_slots(&data.results);
        let (operands, params, yields) = match data.kind {
            OpKind::For => (2, 1, [0, 0]),
            _ => (0, 0, [1, 0]),
        };
        for &slot in &slots {
            let first = self.tangent_or_zero(region, op, data.operands[operands + slot]);
            self.kernel.ops[op].operands.push(first);
        }
        for (&inner, skipped) in data.regions.iter().zip(yields) {
            for &slot in &slots {
                let param = self.kernel.regions[inner].params[params + slot];
                let ty = self.kernel.ty(param);
                let tangent = self.kernel.add_region_param(inner, ty);
                self.tangent.set(param, Some(tangent));
            }
            let positions: Vec<_> = slots.iter().map(|slot| slot + skipped).collect();
            self.region(inner, &positions);
        }
        self.kernel.regions[region].ops.push(op);
        self.add_results(op, &data.results, &slots);
    }
}
