//! The arithmetic that a kernel's choices depend on.
//!
//! A real becomes a *choice* where it is compared, is one of those that the least or the greatest is taken of, or becomes something that is no
//! real. Whoever computes a choice again, in another kernel or another lane, comes to the same one if all that flows into it has the same bits.
//!
//! Laws:
//! * **All choices count**, not only those of updates: they say which element is read and whether an update runs at all. So what is no real follows
//!   from exact reals, and is never looked into.
//! * **Reals flow** through arithmetic, roots, products that are powers, conversions, selections, branches, what serial loops carry, memory that this kernel
//!   stores to, and the least and greatest of parallel loops.
//! * **What is not followed has no answer**: math functions, whose forms for vectors have other digits; other totals of parallel loops,
//!   whose order is left open; what updates give back; and calls.

use crate::ids::{Op, Region, SideTable, Value};
use crate::kernel::{Kernel, ValueDef};
use crate::ops::{ArithOp, AtomicOp, ConvertOp, MathOp, MathUnary, OpKind};
use crate::rewrite::{Parents, uses, walk_all};
use crate::types::{Scalar, Type};

/// The ops on reals whose results flow into choices: computed as written, one by one, they have the same bits everywhere. `None` if something flows
/// into a choice that has not.
pub fn ops_of_choices(kernel: &Kernel) -> Option<Vec<Op>> {
    let mut slice = Slice {
        kernel,
        users: uses(kernel),
        parents: Parents::new(kernel),
        seen: SideTable::new(false),
        pending: Vec::new(),
        found: Vec::new(),
    };
    walk_all(kernel, &mut |op| slice.begin(op));
    while let Some(value) = slice.pending.pop() {
        slice.follow(value)?;
    }
    Some(slice.found)
}

struct Slice<'k> {
    kernel: &'k Kernel,
    /// The ops that use each value, and as which operand.
    users: SideTable<Value, Vec<(Op, u32)>>,
    parents: Parents,
    /// Reals that are followed, and places whose contents are.
    seen: SideTable<Value, bool>,
    pending: Vec<Value>,
    found: Vec<Op>,
}

impl Slice<'_> {
    fn is_real(&self, value: Value) -> bool {
        matches!(self.kernel.ty(value), Type::Data(_))
            && self.kernel.ty(value).elem().is_some_and(Scalar::is_real)
    }

    fn push(&mut self, value: Value) {
        if self.is_real(value) && !self.seen[value] {
            self.seen.set(value, true);
            self.pending.push(value);
        }
    }

    fn push_all(&mut self, values: &[Value]) {
        for &value in values {
            self.push(value);
        }
    }

    /// What an op chooses by.
    fn begin(&mut self, op: Op) {
        let kernel = self.kernel;
        let data = &kernel.ops[op];
        let chooses = match &data.kind {
            OpKind::Atomic(AtomicOp::Min | AtomicOp::Max)
            | OpKind::Arith(
                ArithOp::Min | ArithOp::Max | ArithOp::FloorDiv | ArithOp::Mod | ArithOp::RawMod,
            )
            | OpKind::MathUnary(MathUnary::Floor | MathUnary::Ceil | MathUnary::Round) => true,
            OpKind::ParallelFor(_) => {
                let _ = self.reduced(op, None);
                false
            }
            // Comparisons, conversions, and whatever else gives no real for reals.
            kind => kind.is_pure() && kernel.ty(data.results[0]).elem().is_some_and(|elem| !elem.is_real()),
        };
        if chooses {
            self.push_all(&data.operands);
            // The chosen one itself is computed by instructions that keep a zero's sign.
            self.push_all(&data.results[..usize::from(matches!(data.kind, OpKind::Arith(_)))]);
        }
    }

    /// Follows what iterations accumulate the least and the greatest of, in one place or in all. `None` if the place has other totals.
    fn reduced(&mut self, op: Op, place: Option<Value>) -> Option<()> {
        let kernel = self.kernel;
        let parallel = kernel.parallel_loop(op)?;
        let mut all = Some(());
        for (number, reduction) in parallel.reductions().enumerate() {
            if place.is_some_and(|place| reduction.place.base() != place) {
                continue;
            }
            match reduction.op {
                AtomicOp::Min | AtomicOp::Max => self.yielded(parallel.body, number)?,
                _ => all = None,
            }
        }
        all
    }

    fn yielded(&mut self, region: Region, number: usize) -> Option<()> {
        let value = *self.kernel.terminator(region)?.operands.get(number)?;
        self.push(value);
        Some(())
    }

    /// Takes in the op that gives a real, and what flows into it.
    fn follow(&mut self, value: Value) -> Option<()> {
        let kernel = self.kernel;
        let (op, number) = match kernel.values[value].def {
            ValueDef::Result(op, number) => (op, number as usize),
            ValueDef::Param(region, number) => return self.follow_param(region, number as usize),
        };
        let data = &kernel.ops[op];
        match &data.kind {
            OpKind::Const(_) => {}
            // A library computes it.
            OpKind::Arith(ArithOp::RawMod) => return None,
            OpKind::Arith(_)
            | OpKind::MathUnary(MathUnary::Sqrt | MathUnary::Floor | MathUnary::Ceil | MathUnary::Round) => {
                self.found.push(op);
                self.push_all(&data.operands);
            }
            OpKind::Math(MathOp::Pow) if !self.is_real(data.operands[1]) => {
                self.found.push(op);
                self.push_all(&data.operands);
            }
            OpKind::Convert(ConvertOp::Cast | ConvertOp::Detach | ConvertOp::BitCast) | OpKind::Select => {
                self.push_all(&data.operands);
            }
            OpKind::If => {
                for &region in &data.regions {
                    self.yielded(region, number)?;
                }
            }
            OpKind::For => {
                self.push(data.operands[number + 2]);
                self.yielded(data.regions[0], number)?;
            }
            OpKind::While => self.yielded(data.regions[0], number + 1)?,
            OpKind::Load => return self.follow_place(data.operands[0]),
            _ => return None,
        }
        Some(())
    }

    fn follow_param(&mut self, region: Region, number: usize) -> Option<()> {
        let kernel = self.kernel;
        if region == kernel.body {
            return Some(());
        }
        let op = self.parents.op(region)?;
        let data = &kernel.ops[op];
        match &data.kind {
            OpKind::For => {
                self.push(data.operands[number + 1]);
                self.yielded(region, number - 1)
            }
            OpKind::While if region == data.regions[0] => {
                self.push(data.operands[number]);
                self.yielded(data.regions[1], number)
            }
            OpKind::While => self.yielded(data.regions[0], number + 1),
            OpKind::ParallelFor(parallel) => {
                let number = number.checked_sub(parallel.axes.into())?;
                let reduction = parallel.reductions.get(number)?;
                matches!(reduction.op, AtomicOp::Min | AtomicOp::Max).then_some(())?;
                self.yielded(region, number)
            }
            _ => None,
        }
    }

    /// Follows all that the kernel writes to a variable or an array. What an array holds before that is the same for all.
    fn follow_place(&mut self, base: Value) -> Option<()> {
        let kernel = self.kernel;
        let is_known = match kernel.ty(base) {
            Type::Array(_) => kernel.as_param(base).is_some(),
            Type::Local(_) | Type::Temp(_) | Type::Tape(_) => {
                matches!(kernel.values[base].def, ValueDef::Result(..))
            }
            Type::Data(_) => false,
        };
        if !is_known {
            return None;
        }
        if self.seen[base] {
            return Some(());
        }
        self.seen.set(base, true);
        for (user, operand) in self.users[base].clone() {
            let data = &kernel.ops[user];
            match &data.kind {
                OpKind::Load | OpKind::Extent(_) => {}
                OpKind::Store | OpKind::Atomic(AtomicOp::Min | AtomicOp::Max) if operand == 0 => {
                    let stored = *data.operands.last()?;
                    self.push(stored);
                }
                OpKind::ParallelFor(_) => self.reduced(user, Some(base))?,
                _ => return None,
            }
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::parse;

    /// The names of the ops that flow into choices, in the order of the text.
    fn found(body: &str) -> Option<Vec<&'static str>> {
        let text = format!(
            r#"kernel @k(%x "x": array<f32, 1>, %y "y": array<f32, 1>, %n "n": i32, %p "p": f32) fast_math {{
              %zero: i32 = const 0
              %one: i32 = const 1
              {body}
              return
            }}"#
        );
        let kernel = parse(&text).unwrap_or_else(|error| panic!("{error:?}\n{text}"));
        let mut ops = ops_of_choices(&kernel)?;
        ops.sort();
        Some(ops.into_iter().map(|op| kernel.ops[op].kind.name()).collect())
    }

    #[test]
    fn values_of_updates_are_followed_and_sums_are_not() {
        let body = "parallel_for (%i: i32) in (%zero..%n) {
            %1: f32 = load %x[%i]
            %2: f32 = mul %1, %p
            %3: f32 = sub %2, %1
            %4: f32 = atomic_max %y[%zero], %3
            %5: f32 = add %1, %p
            %6: f32 = sin %5
            %7: f32 = atomic_add %y[%one], %6
        }";
        assert_eq!(found(body), Some(vec!["mul", "sub"]));
    }

    #[test]
    fn conditions_and_indices_are_followed() {
        let body = "parallel_for (%i: i32) in (%zero..%n) {
            %1: f32 = load %x[%i]
            %2: f32 = mul %1, %p
            %3: u1 = lt %2, %p
            if %3 {
              %4: f32 = add %1, %1
              %5: i32 = cast %4
              %6: f32 = load %x[%5]
              %7: f32 = atomic_max %y[%zero], %6
            } else {
            }
        }";
        assert_eq!(found(body), Some(vec!["mul", "add"]));
    }

    #[test]
    fn what_loops_carry_and_variables_hold_is_followed() {
        let body = "parallel_for (%i: i32) in (%zero..%n) {
            %v: local<f32> = local
            %1: f32 = load %x[%i]
            %2: f32 = for %k: i32 in %zero..%n carry (%t: f32 = %1) {
              %3: f32 = mul %t, %p
              yield %3
            }
            %4: f32 = sub %2, %p
            store %v, %4
            %5: f32 = load %v
            %6: f32 = atomic_min %y[%zero], %5
        }";
        assert_eq!(found(body), Some(vec!["mul", "sub"]));
    }

    #[test]
    fn what_has_other_bits_elsewhere_has_no_answer() {
        let value = |op: &str| {
            format!(
                "parallel_for (%i: i32) in (%zero..%n) {{
                    %1: f32 = load %x[%i]
                    {op}
                    %3: f32 = atomic_max %y[%zero], %2
                }}"
            )
        };
        for op in ["%2: f32 = sin %1", "%2: f32 = pow %1, %p", "%2: f32 = atomic_add %x[%one], %1"] {
            assert_eq!(found(&value(op)), None, "{op}");
        }
        assert_eq!(found(&value("%2: f32 = sqrt %1")), Some(vec!["sqrt"]));
        // A sum of all iterations, in any order.
        let total = "parallel_for (%i: i32) in (%zero..%n) {
            %1: f32 = load %x[%i]
            %2: f32 = atomic_add %y[%one], %1
        }
        %3: f32 = load %y[%one]
        %4: u1 = lt %3, %p";
        assert_eq!(found(total), None);
    }
}
