//! Control flow that is known: conditions and bounds that are constants, loops and axes that run once or never, carried values that never
//! change, `if`s that only choose between values.

use octants_ir::ops::{ArithOp, BitOp, BitUnary, ConvertOp};
use octants_ir::{Const, Op, OpKind, Region, Type, Value};

use super::Round;
use crate::edit::slots::{set_params, yielded};

/// An `if` becomes `select`s when neither side computes more than this many ops besides constants, and chooses no more than
/// this many values. Chosen, not measured: about what a mispredicted branch costs, and what LLVM itself flattens.
const MAX_SELECT_OPS: usize = 2;
const MAX_SELECT_VALUES: usize = 4;

impl Round<'_> {
    pub(super) fn visit_control(&mut self, region: Region, op: Op) {
        self.note_indices(op);
        match &self.kernel.ops[op].kind {
            OpKind::If => self.visit_if(region, op),
            OpKind::For => self.visit_for(region, op),
            OpKind::While => self.visit_while(region, op),
            OpKind::ParallelFor(_) => {
                let parallel = self.kernel.parallel_loop(op).expect("the kind says so");
                if parallel.bounds().any(|(lo, hi)| self.trips(lo, hi) == Some(0)) {
                    self.changed = true;
                } else {
                    self.drop_single_axes(op);
                    self.keep(region, op);
                }
            }
            _ => self.keep(region, op),
        }
    }

    /// Axes of one iteration go, so that the last axis is one along which neighbours differ. One axis stays.
    fn drop_single_axes(&mut self, op: Op) {
        let parallel = self.kernel.parallel_loop(op).expect("the caller saw a parallel loop");
        let (body, indices) = (parallel.body, parallel.indices().to_vec());
        let mut kept: Vec<_> = indices.iter().copied().zip(parallel.bounds()).collect();
        let mut dropped = Vec::new();
        while kept.len() > 1
            && let Some(single) = kept.iter().position(|&(_, (lo, hi))| self.trips(lo, hi) == Some(1))
        {
            dropped.push(kept.remove(single));
        }
        if dropped.is_empty() {
            return;
        }
        let (accumulators, places) = (parallel.accumulators().to_vec(), parallel.place_operands().to_vec());
        for (index, (lo, _)) in dropped {
            self.rename(index, lo);
        }
        let bounds = kept.iter().flat_map(|&(_, (lo, hi))| [lo, hi]);
        self.kernel.ops[op].operands = bounds.chain(places).collect();
        if let OpKind::ParallelFor(attributes) = &mut self.kernel.ops[op].kind {
            attributes.axes = kept.len() as u8;
        }
        let params = kept.iter().map(|&(index, _)| index).chain(accumulators).collect();
        set_params(self.kernel, body, params);
    }

    /// The op stays; its regions are visited.
    fn keep(&mut self, region: Region, op: Op) {
        for inner in self.kernel.ops[op].regions.clone() {
            self.region(inner);
        }
        self.kernel.regions[region].ops.push(op);
    }

    /// How often a loop from `lo` to `hi` runs, where that is known; anything above one counts as two.
    fn trips(&self, lo: Value, hi: Value) -> Option<u32> {
        if lo == hi {
            return Some(0);
        }
        let lo = self.kernel.as_const(lo)?.as_i128()?;
        let hi = self.kernel.as_const(hi)?.as_i128()?;
        Some((hi - lo).clamp(0, 2) as u32)
    }

    /// The region's ops come here, its parameters standing for `arguments`. Returns what it yielded.
    fn inline(&mut self, region: Region, inner: Region, arguments: &[Value]) -> Vec<Value> {
        let params = self.kernel.regions[inner].params.clone();
        for (&param, &argument) in params.iter().zip(arguments) {
            self.rename(param, argument);
        }
        let mut ops = std::mem::take(&mut self.kernel.regions[inner].ops);
        let terminator = ops.pop().expect("a region ends in a terminator");
        for op in ops {
            self.visit(region, op);
        }
        self.kernel.ops[terminator].operands.iter().map(|&value| self.names.resolve(value)).collect()
    }

    fn rename_results(&mut self, op: Op, values: &[Value]) {
        let results = self.kernel.ops[op].results.clone();
        for (&result, &value) in results.iter().zip(values) {
            self.rename(result, value);
        }
    }

    fn visit_if(&mut self, region: Region, op: Op) {
        let cond = self.kernel.ops[op].operands[0];
        if let Some(known) = self.kernel.as_const(cond) {
            let taken = self.kernel.ops[op].regions[usize::from(known.bits() == 0)];
            let values = self.inline(region, taken, &[]);
            self.rename_results(op, &values);
            return;
        }
        let negated = self.kernel.def(cond).filter(|def| def.kind == OpKind::BitUnary(BitUnary::Not));
        if let Some(opposite) = negated.map(|def| def.operands[0]) {
            self.kernel.ops[op].operands[0] = opposite;
            self.kernel.ops[op].regions.reverse();
            self.changed = true;
        }
        let [then, otherwise] = self.kernel.ops[op].regions[..] else {
            unreachable!("an if has two regions")
        };
        self.region(then);
        self.region(otherwise);
        if self.only_chooses(op, then, otherwise) {
            self.choose(region, op, then, otherwise);
            return;
        }
        for (index, result) in self.kernel.ops[op].results.clone().into_iter().enumerate() {
            let value = yielded(self.kernel, then)[index];
            if value == yielded(self.kernel, otherwise)[index] {
                self.rename(result, value);
            }
        }
        self.kernel.regions[region].ops.push(op);
    }

    fn only_chooses(&self, op: Op, then: Region, otherwise: Region) -> bool {
        let results = &self.kernel.ops[op].results;
        let scalars = results.iter().all(|&result| self.kernel.ty(result).scalar().is_some());
        scalars
            && (1..=MAX_SELECT_VALUES).contains(&results.len())
            && self.is_cheap(then)
            && self.is_cheap(otherwise)
    }

    fn is_cheap(&self, region: Region) -> bool {
        let mut cost = 0;
        for &op in &self.kernel.regions[region].ops {
            match self.kernel.ops[op].kind {
                OpKind::Const(_) | OpKind::Yield => {}
                OpKind::Arith(
                    ArithOp::Add
                    | ArithOp::Sub
                    | ArithOp::Mul
                    | ArithOp::Min
                    | ArithOp::Max
                    | ArithOp::Neg
                    | ArithOp::Abs,
                )
                | OpKind::Bit(_)
                | OpKind::BitUnary(BitUnary::Not)
                | OpKind::Compare(_)
                | OpKind::Select
                | OpKind::Convert(ConvertOp::Cast | ConvertOp::BitCast | ConvertOp::Detach) => cost += 1,
                _ => return false,
            }
        }
        cost <= MAX_SELECT_OPS
    }

    /// Both sides are computed here, and each result is chosen.
    fn choose(&mut self, region: Region, op: Op, then: Region, otherwise: Region) {
        let cond = self.kernel.ops[op].operands[0];
        let loc = self.kernel.ops[op].loc;
        let taken = self.inline(region, then, &[]);
        let other = self.inline(region, otherwise, &[]);
        for (index, result) in self.kernel.ops[op].results.clone().into_iter().enumerate() {
            let ty = self.kernel.ty(result);
            let value = self.emit(region, OpKind::Select, [cond, taken[index], other[index]], ty, loc);
            self.rename(result, value);
        }
    }

    fn visit_for(&mut self, region: Region, op: Op) {
        let operands = self.kernel.ops[op].operands.clone();
        let body = self.kernel.ops[op].regions[0];
        match self.trips(operands[0], operands[1]) {
            Some(0) => return self.rename_results(op, &operands[2..]),
            Some(1) => {
                let arguments: Vec<_> = operands[..1].iter().chain(&operands[2..]).copied().collect();
                let values = self.inline(region, body, &arguments);
                return self.rename_results(op, &values);
            }
            _ => {}
        }
        self.region(body);
        for (slot, &first) in operands[2..].iter().enumerate() {
            let param = self.kernel.regions[body].params[slot + 1];
            let next = yielded(self.kernel, body)[slot];
            if next == param || next == first {
                self.never_changes(op, slot, &[param], first);
            }
        }
        self.kernel.regions[region].ops.push(op);
    }

    fn visit_while(&mut self, region: Region, op: Op) {
        let first = self.kernel.ops[op].operands.clone();
        let [cond, body] = self.kernel.ops[op].regions[..] else { unreachable!("a while has two regions") };
        self.region(cond);
        let continues = yielded(self.kernel, cond)[0];
        if self.kernel.as_const(continues).is_some_and(|known| known.bits() == 0) {
            let values = self.inline(region, cond, &first);
            // Inner regions of what came here were visited while the parameters still had their own names.
            self.renamed_behind = true;
            self.rename_results(op, &values[1..]);
            return;
        }
        self.assume_condition(region, op, cond, body);
        self.region(body);
        for (slot, &first) in first.iter().enumerate() {
            let params = [self.kernel.regions[cond].params[slot], self.kernel.regions[body].params[slot]];
            let passed = yielded(self.kernel, cond)[slot + 1];
            let next = yielded(self.kernel, body)[slot];
            if (passed == params[0] || passed == first) && (next == params[1] || next == first) {
                self.never_changes(op, slot, &params, first);
            }
        }
        self.kernel.regions[region].ops.push(op);
    }

    /// Where the body runs the condition held: a flag that it asked for is known there.
    fn assume_condition(&mut self, region: Region, op: Op, cond: Region, body: Region) {
        let loc = self.kernel.ops[op].loc;
        let mut known = vec![(yielded(self.kernel, cond)[0], true)];
        let mut next = 0;
        while let Some(&(value, holds)) = known.get(next) {
            next += 1;
            let Some(def) = self.kernel.def(value) else { continue };
            match def.kind {
                OpKind::Bit(BitOp::And) if holds => known.extend(def.operands.iter().map(|&v| (v, true))),
                OpKind::Bit(BitOp::Or) if !holds => known.extend(def.operands.iter().map(|&v| (v, false))),
                OpKind::BitUnary(BitUnary::Not) => known.push((def.operands[0], !holds)),
                _ => {}
            }
        }
        for (slot, param) in self.kernel.regions[body].params.clone().into_iter().enumerate() {
            let passed = yielded(self.kernel, cond)[slot + 1];
            let is_truth = self.kernel.ty(param) == Type::U1 && self.kernel.as_const(passed).is_none();
            if let Some(&(_, holds)) = known.iter().find(|&&(value, _)| is_truth && value == passed) {
                let constant = self.constant(region, Const::bool(holds), loc);
                self.names.insert(param, constant);
            }
        }
    }

    /// A carried value is what it was at first, inside the loop and after it.
    fn never_changes(&mut self, op: Op, slot: usize, params: &[Value], first: Value) {
        let result = self.kernel.ops[op].results[slot];
        // Renamed once, a slot has no more uses and goes; a slot without uses is no news.
        self.rename(result, first);
        for &param in params {
            self.rename_behind(param, first);
        }
    }
}
