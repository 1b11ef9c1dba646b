//! Arithmetic, bitwise and comparison operators: promotion, then one op.

use octants_diag::{Code, Diagnostic, Span};
use octants_ir::ops::{ArithOp, BitOp, BitUnary, CompareOp as IrCompare, MathOp};
use octants_ir::{Data, Scalar, TensorType, Value};

use super::fold;
use super::promote::promote;
use crate::ast::Expr;
use crate::host::{BinaryOp, CompareOp, Host, HostException, UnaryOp};
use crate::lower::Lowerer;
use crate::lower::data::term::Term;
use crate::lower::error::Fallible;
use crate::lower::values::sequences::join_sequences;

/// An operand and where it stands.
pub(crate) type Operand<O> = (Term<O>, Span);

impl<H: Host> Lowerer<'_, H> {
    /// Both operands are rvalues.
    pub(crate) fn binary(
        &mut self,
        op: BinaryOp,
        (a, a_span): Operand<H::Object>,
        (b, b_span): Operand<H::Object>,
        span: Span,
    ) -> Fallible<Term<H::Object>> {
        if let Some(calculated) = self.formula_binary(op, &a, &b) {
            return Ok(calculated);
        }
        if let Some(result) = self.special_operator(op, &a, &b, span)? {
            return Ok(result);
        }
        if (a.holds_formula() || b.holds_formula())
            && let Some(joined) = join_sequences(op, &a, &b)
        {
            return Ok(joined);
        }
        if let (BinaryOp::Mul, Term::Tuple(_) | Term::List(_), Term::Formula(_)) = (op, &a, &b) {
            // How often a sequence is repeated decides its length.
            let count = self.pinned(b);
            return self.binary(op, (a, a_span), (count, b_span), span);
        }
        // An exponent that is known is a few products.
        let b = if op == BinaryOp::Pow { self.pinned(b) } else { b };
        let beside_tensor = self.formula_beside_tensor(&a, &b);
        if a.is_static() && b.is_static() && !beside_tensor {
            if let Some(folded) = fold::binary(op, &a, &b) {
                return Ok(folded);
            }
            self.refuse_operand(&a, a_span)?;
            self.refuse_operand(&b, b_span)?;
            let (a, b) = (self.host_object(&a)?, self.host_object(&b)?);
            return self.host_binary(op, &a, &b, span);
        }
        if let (BinaryOp::Mod, Term::Str(template)) = (op, &a) {
            return self.percent_format(template, b, b_span, span);
        }
        if let Some(joined) = join_sequences(op, &a, &b) {
            return Ok(joined);
        }
        if let (Some(a), Some(b)) = (self.foreign(&a)?, self.foreign(&b)?)
            && (a.1 || b.1)
        {
            // One side is an object of a user's class: its operators decide.
            return self.host_binary(op, &a.0, &b.0, span);
        }
        self.check_repetition(op, &a, &b, span)?;
        let (a, b) = self.operand_values((a, a_span), (b, b_span))?;
        self.binary_values(op, a, b, span).map(Term::Value)
    }

    /// The operator of the host's objects.
    fn host_binary(
        &mut self,
        op: BinaryOp,
        a: &H::Object,
        b: &H::Object,
        span: Span,
    ) -> Fallible<Term<H::Object>> {
        let host = self.host;
        let result = self.evaluating(span, |lowerer| host.binary(op, a, b, lowerer));
        let object = result.map_err(|exception| self.operator_error(exception, span))?;
        self.resolve(object, span)
    }

    /// An exception of an operator of the host's objects. Types that it does not take are the same mistake as in a kernel's own operators.
    fn operator_error(&mut self, exception: HostException, span: Span) -> Box<Diagnostic> {
        let is_type_error = exception.type_name == "TypeError";
        let mut diagnostic = self.host_error(exception, span);
        if is_type_error && diagnostic.code == Code::HostError {
            diagnostic.code = Code::OperandTypes;
        }
        diagnostic
    }

    /// Two operands in registers: a list or tuple beside a tensor is one, too.
    pub(crate) fn operand_values(
        &mut self,
        (a, a_span): Operand<H::Object>,
        (b, b_span): Operand<H::Object>,
    ) -> Fallible<(Value, Value)> {
        if let Some(a) = self.tensor_operand(&a, a_span)? {
            return Ok((a, self.number_or_tensor(b, b_span)?));
        }
        if let Some(b) = self.tensor_operand(&b, b_span)? {
            return Ok((self.number_or_tensor(a, a_span)?, b));
        }
        Ok((self.value(a, a_span)?, self.value(b, b_span)?))
    }

    /// The host's view of an operand, and whether it is an object of neither the language nor Python's numbers.
    fn foreign(&mut self, term: &Term<H::Object>) -> Fallible<Option<(H::Object, bool)>> {
        Ok(match term {
            Term::Object(object) => match self.host.meaning(object) {
                crate::host::Meaning::Other => Some((object.clone(), true)),
                _ => None,
            },
            Term::Value(_) | Term::Int(_) | Term::Float(_) | Term::Bool(_) => {
                Some((self.host_object(term)?, false))
            }
            _ => None,
        })
    }

    pub(crate) fn binary_values(&mut self, op: BinaryOp, a: Value, b: Value, span: Span) -> Fallible<Value> {
        let (ta, tb) = (self.elem(a), self.elem(b));
        let meet = promote(ta, tb);
        // Division and the like have no meaning on one bit.
        let numeric = if meet == Scalar::U1 { self.options.default_ip } else { meet };
        match op {
            BinaryOp::Add => self.arith(ArithOp::Add, a, b, meet, span),
            BinaryOp::Sub => self.arith(ArithOp::Sub, a, b, meet, span),
            BinaryOp::Mul => self.arith(ArithOp::Mul, a, b, meet, span),
            BinaryOp::FloorDiv => self.arith(ArithOp::FloorDiv, a, b, numeric, span),
            BinaryOp::Mod => self.arith(ArithOp::Mod, a, b, numeric, span),
            BinaryOp::Div => {
                let real = |ty: Scalar| if ty.is_real() { ty } else { self.options.default_fp };
                let meet = promote(real(ta), real(tb));
                self.arith(ArithOp::Div, a, b, meet, span)
            }
            BinaryOp::Pow => self.power(a, b, span),
            BinaryOp::Shl => self.shift(BitOp::Shl, "<<", a, b, span),
            BinaryOp::Shr => self.shift(BitOp::Shr, ">>", a, b, span),
            BinaryOp::BitAnd => self.bitwise(BitOp::And, "&", a, b, span),
            BinaryOp::BitOr => self.bitwise(BitOp::Or, "|", a, b, span),
            BinaryOp::BitXor => self.bitwise(BitOp::Xor, "^", a, b, span),
            BinaryOp::MatMul => self.matrix_product(a, b, span),
        }
    }

    /// An op whose operands meet in one type.
    pub(crate) fn arith(
        &mut self,
        op: ArithOp,
        a: Value,
        b: Value,
        meet: Scalar,
        span: Span,
    ) -> Fallible<Value> {
        let (a, b) = self.unify(op.name(), a, b, meet, span)?;
        Ok(self.at(span).arith(op, a, b))
    }

    /// Both operands with entries of one type and one shape: a scalar is spread over the other's entries.
    pub(crate) fn unify(
        &mut self,
        name: &str,
        a: Value,
        b: Value,
        elem: Scalar,
        span: Span,
    ) -> Fallible<(Value, Value)> {
        let (a, b) = (self.cast(a, elem, span), self.cast(b, elem, span));
        self.spread(name, a, b, span)
    }

    fn spread(&mut self, name: &str, a: Value, b: Value, span: Span) -> Fallible<(Value, Value)> {
        match (self.data(a), self.data(b)) {
            (Data::Scalar(_), Data::Scalar(_)) => Ok((a, b)),
            (Data::Tensor(x), Data::Tensor(y)) if x.shape == y.shape => Ok((a, b)),
            (Data::Tensor(t), Data::Scalar(elem)) => {
                Ok((a, self.at(span).splat(Data::Tensor(TensorType { elem, ..t }), b)))
            }
            (Data::Scalar(elem), Data::Tensor(t)) => {
                Ok((self.at(span).splat(Data::Tensor(TensorType { elem, ..t }), a), b))
            }
            _ => Err(self.unsupported_operands(name, a, b, span)),
        }
    }

    /// An integral exponent keeps the base's type.
    pub(crate) fn power(&mut self, a: Value, b: Value, span: Span) -> Fallible<Value> {
        let (ta, tb) = (self.elem(a), self.elem(b));
        let (a, b) = if tb.is_integral() {
            let base = if ta == Scalar::U1 { self.options.default_ip } else { ta };
            let exponent = if tb == Scalar::U1 { Scalar::I32 } else { tb };
            let (a, b) = (self.cast(a, base, span), self.cast(b, exponent, span));
            self.spread("**", a, b, span)?
        } else {
            self.unify("**", a, b, promote(ta, tb), span)?
        };
        Ok(self.at(span).math(MathOp::Pow, a, b))
    }

    /// The result has the left operand's type.
    pub(crate) fn shift(&mut self, op: BitOp, name: &str, a: Value, b: Value, span: Span) -> Fallible<Value> {
        if self.elem(a).is_real() || self.elem(b).is_real() {
            return Err(self.unsupported_operands(name, a, b, span));
        }
        let (a, b) = self.spread(name, a, b, span)?;
        Ok(self.at(span).bit(op, a, b))
    }

    fn bitwise(&mut self, op: BitOp, name: &str, a: Value, b: Value, span: Span) -> Fallible<Value> {
        let (ta, tb) = (self.elem(a), self.elem(b));
        if ta.is_real() || tb.is_real() {
            return Err(self.unsupported_operands(name, a, b, span));
        }
        let (a, b) = self.unify(name, a, b, promote(ta, tb), span)?;
        Ok(self.at(span).bit(op, a, b))
    }

    pub(crate) fn unsupported_operands(
        &mut self,
        name: &str,
        a: Value,
        b: Value,
        span: Span,
    ) -> Box<octants_diag::Diagnostic> {
        let (a, b) = (self.describe(&Term::Value(a)), self.describe(&Term::Value(b)));
        let mut diagnostic = self.diagnostic(
            Code::OperandTypes,
            span,
            format!("unsupported operand type(s) for '{name}': '{a}' and '{b}'"),
        );
        if matches!(name, "&" | "|" | "^" | "<<" | ">>") {
            diagnostic = diagnostic.help("bitwise operators take integers; use `and`, `or` for conditions");
        }
        Box::new(diagnostic)
    }

    pub(crate) fn unary(
        &mut self,
        op: UnaryOp,
        a: Term<H::Object>,
        a_span: Span,
        span: Span,
    ) -> Fallible<Term<H::Object>> {
        if let Some(calculated) = self.formula_unary(op, &a) {
            return Ok(calculated);
        }
        if a.is_static() {
            if let Some(folded) = fold::unary(op, &a) {
                return Ok(folded);
            }
            if op == UnaryOp::Not {
                return Ok(Term::Bool(!self.static_truth(&a, a_span)?));
            }
            self.refuse_operand(&a, a_span)?;
            let object = self.host_object(&a)?;
            let host = self.host;
            let result = self.evaluating(span, |lowerer| host.unary(op, &object, lowerer));
            let object = result.map_err(|exception| self.operator_error(exception, span))?;
            return self.resolve(object, span);
        }
        if self.in_static && op == UnaryOp::Not {
            return Ok(Term::Bool(!self.static_truth(&a, a_span)?));
        }
        let a = self.value(a, a_span)?;
        let ty = self.elem(a);
        Ok(Term::Value(match op {
            UnaryOp::Pos => a,
            UnaryOp::Neg => {
                let to = if ty == Scalar::U1 { self.options.default_ip } else { ty };
                let a = self.cast(a, to, span);
                self.at(span).arith_unary(ArithOp::Neg, a)
            }
            UnaryOp::Not if ty.is_real() => {
                return Err(self.error_with_help(
                    Code::IntegralOnly,
                    span,
                    format!("'not' takes integral inputs only, not {}", ty.name()),
                    "compare it: `x == 0`",
                ));
            }
            UnaryOp::Not => {
                let zero = self.constant_like(a, 0, span);
                self.at(span).compare(IrCompare::Eq, a, zero)
            }
            UnaryOp::Invert if ty.is_real() => {
                return Err(self.error_with_help(
                    Code::IntegralOnly,
                    span,
                    format!("'~' takes integral inputs only, not {}", ty.name()),
                    "use `not` to negate a condition",
                ));
            }
            UnaryOp::Invert => self.at(span).bit_unary(BitUnary::Not, a),
        }))
    }

    /// A chain `a < b < c`: every term is evaluated once, all comparisons hold.
    pub(crate) fn comparison(
        &mut self,
        left: &Expr,
        rest: &[(CompareOp, Expr)],
        span: Span,
    ) -> Fallible<Term<H::Object>> {
        let mut a = (self.operand(left)?, left.span);
        let mut result: Option<Term<H::Object>> = None;
        for (op, right) in rest {
            let b = (self.operand(right)?, right.span);
            let holds = self.compare(*op, a, b.clone(), span)?;
            result = Some(match result {
                None => holds,
                Some(so_far) => self.both(so_far, holds, span)?,
            });
            a = b;
        }
        Ok(result.unwrap_or(Term::Bool(true)))
    }

    /// Whether two comparisons hold.
    fn both(&mut self, a: Term<H::Object>, b: Term<H::Object>, span: Span) -> Fallible<Term<H::Object>> {
        match (&a, &b) {
            (Term::Bool(true), _) => Ok(b),
            (_, Term::Bool(true)) => Ok(a),
            (Term::Bool(false), _) | (_, Term::Bool(false)) => Ok(Term::Bool(false)),
            _ => {
                if let Some(calculated) = self.formula_binary(BinaryOp::BitAnd, &a, &b) {
                    return Ok(calculated);
                }
                let (a, b) = (self.value(a, span)?, self.value(b, span)?);
                self.bitwise(BitOp::And, "and", a, b, span).map(Term::Value)
            }
        }
    }

    pub(crate) fn compare(
        &mut self,
        op: CompareOp,
        (a, a_span): Operand<H::Object>,
        (b, b_span): Operand<H::Object>,
        span: Span,
    ) -> Fallible<Term<H::Object>> {
        let ir = match op {
            CompareOp::Lt => IrCompare::Lt,
            CompareOp::Le => IrCompare::Le,
            CompareOp::Gt => IrCompare::Gt,
            CompareOp::Ge => IrCompare::Ge,
            CompareOp::Eq => IrCompare::Eq,
            CompareOp::Ne => IrCompare::Ne,
            CompareOp::Is | CompareOp::IsNot | CompareOp::In | CompareOp::NotIn => {
                return self.static_comparison(op, &a, &b, span);
            }
        };
        if let Some(calculated) = self.formula_compare(op, &a, &b) {
            return Ok(calculated);
        }
        if let Some(result) = self.special_comparison(op, &a, &b, span)? {
            return Ok(result);
        }
        if a.is_static() && b.is_static() {
            if let Some(holds) = fold::compare(op, &a, &b) {
                return Ok(Term::Bool(holds));
            }
            if !matches!(op, CompareOp::Eq | CompareOp::Ne) {
                self.refuse_operand(&a, a_span)?;
                self.refuse_operand(&b, b_span)?;
            }
            return self.host_compare(op, &a, &b, span);
        }
        if let Some(result) = self.compare_sequences(op, &a, &b, span)? {
            return Ok(result);
        }
        let (a, b) = self.operand_values((a, a_span), (b, b_span))?;
        let meet = promote(self.elem(a), self.elem(b));
        let (a, b) = self.unify(ir.name(), a, b, meet, span)?;
        Ok(Term::Value(self.at(span).compare(ir, a, b)))
    }

    fn host_compare(
        &mut self,
        op: CompareOp,
        a: &Term<H::Object>,
        b: &Term<H::Object>,
        span: Span,
    ) -> Fallible<Term<H::Object>> {
        let (a, b) = (self.host_object(a)?, self.host_object(b)?);
        let host = self.host;
        let result = self.evaluating(span, |lowerer| host.compare(op, &a, &b, lowerer));
        let object = result.map_err(|exception| self.operator_error(exception, span))?;
        self.resolve(object, span)
    }

    /// `is` and `in`, which compare what is known while compiling.
    fn static_comparison(
        &mut self,
        op: CompareOp,
        a: &Term<H::Object>,
        b: &Term<H::Object>,
        span: Span,
    ) -> Fallible<Term<H::Object>> {
        let is_membership = matches!(op, CompareOp::In | CompareOp::NotIn);
        if !self.in_static {
            let (code, word, help) = if is_membership {
                let help = "compare with each item, or write `oc.static(x in xs)` for compile-time values";
                (Code::InOperator, "in", help)
            } else {
                (Code::IsOperator, "is", "use `==` to compare values, or `oc.static(x is None)`")
            };
            let message = format!("Operator \"{word}\" is supported inside `oc.static` only");
            return Err(self.error_with_help(code, span, message, help));
        }
        if a.is_static() && b.is_static() {
            return self.host_compare(op, a, b, span);
        }
        if is_membership {
            return Err(self.must_be_constant("operands of `in`", span));
        }
        // An array is itself. An argument that is an array or a number is not None, and not any other object either.
        let is_same = matches!((a, b), (Term::Array(a), Term::Array(b)) if a == b);
        Ok(Term::Bool(is_same == (op == CompareOp::Is)))
    }
}
