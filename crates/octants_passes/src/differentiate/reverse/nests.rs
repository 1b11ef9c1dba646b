//! Nests of loops that carry the same values: each runs the next one in each iteration, and does little else.
//!
//! By [`loops`](super::loops) alone, the forward sweep of the innermost body would stand once for each loop around it, since each level runs again what is inside. Here it
//! stands once. Before the innermost loop goes backward, it and those loops around it that began anew run forward; the others stand at the iteration that goes backward:
//! ```text
//! for %j backward {
//!   for %k backward {
//!     %all = first iteration of %k
//!     for %j' in (%all and first iteration of %j ? all : %j) {
//!       for %k' in (%all ? all : %k) {
//!         values from the outer tape's first cell
//!         for %l { store them to the inner tape, if %j' and %k' are the last ones; the body }
//!         store them there again, and where an iteration begins with them that runs again later
//!       }
//!     }
//!     for %l backward { values from the inner tape; … }
//!   }
//! }
//! ```
//! The outer tape has a cell for what runs now, and one for each iteration of each loop but the innermost. The first iteration of a loop begins with what that of the loop around it began with: it is read
//! from there, and its own cell is unused, but for the outermost loop.
//!
//! **One cell more is kept than without nests, and the sweeps forward are no more**: the last iteration of each loop need not run again, since what it left on the tapes is
//! what goes backward first. What the outermost loop gives is not known before the backward sweep. Where it turns out to be needed, the loop is no part of a nest, but those inside may be
//! one ([`Reverse::plain_loops`]).

use octants_ir::ops::{ArithOp, BitOp, CompareOp, Effects};
use octants_ir::rewrite::ops_in;
use octants_ir::{Const, Kernel, Op, OpKind, Region, Scalar, SideTable, Type, Value, ValueDef};

use super::Reverse;
use crate::edit::slots::yielded;

/// Ops of a loop other than the next one, which run again for each run of the innermost loop. Chosen, not measured.
const MOST_OPS_AROUND: usize = 16;

/// What copies of the innermost body cost that are saved, with one for each value that it carries, below which a nest is not worth what it computes about iterations.
const LEAST_COST_SAVED: usize = 64;

/// What the inner one of two loops costs for each value that it carries, at least; and iterations of the task run both equally often. Values that lanes take from different
/// cells of the outer tape are gathered and scattered: 33 products in a loop of one iteration take 2.5 times as long so.
const LEAST_COST_OF_TWO: usize = 16;

/// What loops inside cost with all of their iterations, where these are known, up to which LLVM makes code without loops of them. Six loops of two iterations that carry 24 values take
/// 0.8 of the time so, and three of ten iterations that carry 12 values.
const MOST_COST_UNROLLED: i128 = 4096;

/// A nest whose backward sweep is being made.
pub(super) struct Nest {
    /// From the outermost one.
    loops: Vec<Op>,
    /// Of each loop.
    bounds: Vec<(Value, Value)>,
    /// Of each loop but the innermost: its first cell of the outer tape.
    first_cells: Vec<Value>,
    /// By slot.
    outer_tapes: Vec<Value>,
    /// The iterations that go backward, of the loops around.
    iterations: Vec<Iteration>,
}

#[derive(Clone, Copy)]
struct Iteration {
    index: Value,
    /// Whether it is the one that goes backward first.
    is_first: Value,
}

/// Where the forward sweep is in the loops around an innermost one.
#[derive(Clone, Copy)]
struct Progress {
    /// Whether all loops so far are in their last iteration.
    is_last: Value,
    /// Whether an iteration begins with what this one ends with that runs again later: those around it do not go on before.
    is_kept: Value,
    /// The cell for that.
    next_cell: Value,
}

impl Reverse<'_> {
    /// The loops of the nest that the loop is the outermost one of, if it is worth being one.
    pub(super) fn nest_of(&self, op: Op) -> Option<Vec<Op>> {
        let kernel = &*self.kernel;
        if kernel.ops[op].kind != OpKind::For || self.needed[op] || !self.written(op).is_empty() {
            return None;
        }
        let mut loops = vec![op];
        let mut varying = Varying::new(kernel, op, self.recorded);
        while let Some(next) = self.next_in_nest(loops[loops.len() - 1], &varying) {
            varying.enter(kernel, next);
            loops.push(next);
        }
        self.is_worth_it(&loops).then_some(loops)
    }

    fn is_worth_it(&self, loops: &[Op]) -> bool {
        let kernel = &*self.kernel;
        let (&innermost, values) =
            (loops.last().expect("there is a loop"), kernel.ops[loops[0]].results.len());
        let body = ops_in(kernel, kernel.ops[innermost].regions[0]);
        let cost: usize = body.iter().map(|&op| kernel.ops[op].kind.cost() as usize).sum();
        let runs = loops[1..].iter().map(|&op| kernel.constant_trips(op));
        let runs = runs.reduce(|all, trips| all?.checked_mul(trips?)).flatten();
        match loops.len() {
            1 => false,
            2 if cost < LEAST_COST_OF_TWO * values || !self.bounds_are_uniform(loops) => false,
            _ if runs.is_some_and(|runs| runs.saturating_mul(cost as i128) <= MOST_COST_UNROLLED) => false,
            levels => (levels - 1) * (cost + values) >= LEAST_COST_SAVED,
        }
    }

    /// Whether all iterations of the task surely run the loops equally often.
    fn bounds_are_uniform(&self, loops: &[Op]) -> bool {
        let (kernel, Some(task)) = (&*self.kernel, self.task) else { return true };
        let mut inside = SideTable::new(false);
        for &index in &kernel.regions[task].params {
            inside.set(index, true);
        }
        for op in ops_in(kernel, task) {
            let params = kernel.ops[op].regions.iter().flat_map(|&region| &kernel.regions[region].params);
            for &value in kernel.ops[op].results.iter().chain(params) {
                inside.set(value, true);
            }
        }
        let is_uniform = |&bound: &Value| !inside[bound] || kernel.as_const(bound).is_some();
        loops.iter().all(|&op| kernel.ops[op].operands[..2].iter().all(is_uniform))
    }

    /// The loop inside a loop that carries just what that carries, as often as anyone runs it.
    fn next_in_nest(&self, op: Op, varying: &Varying<'_>) -> Option<Op> {
        let kernel = &*self.kernel;
        let body = kernel.ops[op].regions[0];
        let mut next = None;
        let mut around = 0;
        for &inner in &kernel.regions[body].ops {
            let data = &kernel.ops[inner];
            match data.kind {
                OpKind::For if next.is_none() => next = Some(inner),
                OpKind::Const(_) | OpKind::Yield => {}
                _ if data.kind.has_regions() || !self.may_run_again(inner) => return None,
                _ => around += 1,
            }
        }
        let next = next.filter(|&next| around <= MOST_OPS_AROUND && self.facts.differentiates[next])?;
        let data = &kernel.ops[next];
        let params = &kernel.regions[body].params;
        let only_there = |&value: &Value| self.facts.uses[value] == 1;
        let carries_the_same =
            data.operands[2..] == params[1..] && data.results[..] == *yielded(kernel, body);
        (carries_the_same
            && params[1..].iter().chain(&data.results).all(only_there)
            && data.operands[..2].iter().all(|&bound| !varying.of[bound]))
        .then_some(next)
    }

    /// Whether running the op again in between changes nothing.
    fn may_run_again(&self, op: Op) -> bool {
        let kernel = &*self.kernel;
        let data = &kernel.ops[op];
        let is_local = |&value: &Value| matches!(kernel.ty(value), Type::Local(_) | Type::Tape(_));
        data.kind != OpKind::Local
            && !data.operands.iter().any(is_local)
            && !data.kind.effects().intersects(Effects::NONDETERMINISTIC.union(Effects::CONVERGENT))
    }

    /// Whether the loop is inside of a nest whose backward sweep is being made: there it runs forward, too.
    pub(super) fn is_inside_nest(&self, op: Op) -> bool {
        self.nests.last().is_some_and(|nest| nest.loops[1..].contains(&op))
    }

    /// The results of a nest that are needed by others, if any are; for all else it runs later.
    pub(super) fn forward_nest(&mut self, op: Op) {
        self.forward_structure(op);
        let &plain = self.kernel.regions[self.region].ops.last().expect("it was just added");
        self.plain_loops.push((plain, op));
        self.kept.get_mut(op).is_nest = true;
    }

    pub(super) fn backward_nest(&mut self, op: Op) {
        let loops = self.nest_of(op).expect("it was one in the forward sweep");
        let names = self.names.clone();
        let (bounds, trips) = self.bounds_of(&loops);
        self.names = names;
        let (&innermost, around) = trips.split_last().expect("a nest has loops");
        let mut first_cells = Vec::with_capacity(around.len());
        // One for what runs now.
        let [zero, one] = [0, 1].map(|number| self.i64(number));
        let runs = self.b().compare(CompareOp::Gt, around[0], zero);
        let mut cells = self.b().select(runs, one, zero);
        for &trips in around {
            first_cells.push(cells);
            cells = self.b().arith(ArithOp::Add, cells, trips);
        }
        let outer_tapes = self.tapes_of(op, cells);
        let inner_tapes = self.tapes_of(op, innermost);
        for (level, &op) in loops.iter().enumerate() {
            let tapes = if level + 1 == loops.len() { &inner_tapes } else { &outer_tapes };
            self.kept.get_mut(op).tapes.clone_from(tapes);
        }
        let starts = self.map(&self.kernel.ops[op].operands[2..]);
        self.b().if_else(
            runs,
            |b| {
                for (&tape, &start) in outer_tapes.iter().zip(&starts) {
                    b.store(tape, &[one], start);
                }
                Vec::new()
            },
            |_| Vec::new(),
        );
        self.nests.push(Nest { loops, bounds, first_cells, outer_tapes, iterations: Vec::new() });
        self.backward_iterations(op);
        self.nests.pop();
    }

    fn tapes_of(&mut self, op: Op, count: Value) -> Vec<Value> {
        let results = self.kernel.ops[op].results.clone();
        let scalars = results.iter().map(|&result| self.kernel.ty(result).scalar().unwrap_or(Scalar::I32));
        let scalars: Vec<_> = scalars.collect();
        scalars.into_iter().map(|scalar| self.b().tape(scalar, count)).collect()
    }

    /// The bounds of each loop, and how often it runs whenever the one around it does: zero if that never does.
    fn bounds_of(&mut self, loops: &[Op]) -> (Vec<(Value, Value)>, Vec<Value>) {
        let (mut bounds, mut trips): (Vec<(Value, Value)>, Vec<Value>) = (Vec::new(), Vec::new());
        let mut inside = SideTable::new(false);
        for (level, &op) in loops.iter().enumerate() {
            let operands = self.kernel.ops[op].operands[..2].to_vec();
            let zero = self.i64(0);
            let Some(&around) = trips.last() else {
                let found = self.map(&operands);
                bounds.push((found[0], found[1]));
                trips.push(self.extent(found[0], found[1]));
                mark(self.kernel, op, &mut inside);
                continue;
            };
            let runs = self.b().compare(CompareOp::Gt, around, zero);
            let is_inside = |value: Value| inside[value] && self.kernel.as_const(value).is_none();
            let found = if operands.iter().any(|&bound| is_inside(bound)) {
                self.bounds_inside(&loops[..level], &operands, runs)
            } else {
                let number = |reverse: &mut Self, value: Value| match reverse.kernel.as_const(value) {
                    Some(number) => reverse.b().constant(number),
                    None => reverse.names.map(value),
                };
                (number(self, operands[0]), number(self, operands[1]))
            };
            bounds.push(found);
            let extent = self.extent(found.0, found.1);
            trips.push(self.b().select(runs, extent, zero));
            mark(self.kernel, op, &mut inside);
        }
        (bounds, trips)
    }

    /// Bounds that the loops around compute, if they run.
    fn bounds_inside(&mut self, around: &[Op], bounds: &[Value], runs: Value) -> (Value, Value) {
        let types: Vec<_> = bounds.iter().map(|&bound| self.kernel.ty(bound)).collect();
        let computed = self.fill(&[], |reverse, _| {
            let mut varying = Varying::new(reverse.kernel, around[0], reverse.recorded);
            for (level, &op) in around.iter().enumerate() {
                if level > 0 {
                    varying.enter(reverse.kernel, op);
                }
                for inner in reverse.kernel.regions[reverse.kernel.ops[op].regions[0]].ops.clone() {
                    let data = &reverse.kernel.ops[inner];
                    let gives = data.results.iter().any(|&result| !varying.of[result]);
                    let is_check = matches!(data.kind, OpKind::Assert(..))
                        && !data.operands.iter().any(|&value| varying.of[value]);
                    if gives && !data.kind.has_regions() || is_check {
                        reverse.forward(inner, false);
                    }
                }
            }
            reverse.map(bounds)
        });
        let none = self.fill(&[], |reverse, _| {
            let zero = |&ty: &Type| {
                let scalar = ty.scalar().unwrap_or(Scalar::I32);
                reverse.b().constant(Const::from_i128(scalar, 0))
            };
            types.iter().map(zero).collect()
        });
        let made = self.b().op(OpKind::If, [runs], types.clone(), [computed, none]);
        let results = &self.kernel.ops[made].results;
        (results[0], results[1])
    }

    /// What a loop of the nest that is being made runs from and to.
    pub(super) fn bounds_in_nest(&self, op: Op) -> Option<(Value, Value)> {
        let nest = self.nests.last()?;
        let level = nest.loops.iter().position(|&other| other == op)?;
        Some(nest.bounds[level])
    }

    /// Whether the loop stands around another one of the nest that is being made.
    pub(super) fn is_around_in_nest(&self, op: Op) -> bool {
        self.nests.last().is_some_and(|nest| nest.loops[..nest.loops.len() - 1].contains(&op))
    }

    /// Whether the loop is the innermost one of the nest that is being made.
    pub(super) fn is_innermost_in_nest(&self, op: Op) -> bool {
        self.nests.last().is_some_and(|nest| nest.loops.last() == Some(&op))
    }

    /// An iteration of a loop around goes backward now.
    pub(super) fn begin_iteration(&mut self, count: Value, first: Value, index: Value) {
        let is_first = self.b().compare(CompareOp::Eq, count, first);
        self.nests.last_mut().expect("a nest is being made").iterations.push(Iteration { index, is_first });
    }

    pub(super) fn end_iteration(&mut self) {
        self.nests.last_mut().expect("a nest is being made").iterations.pop();
    }

    /// Runs the nest forward as far as its tapes do not hold what the innermost loop needs.
    pub(super) fn run_nest_again(&mut self) {
        let names = self.names.clone();
        let nest = self.nests.pop().expect("a nest is being made");
        let around = nest.iterations.len();
        // By loop: whether it runs all of its iterations.
        let mut runs_all: Vec<Value> = nest.iterations.iter().map(|iteration| iteration.is_first).collect();
        for level in (0..around - 1).rev() {
            runs_all[level] = self.b().bit(BitOp::And, runs_all[level], runs_all[level + 1]);
        }
        let mut cells = Vec::with_capacity(around);
        for (level, iteration) in nest.iterations.iter().enumerate() {
            let (lo, _) = nest.bounds[level];
            let own = self.cell_of(&nest, level, iteration.index);
            cells.push(match cells.last() {
                Some(&outer) => {
                    let b = &mut self.b();
                    let begins = b.compare(CompareOp::Eq, iteration.index, lo);
                    b.select(begins, outer, own)
                }
                None => own,
            });
        }
        let mut cell = cells[around - 1];
        for level in (0..around).rev() {
            let start = if level == 0 { self.i64(1) } else { cells[level - 1] };
            cell = self.b().select(runs_all[level], start, cell);
        }
        let now = self.i64(0);
        for &tape in &nest.outer_tapes {
            let b = &mut self.b();
            let value = b.load(tape, &[cell]);
            b.store(tape, &[now], value);
        }
        self.run_level_again(&nest, &runs_all, None);
        self.nests.push(nest);
        self.names = names;
    }

    /// The next loop of the nest forward.
    fn run_level_again(&mut self, nest: &Nest, runs_all: &[Value], outer: Option<(usize, Progress)>) {
        let level = match outer {
            Some((level, progress)) if level + 1 == runs_all.len() => {
                self.run_innermost_again(nest, progress);
                return;
            }
            Some((level, _)) => level + 1,
            None => 0,
        };
        let (all_lo, all_hi) = nest.bounds[level];
        let index = nest.iterations[level].index;
        let one = self.one(index);
        let b = &mut self.b();
        let after = b.arith(ArithOp::Add, index, one);
        let lo = b.select(runs_all[level], all_lo, index);
        let hi = b.select(runs_all[level], all_hi, after);
        let body = self.kernel.ops[nest.loops[level]].regions[0];
        let region = self.fill(&[self.kernel.ty(index)], |reverse, values| {
            let index = values[0];
            reverse.set_params(body, &[index]);
            reverse.forward_around(body, nest.loops[level + 1]);
            let own = reverse.cell_of(nest, level, index);
            let (one, like) = (reverse.i64(1), reverse.one(index));
            let b = &mut reverse.b();
            let next = b.arith(ArithOp::Add, own, one);
            let after = b.arith(ArithOp::Add, index, like);
            let ends = b.compare(CompareOp::Ge, after, hi);
            let progress = if let Some((_, outer)) = outer {
                Progress {
                    is_last: b.bit(BitOp::And, outer.is_last, ends),
                    is_kept: b.select(ends, outer.is_kept, outer.is_last),
                    next_cell: b.select(ends, outer.next_cell, next),
                }
            } else {
                let is_kept = b.compare(CompareOp::Lt, after, hi);
                Progress { is_last: ends, is_kept, next_cell: next }
            };
            reverse.run_level_again(nest, runs_all, Some((level, progress)));
            Vec::new()
        });
        self.b().op(OpKind::For, [lo, hi], [], [region]);
    }

    /// The ops of the region forward but for a loop and the terminator.
    fn forward_around(&mut self, region: Region, next: Op) {
        for op in self.kernel.regions[region].ops.clone() {
            if op != next && !self.kernel.ops[op].kind.is_terminator() {
                self.loc = self.kernel.ops[op].loc;
                self.forward(op, false);
            }
        }
    }

    fn run_innermost_again(&mut self, nest: &Nest, progress: Progress) {
        let &op = nest.loops.last().expect("a nest has loops");
        let (lo, hi) = nest.bounds[nest.loops.len() - 1];
        let body = self.kernel.ops[op].regions[0];
        let now = self.i64(0);
        let mut operands = vec![lo, hi];
        for &tape in &nest.outer_tapes {
            operands.push(self.b().load(tape, &[now]));
        }
        let inner_tapes = self.kept[op].tapes.clone();
        let types = self.param_types(body);
        let region = self.fill(&types, |reverse, values| {
            reverse.set_params(body, values);
            let position = reverse.distance(lo, values[0]);
            reverse.store_if(progress.is_last, &inner_tapes, position, &values[1..]);
            reverse.forward_region(body, false);
            let next = yielded(reverse.kernel, body).to_vec();
            reverse.map(&next)
        });
        let made = self.b().op(OpKind::For, operands, types[1..].to_vec(), [region]);
        let results = self.kernel.ops[made].results.to_vec();
        for (&tape, &value) in nest.outer_tapes.iter().zip(&results) {
            self.b().store(tape, &[now], value);
        }
        // From there and not from registers: with 40 values, LLVM's register allocator takes twice as long for what lives through their stores.
        self.b().if_else(
            progress.is_kept,
            |b| {
                for &tape in &nest.outer_tapes {
                    let value = b.load(tape, &[now]);
                    b.store(tape, &[progress.next_cell], value);
                }
                Vec::new()
            },
            |_| Vec::new(),
        );
    }

    /// Stores each value to its tape where the condition holds.
    fn store_if(&mut self, condition: Value, tapes: &[Value], cell: Value, values: &[Value]) {
        self.b().if_else(
            condition,
            |b| {
                for (&tape, &value) in tapes.iter().zip(values) {
                    b.store(tape, &[cell], value);
                }
                Vec::new()
            },
            |_| Vec::new(),
        );
    }

    /// The cell of the outer tape for what an iteration begins with.
    fn cell_of(&mut self, nest: &Nest, level: usize, index: Value) -> Value {
        let (lo, _) = nest.bounds[level];
        let position = self.distance(lo, index);
        let b = &mut self.b();
        let position = b.cast(position, Scalar::I64);
        b.arith(ArithOp::Add, nest.first_cells[level], position)
    }

    fn i64(&mut self, number: i128) -> Value {
        self.b().constant(Const::from_i128(Scalar::I64, number))
    }
}

/// Marks what the loop's body computes itself.
fn mark(kernel: &Kernel, op: Op, inside: &mut SideTable<Value, bool>) {
    let body = &kernel.regions[kernel.ops[op].regions[0]];
    let results = body.ops.iter().flat_map(|&inner| kernel.ops[inner].results.iter());
    for &value in body.params.iter().chain(results) {
        inside.set(value, true);
    }
}

/// What is not the same in all iterations of a nest.
struct Varying<'r> {
    of: SideTable<Value, bool>,
    recorded: &'r SideTable<Op, Option<Op>>,
}

impl<'r> Varying<'r> {
    fn new(kernel: &Kernel, outermost: Op, recorded: &'r SideTable<Op, Option<Op>>) -> Self {
        let mut varying = Self { of: SideTable::new(false), recorded };
        varying.enter(kernel, outermost);
        varying
    }

    /// Looks at the body of the next loop.
    fn enter(&mut self, kernel: &Kernel, op: Op) {
        let body = &kernel.regions[kernel.ops[op].regions[0]];
        for &param in &body.params {
            self.of.set(param, true);
        }
        for &inner in &body.ops {
            let data = &kernel.ops[inner];
            let reads = data.kind.effects();
            let is_load = data.kind == OpKind::Load
                && matches!(kernel.ty(data.operands[0]), Type::Array(_))
                && matches!(kernel.values[data.operands[0]].def, ValueDef::Param(..));
            let repeats = is_load || reads.is_pure() && !data.kind.has_regions();
            let varies = !repeats
                || self.recorded[inner].is_some()
                || data.operands.iter().any(|&value| self.of[value]);
            for &result in &data.results {
                self.of.set(result, varies);
            }
        }
    }
}
