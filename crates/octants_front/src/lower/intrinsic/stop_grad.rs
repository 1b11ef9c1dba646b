//! `stop_grad(*fields)`: for derivatives of the kernel, what is loaded from these fields is a constant, anywhere in the block that the call
//! stands in and in the blocks inside of it.
//!
//! When all is lowered, each such load is followed by a `detach`, and everybody uses what that gives:
//!
//! ```text
//! for i in x:                    parallel_for (%i: i32) in … {
//!     oc.stop_grad(x)              %1: f32 = load %x[%i]
//!     y[i] = x[i]                  %2: f32 = detach %1
//!                                  store %y[%i], %2
//!                                }
//! ```

use std::collections::BTreeSet;

use octants_diag::{Code, Span};
use octants_ir::rewrite::{ValueMap, ops_in, regions_in, replace_values};
use octants_ir::{Builder, Func, Id, Op, OpKind, Region, Scalar, Value};

use crate::dependency::TreeView;
use crate::host::{FieldKind, Host, Meaning};
use crate::intrinsics::Intrinsic;
use crate::lower::Lowerer;
use crate::lower::data::argument::Argument;
use crate::lower::data::blocks::Block;
use crate::lower::data::term::Term;
use crate::lower::error::Fallible;

/// A field whose loads are constants in a block.
pub(crate) struct Stop<O> {
    field: O,
    block: Block,
    span: Span,
}

/// Likewise, of a parameter.
struct StoppedParam {
    param: Value,
    block: Block,
    span: Span,
}

impl<H: Host> Lowerer<'_, H> {
    pub(crate) fn stop_grad(
        &mut self,
        arguments: &[Argument<H::Object>],
        span: Span,
    ) -> Fallible<Term<H::Object>> {
        if arguments.is_empty() {
            return Err(self.bad_arguments(Intrinsic::StopGrad, span));
        }
        self.field_hint(Intrinsic::StopGrad, arguments)?;
        for argument in arguments {
            let Term::Object(object) = self.rvalue(argument.term.clone(), argument.span)? else { continue };
            // A node is no field.
            let kind = self.field_kind(&object, argument.span)?;
            self.note_members(&object, &kind);
            self.stops.push(Stop { field: object, block: self.blocks_of_ops.open(), span });
        }
        Ok(Term::None)
    }

    /// Remembers whose members the members of a field of structs are, so that they are known by any name.
    fn note_members(&mut self, whole: &H::Object, kind: &FieldKind) {
        let FieldKind::Struct { members } = kind else { return };
        for (name, member) in members {
            let host = self.host;
            if let Ok(field) = host.getattr(whole, name, self)
                && let Meaning::Field = host.meaning(&field)
            {
                self.note_part(whole, name, &field);
                self.note_members(&field, member);
            }
        }
    }

    /// Makes constants of the loads that `stop_grad` was about.
    pub(crate) fn detach_stopped(&mut self) -> Fallible<()> {
        let stopped = self.stopped_params();
        if stopped.is_empty() {
            return Ok(());
        }
        self.check_stopped_calls(&stopped)?;
        let bodies = self.kernel.bodies();
        let mut detached = Vec::new();
        for &body in &bodies {
            for region in regions_in(&self.kernel, body) {
                self.detach_in(region, &stopped, &mut detached);
            }
        }
        let mut names = ValueMap::new();
        for &(loaded, _, constant) in &detached {
            names.insert(loaded, constant);
        }
        for body in bodies {
            replace_values(&mut self.kernel, body, &names);
        }
        for (loaded, op, _) in detached {
            self.kernel.ops[op].operands[0] = loaded;
        }
        Ok(())
    }

    fn stopped_params(&mut self) -> Vec<StoppedParam> {
        if self.stops.is_empty() {
            return Vec::new();
        }
        let used = self.fields.iter().map(|known| match known.view {
            Some(TreeView { elements: Some((field, _)), .. }) => field,
            _ => known.field,
        });
        for field in used.collect::<BTreeSet<_>>() {
            let object = self.members[field].dependency.object.clone();
            if let Ok(kind) = self.host.field(&object) {
                self.note_members(&object, &kind);
            }
        }
        let params = &self.kernel.regions[self.kernel.body].params;
        let mut stopped = Vec::new();
        for Stop { field, block, span } in &self.stops {
            let (whole, first) = self.whole_field(field);
            let count = self.host.field(field).map_or(0, |kind| kind.leaf_count());
            for known in &self.fields {
                let (of, leaf) = match known.view {
                    None => (known.field, known.leaf),
                    Some(view) => match view.elements {
                        Some(elements) => elements,
                        None => continue,
                    },
                };
                let (other, before) = self.whole_field(&self.members[of].dependency.object);
                if self.host.same(&whole, &other) && (first..first + count).contains(&(before + leaf)) {
                    let param = params[known.param];
                    stopped.push(StoppedParam { param, block: *block, span: *span });
                }
            }
        }
        stopped
    }

    /// Where the op, made for the block, loads from a parameter whose loads are constants there: the call that says so.
    fn stop_of(&self, op: Op, block: Block, stopped: &[StoppedParam]) -> Option<Span> {
        let access = self.kernel.cell_access(op).filter(|access| access.reads)?;
        let base = access.place.base();
        let stop =
            |stop: &&StoppedParam| stop.param == base && self.blocks_of_ops.is_within(block, stop.block);
        stopped.iter().find(stop).map(|stop| stop.span)
    }

    fn detach_in(
        &mut self,
        region: Region,
        stopped: &[StoppedParam],
        detached: &mut Vec<(Value, Op, Value)>,
    ) {
        for op in std::mem::take(&mut self.kernel.regions[region].ops) {
            self.kernel.regions[region].ops.push(op);
            if self.stop_of(op, self.blocks_of_ops.of(op.index()), stopped).is_none() {
                continue;
            }
            let (loc, results) = (self.kernel.ops[op].loc, self.kernel.ops[op].results.clone());
            for loaded in results {
                if self.kernel.ty(loaded).elem().is_some_and(Scalar::is_real) {
                    let constant = Builder::at(&mut self.kernel, region, loc).detach(loaded);
                    let last = self.kernel.regions[region].ops.last();
                    detached.extend(last.map(|&made| (loaded, made, constant)));
                }
            }
        }
    }

    /// A function of the kernel's own is one for all that call it: its loads cannot be constants for some of them alone.
    fn check_stopped_calls(&self, stopped: &[StoppedParam]) -> Fallible<()> {
        for body in self.kernel.bodies() {
            for op in ops_in(&self.kernel, body) {
                let OpKind::Call(function) = self.kernel.ops[op].kind else { continue };
                let block = self.blocks_of_ops.of(op.index());
                let Some(span) = self.stop_inside(function, block, stopped, &mut Vec::new()) else {
                    continue;
                };
                let name = self.kernel.functions[function].name.clone();
                return Err(self.error_with_help(
                    Code::IntrinsicArguments,
                    span,
                    format!("`stop_grad` does not reach into the real function `{name}`, which loads from the field and is called in this block"),
                    "call `oc.stop_grad` at the top of the kernel or inside of the function, or make the function an `@oc.func`",
                ));
            }
        }
        Ok(())
    }

    /// A stop that holds for the caller's block and not for some load of the function.
    fn stop_inside(
        &self,
        function: Func,
        caller: Block,
        stopped: &[StoppedParam],
        seen: &mut Vec<Func>,
    ) -> Option<Span> {
        if seen.contains(&function) {
            return None;
        }
        seen.push(function);
        ops_in(&self.kernel, self.kernel.functions[function].body).into_iter().find_map(|op| {
            if let OpKind::Call(inner) = self.kernel.ops[op].kind {
                return self.stop_inside(inner, caller, stopped, seen);
            }
            let own = self.stop_of(op, self.blocks_of_ops.of(op.index()), stopped);
            if own.is_some() { None } else { self.stop_of(op, caller, stopped) }
        })
    }
}
