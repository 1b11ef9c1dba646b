//! Brings a kernel into the form that is differentiated: scalars, variables as values, no calls, and of each `while` the condition
//! alone is computed by the region that asks for it.
//!
//! Before:
//! ```text
//! %r: f32 = while (%a: f32 = %0) {
//!   %b: f32 = sin %a
//!   %c: u1 = lt %b, %1
//!   yield %c, %b
//! } do {
//!   …
//!   yield %d
//! }
//! ```
//! After:
//! ```text
//! %b: f32 = sin %0
//! %c: u1 = lt %b, %1
//! %s: u1, %r: f32 = while (%f: u1 = %c, %a: f32 = %b) {
//!   yield %f, %f, %a
//! } do {
//!   …
//!   %e: f32 = sin %d
//!   %g: u1 = lt %e, %1
//!   yield %g, %e
//! }
//! ```

use octants_ir::ops::{AtomicOp, Effects};
use octants_ir::rewrite::{ValueMap, clone_body, ops_in, replace_values, use_counts};
use octants_ir::{Arena, Builder, Data, Func, Kernel, Loc, Op, OpKind, Region, SideTable, Type, Value};

use crate::assumptions::Assumptions;
use crate::demote_atomics::demote_atomics_where;
use crate::differentiate::refusal::Refusal;
use crate::differentiate::refusal::RefusalKind;
use crate::edit::slots::yielded;
use crate::keep_rounding::{Totals, keep_rounding_of};
use crate::recognise_reductions::{Nans, recognise};
use crate::{expand_field_loops, lower_random, merge_accesses, promote_locals, scalarise, simplify};

/// No array that the kernel writes overlaps another: whoever launches the derivative sees to it.
pub(super) const ASSUMPTIONS: Assumptions =
    Assumptions { noalias: true, copies: false, exclusive: false, few_tasks: false, blocks: false };

/// Gives the places of assignments that are races.
pub(super) fn prepare(kernel: &mut Kernel) -> Result<Vec<Loc>, Refusal> {
    inline_calls(kernel)?;
    let all = ops_in(kernel, kernel.body);
    if let Some(op) = all.into_iter().find(|&op| kernel.ops[op].kind.effects().contains(Effects::CONVERGENT))
    {
        return Err(Refusal::new(RefusalKind::NoRule(kernel.ops[op].kind.name()), kernel.ops[op].loc));
    }
    keep_rounding_of(kernel, Totals::All);
    scalarise(kernel);
    expand_field_loops(kernel);
    lower_random(kernel);
    promote_locals(kernel);
    simplify(kernel);
    if ops_in(kernel, kernel.body).into_iter().any(|op| is_local_tensor(kernel, op)) {
        // Components that turned out to be fixed are variables of their own: loops keep those that they need.
        scalarise(kernel);
        promote_locals(kernel);
        simplify(kernel);
    }
    // Assignments that mean a reduction have other derivatives than a store.
    let races = recognise(kernel, ASSUMPTIONS, Nans::PassedOver);
    keep_rounding_of(kernel, Totals::All);
    demote(kernel);
    promote_locals(kernel);
    // What is read once is added to once.
    merge_accesses(kernel, ASSUMPTIONS);
    // The outer ones first: what is copied has inner ones of its own.
    let mut pending = vec![kernel.body];
    while let Some(region) = pending.pop() {
        separate_conditions(kernel, region);
        pending.extend(kernel.regions[region].ops.iter().flat_map(|&op| &kernel.ops[op].regions));
    }
    simplify(kernel);
    Ok(races)
}

fn is_local_tensor(kernel: &Kernel, op: Op) -> bool {
    let data = &kernel.ops[op];
    data.kind == OpKind::Local && matches!(kernel.ty(data.results[0]), Type::Local(Data::Tensor(_)))
}

/// Updates that no other thread sees become plain ones, but for sums, whose derivative needs no value.
fn demote(kernel: &mut Kernel) {
    let uses = use_counts(kernel);
    demote_atomics_where(kernel, ASSUMPTIONS, &|kernel, op| {
        let data = &kernel.ops[op];
        let sums = matches!(data.kind, OpKind::Atomic(AtomicOp::Add | AtomicOp::Sub));
        let array = matches!(kernel.ty(data.operands[0]), Type::Array(_));
        !(sums && array) || data.results.iter().any(|&result| uses[result] > 0)
    });
}

/// Puts the bodies of functions where they are called.
fn inline_calls(kernel: &mut Kernel) -> Result<(), Refusal> {
    let mut inlining = Inlining { open: SideTable::new(false), names: ValueMap::new() };
    inlining.region(kernel, kernel.body)?;
    kernel.functions = Arena::new();
    replace_values(kernel, kernel.body, &inlining.names);
    Ok(())
}

struct Inlining {
    /// The functions whose bodies are being put somewhere.
    open: SideTable<Func, bool>,
    /// What stands for the results of calls.
    names: ValueMap,
}

impl Inlining {
    fn region(&mut self, kernel: &mut Kernel, region: Region) -> Result<(), Refusal> {
        for op in std::mem::take(&mut kernel.regions[region].ops) {
            for inner in kernel.ops[op].regions.clone() {
                self.region(kernel, inner)?;
            }
            let OpKind::Call(function) = kernel.ops[op].kind else {
                kernel.regions[region].ops.push(op);
                continue;
            };
            let data = kernel.ops[op].clone();
            if self.open[function] {
                return Err(Refusal::new(RefusalKind::Recursion, data.loc));
            }
            self.open.set(function, true);
            let body = kernel.functions[function].body;
            let (ops, returned) = clone_body(kernel, body, &data.operands, &mut ValueMap::new());
            let inlined = kernel.add_region();
            kernel.regions[inlined].ops = ops;
            self.region(kernel, inlined)?;
            let ops = std::mem::take(&mut kernel.regions[inlined].ops);
            kernel.regions[region].ops.extend(ops);
            self.open.set(function, false);
            for (&result, value) in data.results.iter().zip(returned) {
                self.names.insert(result, value);
            }
        }
        Ok(())
    }
}

/// Makes the first region of each `while` in the region hand on what it got.
fn separate_conditions(kernel: &mut Kernel, region: Region) {
    let mut names = ValueMap::new();
    for op in std::mem::take(&mut kernel.regions[region].ops) {
        if kernel.ops[op].kind == OpKind::While && !hands_on(kernel, op) {
            separate(kernel, region, op, &mut names);
        } else {
            kernel.regions[region].ops.push(op);
        }
    }
    replace_values(kernel, kernel.body, &names);
}

fn hands_on(kernel: &Kernel, op: Op) -> bool {
    let condition = kernel.ops[op].regions[0];
    yielded(kernel, condition)[1..] == kernel.regions[condition].params[..]
}

fn separate(kernel: &mut Kernel, region: Region, op: Op, names: &mut ValueMap) {
    let data = kernel.ops[op].clone();
    let [condition, body] = data.regions[..] else { unreachable!("a `while` has two regions") };
    let put = |kernel: &mut Kernel, at: Region, from: Region, arguments: &[Value]| {
        let (ops, yielded) = clone_body(kernel, from, arguments, &mut ValueMap::new());
        kernel.regions[at].ops.extend(ops);
        yielded
    };
    let first = put(kernel, region, condition, &data.operands);
    let types: Vec<Type> = first.iter().map(|&value| kernel.ty(value)).collect();
    let asks = Builder::at(kernel, region, data.loc)
        .region_of(&types, |_, params| params[..1].iter().chain(params).copied().collect());
    let next = kernel.add_region();
    let params: Vec<_> = types.iter().map(|&ty| kernel.add_region_param(next, ty)).collect();
    let carried = put(kernel, next, body, &params[1..]);
    let again = put(kernel, next, condition, &carried);
    Builder::at(kernel, next, data.loc).yields(&again);
    let looped = Builder::at(kernel, region, data.loc).op(OpKind::While, first, types, [asks, next]);
    for (index, &result) in data.results.iter().enumerate() {
        names.insert(result, kernel.ops[looped].results[index + 1]);
    }
}
