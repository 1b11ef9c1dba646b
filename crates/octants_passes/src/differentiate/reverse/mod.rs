//! Reverse mode: a sweep forward that computes values again, then a sweep backward that hands adjoints from results to operands.
//!
//! A region is differentiated as a *pair*: its ops forward, then backward. What stands in a region of a loop or an `if` is a pair of its own,
//! inside the backward sweep of the region around it (but for [`nests`]):
//! ```text
//! %2: f32 = if %c { forward… } else { forward… }     forward sweep: results alone
//! …
//! if %c { forward… backward… } else { forward… backward… }     backward sweep
//! ```
//! Nothing of an `if` is therefore kept but its condition. Of a loop what it carries is kept, once for each iteration ([`loops`]).
//! All that turns out not to be needed is dead, and is swept away.
//!
//! The adjoint of a value is a value, too, as long as all who use the value stand in its region; else it is a variable, to which they
//! add. The adjoint of a place is a place: a companion array, or a variable beside a variable. Variables that were written are
//! brought back to what they held as the backward sweep passes the writes ([`places`]).

mod backward;
mod facts;
mod loops;
mod nests;
mod places;
mod sizing;
mod values;

use octants_ir::ops::{AssertKind, Derivative};
use octants_ir::rewrite::{ValueMap, clone_op, ops_in};
use octants_ir::{Builder, Kernel, Loc, Op, OpKind, Region, SideTable, Type, Value};

use super::activity::Activity;
use super::stale_reads::{self, Leaving, Read};
use crate::differentiate::primal::is_no_primal;
use crate::differentiate::refusal::Refusal;
use crate::differentiate::refusal::RefusalKind;
use crate::edit::slots::yielded;
use crate::eliminate_dead_code::eliminate_dead_code_again;
use crate::promote_locals;
use facts::Facts;
use nests::Nest;
use places::Kept;
use sizing::LiveTapes;
pub use sizing::TapePlan;

/// What is known once a kernel was made its own reverse.
pub(super) struct Reversed {
    /// What that keeps, if it keeps something.
    pub tapes: Option<TapePlan>,
    /// If it was refused: the ops of the primal whose results must be kept when that runs, so that it is not.
    pub unkept: Vec<Op>,
}

/// Makes a kernel its own reverse. `recorded` says which loads give what ops gave when the kernel ran.
///
/// Where the kernel checks its indices, so does the reverse, unless it would read for the checks alone what the kernel has overwritten.
pub(super) fn reverse(
    kernel: &mut Kernel,
    activity: &Activity,
    companion_of: SideTable<Value, Option<Value>>,
    recorded: &SideTable<Op, Option<Op>>,
    leaving: &mut Leaving,
    refusals: &mut Vec<Refusal>,
) -> Reversed {
    let before = leaving.questions.len();
    let is_check = |op: Op| matches!(kernel.ops[op].kind, OpKind::Assert(AssertKind::Bounds, _));
    if ops_in(kernel, kernel.body).into_iter().any(is_check) {
        let (mut checked, mut refused) = (kernel.clone(), Vec::new());
        let reversed = reverse_with(
            &mut checked,
            activity,
            companion_of.clone(),
            recorded,
            (true, &mut *leaving),
            &mut refused,
        );
        if refused.is_empty() {
            *kernel = checked;
            return reversed;
        }
        leaving.questions.truncate(before);
    }
    reverse_with(kernel, activity, companion_of, recorded, (false, leaving), refusals)
}

fn reverse_with(
    kernel: &mut Kernel,
    activity: &Activity,
    companion_of: SideTable<Value, Option<Value>>,
    recorded: &SideTable<Op, Option<Op>>,
    (checks, leaving): (bool, &mut Leaving),
    refusals: &mut Vec<Refusal>,
) -> Reversed {
    let tape = ops_in(kernel, kernel.body).into_iter().find(|&op| kernel.ops[op].kind == OpKind::Tape);
    if let Some(op) = tape {
        refusals.push(Refusal::new(RefusalKind::NoRule("tape"), kernel.ops[op].loc));
        return Reversed { tapes: None, unkept: Vec::new() };
    }
    let primal = kernel.clone();
    let facts = Facts::find(&primal, activity, &companion_of);
    let body = kernel.body;
    let mut needed = SideTable::new(false);
    let before = refusals.len();
    let (origin, kept, tasks) = loop {
        let (mut reverse, template) =
            Reverse::new(kernel, activity, &facts, companion_of.clone(), recorded, &mut *refusals);
        (reverse.checks, reverse.needed) = (checks, needed.clone());
        reverse.pair(template, &[]);
        let Reverse { origin, kept, tasks, plain_loops, loc, .. } = reverse;
        Builder::at(kernel, body, loc).returns(&[]);
        kernel.results.clear();
        eliminate_dead_code_again(kernel);
        if ops_in(kernel, body).into_iter().any(|op| kernel.ops[op].kind == OpKind::Tape) {
            // What is added to an adjoint after its last read is dead only once the variable is a value, and so is the tape that it was computed from.
            promote_locals(kernel);
            eliminate_dead_code_again(kernel);
        }
        let mut stands = SideTable::new(false);
        for op in ops_in(kernel, body) {
            stands.set(op, true);
        }
        let mut is_complete = true;
        for (plain, op) in plain_loops {
            if stands[plain] {
                needed.set(op, true);
                is_complete = false;
            }
        }
        if is_complete {
            break (origin, kept, tasks);
        }
        refusals.truncate(before);
        *kernel = primal.clone();
    };
    let has_companion = |base: Value| companion_of[base].is_some();
    let unkept = stale_reads::check(&primal, kernel, &origin, has_companion, leaving, refusals);
    let taped = |op: &Op| {
        matches!(kernel.ops[*op].kind, OpKind::ParallelFor(_))
            && ops_in(kernel, kernel.ops[*op].regions[0])
                .into_iter()
                .any(|inner| kernel.ops[inner].kind == OpKind::Tape)
    };
    let of_primal = |op: Op| tasks.iter().find(|(task, _)| *task == op).map(|&(_, primal)| primal);
    let tasks: Vec<Op> = kernel.top_ops().into_iter().filter(taped).filter_map(of_primal).collect();
    if tasks.is_empty() || !refusals.is_empty() {
        return Reversed { tapes: None, unkept };
    }
    let live = LiveTapes::find(&primal, kernel, &kept);
    let mut sizing = primal;
    let (mut reverse, template) =
        Reverse::new(&mut sizing, activity, &facts, companion_of, recorded, refusals);
    reverse.checks = checks;
    Reversed { tapes: Some(reverse.size_tapes(template, live, &tasks)), unkept }
}

struct Reverse<'k> {
    /// Holds the primal's ops and regions, which stand nowhere any more, and what is made of them.
    kernel: &'k mut Kernel,
    activity: &'k Activity,
    facts: &'k Facts,
    /// The place of the adjoints of what a place of the primal holds.
    companion_of: SideTable<Value, Option<Value>>,
    /// By op of the primal: the load before it that gives what the op gave when the kernel ran.
    recorded: &'k SideTable<Op, Option<Op>>,
    /// What stands for a value of the primal here.
    names: ValueMap,
    /// Of a value of the primal: its adjoint so far, or the variable that holds it.
    adjoint: SideTable<Value, Option<Value>>,
    /// By op of the primal: what its backward sweep needs of the forward sweep.
    kept: SideTable<Op, Kept>,
    /// What a read of the primal's memory stands for.
    origin: SideTable<Op, Option<Read>>,
    /// Loops that iterations run forward and backward in, and the op of the primal that each stands for.
    tasks: Vec<(Op, Op)>,
    /// The body of the parallel loop whose iterations run again: they write nothing that others see.
    task: Option<Region>,
    /// Whether the iterations that run again only mend adjoints of cells that they updated together.
    mends: bool,
    /// The parallel loop whose iterations run again.
    updating: Option<Op>,
    /// Whether tasks may stand here.
    at_top: bool,
    /// Whether indices are checked again.
    checks: bool,
    /// Nests of loops that stand around what is put now, in their backward sweeps.
    nests: Vec<Nest>,
    /// Outermost loops of nests, forward only, and the op of the primal that each stands for. One that is not dead is [needed](Self::needed).
    plain_loops: Vec<(Op, Op)>,
    /// Loops whose results are needed before their backward sweep.
    needed: SideTable<Op, bool>,
    /// Where ops are put.
    region: Region,
    loc: Loc,
    refusals: &'k mut Vec<Refusal>,
}

impl<'k> Reverse<'k> {
    /// Takes the kernel's body out of it, as a region of its own.
    fn new(
        kernel: &'k mut Kernel,
        activity: &'k Activity,
        facts: &'k Facts,
        companion_of: SideTable<Value, Option<Value>>,
        recorded: &'k SideTable<Op, Option<Op>>,
        refusals: &'k mut Vec<Refusal>,
    ) -> (Self, Region) {
        let body = kernel.body;
        let ops = std::mem::take(&mut kernel.regions[body].ops);
        let nowhere = Builder::new(kernel).loc;
        let loc = ops.first().map_or(nowhere, |&op| kernel.ops[op].loc);
        let template = kernel.add_region();
        kernel.regions[template].ops = ops;
        let reverse = Self {
            kernel,
            activity,
            facts,
            companion_of,
            recorded,
            names: ValueMap::new(),
            adjoint: SideTable::new(None),
            kept: SideTable::new(Kept::default()),
            origin: SideTable::new(None),
            tasks: Vec::new(),
            task: None,
            mends: false,
            updating: None,
            at_top: true,
            checks: false,
            nests: Vec::new(),
            plain_loops: Vec::new(),
            needed: SideTable::new(false),
            region: body,
            loc,
            refusals,
        };
        (reverse, template)
    }
}

impl Reverse<'_> {
    fn b(&mut self) -> Builder<'_> {
        Builder::at(self.kernel, self.region, self.loc)
    }

    fn map(&self, values: &[Value]) -> Vec<Value> {
        values.iter().map(|&value| self.names.map(value)).collect()
    }

    /// A new region with these parameters; the closure fills it, and says what it yields.
    fn fill(&mut self, params: &[Type], build: impl FnOnce(&mut Self, &[Value]) -> Vec<Value>) -> Region {
        let region = self.kernel.add_region();
        let values: Vec<_> = params.iter().map(|&ty| self.kernel.add_region_param(region, ty)).collect();
        let outer = (std::mem::replace(&mut self.region, region), self.loc);
        let yielded = build(self, &values);
        self.b().yields(&yielded);
        (self.region, self.loc) = outer;
        region
    }

    /// The region's ops forward and backward. `seeds` are adjoints of what it yields.
    fn pair(&mut self, region: Region, seeds: &[(usize, Value)]) {
        self.forward_region(region, true);
        self.declare_adjoints(region);
        for &(position, seed) in seeds {
            let value = yielded(self.kernel, region)[position];
            self.add_adjoint(value, seed);
        }
        for op in self.kernel.regions[region].ops.clone().into_iter().rev() {
            self.loc = self.kernel.ops[op].loc;
            self.backward(op);
        }
    }

    /// The region's ops but for the terminator. `keep` says that a backward sweep of the same ops follows.
    fn forward_region(&mut self, region: Region, keep: bool) {
        for op in self.kernel.regions[region].ops.clone() {
            if !self.kernel.ops[op].kind.is_terminator() {
                self.loc = self.kernel.ops[op].loc;
                self.forward(op, keep);
            }
        }
    }

    /// A new region that does what one of the primal does, forward only; it yields the same.
    fn forward_copy(&mut self, region: Region) -> Region {
        let params = self.kernel.regions[region].params.clone();
        let types: Vec<_> = params.iter().map(|&param| self.kernel.ty(param)).collect();
        self.fill(&types, |reverse, values| {
            for (&param, &value) in params.iter().zip(values) {
                reverse.names.insert(param, value);
            }
            reverse.forward_region(region, false);
            let yielded = yielded(reverse.kernel, region).to_vec();
            reverse.map(&yielded)
        })
    }

    fn forward(&mut self, op: Op, keep: bool) {
        let data = self.kernel.ops[op].clone();
        match data.kind {
            OpKind::Local => self.forward_as_is(op),
            OpKind::Load | OpKind::VolatileLoad => self.read_again(op),
            OpKind::Store => self.forward_store(op, keep),
            OpKind::Atomic(_) | OpKind::AtomicCas | OpKind::GrowPool => self.forward_update(op),
            OpKind::If | OpKind::Fork | OpKind::ParallelFor(_) => {
                if keep {
                    self.keep_places(op);
                }
                self.forward_structure(op);
                if keep {
                    self.keep_extremes(op);
                }
            }
            OpKind::For | OpKind::While if keep && !self.at_top => self.forward_taped(op),
            OpKind::For | OpKind::While => {
                if keep {
                    self.keep_places(op);
                }
                self.forward_structure(op);
            }
            OpKind::Assert(AssertKind::Bounds, _) if self.checks => self.forward_as_is(op),
            // They were said, or failed, when the kernel ran.
            OpKind::Assert(..) | OpKind::Print(_) => {}
            kind => match kind.info().derivative {
                Derivative::Flat | Derivative::Rule => {
                    let is_recorded = kind.effects().differs_between_launches() && self.read_record(op);
                    if !is_recorded {
                        self.forward_as_is(op);
                    }
                }
                Derivative::ByName => is_no_primal(&kind),
            },
        }
    }

    fn forward_as_is(&mut self, op: Op) {
        let copy = clone_op(self.kernel, op, &mut self.names);
        self.kernel.regions[self.region].ops.push(copy);
    }

    /// An op with regions, forward only.
    fn forward_structure(&mut self, op: Op) {
        let data = self.kernel.ops[op].clone();
        let at_top = self.at_top;
        self.at_top &= data.kind == OpKind::Fork;
        let regions: Vec<_> = data.regions.iter().map(|&region| self.forward_copy(region)).collect();
        self.at_top = at_top;
        let operands = self.map(&data.operands);
        let types: Vec<_> = data.results.iter().map(|&result| self.kernel.ty(result)).collect();
        let copy = self.b().op(data.kind, operands, types, regions);
        for (index, &result) in data.results.iter().enumerate() {
            let value = self.kernel.ops[copy].results[index];
            self.names.insert(result, value);
        }
    }
}
