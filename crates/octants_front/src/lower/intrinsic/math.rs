//! Arithmetic, math functions, casts and bit helpers.

use octants_diag::{Code, Span};
use octants_ir::ops::{ArithOp, BitOp, BitUnary, MathOp, MathUnary};
use octants_ir::{Const, Data, Scalar, TensorType, Value};

use crate::arithmetic;
use crate::host::{BinaryOp, Host, Number};
use crate::intrinsics::Intrinsic;
use crate::lower::Lowerer;
use crate::lower::data::argument::Argument;
use crate::lower::data::term::Term;
use crate::lower::error::Fallible;
use crate::lower::values::fold;
use crate::lower::values::promote::promote;
use crate::math_functions::function;

impl<H: Host> Lowerer<'_, H> {
    pub(crate) fn math_function(
        &mut self,
        intrinsic: Intrinsic,
        arguments: &[Argument<H::Object>],
        span: Span,
    ) -> Fallible<Term<H::Object>> {
        let Some((op, at_compile_time, casts)) = function(intrinsic) else {
            return Err(self.bad_arguments(intrinsic, span));
        };
        let rounds = matches!(intrinsic, Intrinsic::Floor | Intrinsic::Ceil | Intrinsic::Round);
        let [Some(x), dtype] = self.parameters(intrinsic, arguments, ["x", "dtype"], 1, span)? else {
            return Err(self.bad_arguments(intrinsic, span));
        };
        let dtype = match dtype {
            Some(dtype) if !rounds => return Err(self.bad_arguments(intrinsic, dtype.span)),
            Some(dtype) if !matches!(dtype.term, Term::None) => Some(self.dtype(&dtype.term, dtype.span)?),
            _ => None,
        };
        // A number of Python is as good as a real one; a kernel's own value is of the type that it has.
        if let Term::Formula(number) = &x.term
            && let Some(result) = self.formula_function(intrinsic, number)
        {
            return match dtype {
                None => Ok(result),
                Some(dtype) => self.convert(result, dtype, span).map(Term::Value),
            };
        }
        if fold::is_number(&x.term) {
            let result = at_compile_time(fold::as_real(&x.term).unwrap_or(0.0));
            return match (op, dtype) {
                (MathUnary::IsNan | MathUnary::IsInf, _) => Ok(Term::Bool(result != 0.0)),
                (_, None) => Ok(Term::Float(result)),
                (_, Some(dtype)) => self.convert(Term::Float(result), dtype, span).map(Term::Value),
            };
        }
        let mut value = self.value(x.term, x.span)?;
        let ty = self.elem(value);
        if ty.is_integral() && matches!(op, MathUnary::IsNan | MathUnary::IsInf) {
            return Ok(Term::Value(self.never_of(value, span)));
        }
        if ty.is_integral() {
            if !casts {
                return Err(self.real_only(intrinsic, ty, x.span));
            }
            value = self.cast(value, self.options.default_fp, span);
        }
        let result = self.at(span).math_unary(op, value);
        Ok(Term::Value(match dtype {
            None => result,
            Some(dtype) => self.cast(result, dtype, span),
        }))
    }

    /// False, for each entry of a value.
    fn never_of(&mut self, value: Value, span: Span) -> Value {
        let data = self.data(value);
        let mut builder = self.at(span);
        let no = builder.constant(octants_ir::Const::bool(false));
        match data.tensor_shape() {
            None => no,
            Some(shape) => builder.splat(Data::Tensor(TensorType { elem: Scalar::U1, shape }), no),
        }
    }

    fn real_only(&self, intrinsic: Intrinsic, ty: Scalar, span: Span) -> Box<octants_diag::Diagnostic> {
        self.error_with_help(
            Code::RealOnly,
            span,
            format!("'{}' takes real inputs only, however '{}' is provided", intrinsic.name(), ty.name()),
            "cast it first: `float(x)` or `oc.cast(x, oc.f32)`",
        )
    }

    pub(crate) fn arithmetic(
        &mut self,
        intrinsic: Intrinsic,
        arguments: &[Argument<H::Object>],
        span: Span,
    ) -> Fallible<Term<H::Object>> {
        use Intrinsic as I;
        match intrinsic {
            I::Abs => {
                let [x] = self.required(intrinsic, arguments, ["x"], span)?;
                match x.term {
                    Term::Int(value) => Ok(Term::Int(value.abs())),
                    Term::Float(value) => Ok(Term::Float(value.abs())),
                    Term::Formula(number) if self.formula_absolute(&number).is_some() => {
                        Ok(self.formula_absolute(&number).unwrap_or(Term::Formula(number)))
                    }
                    term => {
                        let value = self.value(term, x.span)?;
                        Ok(Term::Value(self.at(span).arith_unary(ArithOp::Abs, value)))
                    }
                }
            }
            I::Min | I::Max => self.extremum(intrinsic, arguments, span),
            _ => {
                let names = if intrinsic == I::Pow { ["base", "exponent"] } else { ["x1", "x2"] };
                let [a, b] = self.required(intrinsic, arguments, names, span)?;
                if intrinsic == I::Pow {
                    return self.binary(BinaryOp::Pow, (a.term, a.span), (b.term, b.span), span);
                }
                let (a, b) = self.operand_values((a.term, a.span), (b.term, b.span))?;
                self.two_operands(intrinsic, a, b, span).map(Term::Value)
            }
        }
    }

    fn two_operands(&mut self, intrinsic: Intrinsic, a: Value, b: Value, span: Span) -> Fallible<Value> {
        let (ta, tb) = (self.elem(a), self.elem(b));
        let meet = promote(ta, tb);
        let numeric = if meet == Scalar::U1 { self.options.default_ip } else { meet };
        match intrinsic {
            Intrinsic::RawDiv => self.arith(ArithOp::RawDiv, a, b, numeric, span),
            Intrinsic::RawMod => self.arith(ArithOp::RawMod, a, b, numeric, span),
            Intrinsic::BitShr => self.shift(BitOp::LShr, "bit_shr", a, b, span),
            _ => {
                let wide = ta == Scalar::F64 || tb == Scalar::F64;
                let meet = if wide { Scalar::F64 } else { Scalar::F32 };
                let (a, b) = self.unify("atan2", a, b, meet, span)?;
                Ok(self.at(span).math(MathOp::Atan2, a, b))
            }
        }
    }

    /// `min`, `max` of any number of values, or of the items of one sequence.
    fn extremum(
        &mut self,
        intrinsic: Intrinsic,
        arguments: &[Argument<H::Object>],
        span: Span,
    ) -> Fallible<Term<H::Object>> {
        if let Some(named) = arguments.iter().find(|argument| argument.name.is_some()) {
            return Err(self.bad_arguments(intrinsic, named.span));
        }
        let mut operands: Vec<_> = arguments.iter().map(|a| (a.term.clone(), a.span)).collect();
        if let [(only, at)] = &*operands
            && let Some(items) = self.items(only, *at)?
        {
            let at = *at;
            operands = items.into_iter().map(|item| (item, at)).collect();
        }
        let mut rest = operands.into_iter();
        let Some((first, at)) = rest.next() else { return Err(self.bad_arguments(intrinsic, span)) };
        let mut best = (self.loaded(first, at)?, at);
        for (term, at) in rest {
            let term = self.loaded(term, at)?;
            let is_max = intrinsic == Intrinsic::Max;
            if let Some(calculated) = self.formula_extremum(is_max, &best.0, &term) {
                best = (calculated, at);
                continue;
            }
            if let (Some(a), Some(b)) = (fold::number(&best.0), fold::number(&term)) {
                best = (fold::literal(arithmetic::extremum(is_max, a, b)), at);
                continue;
            }
            let op = if intrinsic == Intrinsic::Min { ArithOp::Min } else { ArithOp::Max };
            let (a, b) = self.operand_values(best, (term, at))?;
            let meet = promote(self.elem(a), self.elem(b));
            best = (Term::Value(self.arith(op, a, b, meet, span)?), span);
        }
        match best.0 {
            Term::Value(_) | Term::Index(_) => Ok(best.0),
            number if fold::is_number(&number) || matches!(number, Term::Formula(_)) => Ok(number),
            // Says what it is, if it is no number.
            other => self.value(other, best.1).map(Term::Value),
        }
    }

    pub(crate) fn frexp(
        &mut self,
        arguments: &[Argument<H::Object>],
        span: Span,
    ) -> Fallible<Term<H::Object>> {
        let [x] = self.required(Intrinsic::Frexp, arguments, ["x"], span)?;
        let value = self.value(x.term, x.span)?;
        let ty = self.elem(value);
        if ty.is_integral() {
            return Err(self.real_only(Intrinsic::Frexp, ty, x.span));
        }
        let mut builder = self.at(span);
        let mantissa = builder.math_unary(MathUnary::FrexpMantissa, value);
        let exponent = builder.math_unary(MathUnary::FrexpExponent, value);
        Ok(Term::Tuple(vec![Term::Value(mantissa), Term::Value(exponent)]))
    }

    /// Both values are evaluated; the condition chooses.
    pub(crate) fn select(
        &mut self,
        arguments: &[Argument<H::Object>],
        span: Span,
    ) -> Fallible<Term<H::Object>> {
        let [cond, a, b] = self.required(Intrinsic::Select, arguments, ["cond", "x1", "x2"], span)?;
        let cond_value = self.value(cond.term, cond.span)?;
        let condition = self.cast(cond_value, Scalar::U1, cond.span);
        let (a, b) = (self.number_or_tensor(a.term, a.span)?, self.number_or_tensor(b.term, b.span)?);
        self.select_values(condition, a, b, span).map(Term::Value)
    }

    /// One of two values, or, where the condition is a tensor, one for each entry.
    pub(crate) fn select_values(
        &mut self,
        condition: Value,
        a: Value,
        b: Value,
        span: Span,
    ) -> Fallible<Value> {
        let meet = promote(self.elem(a), self.elem(b));
        let (mut a, mut b) = self.unify("select", a, b, meet, span)?;
        if let Data::Tensor(of) = self.data(condition) {
            match self.data(a).tensor_shape() {
                None => {
                    let data = Data::Tensor(octants_ir::TensorType { elem: meet, ..of });
                    a = self.at(span).splat(data, a);
                    b = self.at(span).splat(data, b);
                }
                Some(shape) if shape != of.shape => {
                    return Err(self.unsupported_operands("select", condition, a, span));
                }
                Some(_) => {}
            }
        }
        Ok(self.at(span).select(condition, a, b))
    }

    pub(crate) fn zero_or_one(
        &mut self,
        intrinsic: Intrinsic,
        arguments: &[Argument<H::Object>],
        span: Span,
    ) -> Fallible<Term<H::Object>> {
        let [x] = self.required(intrinsic, arguments, ["x"], span)?;
        let number = i128::from(intrinsic == Intrinsic::One);
        match x.term {
            Term::Int(_) => Ok(Term::Int(number)),
            Term::Float(_) => Ok(Term::Float(number as f64)),
            Term::Formula(like) => match like.now {
                Number::Int(_) => Ok(Term::Int(number)),
                Number::Float(_) => Ok(Term::Float(number as f64)),
                Number::Bool(_) => {
                    let like = self.value(Term::Formula(like), x.span)?;
                    Ok(Term::Value(self.constant_like(like, number, span)))
                }
            },
            term => {
                let like = self.value(term, x.span)?;
                Ok(Term::Value(self.constant_like(like, number, span)))
            }
        }
    }

    /// The greatest or the least number of a type.
    pub(crate) fn extreme_of(
        &mut self,
        intrinsic: Intrinsic,
        arguments: &[Argument<H::Object>],
        span: Span,
    ) -> Fallible<Term<H::Object>> {
        let [x] = self.required(intrinsic, arguments, ["x"], span)?;
        let like = self.value(x.term, x.span)?;
        let (ty, greatest) = (self.elem(like), intrinsic == Intrinsic::Greatest);
        let extreme = if ty.is_real() {
            Const::from_f64(ty, if greatest { f64::INFINITY } else { f64::NEG_INFINITY })
        } else {
            let most = u64::MAX >> (64 - ty.bits() + u32::from(ty.is_signed()));
            let least = if ty.is_signed() { !most } else { 0 };
            Const::from_bits(ty, if greatest { most } else { least })
        };
        Ok(Term::Value(self.splat_like(like, extreme, span)))
    }

    pub(crate) fn cast_call(
        &mut self,
        intrinsic: Intrinsic,
        arguments: &[Argument<H::Object>],
        span: Span,
    ) -> Fallible<Term<H::Object>> {
        let [x, dtype] = self.required(intrinsic, arguments, ["obj", "dtype"], span)?;
        let to = self.dtype(&dtype.term, dtype.span)?;
        if intrinsic == Intrinsic::Cast {
            return self.convert(x.term, to, span).map(Term::Value);
        }
        let value = self.value(x.term, x.span)?;
        let from = self.elem(value);
        if from.bits() != to.bits() {
            return Err(self.error_with_help(
                Code::BitCastWidth,
                span,
                format!("cannot bit_cast {} to {}: their widths differ", from.name(), to.name()),
                "cast to a type of the same width first",
            ));
        }
        Ok(Term::Value(if from == to { value } else { self.at(span).bit_cast(value, to) }))
    }

    pub(crate) fn bit_count(
        &mut self,
        intrinsic: Intrinsic,
        arguments: &[Argument<H::Object>],
        span: Span,
    ) -> Fallible<Term<H::Object>> {
        let [x] = self.required(intrinsic, arguments, ["x"], span)?;
        let value = self.value(x.term, x.span)?;
        let ty = self.elem(value);
        if ty.is_real() {
            return Err(self.error(
                Code::IntegralOnly,
                x.span,
                format!("'{}' takes integral inputs only, not {}", intrinsic.name(), ty.name()),
            ));
        }
        let op = match intrinsic {
            Intrinsic::Popcnt => BitUnary::Popcnt,
            Intrinsic::Clz => BitUnary::Clz,
            _ => BitUnary::Ffs,
        };
        Ok(Term::Value(self.at(span).bit_unary(op, value)))
    }
}
