//! Makes the IR small: folds constants, applies identities that are exact, merges equal pure ops, resolves control flow that is
//! known, drops what nobody needs. The rest is LLVM's; the aim is little text and plain facts for the passes after.
//!
//! Before:
//! ```text
//! %2: i32 = const 0
//! %3: i32 = mul %i, %2
//! %4: i32 = add %j, %3
//! %5: i32 = add %j, %2
//! %6: i32 = if %c {
//!   yield %4
//! } else {
//!   yield %5
//! }
//! store %a[%6], %x
//! ```
//! After:
//! ```text
//! store %a[%j], %x
//! ```
//!
//! Expects and leaves the structured phase: it may replace a value inside a task by an equal one from outside. With `fast_math` a
//! few more identities hold; without, results keep their bits.

mod control;
mod fold;
mod identities;
mod number;
mod powers;
mod ranges;

use octants_ir::rewrite::{ValueMap, replace_values};
use octants_ir::{Const, Kernel, Loc, Op, OpKind, Region, SideTable, Type, Value};

pub(crate) use fold::fold;

use crate::eliminate_dead_code::eliminate_dead_code;
use number::Numbering;
use ranges::Span;

/// What one round finds may enable another. Chosen, not measured: a bound on compile time, which kernels rarely reach, as a round that changes
/// nothing is the last.
const MAX_ROUNDS: usize = 4;

pub fn simplify(kernel: &mut Kernel) {
    for _ in 0..MAX_ROUNDS {
        let mut round = Round {
            kernel,
            names: ValueMap::new(),
            seen: Numbering::default(),
            spans: SideTable::new(None),
            changed: false,
            renamed_behind: false,
        };
        let bodies = round.kernel.bodies();
        for &body in &bodies {
            round.region(body);
        }
        let Round { names, changed, renamed_behind, .. } = round;
        if renamed_behind {
            for body in bodies {
                replace_values(kernel, body, &names);
            }
        }
        let eliminated = eliminate_dead_code(kernel);
        if !changed && !eliminated {
            break;
        }
    }
}

/// One walk over the kernel, in the order in which it runs.
struct Round<'k> {
    kernel: &'k mut Kernel,
    /// What stands for values that are gone.
    names: ValueMap,
    seen: Numbering,
    /// What the indices of loops around can be.
    spans: SideTable<Value, Option<Span>>,
    changed: bool,
    /// Whether a value was renamed after ops that use it were visited.
    renamed_behind: bool,
}

impl Round<'_> {
    fn region(&mut self, region: Region) {
        self.seen.enter();
        for op in std::mem::take(&mut self.kernel.regions[region].ops) {
            self.visit(region, op);
        }
        self.seen.leave();
    }

    /// Puts the op at the end of the region, or what stands for it.
    fn visit(&mut self, region: Region, op: Op) {
        for operand in &mut self.kernel.ops[op].operands {
            *operand = self.names.resolve(*operand);
        }
        let kind = &self.kernel.ops[op].kind;
        if kind.is_pure() {
            self.visit_pure(region, op);
        } else if kind.has_regions() {
            self.visit_control(region, op);
        } else if self.always_holds(op) {
            self.changed = true;
        } else {
            self.kernel.regions[region].ops.push(op);
        }
    }

    fn visit_pure(&mut self, region: Region, op: Op) {
        let result = self.kernel.ops[op].results[0];
        let better = self.better(region, op).or_else(|| self.seen.find_or_add(self.kernel, op));
        match better {
            Some(value) => self.rename(result, value),
            None => self.kernel.regions[region].ops.push(op),
        }
    }

    /// Whether the op is an assertion of what is known.
    fn always_holds(&self, op: Op) -> bool {
        let data = &self.kernel.ops[op];
        matches!(data.kind, OpKind::Assert(..))
            && self.kernel.as_const(data.operands[0]).is_some_and(|condition| !condition.is_zero())
    }

    fn rename(&mut self, from: Value, to: Value) {
        self.names.insert(from, to);
        self.changed = true;
    }

    /// Ops that use `from` were visited before.
    fn rename_behind(&mut self, from: Value, to: Value) {
        self.rename(from, to);
        self.renamed_behind = true;
    }

    /// A new pure op at the end of the region, simplified itself.
    fn emit(
        &mut self,
        region: Region,
        kind: OpKind,
        operands: impl IntoIterator<Item = Value>,
        ty: impl Into<Type>,
        loc: Loc,
    ) -> Value {
        let op = self.kernel.make_op(kind, operands, [ty.into()], [], loc);
        self.visit(region, op);
        self.names.resolve(self.kernel.ops[op].results[0])
    }

    fn constant(&mut self, region: Region, value: Const, loc: Loc) -> Value {
        let op = self.kernel.make_op(OpKind::Const(value), [], [value.ty().into()], [], loc);
        if let Some(earlier) = self.seen.find_or_add(self.kernel, op) {
            return earlier;
        }
        self.kernel.regions[region].ops.push(op);
        self.kernel.ops[op].results[0]
    }
}
