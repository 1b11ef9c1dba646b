//! Attributes: of arrays, and of host objects at compile time.

use octants_diag::{Code, Span};
use octants_ir::{Type, Value};

use crate::host::{Host, HostResult, Meaning};
use crate::lower::Lowerer;
use crate::lower::data::term::Term;
use crate::lower::error::Fallible;
use crate::lower::places::names::nearest;

/// Methods that change a list or a dict in place.
const MUTATING: &[&str] = &[
    "append",
    "extend",
    "insert",
    "pop",
    "remove",
    "clear",
    "sort",
    "reverse",
    "update",
    "setdefault",
    "popitem",
];

impl<H: Host> Lowerer<'_, H> {
    pub(crate) fn attribute(
        &mut self,
        term: Term<H::Object>,
        name: &str,
        span: Span,
    ) -> Fallible<Term<H::Object>> {
        match term {
            Term::Static(inner) => self.attribute(*inner, name, span),
            Term::Object(object) => {
                if let Meaning::Expr(id) = self.host.meaning(&object) {
                    let inner = self.expression(id, span)?;
                    return self.attribute(inner, name, span);
                }
                if let Meaning::Struct { .. } = self.host.meaning(&object)
                    && let term @ Term::Struct(_) = self.resolve(object.clone(), span)?
                {
                    return self.attribute(term, name, span);
                }
                if let Meaning::Field = self.host.meaning(&object) {
                    return self.field_attribute(&object, name, span);
                }
                if let Some(of) = self.member_of(&object) {
                    if MUTATING.contains(&name)
                        && matches!(self.host.meaning(&object), Meaning::List | Meaning::Dict)
                    {
                        return Err(self.cannot_mutate(name, span));
                    }
                    return self.member_attribute(of, name, span);
                }
                if self.may_hold(&object, name) {
                    let child = self.host_attribute(&object, name, span)?;
                    if let Some(number) = self.held_number(&object, name, &child, span)? {
                        return Ok(number);
                    }
                }
                let child = self.evaluated_attribute(&object, name, span)?;
                Ok(self.captured(child))
            }
            // A number of a class of the user's may have members.
            Term::Formula(number) if number.formula.as_operand().is_some() => {
                let of = number.formula.as_operand().unwrap_or_default();
                self.member_attribute(of, name, span)
            }
            Term::Struct(of) => self.struct_attribute(of, name, span),
            tensor if self.term_shape(&tensor).is_some() => {
                let shape = self.term_shape(&tensor).expect("it was looked at");
                self.tensor_attribute(tensor, shape, name, span)
            }
            Term::View(_) | Term::Array(_) if name == "fill" => Ok(Term::Fill(Box::new(term))),
            Term::View(view) => self.view_attribute(&view, name, span),
            Term::Structs(array) => self.struct_array_attribute(&array, name, span),
            Term::Array(array) if name == "shape" => Ok(self.array_shape(array)),
            Term::Array(array) if name == "dtype" => Ok(self.array_dtype(array)),
            Term::Array(array) if matches!(name, "grad" | "dual") => self.array_companion(array, name, span),
            // A list of the kernel is a value of the compiler: a method would change a copy that nobody sees.
            Term::List(_) | Term::Dict(_) if MUTATING.contains(&name) => Err(self.cannot_mutate(name, span)),
            literal if literal.is_static() => {
                let object = self.host_object(&literal)?;
                self.evaluated_attribute(&object, name, span).map(Term::Object)
            }
            other => {
                let what = self.describe(&other);
                let diagnostic =
                    self.diagnostic(Code::NoAttribute, span, format!("{what} has no attribute `{name}`"));
                Err(Box::new(match other {
                    Term::Array(_) => diagnostic
                        .help("in a kernel an array has `shape`, `dtype`, `grad`, `dual` and `fill`"),
                    _ => diagnostic,
                }))
            }
        }
    }

    fn cannot_mutate(&self, name: &str, span: Span) -> Box<octants_diag::Diagnostic> {
        self.error_with_help(
            Code::NoAttribute,
            span,
            format!(
                "`{name}` cannot change a list or dict of a kernel: its contents are fixed while compiling"
            ),
            "build it at once, with a literal or a comprehension over `oc.static(...)`",
        )
    }

    /// The type of the scalars that an array's elements consist of.
    pub(crate) fn array_dtype(&self, array: Value) -> Term<H::Object> {
        let Type::Array(ty) = self.kernel.ty(array) else { return Term::None };
        ty.elem.elem().map_or(Term::None, |scalar| Term::Object(self.host.make_dtype(scalar)))
    }

    pub(crate) fn host_attribute(
        &mut self,
        object: &H::Object,
        name: &str,
        span: Span,
    ) -> Fallible<H::Object> {
        let host = self.host;
        let found = host.getattr(object, name, self);
        self.attribute_found(object, name, found, span)
    }

    /// An attribute of an object that is no member.
    fn evaluated_attribute(&mut self, object: &H::Object, name: &str, span: Span) -> Fallible<H::Object> {
        let host = self.host;
        if let Meaning::Ndarray = host.meaning(object) {
            // Says that the array must be an argument.
            self.resolve(object.clone(), span)?;
        }
        let found = self.evaluating(span, |lowerer| host.evaluate_attribute(object, name, lowerer));
        self.attribute_found(object, name, found, span)
    }

    fn attribute_found(
        &mut self,
        object: &H::Object,
        name: &str,
        found: HostResult<H::Object>,
        span: Span,
    ) -> Fallible<H::Object> {
        let host = self.host;
        match found {
            Ok(object) => Ok(object),
            Err(exception) if exception.type_name == "AttributeError" => {
                let mut diagnostic = self.diagnostic(
                    Code::NoAttribute,
                    span,
                    format!("AttributeError: {}", exception.message),
                );
                diagnostic.cause = exception.cause;
                Err(Box::new(match nearest(host.attributes(object), name) {
                    Some(known) => diagnostic.help(format!("did you mean `{known}`?")),
                    None => diagnostic,
                }))
            }
            Err(exception) => Err(self.host_error(exception, span)),
        }
    }
}
