//! Attributes: of arrays, and of host objects at compile time.

use octants_diag::{Code, Span};
use octants_ir::{Type, Value};

use crate::host::{Host, Meaning};
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
                    return self.member_attribute(of, name, span);
                }
                let child = self.host_attribute(&object, name, span)?;
                match self.held_number(&object, name, &child, span)? {
                    Some(number) => Ok(number),
                    None => Ok(self.captured(child)),
                }
            }
            Term::Struct(of) => self.struct_attribute(of, name, span),
            tensor if self.term_shape(&tensor).is_some() => {
                let shape = self.term_shape(&tensor).expect("it was looked at");
                self.tensor_attribute(tensor, shape, name, span)
            }
            Term::View(_) | Term::Array(_) if name == "fill" => Ok(Term::Fill(Box::new(term))),
            Term::View(view) => self.view_attribute(&view, name, span),
            Term::Array(array) if name == "shape" => Ok(Term::Shape(array)),
            Term::Array(array) if name == "dtype" => Ok(self.array_dtype(array)),
            Term::Array(array) if matches!(name, "grad" | "dual") => self.array_companion(array, name, span),
            // A list of the kernel is a value of the compiler: a method would change a copy that nobody sees.
            Term::List(_) | Term::Dict(_) if MUTATING.contains(&name) => Err(Box::new(
                self.diagnostic(
                    Code::NoAttribute,
                    span,
                    format!("`{name}` cannot change a list or dict of a kernel: its contents are fixed while compiling"),
                )
                .help("build it at once, with a literal or a comprehension over `oc.static(...)`"),
            )),
            literal if literal.is_static() => {
                let object = self.host_object(&literal)?;
                self.host_attribute(&object, name, span).map(Term::Object)
            }
            other => {
                let what = self.describe(&other);
                let diagnostic =
                    self.diagnostic(Code::NoAttribute, span, format!("{what} has no attribute `{name}`"));
                Err(Box::new(match other {
                    Term::Array(_) => diagnostic.help("in a kernel an array has `shape`, `dtype`, `grad`, `dual` and `fill`"),
                    _ => diagnostic,
                }))
            }
        }
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
        if matches!(self.host.meaning(object), Meaning::Ndarray) {
            // Says that the array must be an argument.
            self.resolve(object.clone(), span)?;
        }
        let host = self.host;
        match host.getattr(object, name, self) {
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
