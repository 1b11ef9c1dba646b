//! Inlining an `@oc.func`: its tree is lowered again with its parameters bound to the arguments.

use std::sync::Arc;

use octants_diag::{Code, Span};
use octants_ir::{Data, TensorShape};

use crate::ast::{Function, Param};
use crate::host::{Annotation, Host, describe_shape};
use crate::lower::Lowerer;
use crate::lower::data::argument::Argument;
use crate::lower::data::scope::{AliasKind, Binding, Call, Frame};
use crate::lower::data::term::Term;
use crate::lower::error::{Fallible, counted};
use crate::signature::source_unavailable;

/// Funcs nested deeper than this are taken for endless recursion. Chosen, not measured.
pub(crate) const MAX_CALL_DEPTH: usize = 100;

impl<H: Host> Lowerer<'_, H> {
    pub(crate) fn inline(
        &mut self,
        object: &H::Object,
        receiver: Option<H::Object>,
        arguments: Vec<Argument<H::Object>>,
        span: Span,
    ) -> Fallible<Term<H::Object>> {
        let receiver = receiver.map(|receiver| (Term::Object(receiver), false));
        self.inline_with(object, receiver, arguments, span)
    }

    /// A method of a value of the kernel, and whether it may change the value.
    pub(crate) fn inline_method(
        &mut self,
        object: &H::Object,
        receiver: (Term<H::Object>, bool),
        arguments: Vec<Argument<H::Object>>,
        span: Span,
    ) -> Fallible<Term<H::Object>> {
        self.inline_with(object, Some(receiver), arguments, span)
    }

    fn inline_with(
        &mut self,
        object: &H::Object,
        receiver: Option<(Term<H::Object>, bool)>,
        arguments: Vec<Argument<H::Object>>,
        span: Span,
    ) -> Fallible<Term<H::Object>> {
        if self.frames.len() >= MAX_CALL_DEPTH {
            return Err(self.too_deep(span));
        }
        let source = self.host.function(object).map_err(|exception| {
            let mut diagnostic = source_unavailable(&exception);
            diagnostic.span = Some(span);
            Box::new(diagnostic)
        })?;
        let tree = self.function_tree(&source)?;
        if !self.at_top_level() && self.host.requires_top_level(object) {
            return Err(self.error_with_help(
                Code::RequiresTopLevel,
                span,
                format!("`{}` can only be called at the top level of a kernel", tree.name),
                "move the call out of the run-time loop or branch",
            ));
        }
        let by_reference = receiver.as_ref().is_some_and(|(_, by_reference)| *by_reference);
        let receiver = receiver.map(|(term, _)| term);
        let bound = self.match_arguments(&tree, object, receiver, arguments, span)?;
        let loc = self.loc(span);
        let mut frame = Frame::new(object.clone(), tree.clone(), Arc::clone(&source.qualname));
        frame.call = Some(Call { span, inlined_at: Some(loc) });
        // Arguments are evaluated and converted in the caller's frame, so that mistakes point at the call.
        let mut bindings = Vec::with_capacity(tree.params.len());
        for (param, argument) in tree.params.iter().zip(bound) {
            bindings.push(if by_reference && bindings.is_empty() {
                Binding::Alias { term: argument.term, kind: AliasKind::Reference, span: argument.span }
            } else {
                self.parameter(object, &tree, param, argument)?
            });
        }
        for (param, binding) in tree.params.iter().zip(bindings) {
            frame.declare(param.name.clone(), binding);
        }
        let in_static = std::mem::replace(&mut self.in_static, false);
        let next_loop = self.next_loop.take();
        self.frames.push(frame);
        let result = self.func_body(object, &tree);
        self.unused_loop_config();
        self.frames.pop();
        self.in_static = in_static;
        self.next_loop = next_loop;
        result
    }

    fn func_body(&mut self, object: &H::Object, tree: &Arc<Function>) -> Fallible<Term<H::Object>> {
        self.statements(&tree.body)?;
        self.func_returns(object, tree)
    }

    pub(crate) fn too_deep(&self, span: Span) -> Box<octants_diag::Diagnostic> {
        let name = self.frame().name.clone();
        let mut diagnostic = octants_diag::Diagnostic::new(
            Code::Recursion,
            format!(
                "funcs are compiled into each other more than {MAX_CALL_DEPTH} deep; is `{name}` recursive?"
            ),
        )
        .at(span)
        .help("end the recursion with a compile-time condition: `if oc.static(n > 0): ...`");
        // The whole chain would not help; its start shows how it came about.
        diagnostic.frames = self.calls().into_iter().take(3).collect();
        Box::new(diagnostic)
    }

    /// The number of arguments that a launch passes.
    pub(crate) fn check_argument_count(&self, tree: &Function, count: usize) -> Fallible<()> {
        match tree.params.get(count) {
            Some(param) => Err(self.error(
                Code::MissingArgument,
                param.span,
                format!("Missing argument '{}'", param.name),
            )),
            None if count > tree.params.len() => {
                Err(self.error(Code::TooManyArguments, tree.name_span, "Too many arguments"))
            }
            None => Ok(()),
        }
    }

    /// One argument per parameter, in their order.
    pub(crate) fn match_arguments(
        &mut self,
        tree: &Function,
        object: &H::Object,
        receiver: Option<Term<H::Object>>,
        arguments: Vec<Argument<H::Object>>,
        span: Span,
    ) -> Fallible<Vec<Argument<H::Object>>> {
        let mut slots: Vec<Option<Argument<H::Object>>> = tree.params.iter().map(|_| None).collect();
        let mut next = 0;
        if let Some(receiver) = receiver
            && let Some(slot) = slots.first_mut()
        {
            *slot = Some(Argument { name: None, term: receiver, span, is_literal: false });
            next = 1;
        }
        for argument in arguments {
            let position = match &argument.name {
                None => {
                    next += 1;
                    next - 1
                }
                Some(name) => {
                    let found = tree.params.iter().position(|param| param.name == *name);
                    found.ok_or_else(|| {
                        Box::new(
                            self.diagnostic(
                                Code::UnexpectedArgument,
                                argument.span,
                                format!("Unexpected argument '{name}'"),
                            )
                            .label(tree.name_span, format!("`{}` has no such parameter", tree.name)),
                        )
                    })?
                }
            };
            match slots.get_mut(position) {
                None => {
                    return Err(Box::new(
                        self.diagnostic(Code::TooManyArguments, argument.span, "Too many arguments").label(
                            tree.name_span,
                            format!("takes {}", counted(tree.params.len(), "argument", "arguments")),
                        ),
                    ));
                }
                Some(Some(_)) => {
                    let name = &tree.params[position].name;
                    return Err(self.error(
                        Code::MultipleValues,
                        argument.span,
                        format!("Multiple values for argument '{name}'"),
                    ));
                }
                Some(empty) => *empty = Some(argument),
            }
        }
        slots
            .into_iter()
            .zip(&tree.params)
            .map(|(slot, param)| match slot {
                Some(argument) => Ok(argument),
                None => self.default_argument(tree, object, param, span),
            })
            .collect()
    }

    fn default_argument(
        &mut self,
        tree: &Function,
        object: &H::Object,
        param: &Param,
        span: Span,
    ) -> Fallible<Argument<H::Object>> {
        let default = match param.default {
            Some(_) => self.host.default_of(object, &param.name),
            None => Ok(None),
        };
        match default.map_err(|exception| self.host_error(exception, span))? {
            Some(object) => Ok(Argument { name: None, term: Term::Object(object), span, is_literal: false }),
            None => Err(Box::new(
                self.diagnostic(Code::MissingArgument, span, format!("Missing argument '{}'", param.name))
                    .label(param.span, format!("a parameter of `{}`", tree.name)),
            )),
        }
    }

    /// What a parameter is bound to: a copy of a number, whatever was passed otherwise.
    fn parameter(
        &mut self,
        object: &H::Object,
        tree: &Function,
        param: &Param,
        argument: Argument<H::Object>,
    ) -> Fallible<Binding<H::Object>> {
        let span = argument.span;
        let annotation = if param.annotation.is_some() {
            let found = self.host.annotation_of(object, &param.name);
            let mut found = found.map_err(|exception| self.host_error(exception, span))?;
            if let Some(ty) = &found
                && let Annotation::Optional(_) = self.host.annotation(ty)
            {
                if let Term::None = self.rvalue(argument.term.clone(), span)? {
                    return Ok(Binding::Alias { term: Term::None, kind: AliasKind::Reference, span });
                }
                found = self.host.optional(ty);
            }
            if let Some(ty) = &found
                && let annotation @ Annotation::Struct(_) = self.host.annotation(ty)
            {
                let term = self.struct_argument(argument, ty, &annotation, param)?;
                let term = self.copied(term, span)?;
                return Ok(Binding::Alias { term, kind: AliasKind::Named, span });
            }
            found.map(|annotation| self.host.annotation(&annotation))
        } else {
            None
        };
        let term = match &annotation {
            Some(Annotation::Template) => {
                return Ok(Binding::Alias { term: argument.term, kind: AliasKind::Reference, span });
            }
            Some(annotation @ (Annotation::Array(_) | Annotation::View(_) | Annotation::AnyTensor)) => {
                self.array_argument(argument, annotation, param)?
            }
            Some(Annotation::Shape(shape)) => self.argument_of_shape(argument, *shape, param)?,
            Some(annotation) => match self.data_of(annotation) {
                Some(data) => self.argument_as(argument, data, param)?,
                None => self.loaded(argument.term, span)?,
            },
            None => self.loaded(argument.term, span)?,
        };
        if let Term::Struct(_) = term {
            let term = self.copied(term, span)?;
            return Ok(Binding::Alias { term, kind: AliasKind::Named, span });
        }
        // A variable only where the body assigns to it.
        let is_number =
            matches!(term, Term::Value(_) | Term::Index(_)) || crate::lower::values::fold::is_number(&term);
        if is_number && tree.assigns(&param.name) {
            let value = self.value(term, span)?;
            let place = self.new_local(value, span);
            return Ok(Binding::Variable { place: place.base, in_parallel: self.in_parallel, span });
        }
        // A number without annotation is a run-time value, even if the caller wrote a literal.
        let term = if is_number && !matches!(term, Term::Index(_)) {
            Term::Value(self.value(term, span)?)
        } else {
            term
        };
        let kind = if is_number { AliasKind::Constant } else { AliasKind::Reference };
        Ok(Binding::Alias { term, kind, span })
    }

    /// An argument that must be a struct of the annotated type.
    fn struct_argument(
        &mut self,
        argument: Argument<H::Object>,
        ty: &H::Object,
        annotation: &Annotation,
        param: &Param,
    ) -> Fallible<Term<H::Object>> {
        let span = argument.span;
        let given = self.struct_members(&argument.term, span)?;
        let fits = match (&given, annotation) {
            (Some(given), Annotation::Struct(wanted)) => {
                given.len() == wanted.len()
                    && wanted.iter().all(|(name, _)| given.iter().any(|(known, _)| **known == **name))
            }
            _ => false,
        };
        if fits {
            return self.typed_member(ty, argument.term, span);
        }
        let what = self.describe(&argument.term);
        Err(Box::new(
            self.diagnostic(
                Code::ArgumentKind,
                span,
                format!("argument '{}' must be a struct with the annotated members, not {what}", param.name),
            )
            .label(param.span, "annotated here"),
        ))
    }

    /// A vector or matrix of the annotated shape, with the entries that it has.
    fn argument_of_shape(
        &mut self,
        argument: Argument<H::Object>,
        shape: TensorShape,
        param: &Param,
    ) -> Fallible<Term<H::Object>> {
        let span = argument.span;
        let rvalue = self.rvalue(argument.term, span)?;
        if let Some(value) = self.tensor_operand(&rvalue, span)?
            && self.data(value).tensor_shape() == Some(shape)
        {
            return Ok(Term::Value(value));
        }
        let (what, wanted) = (self.describe(&rvalue), describe_shape(shape));
        let message = format!("argument '{}' must be {wanted}, not {what}", param.name);
        Err(Box::new(self.diagnostic(Code::ArgumentShape, span, message).label(param.span, "annotated here")))
    }

    fn argument_as(
        &mut self,
        argument: Argument<H::Object>,
        data: Data,
        param: &Param,
    ) -> Fallible<Term<H::Object>> {
        let span = argument.span;
        let mut rvalue = self.loaded(argument.term, span)?;
        if let (Data::Tensor(_), Some(value)) = (data, self.tensor_operand(&rvalue, span)?) {
            rvalue = Term::Value(value);
        }
        let fits = match (&rvalue, data) {
            // Entry by entry.
            (Term::Value(_), Data::Scalar(_)) => true,
            (Term::Value(value), _) => self.data(*value).tensor_shape() == data.tensor_shape(),
            (Term::Bool(_) | Term::Int(_) | Term::Float(_) | Term::Formula(_), Data::Scalar(_)) => true,
            _ => false,
        };
        match data.elem() {
            Some(elem) if fits => self.value_as(rvalue, elem, span).map(Term::Value),
            _ => {
                let what = self.describe(&rvalue);
                let wanted = crate::lower::values::convert::describe_data(data);
                let code = match data {
                    Data::Tensor(_) => Code::ArgumentShape,
                    Data::Scalar(_) | Data::Struct(_) => Code::ArgumentKind,
                };
                Err(Box::new(
                    self.diagnostic(
                        code,
                        span,
                        format!("argument '{}' must be {wanted}, not {what}", param.name),
                    )
                    .label(param.span, "annotated here"),
                ))
            }
        }
    }
}
