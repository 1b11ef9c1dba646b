//! Terms into registers, and from one type to another.

use octants_diag::{Code, Span};
use octants_ir::ops::CompareOp;
use octants_ir::{Const, Data, Scalar, TensorShape, TensorType, Type, Value};

use super::fold;
use super::promote::loses;
use crate::host::{Annotation, Host, Meaning, ScalarAnnotation, describe_shape, unsigned_like};
use crate::intrinsics::Intrinsic;
use crate::lower::Lowerer;
use crate::lower::data::term::Term;
use crate::lower::error::{Fallible, counted};

impl<H: Host> Lowerer<'_, H> {
    /// What a register value holds.
    pub(crate) fn data(&self, value: Value) -> Data {
        self.kernel.ty(value).data().expect("a register holds data")
    }

    /// The scalar type of a register value, or of its entries.
    pub(crate) fn elem(&self, value: Value) -> Scalar {
        self.data(value).elem().expect("structs do not reach operators")
    }

    pub(crate) fn rank(&self, array: Value) -> u8 {
        match self.kernel.ty(array) {
            Type::Array(array) => array.rank,
            _ => 0,
        }
    }

    /// A term in a register. Literals get the default types.
    pub(crate) fn value(&mut self, term: Term<H::Object>, span: Span) -> Fallible<Value> {
        let constant = match self.loaded(term, span)? {
            Term::Value(value) => return Ok(value),
            Term::Formula(number) => return self.formula_value(*number, span),
            Term::Index(values) => return Ok(self.index_vector(&values, span)),
            Term::Bool(value) => Const::bool(value),
            Term::Int(value) => {
                self.check_literal(value, span)?;
                Const::from_i128(self.options.default_ip, value)
            }
            Term::Float(value) => Const::from_f64(self.options.default_fp, value),
            other => return Err(self.not_a_value(&other, span)),
        };
        Ok(self.at(span).constant(constant))
    }

    /// A term in a register of the given scalar type (or, for a tensor, with entries of it).
    pub(crate) fn value_as(&mut self, term: Term<H::Object>, to: Scalar, span: Span) -> Fallible<Value> {
        match self.loaded(term, span)? {
            Term::Bool(value) => Ok(self.at(span).constant(Const::from_i128(to, value.into()))),
            Term::Int(value) => {
                self.check_literal(value, span)?;
                Ok(self.at(span).constant(Const::from_i128(to, value)))
            }
            Term::Float(value) => {
                // The literal has the default type first, as it would have anywhere else.
                let rounded = Const::from_f64(self.options.default_fp, value).as_f64();
                Ok(self.at(span).constant(Const::from_f64(to, rounded)))
            }
            rvalue => {
                let value = self.value(rvalue, span)?;
                Ok(self.cast(value, to, span))
            }
        }
    }

    /// Like [`value_as`](Self::value_as), with a warning where the value may change.
    pub(crate) fn value_stored_as(
        &mut self,
        term: Term<H::Object>,
        to: Scalar,
        span: Span,
    ) -> Fallible<Value> {
        let rvalue = self.loaded(term, span)?;
        let known = match &rvalue {
            Term::Formula(number) => fold::literal(number.now),
            other => other.clone(),
        };
        let lossy = match &known {
            Term::Value(value) => loses(self.elem(*value), to).then(|| self.elem(*value)),
            Term::Float(value) => (to.is_integral() && to != Scalar::U1 && value.fract() != 0.0)
                .then_some(self.options.default_fp),
            Term::Int(value) => {
                let kept = Const::from_i128(to, *value).as_i128();
                (to != Scalar::U1 && kept.is_some_and(|kept| kept != *value))
                    .then_some(self.options.default_ip)
            }
            _ => None,
        };
        if let Some(from) = lossy {
            let warning = self
                .diagnostic(
                    Code::LossyStore,
                    span,
                    format!("assignment may lose precision: {} <- {}", to.name(), from.name()),
                )
                .help(format!("write `oc.cast(…, oc.{})` if that is meant", to.name()));
            self.warn(warning);
        }
        self.value_as(rvalue, to, span)
    }

    /// A cast that folds constants.
    pub(crate) fn cast(&mut self, value: Value, to: Scalar, span: Span) -> Value {
        if let Some(constant) = self.kernel.as_const(value)
            && constant.ty() != to
        {
            let converted = match constant.as_i128() {
                Some(integer) => Const::from_i128(to, integer),
                None => Const::from_f64(to, constant.as_f64()),
            };
            return self.at(span).constant(converted);
        }
        if to == Scalar::U1 && self.elem(value) != Scalar::U1 {
            return self.nonzero(value, span);
        }
        self.at(span).cast(value, to)
    }

    /// Whether a register value is not zero, entry by entry.
    pub(crate) fn nonzero(&mut self, value: Value, span: Span) -> Value {
        let zero = self.constant_like(value, 0, span);
        self.at(span).compare(CompareOp::Ne, value, zero)
    }

    /// A constant with the type of a register value.
    pub(crate) fn constant_like(&mut self, value: Value, number: i128, span: Span) -> Value {
        let constant = Const::from_i128(self.elem(value), number);
        self.splat_like(value, constant, span)
    }

    /// A constant, in each entry where the value has entries.
    pub(crate) fn splat_like(&mut self, value: Value, constant: Const, span: Span) -> Value {
        let scalar = self.at(span).constant(constant);
        match self.data(value) {
            data @ Data::Tensor(_) => self.at(span).splat(data, scalar),
            _ => scalar,
        }
    }

    /// A `u1` for a condition.
    pub(crate) fn condition(&mut self, term: Term<H::Object>, span: Span) -> Fallible<Value> {
        let rvalue = self.loaded(term, span)?;
        match &rvalue {
            Term::Formula(number) => self.formula_truth(number, span),
            Term::Value(value) if matches!(self.data(*value), Data::Scalar(_)) => {
                Ok(self.cast(*value, Scalar::U1, span))
            }
            Term::Bool(_) | Term::Int(_) | Term::Float(_) | Term::None | Term::Nothing(_) => {
                let truth = super::fold::truth(&rvalue).unwrap_or(false);
                Ok(self.at(span).constant(Const::bool(truth)))
            }
            other => Err(self.not_a_condition(other, span)),
        }
    }

    pub(crate) fn not_a_condition(
        &mut self,
        term: &Term<H::Object>,
        span: Span,
    ) -> Box<octants_diag::Diagnostic> {
        let what = self.describe(term);
        let help = if self.term_shape(term).is_some() {
            let text = self.text(span);
            let is_name = text.chars().all(|letter| letter.is_alphanumeric() || letter == '_');
            let of = if is_name { text } else { format!("({text})") };
            format!("say which entries count: `{of}.all()` or `{of}.any()`")
        } else {
            "compare it, or use `oc.static(...)` for what is known at compile time".to_owned()
        };
        let message = format!("a condition must be a scalar, not {what}");
        self.error_with_help(Code::NotACondition, span, message, help)
    }

    /// A literal must fit the default integer type.
    fn check_literal(&mut self, value: i128, span: Span) -> Fallible<()> {
        let ty = self.options.default_ip;
        if Const::from_i128(ty, value).as_i128() == Some(value) {
            return Ok(());
        }
        let help = if i64::try_from(value).is_ok() {
            "write `oc.i64(...)` around it, or call `oc.init(default_ip=oc.i64)`"
        } else if u64::try_from(value).is_ok() {
            "write `oc.u64(...)` around it"
        } else {
            "no integer type has more than 64 bits: write it as a real, `float(...)`"
        };
        Err(self.error_with_help(
            Code::LiteralRange,
            span,
            format!("integer {value} exceeded the range of default_ip: {}", ty.name()),
            help,
        ))
    }

    /// The grouped loop's index as a vector.
    fn index_vector(&mut self, values: &[Value], span: Span) -> Value {
        let shape = TensorShape::Vector(values.len() as u16);
        let data = Data::Tensor(TensorType { elem: Scalar::I32, shape });
        self.at(span).tensor(data, values.iter().copied())
    }

    /// Neither a field, whose elements are operands, nor a call that gives no value is an operand.
    pub(crate) fn refuse_operand(&mut self, term: &Term<H::Object>, span: Span) -> Fallible<()> {
        if self.is_field_or_node(term) || matches!(term, Term::Nothing(_)) {
            return Err(self.not_a_value(term, span));
        }
        Ok(())
    }

    /// The call of a function that returns no value is used as one.
    pub(crate) fn no_value(&self, function: &str, span: Span) -> Box<octants_diag::Diagnostic> {
        self.error_with_help(
            Code::NotAValue,
            span,
            format!("`{function}` returns no value, but its result is used"),
            format!("end `{function}` with a `return` of the value"),
        )
    }

    fn not_a_value(&mut self, term: &Term<H::Object>, span: Span) -> Box<octants_diag::Diagnostic> {
        let what = self.describe(term);
        match term {
            _ if matches!(term, Term::Array(_) | Term::Structs(_)) || self.is_field_or_node(term) => self
                .error_with_help(
                    Code::ArrayAsValue,
                    span,
                    format!("{what} is used as a value"),
                    "index it: `x[i]`, or `x[None]` if its rank is 0",
                ),
            Term::Nothing(function) => self.no_value(function, span),
            _ => self.error(Code::NotAValue, span, format!("{what} cannot be used as a number")),
        }
    }

    /// What a term is, for a message.
    pub(crate) fn describe(&mut self, term: &Term<H::Object>) -> String {
        match term {
            Term::None => "None".to_owned(),
            Term::Nothing(function) => format!("None (`{function}` returns no value)"),
            Term::Bool(_) => "a bool".to_owned(),
            Term::Int(_) => self.options.default_ip.name().to_owned(),
            Term::Float(_) => self.options.default_fp.name().to_owned(),
            Term::Formula(number) => self.describe(&fold::literal(number.now)),
            Term::Str(_) => "a string".to_owned(),
            Term::Value(value) => describe_data(self.data(*value)),
            Term::Place(place) => match self.kernel.ty(place.base).place() {
                Some((data, rank)) if place.path.len() > rank => {
                    data.elem().map_or_else(String::new, |elem| elem.name().to_owned())
                }
                Some((data, _)) => describe_data(data),
                None => String::new(),
            },
            Term::Array(array) => match self.kernel.ty(*array) {
                Type::Array(ty) => format!("an array of {} with rank {}", describe_data(ty.elem), ty.rank),
                _ => "an array".to_owned(),
            },
            Term::View(_) => "a BufferView".to_owned(),
            Term::Structs(_) => "an array of structs".to_owned(),
            Term::Slice(slice) if slice.is_column => "a column of an array".to_owned(),
            Term::Slice(_) => "a slice of an array".to_owned(),
            Term::Outer(..) => "a product of columns".to_owned(),
            Term::Entries(entries) => describe_data(self.entries_data(entries)),
            Term::Choice(choice) => match self.entries_data(&choice.entries) {
                Data::Tensor(tensor) => describe_data(Data::Scalar(tensor.elem)),
                data => describe_data(data),
            },
            Term::Encoded(place) => self.describe_encoded(place),
            Term::Struct(of) => {
                let members: Vec<_> = of.members.iter().map(|(name, _)| &**name).collect();
                format!("a struct of {}", members.join(", "))
            }
            Term::Method(_) | Term::Fill(_) => "a method".to_owned(),
            Term::Sublist(_) => "a list of a dynamic node".to_owned(),
            Term::Text(_) => "text of run-time values".to_owned(),
            Term::Shape(_) => "a shape".to_owned(),
            Term::Index(values) => format!("an index vector of {}", values.len()),
            Term::Tuple(items) => format!("a tuple of {}", counted(items.len(), "item", "items")),
            Term::List(items) => format!("a list of {}", counted(items.len(), "item", "items")),
            Term::Dict(_) => "a dict".to_owned(),
            Term::Range(..) => "a range".to_owned(),
            Term::Ndrange(..) => "an ndrange".to_owned(),
            Term::Grouped(_) => "a grouped range".to_owned(),
            Term::Static(inner) => self.describe(inner),
            Term::Object(object) => match self.host.meaning(object) {
                Meaning::Bool(_) => "a bool".to_owned(),
                Meaning::Int(_) => "an int".to_owned(),
                Meaning::Float(_) => "a float".to_owned(),
                Meaning::Str(_) => "a string".to_owned(),
                Meaning::None => "None".to_owned(),
                Meaning::Tuple => {
                    format!("a tuple of {}", counted(self.host.items(object).len(), "item", "items"))
                }
                Meaning::List => {
                    format!("a list of {}", counted(self.host.items(object).len(), "item", "items"))
                }
                Meaning::Dict => "a dict".to_owned(),
                Meaning::Tensor(_) => "a vector or matrix".to_owned(),
                Meaning::Struct { .. } => "a struct".to_owned(),
                Meaning::Dtype(scalar) => format!("the type {}", scalar.name()),
                Meaning::Intrinsic(intrinsic) => format!("the function `{}`", intrinsic.name()),
                Meaning::Func { .. } | Meaning::Partial { .. } => "a func".to_owned(),
                Meaning::Kernel => "a kernel".to_owned(),
                Meaning::Field => "a field".to_owned(),
                Meaning::Node => "a node of a tree of fields".to_owned(),
                Meaning::Module => "a module".to_owned(),
                _ => format!("a `{}` object", self.host.type_name(object)),
            },
        }
    }

    pub(crate) fn scalar_of(&self, annotation: ScalarAnnotation) -> Scalar {
        match annotation {
            ScalarAnnotation::Is(scalar) => scalar,
            ScalarAnnotation::DefaultInt => self.options.default_ip,
            ScalarAnnotation::DefaultFloat => self.options.default_fp,
            ScalarAnnotation::DefaultUnsigned => unsigned_like(self.options.default_ip),
        }
    }

    /// The data type that an annotation names, if it names one.
    pub(crate) fn data_of(&self, annotation: &Annotation) -> Option<Data> {
        match annotation {
            Annotation::Scalar(scalar) => Some(self.scalar_of(*scalar).into()),
            Annotation::Tensor(scalar, shape) => {
                Some(Data::Tensor(TensorType { elem: self.scalar_of(*scalar), shape: *shape }))
            }
            _ => None,
        }
    }

    /// The scalar type that a term names: `oc.f32`, `float`, …
    pub(crate) fn dtype(&mut self, term: &Term<H::Object>, span: Span) -> Fallible<Scalar> {
        let rvalue = self.rvalue(term.clone(), span)?;
        if let Term::Object(object) = &rvalue {
            match self.host.meaning(object) {
                Meaning::Dtype(scalar) => return Ok(scalar),
                Meaning::Intrinsic(Intrinsic::Int) => return Ok(self.options.default_ip),
                Meaning::Intrinsic(Intrinsic::Float) => return Ok(self.options.default_fp),
                Meaning::Intrinsic(Intrinsic::Bool) => return Ok(Scalar::U1),
                _ => {}
            }
        }
        let what = self.describe(&rvalue);
        Err(self.error_with_help(
            Code::NotADtype,
            span,
            format!("expected a type, got {what}"),
            "write a type of the language, such as `oc.f32`",
        ))
    }
}

/// `f32`, or `a 3-vector of f32`.
pub(crate) fn describe_data(data: Data) -> String {
    match data {
        Data::Scalar(scalar) => scalar.name().to_owned(),
        Data::Tensor(TensorType { elem, shape }) => format!("{} of {}", describe_shape(shape), elem.name()),
        Data::Struct(_) => "a struct".to_owned(),
    }
}
