//! Between host objects and terms.

use octants_diag::{Code, Span};

use super::fold;
use crate::dependency::Role;
use crate::host::{ArgumentArray, ElementAnnotation, ExprId, Host, Meaning};
use crate::lower::Lowerer;
use crate::lower::data::scope::{AliasKind, Binding};
use crate::lower::data::term::{Struct, Term};
use crate::lower::error::Fallible;

impl<H: Host> Lowerer<'_, H> {
    /// A term as an rvalue: numbers out of host objects, expressions resolved, places loaded.
    pub(crate) fn rvalue(&mut self, term: Term<H::Object>, span: Span) -> Fallible<Term<H::Object>> {
        match term {
            Term::Object(object) => self.resolve(object, span),
            Term::Static(inner) => self.rvalue(*inner, span),
            Term::Formula(_) => Ok(self.pinned(term)),
            Term::Place(place) => Ok(Term::Value(self.load_place(&place, span))),
            Term::Entries(entries) => Ok(Term::Value(self.load_entries(&entries, span))),
            Term::Choice(choice) => Ok(Term::Value(self.load_choice(&choice, span))),
            Term::Encoded(place) => self.load_encoded(&place, span),
            Term::Struct(of) => {
                let mut members = Vec::with_capacity(of.members.len());
                for (name, member) in of.members {
                    members.push((name, self.loaded(member, span)?));
                }
                Ok(Term::Struct(Struct { members, ty: of.ty, in_parallel: of.in_parallel }))
            }
            Term::Slice(_) => Err(self.stray_slice(span)),
            Term::Outer(..) => Err(self.stray_outer(span)),
            other => Ok(other),
        }
    }

    /// A host object as a literal or an expression, where it is one.
    pub(crate) fn resolve(&mut self, object: H::Object, span: Span) -> Fallible<Term<H::Object>> {
        match self.host.meaning(&object) {
            Meaning::None => Ok(Term::None),
            Meaning::Bool(value) => Ok(Term::Bool(value)),
            Meaning::Int(value) => Ok(Term::Int(value)),
            Meaning::Float(value) => Ok(Term::Float(value)),
            Meaning::Str(text) => Ok(Term::Str(text.into())),
            Meaning::Expr(id) => {
                let term = self.expression(id, span)?;
                self.rvalue(term, span)
            }
            Meaning::Tensor(constant) if !self.in_static => {
                Ok(Term::Value(self.tensor_constant(&constant, span)))
            }
            Meaning::Struct { members, ty } if !self.in_static => {
                let mut terms = Vec::with_capacity(members.len());
                for (name, member) in members {
                    terms.push((name.into(), self.resolve(member, span)?));
                }
                Ok(self.new_struct(terms, ty))
            }
            Meaning::Ndarray => Err(match self.host.argument_array(&object, ElementAnnotation::Any) {
                Some(ArgumentArray::View(_)) => self.captured_view(span),
                _ => self.captured_array(&object, span),
            }),
            _ => Ok(Term::Object(object)),
        }
    }

    /// Whether a variable of the kernel holds the object: Python code that the kernel calls gave it.
    fn is_made_here(&self, object: &H::Object) -> bool {
        self.frames.iter().any(|frame| {
            frame.visible().any(|name| match frame.lookup(name) {
                Some(Binding::Alias {
                    term: Term::Object(held),
                    kind: AliasKind::Named | AliasKind::Static,
                    ..
                }) => self.host.same(held, object),
                _ => false,
            })
        })
    }

    fn captured_view(&self, span: Span) -> Box<octants_diag::Diagnostic> {
        self.error_with_help(
            Code::CapturedArray,
            span,
            "a BufferView that is not an argument is used in a kernel",
            "pass the view as an argument annotated `oc.BufferView`",
        )
    }

    pub(crate) fn captured_array(&mut self, array: &H::Object, span: Span) -> Box<octants_diag::Diagnostic> {
        if self.is_made_here(array) {
            return self.error_with_help(
                Code::CapturedArray,
                span,
                "this array was made while the kernel was being compiled: it is no memory of the kernel's",
                "make a vector or a matrix: `oc.Vector.zero(oc.f32, 3)`, `oc.Matrix([[...], [...]])`; larger arrays are arguments",
            );
        }
        self.error_with_help(
            Code::CapturedArray,
            span,
            "an array that is not an argument is used in a kernel",
            "pass the array as an argument annotated `oc.types.ndarray()`",
        )
    }

    /// What an expression held by host code stands for.
    pub(crate) fn expression(&mut self, id: ExprId, span: Span) -> Fallible<Term<H::Object>> {
        let term = if id.trace == self.trace { self.exprs.get(id.index as usize).cloned() } else { None };
        term.ok_or_else(|| {
            self.error_with_help(
                Code::StaticTrace,
                span,
                "this expression belongs to another compilation",
                "an expression cannot be kept in a global and used in a later kernel",
            )
        })
    }

    /// The host object for a term; run-time values become expressions.
    pub(crate) fn host_object(&mut self, term: &Term<H::Object>) -> Fallible<H::Object> {
        let host = self.host;
        Ok(match term {
            Term::None | Term::Nothing(_) => host.make_none(),
            Term::Bool(value) => host.make_bool(*value),
            Term::Int(value) => host.make_int(*value),
            Term::Float(value) => host.make_float(*value),
            Term::Str(text) => host.make_str(text),
            Term::Formula(number) => self.pinned_object(number),
            Term::Object(object) if self.member_of(object).is_some() => {
                match self.exposed(term, self.call_span)? {
                    Term::Object(object) => object,
                    // A list may hold itself.
                    _ if self.exposure_depth >= 16 => object.clone(),
                    copied => {
                        self.exposure_depth += 1;
                        let made = self.host_object(&copied);
                        self.exposure_depth -= 1;
                        made?
                    }
                }
            }
            Term::Object(object) => object.clone(),
            Term::Static(inner) => self.host_object(inner)?,
            Term::Tuple(items) => host.make_tuple(self.host_objects(items)?),
            Term::List(items) => host.make_list(self.host_objects(items)?),
            Term::Dict(items) => {
                let pairs = items
                    .iter()
                    .map(|(key, value)| Ok((self.host_object(key)?, self.host_object(value)?)))
                    .collect::<Fallible<Vec<_>>>()?;
                host.make_dict(pairs).map_err(|exception| self.host_error(exception, self.call_span))?
            }
            Term::Value(_)
            | Term::Place(_)
            | Term::Entries(_)
            | Term::Choice(_)
            | Term::Sublist(_)
            | Term::Encoded(_)
            | Term::Text(_)
            | Term::Struct(_)
            | Term::Method(_)
            | Term::Fill(_)
            | Term::Array(_)
            | Term::View(_)
            | Term::Shape(_)
            | Term::Index(_)
            | Term::Range(..)
            | Term::Ndrange(..)
            | Term::Structs(_)
            | Term::Slice(_)
            | Term::Outer(..)
            | Term::Grouped(_) => {
                let index = self.exprs.len() as u32;
                self.exprs.push(term.clone());
                host.make_expr(ExprId { trace: self.trace, index })
            }
        })
    }

    pub(crate) fn host_objects(&mut self, terms: &[Term<H::Object>]) -> Fallible<Vec<H::Object>> {
        terms.iter().map(|term| self.host_object(term)).collect()
    }

    /// The truth of something known at compile time, as Python sees it.
    pub(crate) fn static_truth(&mut self, term: &Term<H::Object>, span: Span) -> Fallible<bool> {
        match self.rvalue(term.clone(), span)? {
            Term::Object(object) => {
                self.exposed(&Term::Object(object.clone()), span)?;
                let host = self.host;
                self.evaluating(span, |lowerer| host.truth(&object, lowerer))
                    .map_err(|exception| self.host_error(exception, span))
            }
            Term::Array(_) => Ok(true),
            rvalue => match fold::truth(&rvalue) {
                Some(truth) => Ok(truth),
                None => Err(self.not_static(span)),
            },
        }
    }

    pub(crate) fn not_static(&self, span: Span) -> Box<octants_diag::Diagnostic> {
        self.must_be_constant("arguments of `oc.static`", span)
    }

    /// Some things, in the plural, are known at compile time only.
    pub(crate) fn must_be_constant(&self, what: &str, span: Span) -> Box<octants_diag::Diagnostic> {
        Box::new(
            self.diagnostic(Code::NotStatic, span, format!("{what} must be compile-time constants"))
                .marked("known only when the kernel runs")
                .help("use literals, globals, template arguments or variables of static loops"),
        )
    }

    /// The items of a sequence whose length is known at compile time; `None` if it is none.
    pub(crate) fn items(
        &mut self,
        term: &Term<H::Object>,
        span: Span,
    ) -> Fallible<Option<Vec<Term<H::Object>>>> {
        Ok(match term {
            Term::Tuple(items) | Term::List(items) => Some(items.clone()),
            Term::Dict(items) => Some(items.iter().map(|(key, _)| key.clone()).collect()),
            Term::Static(inner) => self.items(inner, span)?,
            Term::Shape(array) => {
                let rank = self.rank(*array);
                Some((0..rank).map(|axis| Term::Value(self.at(span).extent(*array, axis))).collect())
            }
            Term::Index(values) => Some(values.iter().map(|&value| Term::Value(value)).collect()),
            Term::Value(value) => self.tensor_items(*value, span),
            Term::Array(array) => self.host_array_items(*array, span)?,
            Term::Struct(of) => Some(of.members.iter().map(|(_, member)| member.clone()).collect()),
            tensor @ (Term::Place(_) | Term::Entries(_) | Term::Encoded(_))
                if self.term_shape(tensor).is_some() =>
            {
                let value = self.value(tensor.clone(), span)?;
                self.tensor_items(value, span)
            }
            Term::Object(object) => match self.host.meaning(object) {
                Meaning::Tuple | Meaning::List => {
                    let items = self.host.items(object);
                    if let Some(of) = self.member_of(object) {
                        let keys = (0..items.len()).map(|at| self.host.make_int(at as i128));
                        let keys: Vec<_> = keys.collect();
                        let items = keys.into_iter().map(|key| self.member_item(of, key, span));
                        return Ok(Some(items.collect::<Fallible<_>>()?));
                    }
                    self.host.observe(object);
                    Some(items.into_iter().map(Term::Object).collect())
                }
                Meaning::Dict => {
                    match self.member_of(object) {
                        Some(of) if self.members[of].dependency.role == Role::Walked => {
                            self.members[of].dependency.role = Role::Keys;
                        }
                        Some(_) => {}
                        None => self.host.observe(object),
                    }
                    Some(self.host.pairs(object).into_iter().map(|(key, _)| Term::Object(key)).collect())
                }
                Meaning::Expr(id) => {
                    let inner = self.expression(id, span)?;
                    self.items(&inner, span)?
                }
                _ => None,
            },
            _ => None,
        })
    }
}
