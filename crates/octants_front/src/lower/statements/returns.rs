//! `return`: what a kernel or func gives back.

use octants_diag::{Code, Diagnostic, Span};
use octants_ir::{Data, TensorType, Value};

use crate::ast::{Expr, Function};
use crate::host::{Annotation, Host};
use crate::lower::Lowerer;
use crate::lower::data::term::Term;
use crate::lower::error::Fallible;
use crate::lower::values::convert::describe_data;
use crate::signature::{Returned, Returns};

impl<H: Host> Lowerer<'_, H> {
    /// A `return` statement; everything after it in its function is unreachable.
    pub(crate) fn return_statement(&mut self, value: Option<&Expr>, span: Span) -> Fallible<()> {
        if let Some(exit) = self.frame().exit.clone() {
            return self.leave_function(&exit, value, span);
        }
        if self.frame().depth > 0 {
            return Err(self.error_with_help(
                Code::ReturnPlace,
                span,
                "Return inside non-static if/for/while is not supported",
                "assign to a variable inside the block and return it at the end of the function",
            ));
        }
        let (term, at) = match value {
            Some(expr) => (self.operand(expr)?, expr.span),
            None => (Term::None, span),
        };
        self.frame_mut().returned = Some((term, at));
        Ok(())
    }

    pub(crate) fn return_annotation(&mut self, object: &H::Object, span: Span) -> Fallible<Annotation> {
        let found = self.host.annotation_of(object, "return");
        let found = found.map_err(|exception| self.host_error(exception, span))?;
        Ok(found.map_or(Annotation::None, |annotation| self.host.annotation(&annotation)))
    }

    /// Ends the kernel's body with its `return`.
    pub(crate) fn kernel_returns(&mut self) -> Fallible<Returns> {
        let tree = self.frame().function.clone();
        let object = self.frame().object.clone();
        let annotation = match tree.returns {
            Some(span) => self.return_annotation(&object, span)?,
            None => Annotation::None,
        };
        let returned = self.frame_mut().returned.take();
        let empty = returned.as_ref().and_then(|(term, at)| matches!(term, Term::None).then_some(*at));
        let returned = match returned {
            Some((Term::None, _)) => None,
            Some((Term::Nothing(_), _)) if annotation == Annotation::None => None,
            returned => returned,
        };
        let annotation_span = tree.returns.unwrap_or(tree.name_span);
        let (values, returns, at) = match (annotation, returned) {
            (Annotation::None, None) => (Vec::new(), Returns::Nothing, tree.name_span),
            (Annotation::None, Some((_, at))) => {
                return Err(Box::new(
                    self.diagnostic(
                        Code::ReturnWithoutAnnotation,
                        at,
                        "A kernel with a return value must be annotated with a return type",
                    )
                    .label(tree.name_span, "has no return annotation")
                    .help(format!("write `def {}(...) -> oc.f32:` with the type that it returns", tree.name)),
                ));
            }
            (_, None) => return Err(self.missing_return(&tree, empty)),
            (Annotation::Tuple(items), Some((term, at))) => {
                let terms = self.returned_items(&term, items.len(), at, annotation_span)?;
                let mut values = Vec::new();
                let mut returned = Vec::new();
                for (item, term) in items.iter().zip(terms) {
                    let term = self.returned_value(item, term, at, annotation_span)?;
                    returned.push(self.flattened(&term, at, &mut values));
                }
                (values, Returns::Tuple(returned), at)
            }
            (annotation, Some((term, at))) => {
                let term = self.returned_value(&annotation, term, at, annotation_span)?;
                let mut values = Vec::new();
                let returned = self.flattened(&term, at, &mut values);
                (values, Returns::One(returned), at)
            }
        };
        self.kernel.results = values.iter().map(|&value| self.data(value)).collect();
        self.at(at).returns(&values);
        Ok(returns)
    }

    /// A function that is annotated returns nothing: `empty` is where it does so.
    fn missing_return(&self, tree: &Function, empty: Option<Span>) -> Box<octants_diag::Diagnostic> {
        let noun = if self.frames.len() == 1 { "Kernel" } else { "Function" };
        let span = tree.returns.unwrap_or(tree.name_span);
        if let Some(empty) = empty {
            let message = format!("{noun} has a return type, but this returns no value");
            return Box::new(
                self.diagnostic(Code::MissingReturn, empty, message)
                    .label(span, "annotated here")
                    .help("return a value, or remove the annotation"),
            );
        }
        self.error_with_help(
            Code::MissingReturn,
            span,
            format!("{noun} has a return type but does not have a return statement"),
            "return a value, or remove the annotation",
        )
    }

    pub(crate) fn returned_items(
        &mut self,
        term: &Term<H::Object>,
        count: usize,
        at: Span,
        annotation: Span,
    ) -> Fallible<Vec<Term<H::Object>>> {
        let items = self.items(term, at)?.unwrap_or_else(|| vec![term.clone()]);
        if items.len() == count {
            return Ok(items);
        }
        Err(Box::new(
            self.diagnostic(
                Code::ReturnCount,
                at,
                match items.len() {
                    1 => format!("1 value is returned, but the annotation has {count}"),
                    several => format!("{several} values are returned, but the annotation has {count}"),
                },
            )
            .label(annotation, "annotated here"),
        ))
    }

    pub(crate) fn returned_value(
        &mut self,
        annotation: &Annotation,
        term: Term<H::Object>,
        at: Span,
        annotation_span: Span,
    ) -> Fallible<Term<H::Object>> {
        let rvalue = self.loaded(term, at)?;
        if let Term::Nothing(function) = &rvalue {
            return Err(self.no_value(function, at));
        }
        if let Annotation::Struct(wanted) = annotation
            && let Some(given) = self.struct_members(&rvalue, at)?
            && given.len() == wanted.len()
            && wanted.iter().all(|(name, _)| given.iter().any(|(known, _)| **known == **name))
        {
            let mut members = Vec::new();
            for (name, annotation) in wanted {
                for (known, term) in &given {
                    if **known == **name {
                        let term = self.returned_value(annotation, term.clone(), at, annotation_span)?;
                        members.push((known.clone(), term));
                    }
                }
            }
            let ty = if let Term::Struct(of) = rvalue { of.ty } else { None };
            return Ok(self.new_struct(members, ty));
        }
        let wanted = match annotation {
            Annotation::Shape(shape) => self
                .tensor_operand(&rvalue, at)?
                .and_then(|value| self.tensor_type(value))
                .map(|given| Data::Tensor(TensorType { elem: given.elem, shape: *shape })),
            annotation => self.data_of(annotation),
        };
        if let Some(Data::Tensor(tensor)) = wanted {
            return self.returned_tensor(tensor, rvalue, at, annotation_span);
        }
        // A func that is inlined casts entry by entry, as its parameters do.
        let is_inlined = self.frames.len() > 1 && self.frame().exit.is_none();
        let fits = match (&rvalue, wanted) {
            (Term::Value(value), Some(data)) => {
                data.scalar().is_some() && (is_inlined || self.data(*value).scalar().is_some())
            }
            (Term::Bool(_) | Term::Int(_) | Term::Float(_) | Term::Formula(_), Some(Data::Scalar(_))) => true,
            _ => false,
        };
        match wanted.and_then(Data::elem) {
            Some(elem) if fits => self.value_stored_as(rvalue, elem, at).map(Term::Value),
            _ => {
                let what = self.describe(&rvalue);
                let wanted = wanted.map_or_else(|| "what the annotation says".to_owned(), describe_data);
                Err(Box::new(
                    self.diagnostic(
                        Code::ReturnType,
                        at,
                        format!("{what} is returned where {wanted} is annotated"),
                    )
                    .label(annotation_span, "annotated here"),
                ))
            }
        }
    }

    /// A vector or matrix of the annotated shape. Reals are not made integers.
    fn returned_tensor(
        &mut self,
        tensor: TensorType,
        rvalue: Term<H::Object>,
        at: Span,
        annotation_span: Span,
    ) -> Fallible<Term<H::Object>> {
        let given = match self.tensor_operand(&rvalue, at)? {
            None if matches!(rvalue, Term::List(_) | Term::Tuple(_)) => {
                return self.typed_tensor(tensor, vec![rvalue], at).map(Term::Value);
            }
            given => given.and_then(|value| Some((value, self.tensor_type(value)?))),
        };
        match given {
            Some((value, ty))
                if ty.shape == tensor.shape && (ty.elem.is_integral() || tensor.elem.is_real()) =>
            {
                Ok(Term::Value(self.cast(value, tensor.elem, at)))
            }
            _ => {
                let what = self.describe(&rvalue);
                let wanted = describe_data(Data::Tensor(tensor));
                Err(Box::new(
                    self.diagnostic(
                        Code::ReturnedTensor,
                        at,
                        format!("{what} is returned where {wanted} is annotated"),
                    )
                    .label(annotation_span, "annotated here"),
                ))
            }
        }
    }

    /// Appends the scalars of a returned value.
    pub(crate) fn flattened(
        &mut self,
        term: &Term<H::Object>,
        span: Span,
        values: &mut Vec<Value>,
    ) -> Returned {
        match term {
            Term::Struct(of) => Returned::Struct(
                of.members
                    .iter()
                    .map(|(name, member)| (name.to_string(), self.flattened(member, span, values)))
                    .collect(),
            ),
            Term::Value(value) => {
                if let Data::Tensor(tensor) = self.data(*value) {
                    values.extend(self.tensor_entries(*value, span));
                    Returned::Tensor(tensor)
                } else {
                    values.push(*value);
                    Returned::Scalar(self.elem(*value))
                }
            }
            _ => Returned::Struct(Vec::new()),
        }
    }

    /// What an inlined func gives to its caller.
    pub(crate) fn func_returns(&mut self, object: &H::Object, tree: &Function) -> Fallible<Term<H::Object>> {
        let annotation = match tree.returns {
            Some(span) => self.return_annotation(object, span)?,
            None => Annotation::None,
        };
        let annotation_span = tree.returns.unwrap_or(tree.name_span);
        let returned = self.frame_mut().returned.take();
        match (&annotation, returned) {
            (
                Annotation::None | Annotation::Other(_) | Annotation::Optional(_) | Annotation::Template,
                returned,
            ) => Ok(returned.map_or(Term::Nothing(tree.name.clone()), |(term, _)| term)),
            (_, None) => Err(self.missing_return(tree, None)),
            (_, Some((Term::None, at))) => Err(self.missing_return(tree, Some(at))),
            (Annotation::Tuple(items), Some((term, at))) => {
                let terms = self.returned_items(&term, items.len(), at, annotation_span)?;
                let mut values = Vec::new();
                for (item, term) in items.iter().zip(terms) {
                    values.push(self.returned_to_caller(item, term, at, annotation_span)?);
                }
                Ok(Term::Tuple(values))
            }
            (annotation, Some((term, at))) => self.returned_to_caller(annotation, term, at, annotation_span),
        }
    }

    /// What an inlined func returns for one annotation. That of a vector, matrix or struct is a hint: what does not fit it is returned as it is.
    fn returned_to_caller(
        &mut self,
        annotation: &Annotation,
        term: Term<H::Object>,
        at: Span,
        annotation_span: Span,
    ) -> Fallible<Term<H::Object>> {
        let is_hint =
            matches!(annotation, Annotation::Tensor(..) | Annotation::Shape(_) | Annotation::Struct(_));
        match self.returned_value(annotation, term.clone(), at, annotation_span) {
            Err(refusal) if is_hint && matches!(refusal.code, Code::ReturnType | Code::ReturnedTensor) => {
                self.warn(Diagnostic { code: Code::IgnoredAnnotation, ..*refusal });
                Ok(term)
            }
            result => result,
        }
    }
}
