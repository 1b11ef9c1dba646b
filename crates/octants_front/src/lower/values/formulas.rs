//! Numbers behind objects that change from launch to launch.
//!
//! A formula is static like a literal: what must be known while compiling takes its value and pins its operands, so that the code is for
//! these numbers alone. What only calculates with it makes a longer formula, and what needs a register makes it a parameter.

use octants_diag::Span;
use octants_ir::{Data, Scalar, TensorShape, TensorType, Value};

use super::fold;
use crate::arithmetic;
use crate::dependency::{Origin, Role};
use crate::formula::{Formula, FormulaParam, NumberKind};
use crate::host::{BinaryOp, CompareOp, Host, Meaning, Number, UnaryOp};
use crate::intrinsics::Intrinsic;
use crate::lower::Lowerer;
use crate::lower::data::argument::Member;
use crate::lower::data::term::{Calculated, Term};
use crate::lower::error::Fallible;

impl<H: Host> Lowerer<'_, H> {
    /// As [`Self::rvalue`], but a formula stays one where it may.
    pub(crate) fn loaded(&mut self, term: Term<H::Object>, span: Span) -> Fallible<Term<H::Object>> {
        match term {
            Term::Formula(_) if !self.in_static => Ok(term),
            other => self.rvalue(other, span),
        }
    }

    /// The value of a formula, which the code is made for.
    pub(crate) fn pinned(&mut self, term: Term<H::Object>) -> Term<H::Object> {
        match term {
            Term::Formula(number) => {
                self.pin_operands(&number.formula);
                fold::literal(number.now)
            }
            Term::Value(value) => match self.varying_tensor_of(value) {
                Some(of) => {
                    self.members[of].dependency.role = Role::Constant;
                    Term::Object(self.members[of].dependency.object.clone())
                }
                None => term,
            },
            other => other,
        }
    }

    /// Likewise, as an object of the host.
    pub(crate) fn pinned_object(&mut self, number: &Calculated) -> H::Object {
        self.pin_operands(&number.formula);
        if let Some(operand) = number.formula.as_operand() {
            return self.members[operand].dependency.object.clone();
        }
        match number.now {
            Number::Bool(value) => self.host.make_bool(value),
            Number::Int(value) => self.host.make_int(value),
            Number::Float(value) => self.host.make_float(value),
        }
    }

    fn pin_operands(&mut self, formula: &Formula) {
        for operand in formula.operands() {
            self.members[operand].dependency.role = Role::Constant;
        }
    }

    /// Whether the code is for this value anyway.
    fn is_pinned(&self, formula: &Formula) -> bool {
        formula.operands().all(|operand| self.members[operand].dependency.role == Role::Constant)
    }

    /// The type that its value has in a register.
    pub(crate) fn formula_type(&self, number: &Calculated) -> Scalar {
        match number.now {
            Number::Bool(_) => Scalar::U1,
            Number::Int(_) => self.options.default_ip,
            Number::Float(_) => self.options.default_fp,
        }
    }

    /// In a register, with the type that a literal would have.
    pub(crate) fn formula_value(&mut self, number: Calculated, span: Span) -> Fallible<Value> {
        let scalar = self.formula_type(&number);
        let range = match number.now {
            Number::Int(value) => {
                let range = integers_of(scalar);
                if !(range.0..=range.1).contains(&value) {
                    // The message of a literal that is too large.
                    let literal = self.pinned(Term::Formula(Box::new(number)));
                    return self.value(literal, span);
                }
                Some(range)
            }
            _ => None,
        };
        Ok(self.formula_param(number, scalar, range, span))
    }

    /// In a register of another type: converted at once, as a literal is.
    pub(crate) fn formula_as(&mut self, number: Calculated, to: Scalar, span: Span) -> Value {
        self.formula_param(number, to, None, span)
    }

    /// Whether it is an integer of `i32` that is not less than the bound.
    pub(crate) fn fits_i32(&self, number: &Calculated, least: i32) -> bool {
        matches!(number.now, Number::Int(value) if (least.into()..=i32::MAX.into()).contains(&value))
    }

    /// As an index or a bound of a loop, which [`Self::fits_i32`]; a launch with another number has other code.
    pub(crate) fn formula_i32(&mut self, number: Calculated, least: i32, span: Span) -> Value {
        self.formula_param(number, Scalar::I32, Some((least.into(), i32::MAX.into())), span)
    }

    /// As a condition.
    pub(crate) fn formula_truth(&mut self, number: &Calculated, span: Span) -> Fallible<Value> {
        match self.formula_converted(number, NumberKind::Bool) {
            Term::Formula(truth) => Ok(self.formula_param(*truth, Scalar::U1, None, span)),
            literal => self.value(literal, span),
        }
    }

    /// The parameter that holds a formula's result.
    fn formula_param(
        &mut self,
        Calculated { formula, now }: Calculated,
        scalar: Scalar,
        range: Option<(i128, i128)>,
        span: Span,
    ) -> Value {
        let mut wanted = FormulaParam { formula, param: 0, scalar, range };
        if self.is_pinned(&wanted.formula)
            && let Some(constant) = wanted.constant(now)
        {
            return self.at(span).constant(constant);
        }
        let known = self
            .formulas
            .iter()
            .find(|known| known.formula == wanted.formula && known.scalar == scalar && known.range == range);
        if let Some(known) = known {
            return self.kernel.regions[self.kernel.body].params[known.param];
        }
        let name = match wanted.formula.as_operand() {
            Some(operand) => self.members[operand].dependency.path.clone(),
            None => format!("formula{}", self.formulas.len()),
        };
        wanted.param = self.kernel.params.len();
        self.formulas.push(wanted);
        self.kernel.add_param(&name, scalar.into())
    }

    /// Whether a member is a vector or matrix that was seen to change.
    pub(crate) fn is_varying_tensor(&self, member: usize) -> bool {
        let dependency = &self.members[member].dependency;
        dependency.role == Role::Walked && matches!(self.host.meaning(&dependency.object), Meaning::Tensor(_))
    }

    /// The last member, if it is such a one: put together from its entries, before everything that is open. Its dependency is that of its
    /// shape, and each entry is a dependency of its own.
    pub(crate) fn varying_tensor(&mut self, term: Term<H::Object>, span: Span) -> Fallible<Term<H::Object>> {
        let of = self.members.len() - 1;
        let Meaning::Tensor(constant) = self.host.meaning(&self.members[of].dependency.object) else {
            return Ok(term);
        };
        if !self.is_varying_tensor(of) {
            return Ok(term);
        }
        let elem = self.constant_type(&constant);
        let mut entries = Vec::with_capacity(constant.entries.len());
        for position in 0..constant.entries.len() as i128 {
            let key = match constant.shape {
                TensorShape::Vector(_) => self.host.make_int(position),
                TensorShape::Matrix(_, m) => {
                    let components = [position / i128::from(m), position % i128::from(m)];
                    self.host.make_tuple(components.map(|at| self.host.make_int(at)).to_vec())
                }
            };
            let Term::Formula(number) = self.member_item(of, key, span)? else {
                // Truth values are few, and code is made for each.
                self.members[of].dependency.role = Role::Constant;
                return Ok(term);
            };
            entries.push(self.formula_as(*number, elem, span));
        }
        let ty = Data::Tensor(TensorType { elem, shape: constant.shape });
        let body = self.kernel.body;
        let value = self.within(body, |lowerer| Ok(lowerer.at(span).tensor(ty, entries)))?;
        self.members[of].term = Term::Value(value);
        Ok(Term::Value(value))
    }

    /// The member that a tensor is, if it was seen to change.
    fn varying_tensor_of(&self, value: Value) -> Option<usize> {
        let is_it = |member: &Member<H::Object>| {
            member.dependency.role == Role::Walked && matches!(member.term, Term::Value(own) if own == value)
        };
        self.members.iter().position(is_it)
    }

    /// An entry of a tensor as the number that it is on the host, if the tensor was seen to change: the tensor's own type comes later.
    pub(crate) fn varying_entry(&self, tensor: Value, entry: Value) -> Option<Term<H::Object>> {
        let of = self.varying_tensor_of(tensor)?;
        let params = &self.kernel.regions[self.kernel.body].params;
        let operand =
            self.formulas.iter().find(|known| params[known.param] == entry)?.formula.as_operand()?;
        let member = &self.members[operand];
        matches!(member.dependency.origin, Origin::Member { of: parent, .. } if parent == of)
            .then(|| member.term.clone())
    }

    /// Two numbers, at least one of which is a formula.
    fn formula_pair(&self, a: &Term<H::Object>, b: &Term<H::Object>) -> Option<(Calculated, Calculated)> {
        if self.in_static || !matches!((a, b), (Term::Formula(_), _) | (_, Term::Formula(_))) {
            return None;
        }
        let side = |term: &Term<H::Object>| match term {
            Term::Formula(number) => Some((**number).clone()),
            literal => {
                let now = fold::number(literal)?;
                Some(Calculated { formula: Formula::constant(now), now })
            }
        };
        Some((side(a)?, side(b)?))
    }

    /// Whether a formula is calculated with beside a vector or matrix of the host: entry by entry, when the kernel runs.
    pub(crate) fn formula_beside_tensor(&self, a: &Term<H::Object>, b: &Term<H::Object>) -> bool {
        let is_tensor = |term: &Term<H::Object>| match term {
            Term::Object(object) => matches!(self.host.meaning(object), Meaning::Tensor(_)),
            _ => false,
        };
        match (a, b) {
            _ if self.in_static => false,
            (Term::Formula(_), other) | (other, Term::Formula(_)) => is_tensor(other),
            _ => false,
        }
    }

    pub(crate) fn formula_binary(
        &self,
        op: BinaryOp,
        a: &Term<H::Object>,
        b: &Term<H::Object>,
    ) -> Option<Term<H::Object>> {
        let (a, b) = self.formula_pair(a, b)?;
        let now = arithmetic::binary(op, a.now, b.now)?;
        Some(calculated(a.formula.binary(op, &b.formula)?, now))
    }

    pub(crate) fn formula_compare(
        &self,
        op: CompareOp,
        a: &Term<H::Object>,
        b: &Term<H::Object>,
    ) -> Option<Term<H::Object>> {
        let (a, b) = self.formula_pair(a, b)?;
        let now = Number::Bool(arithmetic::compare(op, a.now, b.now)?);
        Some(calculated(a.formula.compare(op, &b.formula)?, now))
    }

    pub(crate) fn formula_unary(&self, op: UnaryOp, a: &Term<H::Object>) -> Option<Term<H::Object>> {
        let Term::Formula(number) = a else { return None };
        if self.in_static {
            return None;
        }
        Some(calculated(number.formula.unary(op), arithmetic::unary(op, number.now)?))
    }

    /// `abs(x)` of a number.
    pub(crate) fn formula_absolute(&self, number: &Calculated) -> Option<Term<H::Object>> {
        Some(calculated(number.formula.absolute(), arithmetic::absolute(number.now)?))
    }

    /// `min(a, b)` or `max(a, b)` of two numbers, at least one of which is a formula. One that is too long is pinned.
    pub(crate) fn formula_extremum(
        &mut self,
        is_max: bool,
        a: &Term<H::Object>,
        b: &Term<H::Object>,
    ) -> Option<Term<H::Object>> {
        let (a, b) = self.formula_pair(a, b)?;
        let now = arithmetic::extremum(is_max, a.now, b.now);
        Some(if let Some(formula) = a.formula.extremum(is_max, &b.formula) {
            calculated(formula, now)
        } else {
            self.pin_operands(&a.formula);
            self.pin_operands(&b.formula);
            fold::literal(now)
        })
    }

    /// A function of one real.
    pub(crate) fn formula_function(
        &self,
        intrinsic: Intrinsic,
        number: &Calculated,
    ) -> Option<Term<H::Object>> {
        let now = crate::math_functions::at_compile_time(intrinsic, number.now.real())?;
        Some(calculated(number.formula.function(intrinsic), now))
    }

    /// `int(x)`, `float(x)`, `bool(x)`; the number itself, pinned, where only Python could say.
    pub(crate) fn formula_converted(&mut self, number: &Calculated, kind: NumberKind) -> Term<H::Object> {
        let formula = number.formula.convert(kind);
        let now = match kind {
            NumberKind::Bool => Some(Number::Bool(number.now.truth())),
            NumberKind::Int => number.now.truncated().map(Number::Int),
            NumberKind::Float => Some(Number::Float(number.now.real())),
        };
        match now.map(|now| calculated(formula, now)) {
            Some(converted) => converted,
            None => self.pinned(Term::Formula(Box::new(number.clone()))),
        }
    }
}

/// The least and the greatest integer of a type.
fn integers_of(scalar: Scalar) -> (i128, i128) {
    let bits = scalar.bits();
    if scalar.is_signed() { (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) } else { (0, (1 << bits) - 1) }
}

fn calculated<O>(formula: Formula, now: Number) -> Term<O> {
    Term::Formula(Box::new(Calculated { formula, now }))
}
