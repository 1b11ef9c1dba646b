//! Calls of an `@oc.real_func`: compiled once per kind of arguments as a function of its own, so it may call itself and return anywhere.
//!
//! A vector, matrix or struct is passed as its scalars. A parameter `oc.ref(T)` is a variable of the function's own that is copied
//! in before the call and out after it, as one more parameter and one more result.
//!
//! There are no jumps: a `return` stores its values in variables and raises a flag; what follows is skipped while the flag is up.

use std::sync::Arc;

use octants_diag::{Code, Span};
use octants_ir::{Const, Data, Func, Value};

use super::func::MAX_CALL_DEPTH;
use crate::ast::{Expr, Stmt};
use crate::host::{Annotation, Host};
use crate::lower::Lowerer;
use crate::lower::data::argument::Argument;
use crate::lower::data::blocks::KERNEL_BODY;
use crate::lower::data::flow::{Continuation, Exit, Flow};
use crate::lower::data::function::{Instance, Key};
use crate::lower::data::scope::{AliasKind, Binding, Call, Frame};
use crate::lower::data::term::Term;
use crate::lower::error::Fallible;
use crate::lower::statements::exits::{always_returns, may_return};
use crate::signature::source_unavailable;

/// What is passed for one parameter.
enum Passed<O> {
    Values(Vec<Value>),
    /// A variable that gets its value back.
    Reference(Term<O>, Vec<Value>),
    Static,
}

impl<H: Host> Lowerer<'_, H> {
    pub(crate) fn call_function(
        &mut self,
        object: &H::Object,
        receiver: Option<H::Object>,
        arguments: Vec<Argument<H::Object>>,
        span: Span,
    ) -> Fallible<Term<H::Object>> {
        let source = self.host.function(object).map_err(|exception| {
            let mut diagnostic = source_unavailable(&exception);
            diagnostic.span = Some(span);
            Box::new(diagnostic)
        })?;
        let tree = self.function_tree(&source)?;
        let is_method = receiver.is_some();
        let arguments = self.match_arguments(&tree, object, receiver.map(Term::Object), arguments, span)?;
        let mut key = Vec::new();
        let mut passed = Vec::new();
        let mut types = Vec::new();
        for (index, (param, argument)) in tree.params.iter().zip(arguments).enumerate() {
            let at = argument.span;
            let found = self.host.annotation_of(object, &param.name);
            let ty = found.map_err(|exception| self.host_error(exception, at))?;
            let mut annotation = ty.as_ref().map(|ty| self.host.annotation(ty));
            if is_method && index == 0 {
                annotation = Some(Annotation::Template);
            }
            match (&annotation, &ty) {
                (Some(Annotation::Template), _) => {
                    let term = match argument.term {
                        Term::Static(inner) => *inner,
                        other => other,
                    };
                    let term = self.pinned(term);
                    if self.shared_extents(&term).is_some() {
                        return Err(self.shared_argument(&tree.name, at));
                    }
                    if !term.is_static() {
                        let what = format!("template arguments of `{}`", tree.name);
                        let error = self.must_be_constant(&what, at);
                        return Err(match term {
                            Term::View(_) => Box::new(error.help("annotate the parameter `oc.BufferView`")),
                            Term::Array(_) => {
                                Box::new(error.help("annotate the parameter `oc.types.ndarray()`"))
                            }
                            _ => error,
                        });
                    }
                    key.push(Key::Static(term));
                    passed.push(Passed::Static);
                }
                (Some(wanted @ (Annotation::Array(_) | Annotation::View(_) | Annotation::AnyTensor)), _) => {
                    self.refuse_shared_argument(&argument, &tree.name)?;
                    match self.array_argument(argument, wanted, param)? {
                        Term::Array(array) => {
                            key.push(Key::Array(self.kernel.ty(array)));
                            passed.push(Passed::Values(vec![array]));
                        }
                        Term::View(view) => {
                            key.push(Key::View(self.kernel.ty(view.array)));
                            passed.push(Passed::Values(self.view_values(&view, at)));
                        }
                        // A field, or nothing.
                        known => {
                            key.push(Key::Static(known));
                            passed.push(Passed::Static);
                        }
                    }
                }
                (Some(Annotation::Ref), Some(ty)) => {
                    let inner = self.referred(ty, at)?;
                    let mut values = Vec::new();
                    let term = self.typed_member(&inner, argument.term.clone(), at)?;
                    self.flattened(&term, at, &mut values);
                    key.push(Key::Value);
                    passed.push(Passed::Reference(argument.term, values));
                }
                (
                    Some(wanted @ (Annotation::Scalar(_) | Annotation::Tensor(..) | Annotation::Struct(_))),
                    Some(ty),
                ) => {
                    let mut values = Vec::new();
                    let term = match self.data_of(wanted) {
                        Some(Data::Tensor(tensor)) => self.reshaped(argument.term, tensor.shape, at)?,
                        _ => argument.term,
                    };
                    let term = self.typed_member(ty, term, at)?;
                    self.flattened(&term, at, &mut values);
                    key.push(Key::Value);
                    passed.push(Passed::Values(values));
                }
                _ => {
                    return Err(self.error_with_help(
                        Code::MissingAnnotation,
                        param.span,
                        format!("parameter `{}` of real function `{}` needs a type", param.name, tree.name),
                        "for example `x: oc.f32`, `v: oc.math.vec3`, `x: oc.ref(oc.i32)` or `n: oc.template()`",
                    ));
                }
            }
            types.push(ty);
        }
        self.flush_pending()?;
        let instance = match self.known_instance(object, &key) {
            Some(known) => known,
            None => self.new_instance(object, key, &types, span)?,
        };
        let mut operands = Vec::new();
        for one in &passed {
            match one {
                Passed::Values(values) | Passed::Reference(_, values) => operands.extend(values),
                Passed::Static => {}
            }
        }
        let Instance { function, returns, is_tuple, .. } = &self.instances[instance];
        let (function, returns, is_tuple) = (*function, returns.clone(), *is_tuple);
        let results = self.at(span).call(function, &operands);
        let mut results = results.into_iter();
        let mut terms = Vec::new();
        for annotation in &returns {
            terms.push(self.rebuilt(annotation, &mut results, span));
        }
        for (one, ty) in passed.into_iter().zip(&types) {
            if let (Passed::Reference(target, _), Some(ty)) = (one, ty) {
                let inner = self.referred(ty, span)?;
                let annotation = self.host.annotation(&inner);
                let value = self.rebuilt(&annotation, &mut results, span);
                self.store_back(&target, value, span)?;
            }
        }
        Ok(match (terms.len(), is_tuple) {
            (0, false) => Term::Nothing(tree.name.clone()),
            (1, false) => terms.remove(0),
            _ => Term::Tuple(terms),
        })
    }

    /// The type inside of `oc.ref(T)`.
    fn referred(&mut self, ty: &H::Object, span: Span) -> Fallible<H::Object> {
        let host = self.host;
        host.getattr(ty, "dtype", self).map_err(|exception| self.host_error(exception, span))
    }

    fn store_back(&mut self, target: &Term<H::Object>, value: Term<H::Object>, span: Span) -> Fallible<()> {
        match target {
            Term::Place(place) => self.store(place, value, span),
            Term::Entries(entries) => self.store_entries(entries, value, span),
            Term::Choice(choice) => self.store_choice(choice, &value, span),
            Term::Encoded(place) => self.store_encoded(place, value, span),
            Term::Struct(of) => self.store_struct(of, &value, span),
            _ => Err(self.error_with_help(
                Code::AssignTarget,
                span,
                "an argument that is passed by reference must be a variable",
                "assign it to a variable first",
            )),
        }
    }

    fn known_instance(&self, object: &H::Object, key: &[Key<H::Object>]) -> Option<usize> {
        let same = |a: &Key<H::Object>, b: &Key<H::Object>| match (a, b) {
            (Key::Value, Key::Value) => true,
            (Key::Array(a), Key::Array(b)) | (Key::View(a), Key::View(b)) => a == b,
            (Key::Static(a), Key::Static(b)) => match (a, b) {
                (Term::Object(a), Term::Object(b)) => self.host.same(a, b),
                (Term::Int(a), Term::Int(b)) => a == b,
                (Term::Bool(a), Term::Bool(b)) => a == b,
                (Term::Float(a), Term::Float(b)) => a.to_bits() == b.to_bits(),
                (Term::Str(a), Term::Str(b)) => a == b,
                (Term::None | Term::Nothing(_), Term::None | Term::Nothing(_)) => true,
                _ => false,
            },
            _ => false,
        };
        self.instances.iter().position(|known| {
            self.host.same_function(&known.object, object)
                && known.key.iter().zip(key).all(|(a, b)| same(a, b))
        })
    }

    fn new_instance(
        &mut self,
        object: &H::Object,
        key: Vec<Key<H::Object>>,
        types: &[Option<H::Object>],
        span: Span,
    ) -> Fallible<usize> {
        if self.frames.len() >= MAX_CALL_DEPTH {
            return Err(self.too_deep(span));
        }
        let source = self.host.function(object).map_err(|exception| self.host_error(exception, span))?;
        let tree = self.function_tree(&source)?;
        let annotation = match tree.returns {
            Some(at) => self.return_annotation(object, at)?,
            None => Annotation::None,
        };
        let (returns, is_tuple) = match annotation {
            Annotation::None => (Vec::new(), false),
            Annotation::Tuple(items) => (items, true),
            one => (vec![one], false),
        };
        let mut results = Vec::new();
        for annotation in &returns {
            self.scalars_of(annotation, &mut results);
        }
        let mut referred = Vec::new();
        for ty in types.iter().flatten() {
            if self.host.annotation(ty) == Annotation::Ref {
                let inner = self.referred(ty, span)?;
                self.scalars_of(&self.host.annotation(&inner), &mut referred);
            }
        }
        let all: Vec<Data> = results.iter().chain(&referred).copied().collect();
        let function = self.kernel.add_function(&*source.name, all);
        let number = self.instances.len();
        self.instances.push(Instance {
            object: object.clone(),
            key: key.clone(),
            function,
            returns: returns.clone(),
            is_tuple,
        });
        let mut frame = Frame::new(object.clone(), tree.clone(), Arc::clone(&source.qualname));
        frame.call = Some(Call { span, inlined_at: None });
        let body = self.kernel.functions[function].body;
        let outer = (self.region, self.in_parallel, self.in_static, self.nesting, self.next_loop.take());
        (self.region, self.in_parallel, self.in_static, self.nesting) = (body, true, false, 0);
        // The index of the caller's loop cannot be seen from the function.
        let (thread, nest) = (self.thread.take(), self.parallel_nest.take());
        self.frames.push(frame);
        let block = self.begin_block(Some(KERNEL_BODY));
        let lowered = self.function_body(function, &tree, (key, types), (results, returns, is_tuple));
        self.switch_block(block);
        self.unused_loop_config();
        self.frames.pop();
        (self.region, self.in_parallel, self.in_static, self.nesting, self.next_loop) = outer;
        (self.thread, self.parallel_nest) = (thread, nest);
        lowered.map(|()| number)
    }

    fn function_body(
        &mut self,
        function: Func,
        tree: &crate::ast::Function,
        (key, types): (Vec<Key<H::Object>>, &[Option<H::Object>]),
        (results, returns, is_tuple): (Vec<Data>, Vec<Annotation>, bool),
    ) -> Fallible<()> {
        let span = tree.name_span;
        let mut references = Vec::new();
        for ((param, key), ty) in tree.params.iter().zip(key).zip(types) {
            let binding = match (key, ty) {
                (Key::Static(term), _) => Binding::Alias { term, kind: AliasKind::Static, span: param.span },
                (Key::Array(ty), _) => {
                    let value = self.kernel.add_function_param(function, &*param.name, ty);
                    Binding::Alias { term: Term::Array(value), kind: AliasKind::Reference, span: param.span }
                }
                (Key::View(ty), _) => {
                    let view = self.view_of_function(function, &param.name, ty);
                    Binding::Alias { term: Term::View(view), kind: AliasKind::Reference, span: param.span }
                }
                (Key::Value, Some(ty)) => {
                    let is_reference = self.host.annotation(ty) == Annotation::Ref;
                    let ty = if is_reference { self.referred(ty, span)? } else { ty.clone() };
                    let term = self.typed_param_of(Some(function), &param.name, &ty, param.span)?;
                    let term = self.copied(term, param.span)?;
                    if is_reference {
                        references.push(term.clone());
                    }
                    match term {
                        Term::Place(place) => {
                            Binding::Variable { place: place.base, in_parallel: true, span: param.span }
                        }
                        term => Binding::Alias { term, kind: AliasKind::Named, span: param.span },
                    }
                }
                (Key::Value, None) => continue,
            };
            self.frame_mut().declare(param.name.clone(), binding);
        }
        let returns_nothing = returns.is_empty() && !is_tuple;
        let flag = self.new_flag(span);
        let locals: Vec<Value> = results.iter().map(|&data| self.at(span).local(data)).collect();
        self.frame_mut().exit = Some(Exit { flag, results: locals.clone(), returns, is_tuple });
        self.statements(&tree.body)?;
        self.flush_pending()?;
        if !returns_nothing && !self.frame().ended && !always_returns(&tree.body) {
            return Err(self.error_with_help(
                Code::MissingReturn,
                span,
                format!("`{}` can reach its end without returning a value", tree.name),
                "return a value on every path, or remove the annotation",
            ));
        }
        let mut values: Vec<Value> = locals.iter().map(|&local| self.at(span).load(local, &[])).collect();
        for reference in references {
            let rvalue = self.rvalue(reference, span)?;
            self.flattened(&rvalue, span, &mut values);
        }
        self.at(span).returns(&values);
        Ok(())
    }

    /// The scalars that a value of an annotated type consists of.
    fn scalars_of(&self, annotation: &Annotation, into: &mut Vec<Data>) {
        match annotation {
            Annotation::Struct(members) => {
                for (_, member) in members {
                    self.scalars_of(member, into);
                }
            }
            other => match self.data_of(other) {
                Some(Data::Tensor(tensor)) => {
                    into.extend(std::iter::repeat_n(
                        Data::Scalar(tensor.elem),
                        tensor.shape.count() as usize,
                    ));
                }
                data => into.extend(data),
            },
        }
    }

    /// A value of an annotated type, from its scalars.
    fn rebuilt(
        &mut self,
        annotation: &Annotation,
        scalars: &mut impl Iterator<Item = Value>,
        span: Span,
    ) -> Term<H::Object> {
        match annotation {
            Annotation::Struct(members) => {
                let members = members
                    .iter()
                    .map(|(name, member)| (name.as_str().into(), self.rebuilt(member, scalars, span)))
                    .collect();
                self.new_struct(members, None)
            }
            other => match self.data_of(other) {
                Some(data @ Data::Tensor(tensor)) => {
                    let entries: Vec<_> = scalars.take(tensor.shape.count() as usize).collect();
                    Term::Value(self.at(span).tensor(data, entries))
                }
                _ => scalars.next().map_or(Term::None, Term::Value),
            },
        }
    }

    /// A `return` of a function of its own: anywhere.
    pub(crate) fn leave_function(&mut self, exit: &Exit, value: Option<&Expr>, span: Span) -> Fallible<()> {
        let inside_static =
            self.frame().loops.iter().any(|one| one.is_static() && self.frame().depth > one.depth);
        if inside_static {
            return Err(self.error_with_help(
                Code::ReturnPlace,
                span,
                "Return inside a run-time block of a static loop is not supported",
                "assign to a variable inside the block and return it after the loop",
            ));
        }
        let (term, at) = match value {
            Some(expr) => (self.operand(expr)?, expr.span),
            None => (Term::None, span),
        };
        let terms = match (&*exit.returns, exit.is_tuple) {
            ([], false) if !matches!(term, Term::None) => {
                let tree = self.frame().function.clone();
                return Err(Box::new(
                    self.diagnostic(
                        Code::FunctionResult,
                        at,
                        format!("the result of real function `{}` needs a type", tree.name),
                    )
                    .label(tree.name_span, "has no return annotation")
                    .help(format!("write `def {}(...) -> oc.f32:` with the type that it returns", tree.name)),
                ));
            }
            ([], false) => Vec::new(),
            ([_], false) => vec![term],
            (many, _) => self.returned_items(&term, many.len(), at, span)?,
        };
        let mut values = Vec::new();
        for (annotation, term) in exit.returns.clone().iter().zip(terms) {
            let returned = self.returned_value(annotation, term, at, span)?;
            self.flattened(&returned, at, &mut values);
        }
        let mut flags = vec![exit.flag];
        for one in &self.frame().loops {
            flags.extend(one.skip);
            flags.extend(one.broken());
        }
        self.frame_mut().ended = true;
        let mut builder = self.at(span);
        for (&local, value) in exit.results.iter().zip(values) {
            builder.store(local, &[], value);
        }
        for flag in flags {
            let yes = builder.constant(Const::bool(true));
            builder.store(flag, &[], yes);
        }
        Ok(())
    }

    /// After a loop that may have returned: what follows runs only if it has not.
    pub(crate) fn after_loop(
        &mut self,
        body: &[Stmt],
        rest: &Continuation<'_>,
        flow: Flow,
        span: Span,
    ) -> Fallible<Flow> {
        let Some(exit) = self.frame().exit.clone() else { return Ok(flow) };
        if flow != Flow::Next || !may_return(body) {
            return Ok(flow);
        }
        self.rest_unless(exit.flag, rest, span)
    }
}
