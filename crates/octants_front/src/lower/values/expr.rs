//! Expressions, by kind of node.

use octants_diag::{Code, Span};
use octants_ir::{Data, Scalar, TensorType};

use super::promote::promote;
use crate::ast::{Expr, ExprKind};
use crate::host::{CompareOp, Host, Meaning};
use crate::lower::Lowerer;
use crate::lower::data::term::Term;
use crate::lower::error::Fallible;

type DictEntries<O> = Vec<(Term<O>, Term<O>)>;

impl<H: Host> Lowerer<'_, H> {
    pub(crate) fn expr(&mut self, expr: &Expr) -> Fallible<Term<H::Object>> {
        let span = expr.span;
        self.check_stack(span)?;
        match &expr.kind {
            ExprKind::None => Ok(Term::None),
            ExprKind::Bool(value) => Ok(Term::Bool(*value)),
            ExprKind::Int(value) => Ok(Term::Int(*value)),
            ExprKind::HugeInt => {
                Err(self.error(Code::LiteralRange, span, "integer literal exceeded the range of every type"))
            }
            ExprKind::Float(value) => Ok(Term::Float(*value)),
            ExprKind::Str(text) => Ok(Term::Str(text.clone())),
            ExprKind::FString(parts) => self.text_of(parts),
            ExprKind::Name(name) => self.name(name, span),
            ExprKind::Attribute { value, name } => {
                let object = self.expr(value)?;
                self.attribute(object, name, span)
            }
            ExprKind::Subscript { value, index } => {
                let base = self.expr(value)?;
                self.subscript(base, value, index, span)
            }
            ExprKind::Slice { .. } => Err(self.error(
                Code::SliceUnsupported,
                span,
                "slices of arrays are not supported in a kernel",
            )),
            ExprKind::Tuple(items) => Ok(Term::Tuple(self.operands(items)?)),
            ExprKind::List(items) => Ok(Term::List(self.operands(items)?)),
            ExprKind::Dict(items) => self.dict(items, span),
            ExprKind::ListComp { element, generators } => self.list_comprehension(element, generators),
            ExprKind::DictComp { key, value, generators } => self.dict_comprehension(key, value, generators),
            ExprKind::Starred(_) => Err(self.error_with_help(
                Code::UnsupportedExpression,
                span,
                "Unsupported node \"Starred\"",
                "`*` unpacks arguments of a call only",
            )),
            ExprKind::Binary { .. } => {
                let (chain, leftmost) = expr.operator_chain();
                let mut left = (self.operand(leftmost)?, leftmost.span);
                for node in chain.into_iter().rev() {
                    if let ExprKind::Binary { op, right, .. } = &node.kind {
                        let b = self.operand(right)?;
                        let result = self.binary(*op, left, (b, right.span), node.span)?;
                        left = (result, node.span);
                    }
                }
                Ok(left.0)
            }
            ExprKind::Unary { op, operand } => {
                let a = self.operand(operand)?;
                self.unary(*op, a, operand.span, span)
            }
            ExprKind::Logical { op, operands } => self.logical(*op, operands, span),
            ExprKind::Compare { left, rest } => self.comparison(left, rest, span),
            ExprKind::IfElse { test, body, orelse } => self.if_else(test, body, orelse, span),
            ExprKind::Call { callee, args, keywords } => self.call(callee, args, keywords, span),
            ExprKind::Named { name, name_span, value } => {
                let term = self.operand(value)?;
                if self.in_static && term.is_static() {
                    self.name_static(name, &term, *name_span)?;
                    return Ok(term);
                }
                self.assign_in_expression(name, term, *name_span)?;
                self.name(name, *name_span).and_then(|term| self.loaded(term, span))
            }
            ExprKind::Unsupported(node) => {
                let message = format!("Unsupported node \"{node}\"");
                let diagnostic = self.diagnostic(Code::UnsupportedExpression, span, message);
                Err(Box::new(match help_on_unsupported(node) {
                    Some(help) => diagnostic.help(help),
                    None => diagnostic,
                }))
            }
        }
    }

    /// An expression whose value is taken now: places are loaded.
    pub(crate) fn operand(&mut self, expr: &Expr) -> Fallible<Term<H::Object>> {
        let term = self.expr(expr)?;
        match term {
            // A sequence or a function stays what it is; only numbers matter here.
            Term::Object(object) => self.resolve(object, expr.span),
            other => self.loaded(other, expr.span),
        }
    }

    /// Items of a literal; `*sequence` is unpacked.
    pub(crate) fn operands(&mut self, items: &[Expr]) -> Fallible<Vec<Term<H::Object>>> {
        let mut terms = Vec::with_capacity(items.len());
        for item in items {
            if let ExprKind::Starred(inner) = &item.kind {
                terms.extend(self.starred(inner)?);
            } else {
                terms.push(self.operand(item)?);
            }
        }
        Ok(terms)
    }

    /// The items behind a `*`.
    pub(crate) fn starred(&mut self, inner: &Expr) -> Fallible<Vec<Term<H::Object>>> {
        let term = self.operand(inner)?;
        if let Some(items) = self.items(&term, inner.span)? {
            return Ok(items);
        }
        let what = self.describe(&term);
        Err(self.error(
            Code::StarredArgument,
            inner.span,
            format!("{what} cannot be unpacked at compile time"),
        ))
    }

    fn dict(&mut self, items: &[(Option<Expr>, Expr)], span: Span) -> Fallible<Term<H::Object>> {
        let mut entries = Vec::with_capacity(items.len());
        for (key, value) in items {
            let Some(key) = key else {
                for (key, value) in self.merged(value)? {
                    self.set_entry(&mut entries, key, value, span)?;
                }
                continue;
            };
            let key_term = self.operand(key)?;
            if !key_term.is_static() {
                return Err(self.must_be_constant("keys of a dict", key.span));
            }
            let value = self.operand(value)?;
            self.set_entry(&mut entries, key_term, value, key.span)?;
        }
        Ok(Term::Dict(entries))
    }

    /// The entries of `**mapping`.
    fn merged(&mut self, mapping: &Expr) -> Fallible<DictEntries<H::Object>> {
        let term = self.operand(mapping)?;
        let exposed = self.exposed(&term, mapping.span)?;
        if let Term::Dict(entries) = exposed {
            return Ok(entries);
        }
        if let Term::Object(object) = &exposed
            && let Meaning::Dict = self.host.meaning(object)
        {
            if self.member_of(object).is_none() {
                self.host.observe(object);
            }
            let terms = self
                .host
                .pairs(object)
                .into_iter()
                .map(|(key, value)| (Term::Object(key), Term::Object(value)));
            return Ok(terms.collect());
        }
        let what = self.describe(&exposed);
        Err(self.error(
            Code::NotUnpackable,
            mapping.span,
            format!("{what} cannot be merged into a dict: it is not one"),
        ))
    }

    /// The last value for a key counts, in the place of the first.
    fn set_entry(
        &mut self,
        entries: &mut DictEntries<H::Object>,
        key: Term<H::Object>,
        value: Term<H::Object>,
        span: Span,
    ) -> Fallible<()> {
        for (known, slot) in entries.iter_mut() {
            let same = self.compare(CompareOp::Eq, (known.clone(), span), (key.clone(), span), span)?;
            if self.static_truth(&same, span)? {
                *slot = value;
                return Ok(());
            }
        }
        entries.push((key, value));
        Ok(())
    }

    /// `body if test else orelse`: only one of the two is evaluated.
    fn if_else(&mut self, test: &Expr, body: &Expr, orelse: &Expr, span: Span) -> Fallible<Term<H::Object>> {
        let condition = self.expr(test)?;
        if matches!(condition, Term::Static(_)) || (self.in_static && condition.is_static()) {
            let truth = self.static_truth(&condition, test.span)?;
            return self.expr(if truth { body } else { orelse });
        }
        if let Some(condition) = self.tensor_operand(&condition, test.span)? {
            // Entry by entry: both sides are evaluated.
            let condition = self.cast(condition, Scalar::U1, test.span);
            let (a, b) = (self.operand(body)?, self.operand(orelse)?);
            let (a, b) = (self.number_or_tensor(a, body.span)?, self.number_or_tensor(b, orelse.span)?);
            return self.select_values(condition, a, b, span).map(Term::Value);
        }
        let condition = self.condition(condition, test.span)?;
        let branch = |lowerer: &mut Self, expr: &Expr| {
            lowerer.open_region(&[], |inner, _| {
                let term = inner.operand(expr)?;
                inner.number_or_tensor(term, expr.span)
            })
        };
        let (then_region, then_value) = branch(self, body)?;
        let (else_region, else_value) = branch(self, orelse)?;
        let shapes = [then_value, else_value].map(|value| self.data(value).tensor_shape());
        if let [Some(a), Some(b)] = shapes
            && a != b
        {
            let (a, b) = (self.describe(&Term::Value(then_value)), self.describe(&Term::Value(else_value)));
            return Err(self.error(
                Code::OperandTypes,
                span,
                format!("the branches of a conditional expression differ: {a} and {b}"),
            ));
        }
        let elem = promote(self.elem(then_value), self.elem(else_value));
        let shape = shapes[0].or(shapes[1]);
        let mut types = Vec::new();
        for (region, value, at) in
            [(then_region, then_value, body.span), (else_region, else_value, orelse.span)]
        {
            let value = self.within(region, |inner| {
                let value = inner.cast(value, elem, at);
                // A scalar beside a tensor is spread over its entries.
                Ok(match (shape, inner.data(value)) {
                    (Some(shape), Data::Scalar(elem)) => {
                        inner.at(at).splat(Data::Tensor(TensorType { elem, shape }), value)
                    }
                    _ => value,
                })
            })?;
            self.end_region(region, at, &[value]);
            types.push(self.kernel.ty(value));
        }
        let op = self.at(span).op(
            octants_ir::OpKind::If,
            [condition],
            types.into_iter().take(1),
            [then_region, else_region],
        );
        Ok(Term::Value(self.kernel.ops[op].results[0]))
    }
}

/// What to write in place of an expression that kernels do not have.
fn help_on_unsupported(node: &str) -> Option<&'static str> {
    Some(match node {
        "Lambda" => "define the function outside and decorate it with `@oc.func`",
        "Set" | "SetComp" => {
            "a set of constants can stand in `oc.static(x in xs)`, made outside of the kernel"
        }
        "GeneratorExp" => "write a loop, or a list with brackets, `[f(i) for i in oc.static(range(3))]`",
        "Yield" | "YieldFrom" | "Await" => "a kernel runs to its end: write results into arrays or fields",
        "Complex" => {
            "keep the real and the imaginary part in a vector: `oc.math.cmul`, `oc.math.cexp` calculate with them"
        }
        "Ellipsis" => "write each index, or loop over `oc.grouped(x)`",
        "Bytes" | "TemplateStr" => "texts are for `print`, `assert` and `oc.static`",
        _ => return None,
    })
}
