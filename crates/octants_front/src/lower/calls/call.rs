//! Calls: what the callee is decides how its arguments are evaluated.

use octants_diag::{Code, Span};
use octants_ir::{Const, Scalar};

use crate::ast::{Expr, ExprKind, Keyword, Name};
use crate::formula::NumberKind;
use crate::host::{Host, HostException, HostOnly, Meaning, Renewal, UnaryOp};
use crate::intrinsics::Intrinsic;
use crate::lower::Lowerer;
use crate::lower::data::argument::{Argument, Passing};
use crate::lower::data::term::Term;
use crate::lower::error::Fallible;
use crate::lower::values::fold;

/// Positional and named arguments of a call of host code.
type HostArguments<O> = (Vec<O>, Vec<(String, O)>);

impl<H: Host> Lowerer<'_, H> {
    pub(crate) fn call(
        &mut self,
        callee: &Expr,
        args: &[Expr],
        keywords: &[Keyword],
        span: Span,
    ) -> Fallible<Term<H::Object>> {
        let mut target = match &callee.kind {
            ExprKind::Attribute { value, name } => match (self.expr(value)?, &**name) {
                (Term::View(view), "subview") => return self.subview_call(&view, args, keywords, span),
                (Term::Str(template), "format") => return self.format_call(&template, args, keywords, span),
                (Term::Sublist(list), name) => return self.sublist_call(&list, name, args, keywords, span),
                (object, name @ ("append" | "length" | "deactivate")) => {
                    if let Some(list) = self.list_of_field(&object, value)? {
                        return self.sublist_call(&list, name, args, keywords, span);
                    }
                    self.attribute(object, name, callee.span)?
                }
                (object, name) => self.attribute(object, name, callee.span)?,
            },
            _ => self.expr(callee)?,
        };
        while let Term::Static(inner) = target {
            target = *inner;
        }
        if let Term::Method(method) = target {
            let outer = std::mem::replace(&mut self.call_span, span);
            let arguments = self.arguments(args, keywords, Passing::ByReference);
            let receiver = (method.receiver, method.by_reference);
            let result = arguments
                .and_then(|arguments| self.inline_method(&method.function, receiver, arguments, span));
            self.call_span = outer;
            return result;
        }
        if let Term::Fill(filled) = target {
            let outer = std::mem::replace(&mut self.call_span, span);
            let arguments = self.arguments(args, keywords, Passing::ByValue);
            let result = arguments.and_then(|arguments| self.fill_call(*filled, arguments, span));
            self.call_span = outer;
            return result;
        }
        let Term::Object(object) = target else { return Err(self.not_callable(&target, callee.span)) };
        let object = self.special_method(&object, "__call__").unwrap_or(object);
        let outer = std::mem::replace(&mut self.call_span, span);
        let result = match self.host.meaning(&object) {
            Meaning::Intrinsic(intrinsic) => self.intrinsic(intrinsic, &object, args, keywords, span),
            Meaning::Dtype(dtype) => {
                self.arguments(args, keywords, Passing::ByValue).and_then(|arguments| {
                    // Everything is known: what the type makes of it outside of kernels, a number of Python's or numpy's.
                    if self.in_static && arguments.iter().all(|argument| argument.term.is_static()) {
                        return self.call_host(&object, &arguments, span);
                    }
                    self.type_call(dtype, &arguments, span)
                })
            }
            Meaning::Func { receiver } if self.host.is_real_function(&object) => self
                .arguments(args, keywords, Passing::ByReference)
                .and_then(|arguments| self.call_function(&object, receiver, arguments, span)),
            Meaning::Func { receiver } => self
                .arguments(args, keywords, Passing::ByReference)
                .and_then(|arguments| self.inline(&object, receiver, arguments, span)),
            Meaning::Partial { function, args: first, keywords: named } => self
                .arguments(args, keywords, Passing::ByReference)
                .and_then(|arguments| self.call_partial(&function, (first, named), arguments, span)),
            Meaning::Kernel => Err(self.kernel_in_kernel(span)),
            Meaning::HostOnly => {
                let name = self.text(callee.span);
                Err(self.host_only(HostOnly::Call(&name), span))
            }
            Meaning::Callable { known } => {
                self.host_call(&object, known, (args, keywords), callee.span, span)
            }
            Meaning::Other => self.host_call(&object, true, (args, keywords), callee.span, span),
            _ => Err(self.not_callable(&Term::Object(object), callee.span)),
        };
        self.call_span = outer;
        result
    }

    /// Calls a func with arguments that were fixed before, and those of the call; a named one of the call takes the place of a fixed one.
    pub(crate) fn call_partial(
        &mut self,
        function: &H::Object,
        (first, named): HostArguments<H::Object>,
        arguments: Vec<Argument<H::Object>>,
        span: Span,
    ) -> Fallible<Term<H::Object>> {
        let mut all = Vec::with_capacity(first.len() + named.len() + arguments.len());
        for object in first {
            let term = self.resolve(object, span)?;
            all.push(Argument { name: None, term, span, is_literal: false });
        }
        let (mut fixed, given) = (Vec::new(), |name: &str| {
            arguments.iter().any(|argument| argument.name.as_deref().is_some_and(|other| other == name))
        });
        for (name, object) in named {
            if !given(&name) {
                let term = self.resolve(object, span)?;
                fixed.push(Argument { name: Some(name.as_str().into()), term, span, is_literal: false });
            }
        }
        all.extend(arguments);
        all.extend(fixed);
        self.call_evaluated(function, all, span)
    }

    /// Calls an object with arguments that are terms already.
    pub(crate) fn call_evaluated(
        &mut self,
        callee: &H::Object,
        arguments: Vec<Argument<H::Object>>,
        span: Span,
    ) -> Fallible<Term<H::Object>> {
        match self.host.meaning(callee) {
            Meaning::Dtype(dtype) => self.type_call(dtype, &arguments, span),
            Meaning::Intrinsic(intrinsic) => self.intrinsic_of(intrinsic, callee, &arguments, span),
            Meaning::Func { receiver } if self.host.is_real_function(callee) => {
                self.call_function(callee, receiver, arguments, span)
            }
            Meaning::Func { receiver } => self.inline(callee, receiver, arguments, span),
            Meaning::Partial { function, args, keywords } => {
                self.call_partial(&function, (args, keywords), arguments, span)
            }
            _ => self.call_host(callee, &arguments, span),
        }
    }

    pub(crate) fn not_callable(
        &mut self,
        term: &Term<H::Object>,
        span: Span,
    ) -> Box<octants_diag::Diagnostic> {
        let what = self.describe(term);
        self.error(Code::NotCallable, span, format!("{what} cannot be called"))
    }

    pub(crate) fn arguments(
        &mut self,
        args: &[Expr],
        keywords: &[Keyword],
        passing: Passing,
    ) -> Fallible<Vec<Argument<H::Object>>> {
        let mut evaluated = Vec::with_capacity(args.len() + keywords.len());
        for arg in args {
            if let ExprKind::Starred(inner) = &arg.kind {
                for term in self.starred(inner)? {
                    evaluated.push(Argument { name: None, term, span: arg.span, is_literal: false });
                }
                continue;
            }
            evaluated.push(self.argument(None, arg, passing)?);
        }
        for keyword in keywords {
            let Some(name) = &keyword.name else {
                return Err(self.error_with_help(
                    Code::StarredArgument,
                    keyword.span,
                    "`**` in a call is not supported",
                    "write the keyword arguments out",
                ));
            };
            evaluated.push(self.argument(Some(name.clone()), &keyword.value, passing)?);
        }
        Ok(evaluated)
    }

    fn argument(
        &mut self,
        name: Option<Name>,
        expr: &Expr,
        passing: Passing,
    ) -> Fallible<Argument<H::Object>> {
        let term = match passing {
            Passing::ByValue => self.operand(expr)?,
            Passing::ByReference => self.expr(expr)?,
            Passing::ToPython => match self.expr(expr)? {
                Term::Object(object) if self.is_number(&object) || self.is_text(&object) => {
                    Term::Object(object)
                }
                Term::Formula(number) => Term::Object(self.pinned_object(&number)),
                term => self.rvalue(term, expr.span)?,
            },
        };
        let term = match term {
            // What a func returned, or a variable holds, is known as much as if it were written here.
            Term::Ndrange(_, Some(known)) if self.in_static => Term::Object(known),
            term => term,
        };
        Ok(Argument { name, term, span: expr.span, is_literal: is_number_literal(expr) })
    }

    /// Tells of a call for whose results the kernel is compiled again and again.
    fn warn_of_renewal(&mut self, callee_span: Span, span: Span) {
        let Some(renewal) = self.host.renewal() else { return };
        let name = self.text(callee_span);
        let (message, help) = match renewal {
            Renewal::Class => (
                format!(
                    "`{name}` gives something of a new class at each call: the kernel is compiled at each launch"
                ),
                "make the class once, outside of the function",
            ),
            Renewal::Often => (
                format!("`{name}` keeps giving something else: the kernel is compiled at each launch"),
                "pass the value as an argument",
            ),
        };
        let warning = self.diagnostic(Code::EvaluatedAnew, span, message).help(help);
        self.warn(warning);
    }

    /// A plain Python callable: runs now.
    fn host_call(
        &mut self,
        callee: &H::Object,
        known: bool,
        (args, keywords): (&[Expr], &[Keyword]),
        callee_span: Span,
        span: Span,
    ) -> Fallible<Term<H::Object>> {
        if self.host.is_unsteady(callee) {
            let name = self.text(callee_span);
            let message = format!(
                "`{name}` is called once, while the kernel is being compiled: each launch sees the same value"
            );
            let warning = self.diagnostic(Code::FrozenValue, span, message);
            self.warn(
                warning.help("pass the value as an argument; `oc.random` draws a number at each launch"),
            );
        } else if !known && !self.in_static {
            let name = self.text(callee_span);
            let warning = self
                .diagnostic(
                    Code::PythonCall,
                    span,
                    format!("calling the Python function `{name}` while compiling the kernel"),
                )
                .help("decorate it with `@oc.func` to make it part of the kernel");
            self.warn(warning);
        }
        let arguments = self.arguments(args, keywords, Passing::ToPython)?;
        let (positional, named) = self.host_arguments(callee, &arguments, span)?;
        let host = self.host;
        match host.call(callee, &positional, &named, self) {
            Ok(object) => {
                self.warn_of_renewal(callee_span, span);
                Ok(self.captured(object))
            }
            Err(exception) => {
                let given = arguments.iter().find(|argument| match &argument.term {
                    Term::Object(object) => matches!(host.meaning(object), Meaning::Field),
                    term => !term.is_static(),
                });
                let is_told = known || self.library_of(callee).as_deref() == Some("numpy");
                Err(match given.filter(|_| is_told) {
                    Some(argument) => self.python_only(callee, &argument.term, exception, callee_span, span),
                    None => self.host_error(exception, span),
                })
            }
        }
    }

    /// A function of Python's that failed on a value of the kernel.
    fn python_only(
        &mut self,
        callee: &H::Object,
        given: &Term<H::Object>,
        exception: HostException,
        callee_span: Span,
        span: Span,
    ) -> Box<octants_diag::Diagnostic> {
        let text = self.text(callee_span);
        let library = self.library_of(callee);
        let (is_own, is_numpy) = (library.as_deref() == Some("octants"), library.as_deref() == Some("numpy"));
        let name = text.rsplit('.').next().unwrap_or_default();
        let help = match name {
            _ if is_numpy && numpy_form(name).is_some() => {
                format!("write {}", numpy_form(name).unwrap_or_default())
            }
            "reversed" => "loop forwards and count back: `for i in range(n): j = n - 1 - i`".to_owned(),
            "enumerate" => "loop over the indices, `for i in x`, and read the element `x[i]`".to_owned(),
            "sum" | "sorted" | "zip" | "map" | "filter" | "list" | "tuple" | "set" | "iter" | "next" => {
                "write a loop in the kernel; `oc.static(...)` is for sequences that are known while compiling"
                    .to_owned()
            }
            // `Vector.zero(f32, n)`, say, is not the intrinsic `zero`: it takes a length.
            _ if is_own && !exception.type_name.starts_with("Octants") => {
                "pass literals, globals, template arguments or variables of static loops".to_owned()
            }
            _ => match Intrinsic::from_name(name) {
                Some(_) => format!("write `oc.{name}`, which is part of kernels"),
                // What the package's own functions say is said for the user already.
                None if exception.type_name.starts_with("Octants") => {
                    return self.host_error(exception, span);
                }
                None => "call it on values that are known while compiling, or write an `@oc.func`".to_owned(),
            },
        };
        let what = self.describe(given);
        self.trace_failure = None;
        let message = format!(
            "`{text}` is a function of Python: it runs while compiling, but its argument ({what}) is known only when the kernel runs"
        );
        let mut diagnostic = self.diagnostic(Code::HostError, span, message).help(help);
        diagnostic.cause = exception.cause;
        Box::new(diagnostic)
    }

    /// The library that a function of the host is from.
    fn library_of(&mut self, callee: &H::Object) -> Option<String> {
        let host = self.host;
        let module = host.getattr(callee, "__module__", self).ok()?;
        let Meaning::Str(name) = host.meaning(&module) else { return None };
        name.split('.').next().map(str::to_owned)
    }

    pub(crate) fn call_host(
        &mut self,
        callee: &H::Object,
        arguments: &[Argument<H::Object>],
        span: Span,
    ) -> Fallible<Term<H::Object>> {
        self.host_result(callee, arguments, span)?.map_err(|exception| self.host_error(exception, span))
    }

    /// What host code gives, or raises.
    pub(crate) fn host_result(
        &mut self,
        callee: &H::Object,
        arguments: &[Argument<H::Object>],
        span: Span,
    ) -> Fallible<Result<Term<H::Object>, HostException>> {
        let (positional, named) = self.host_arguments(callee, arguments, span)?;
        let host = self.host;
        Ok(host.call(callee, &positional, &named, self).map(Term::Object))
    }

    /// Positional and named arguments, as host code sees them.
    fn host_arguments(
        &mut self,
        callee: &H::Object,
        arguments: &[Argument<H::Object>],
        span: Span,
    ) -> Fallible<HostArguments<H::Object>> {
        let mut positional = Vec::new();
        let mut named = Vec::new();
        if let Some(receiver) = self.host.receiver(callee) {
            self.exposed(&Term::Object(receiver), span)?;
        }
        for argument in arguments {
            let object = self.host_object(&argument.term)?;
            match &argument.name {
                None => positional.push(object),
                Some(name) => named.push((name.to_string(), object)),
            }
        }
        self.trace_failure = None;
        Ok((positional, named))
    }

    /// `oc.f32(x)`: annotates a literal, casts anything else.
    pub(crate) fn type_call(
        &mut self,
        dtype: Scalar,
        arguments: &[Argument<H::Object>],
        span: Span,
    ) -> Fallible<Term<H::Object>> {
        let [Argument { name: None, term, span: at, is_literal }] = arguments else {
            return Err(self.error_with_help(
                Code::TypeCall,
                span,
                "a type is called with exactly one positional argument",
                format!("write `oc.{}(x)`", dtype.name()),
            ));
        };
        if *is_literal {
            return self.annotated_literal(dtype, term, *at);
        }
        match self.loaded(term.clone(), *at)? {
            Term::Value(value) if self.data(value).tensor_shape().is_some() => Err(self.error_with_help(
                Code::TypeCall,
                span,
                "a scalar type cannot be called on a tensor",
                format!("write `oc.cast(x, oc.{})`", dtype.name()),
            )),
            rvalue => self.convert(rvalue, dtype, *at).map(Term::Value),
        }
    }

    /// A cast by value; a compile-time number is converted directly, whatever the default types.
    pub(crate) fn convert(
        &mut self,
        rvalue: Term<H::Object>,
        to: Scalar,
        span: Span,
    ) -> Fallible<octants_ir::Value> {
        let constant = match rvalue {
            Term::Bool(value) => Const::from_i128(to, value.into()),
            Term::Int(value) => {
                self.require_room(to, value, span)?;
                Const::from_i128(to, value)
            }
            Term::Float(value) => Const::from_f64(to, value),
            Term::Formula(number) => return Ok(self.formula_as(*number, to, span)),
            other => {
                let value = self.value(other, span)?;
                return Ok(self.cast(value, to, span));
            }
        };
        Ok(self.at(span).constant(constant))
    }

    /// Refuses to wrap an integer that is none of `i64`: it is of no type that a cast could wrap it from, but perhaps of `u64`.
    fn require_room(&mut self, to: Scalar, value: i128, span: Span) -> Fallible<()> {
        let wraps =
            to.is_integral() && to != Scalar::U1 && Const::from_i128(to, value).as_i128() != Some(value);
        if !wraps || i64::try_from(value).is_ok() {
            return Ok(());
        }
        let name = to.name();
        let message = format!("{value} exceeded the range of specified dtype: {name}");
        let diagnostic = self.diagnostic(Code::AnnotatedLiteralRange, span, message);
        Err(Box::new(match u64::try_from(value) {
            Ok(_) => {
                diagnostic.help(format!("write `oc.cast(oc.u64({value}), oc.{name})` if wrapping is meant"))
            }
            Err(_) => diagnostic.help("no type has numbers of more than 64 bits"),
        }))
    }

    fn annotated_literal(
        &mut self,
        dtype: Scalar,
        term: &Term<H::Object>,
        span: Span,
    ) -> Fallible<Term<H::Object>> {
        let name = dtype.name();
        let constant = match term {
            Term::Float(_) if dtype.is_integral() => {
                return Err(self.error_with_help(
                    Code::LiteralKind,
                    span,
                    format!("a real literal cannot be annotated with {name}"),
                    format!("use `oc.cast` to change the type: `oc.cast({}, oc.{name})`", self.text(span)),
                ));
            }
            Term::Int(_) if dtype.is_real() => {
                return Err(self.error_with_help(
                    Code::LiteralKind,
                    span,
                    format!("an integer literal cannot be annotated with {name}"),
                    format!("write `oc.{name}({}.0)`, or use `oc.cast`", self.text(span)),
                ));
            }
            Term::Int(value) => {
                let constant = Const::from_i128(dtype, *value);
                if constant.as_i128() != Some(*value) {
                    return Err(self.error_with_help(
                        Code::AnnotatedLiteralRange,
                        span,
                        format!("{value} exceeded the range of specified dtype: {name}"),
                        "use `oc.cast` if wrapping is meant, or a wider type",
                    ));
                }
                constant
            }
            Term::Float(value) => Const::from_f64(dtype, *value),
            Term::Bool(value) => Const::from_i128(dtype, (*value).into()),
            other => {
                let value = self.convert(other.clone(), dtype, span)?;
                return Ok(Term::Value(value));
            }
        };
        Ok(Term::Value(self.at(span).constant(constant)))
    }

    /// `int(x)`, `float(x)`, `bool(x)`.
    pub(crate) fn builtin_cast(
        &mut self,
        to: Scalar,
        callee: &H::Object,
        arguments: &[Argument<H::Object>],
        span: Span,
    ) -> Fallible<Term<H::Object>> {
        match arguments {
            [Argument { name: None, term: Term::Formula(number), .. }] => {
                let kind = match to {
                    Scalar::U1 => NumberKind::Bool,
                    _ if to.is_real() => NumberKind::Float,
                    _ => NumberKind::Int,
                };
                match self.formula_converted(number, kind) {
                    converted @ Term::Formula(_) => Ok(converted),
                    // As a literal that is too large.
                    literal => self.convert(literal, to, span).map(Term::Value),
                }
            }
            [Argument { name: None, term, span: at, .. }] if !term.is_static() || fold::is_number(term) => {
                if let Some(folded) = fold_cast(to, term) {
                    return Ok(folded);
                }
                self.convert(term.clone(), to, *at).map(Term::Value)
            }
            // `float("inf")`, `int()`, …: Python knows.
            _ => {
                let result = self.call_host(callee, arguments, span)?;
                self.rvalue(result, span)
            }
        }
    }
}

/// A cast of a compile-time number that stays one.
fn fold_cast<O>(to: Scalar, term: &Term<O>) -> Option<Term<O>> {
    let number = fold::number(term)?;
    match to {
        Scalar::U1 => Some(Term::Bool(number.truth())),
        _ if to.is_real() => Some(Term::Float(number.real())),
        _ => number.truncated().map(Term::Int),
    }
}

/// What kernels have for a function of numpy's that is no function of ours by the same name.
fn numpy_form(name: &str) -> Option<&'static str> {
    Some(match name {
        "array" | "asarray" | "stack" | "concatenate" => "`oc.Vector([...])` or `oc.Matrix([[...], [...]])`",
        "dot" | "inner" | "vdot" => "`a.dot(b)`, or `a @ b` of matrices",
        "matmul" => "`a @ b`",
        "cross" => "`a.cross(b)`",
        "outer" => "`a.outer_product(b)`",
        "norm" => "`a.norm()`",
        "transpose" => "`a.transpose()`",
        "inv" => "`a.inverse()`",
        "det" => "`a.determinant()`",
        "trace" => "`a.trace()`",
        "sum" | "amax" | "amin" | "all" | "any" => "the method of the vector, such as `a.sum()` or `a.max()`",
        "clip" => "`oc.math.clamp(x, low, high)`",
        "where" => "`oc.select(condition, a, b)`",
        _ => return None,
    })
}

fn is_number_literal(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::Int(_) | ExprKind::Float(_) => true,
        ExprKind::Unary { op: UnaryOp::Neg | UnaryOp::Pos, operand } => is_number_literal(operand),
        _ => false,
    }
}
