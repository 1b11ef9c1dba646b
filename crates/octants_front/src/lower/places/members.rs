//! What arguments lead to: members of compile-time arguments and of dataclasses, by attribute and by item.
//!
//! Every member that is read is recorded with the path to it. Arrays among them become parameters of the kernel, and so do the
//! members of a dataclass that its annotations call values; what is never read costs nothing.

use octants_diag::{Code, Span};
use octants_ir::{ArrayType, Boundary, Data, Scalar, Type};

use crate::ArgSpec;
use crate::ast::Function;
use crate::dependency::{Dependency, Origin, Role, Step};
use crate::formula::Formula;
use crate::host::{
    Annotation, ArgumentArray, ArrayAnnotation, ElementAnnotation, Host, Meaning, Number, ScalarAnnotation,
};
use crate::lower::Lowerer;
use crate::lower::data::argument::Member;
use crate::lower::data::scope::{AliasKind, Binding};
use crate::lower::data::term::{Calculated, Term, View};
use crate::lower::error::Fallible;

/// How deep a container is searched for arrays: one may hold itself. Chosen, not measured.
const MAX_SEARCH_DEPTH: usize = 8;

/// How many items are looked at there in all: containers may hold each other many times. Chosen, not measured.
const MAX_SEARCHED: usize = 1 << 16;

impl<H: Host> Lowerer<'_, H> {
    /// Binds the kernel's parameters.
    pub(crate) fn bind_arguments(&mut self, tree: &Function, args: &[ArgSpec<H::Object>]) -> Fallible<()> {
        for (index, (param, arg)) in tree.params.iter().zip(args).enumerate() {
            let name = &*param.name;
            let (term, object, role, typed) = match arg {
                ArgSpec::Scalar(scalar) => {
                    let (number, value) = self.add_param(name, (*scalar).into());
                    (Term::Value(value), None, Role::Data { param: number, data: (*scalar).into() }, false)
                }
                ArgSpec::Typed(ty) => {
                    let first = self.kernel.params.len();
                    let term = self.typed_param(name, ty, param.span)?;
                    let count = self.kernel.params.len() - first;
                    (term, Some(ty), Role::Values { first, count }, false)
                }
                ArgSpec::Array(ty, object) => {
                    let (term, role) = self.array_param(name, *ty);
                    (term, object.as_ref(), role, false)
                }
                ArgSpec::View(ty) => {
                    let (term, role) = self.view_param(name, *ty);
                    (term, None, role, false)
                }
                ArgSpec::Template(object) => {
                    // Items of a container are read one by one.
                    let role = match self.host.meaning(object) {
                        Meaning::Tuple | Meaning::List | Meaning::Dict => Role::Walked,
                        Meaning::Field => Role::Field { pinned: false },
                        _ => Role::Constant,
                    };
                    let role = self.alias_of(object).map_or(role, Role::Same);
                    (Term::Object(object.clone()), Some(object), role, false)
                }
                ArgSpec::Dataclass(object) => {
                    let role = self.alias_of(object).map_or(Role::Walked, Role::Same);
                    (Term::Object(object.clone()), Some(object), role, true)
                }
            };
            let lifted = object.and_then(|object| self.host.data_oriented(object)) == Some(false);
            let object = object.cloned().unwrap_or_else(|| self.host.make_none());
            let path = name.to_owned();
            let dependency = Dependency { origin: Origin::Argument(index), object, role, path };
            let term_of_member = term.clone();
            self.members.push(Member { dependency, typed, lifted, term: term_of_member });
            let binding = Binding::Alias { term, kind: AliasKind::Argument, span: param.span };
            self.frame_mut().declare(param.name.clone(), binding);
        }
        Ok(())
    }

    /// Records a dependency that no argument leads to; its number.
    pub(crate) fn add_member(&mut self, dependency: Dependency<H::Object>) -> usize {
        let term = Term::Object(dependency.object.clone());
        self.members.push(Member { dependency, typed: false, lifted: false, term });
        self.members.len() - 1
    }

    fn add_param(&mut self, name: &str, ty: Type) -> (usize, octants_ir::Value) {
        let number = self.kernel.params.len();
        (number, self.kernel.add_param(name, ty))
    }

    fn array_param(&mut self, name: &str, ty: ArrayType) -> (Term<H::Object>, Role) {
        let (param, value) = self.add_param(name, Type::Array(ty));
        (Term::Array(value), Role::Array { param, ty })
    }

    fn view_param(&mut self, name: &str, ty: ArrayType) -> (Term<H::Object>, Role) {
        let (param, array) = self.add_param(name, Type::Array(ty));
        let offset = self.options.check_bounds.then(|| self.add_param(&format!("{name}__offset"), Type::I32));
        let view = View { array, window: None, offset: offset.map(|(_, value)| value) };
        (Term::View(view), Role::View { param, ty, offset: offset.map(|(number, _)| number) })
    }

    /// The dependency that an object is, if its members are recorded.
    pub(crate) fn member_of(&self, object: &H::Object) -> Option<usize> {
        self.members.iter().position(|member| {
            matches!(member.dependency.role, Role::Walked | Role::Keys | Role::Constant | Role::Field { .. })
                && matches!(member.term, Term::Object(_))
                && self.host.same(&member.dependency.object, object)
        })
    }

    /// As [`Self::member_of`], for objects that are not shared by chance as small numbers are.
    fn alias_of(&self, object: &H::Object) -> Option<usize> {
        match self.host.meaning(object) {
            Meaning::Other | Meaning::List | Meaning::Dict | Meaning::Field => self.member_of(object),
            _ => None,
        }
    }

    /// What code reached without an argument. A field, or an object with members, stays the one that it is, also where an argument of
    /// this launch leads to it: the argument of another launch may be another one.
    pub(crate) fn captured(&mut self, object: H::Object) -> Term<H::Object> {
        if let Meaning::Field | Meaning::Other = self.host.meaning(&object)
            && !self.is_captured(&object)
        {
            if let Some(of) = self.member_of(&object) {
                self.pin(of);
            }
            self.captured.push(object.clone());
        }
        Term::Object(object)
    }

    fn is_captured(&self, object: &H::Object) -> bool {
        self.captured.iter().any(|known| self.host.same(known, object))
    }

    /// The code is for this object alone.
    pub(crate) fn pin(&mut self, of: usize) {
        let role = &mut self.members[of].dependency.role;
        *role = pinned(*role);
    }

    /// `object.name`, where the object came from an argument.
    pub(crate) fn member_attribute(
        &mut self,
        of: usize,
        name: &str,
        span: Span,
    ) -> Fallible<Term<H::Object>> {
        if let Some(known) = self.known_member(of, |step| matches!(step, Step::Attribute(n) if n == name)) {
            return Ok(if self.in_static { self.pinned(known) } else { known });
        }
        let parent = self.members[of].dependency.object.clone();
        let child = self.host_attribute(&parent, name, span)?;
        let annotation = if self.members[of].typed {
            let host = self.host;
            let found = host.member_annotation(&parent, name);
            let found = found.map_err(|exception| self.host_error(exception, span))?;
            found.map(|object| (host.annotation(&object), object))
        } else {
            None
        };
        let path = format!("{}.{name}", self.members[of].dependency.path);
        self.member(of, Step::Attribute(name.to_owned()), child, annotation, path, span)
    }

    /// `object[key]`, where the object came from an argument and the key is known.
    pub(crate) fn member_item(&mut self, of: usize, key: H::Object, span: Span) -> Fallible<Term<H::Object>> {
        let host = self.host;
        let parent = self.members[of].dependency.object.clone();
        let child = host.getitem(&parent, &key, self).map_err(|e| self.host_error(e, span))?;
        let text = host.repr(&key);
        if let Some(known) =
            self.known_member(of, |step| matches!(step, Step::Item(k) if host.repr(k) == text))
        {
            return Ok(if self.in_static { self.pinned(known) } else { known });
        }
        let path = format!("{}[{text}]", self.members[of].dependency.path);
        self.member(of, Step::Item(key), child, None, path, span)
    }

    /// The elements of an array of the host with one or two axes that an object leads to, two as rows: their number becomes part of the code.
    pub(crate) fn host_array_items(
        &mut self,
        array: octants_ir::Value,
        span: Span,
    ) -> Fallible<Option<Vec<Term<H::Object>>>> {
        let Some((of, extents)) = self.host_array_extents(array, span)? else { return Ok(None) };
        let items = match *extents {
            [count] => (0..count)
                .map(|at| self.member_item(of, self.host.make_int(at), span))
                .collect::<Fallible<_>>()?,
            [rows, columns] => {
                (0..rows).map(|row| self.host_row(of, row, columns, span)).collect::<Fallible<_>>()?
            }
            _ => return Ok(None),
        };
        Ok(Some(items))
    }

    /// `array[index]` of an array of the host with two axes that an object leads to, where the index is known.
    pub(crate) fn host_array_row(
        &mut self,
        array: octants_ir::Value,
        index: i128,
        span: Span,
    ) -> Fallible<Option<Term<H::Object>>> {
        let Some((of, extents)) = self.host_array_extents(array, span)? else { return Ok(None) };
        let [rows, columns] = *extents else { return Ok(None) };
        let row = if index < 0 { index + rows } else { index };
        if !(0..rows).contains(&row) {
            return Err(self.error(
                Code::StaticIndexRange,
                span,
                format!("index {index} is out of range of an array with {rows} rows"),
            ));
        }
        self.host_row(of, row, columns, span).map(Some)
    }

    fn host_row(&mut self, of: usize, row: i128, columns: i128, span: Span) -> Fallible<Term<H::Object>> {
        let entries = (0..columns).map(|column| {
            let key = self.host.make_tuple(vec![self.host.make_int(row), self.host.make_int(column)]);
            self.member_item(of, key, span)
        });
        Ok(Term::List(entries.collect::<Fallible<_>>()?))
    }

    /// The dependency and the shape of an array of the host that an object leads to. The shape becomes part of the code.
    fn host_array_extents(
        &mut self,
        array: octants_ir::Value,
        span: Span,
    ) -> Fallible<Option<(usize, Vec<i128>)>> {
        let of = self.members.iter().position(|member| {
            matches!(member.term, Term::Array(value) if value == array)
                && matches!(member.dependency.origin, Origin::Member { .. })
                && matches!(self.host.meaning(&member.dependency.object), Meaning::HostArray)
        });
        let Some(of) = of else { return Ok(None) };
        let shape = self.member_attribute(of, "shape", span)?;
        let mut extents = Vec::new();
        for extent in self.items(&shape, span)?.unwrap_or_default() {
            let extent = self.rvalue(extent, span)?;
            let Term::Int(extent) = self.pinned(extent) else { return Ok(None) };
            extents.push(extent);
        }
        Ok(Some((of, extents)))
    }

    /// `array.grad` or `array.dual`: an array of its own, which each launch reads from the argument or the member that the array is.
    pub(crate) fn array_companion(
        &mut self,
        array: octants_ir::Value,
        name: &str,
        span: Span,
    ) -> Fallible<Term<H::Object>> {
        let is_array =
            |member: &Member<H::Object>| matches!(member.term, Term::Array(value) if value == array);
        let Some(of) = self.members.iter().position(is_array) else {
            return Err(self.error_with_help(
                Code::NoAttribute,
                span,
                format!("the array of a parameter of a real function has no attribute `{name}` here"),
                format!("pass `{name}` as a parameter of its own"),
            ));
        };
        if let Some(known) = self.known_member(of, |step| matches!(step, Step::Attribute(n) if n == name)) {
            return Ok(known);
        }
        let Type::Array(ty) = self.kernel.ty(array) else { return Ok(Term::None) };
        let (host, parent) = (self.host, self.members[of].dependency.object.clone());
        let child = host.getattr(&parent, name, self).unwrap_or_else(|_| host.make_none());
        let path = format!("{}.{name}", self.members[of].dependency.path);
        let element = ty.elem.tensor_shape().map_or(ElementAnnotation::Scalar, ElementAnnotation::Is);
        let (term, role) = match host.argument_array(&child, element) {
            Some(ArgumentArray::Array(found)) => {
                self.array_param(&path, ArrayType { boundary: ty.boundary, ..found })
            }
            // `oc.static(x.grad is not None)`
            _ if self.in_static => (Term::None, Role::Constant),
            _ => {
                let array = &self.members[of].dependency.path;
                let what = if name == "grad" { "gradients" } else { "duals" };
                return Err(self.error_with_help(
                    Code::NoAttribute,
                    span,
                    format!("the array `{array}` has no {what}"),
                    format!("make it with `needs_{name}=True`; `oc.static(x.{name} is not None)` asks whether there are any"),
                ));
            }
        };
        let origin = Origin::Member { of, step: Step::Attribute(name.to_owned()) };
        let dependency = Dependency { origin, object: child, role, path };
        self.members.push(Member { dependency, typed: false, lifted: false, term: term.clone() });
        Ok(term)
    }

    fn known_member(&self, of: usize, same: impl Fn(&Step<H::Object>) -> bool) -> Option<Term<H::Object>> {
        let known = self.members.iter().find(|member| {
            matches!(&member.dependency.origin, Origin::Member { of: from, step } if *from == of && same(step))
        })?;
        Some(known.term.clone())
    }

    fn member(
        &mut self,
        of: usize,
        step: Step<H::Object>,
        child: H::Object,
        annotation: Option<(Annotation, H::Object)>,
        path: String,
        span: Span,
    ) -> Fallible<Term<H::Object>> {
        let lifted = self.members[of].lifted;
        let mut typed = false;
        if self.members[of].typed && self.host.data_oriented(&child).is_some() {
            return Err(self.error_with_help(
                Code::DataOrientedMember,
                span,
                format!("`{path}` is a data-oriented object inside a dataclass parameter"),
                "pass it as a parameter of its own, annotated `oc.template()`",
            ));
        }
        if lifted && self.in_static && annotation.is_none() && self.is_number(&child) {
            return Err(self.error_with_help(
                Code::LiftedStatic,
                span,
                format!("`{path}` is known only when the kernel runs"),
                "numbers of a class with `template_primitives=False` are arguments; take that away to use them in `oc.static`",
            ));
        }
        let element = match &annotation {
            Some((Annotation::Array(wanted) | Annotation::View(wanted), _)) => wanted.element,
            _ => ElementAnnotation::Any,
        };
        let array = self.host.argument_array(&child, element);
        let (annotation, annotation_object) = annotation.unzip();
        let mut recorded = child.clone();
        let (term, role) = match annotation {
            Some(Annotation::Scalar(scalar)) => {
                self.check_number(&child, scalar, &path, span)?;
                self.number_param(&path, self.scalar_of(scalar).into())
            }
            Some(Annotation::Array(wanted)) => match array {
                Some(ArgumentArray::Array(ty)) => {
                    self.check_array(ty, &wanted, &path, span)?;
                    self.array_param(&path, ArrayType { boundary: wanted.boundary, ..ty })
                }
                _ if wanted.optional && matches!(self.host.meaning(&child), Meaning::None) => {
                    (Term::None, Role::Constant)
                }
                _ => return Err(self.wrong_member(&child, "an array", &path, span)),
            },
            Some(Annotation::AnyTensor) => match (array, self.host.meaning(&child)) {
                (Some(ArgumentArray::Array(ty)), _) => self.array_param(&path, ty),
                (_, Meaning::None) => (Term::None, Role::Constant),
                (_, Meaning::Field) => self.object_member(child.clone(), Role::Field { pinned: false }),
                _ => return Err(self.wrong_member(&child, "an array, a field or None", &path, span)),
            },
            Some(Annotation::View(wanted)) => match array {
                Some(ArgumentArray::View(ty)) => {
                    self.check_array(ty, &wanted, &path, span)?;
                    self.view_param(&path, ArrayType { boundary: wanted.boundary, ..ty })
                }
                _ => return Err(self.wrong_member(&child, "a BufferView", &path, span)),
            },
            Some(Annotation::Tensor(..) | Annotation::Struct(_)) => {
                let ty = annotation_object.unwrap_or_else(|| child.clone());
                let first = self.kernel.params.len();
                // Put together before everything that is open, so that it is there wherever it is read again.
                let body = self.kernel.body;
                let term = self.within(body, |lowerer| lowerer.typed_param(&path, &ty, span))?;
                let count = self.kernel.params.len() - first;
                // The launch needs the type, not the value that there was.
                recorded = ty;
                (term, Role::Values { first, count })
            }
            Some(Annotation::Dataclass(class)) => {
                if !self.host.is_instance(&child, &class) {
                    return Err(self.wrong_member(&child, &format!("a {class}"), &path, span));
                }
                typed = true;
                self.object_member(child.clone(), Role::Walked)
            }
            Some(Annotation::Other(repr)) if matches!(self.host.meaning(&child), Meaning::Tensor(_)) => {
                return Err(self.error_with_help(
                    Code::InvalidAnnotation,
                    span,
                    format!("the annotation of `{path}` is not one that a parameter can have: {repr}"),
                    "annotate it with a type of vectors or matrices, such as `oc.math.vec3`",
                ));
            }
            _ => {
                if self.is_class_method(of, &child, span)? {
                    return Ok(self.method(of, step, child, path));
                }
                let boundary = self.declared_boundary(of, &step);
                match self
                    .varying_member(of, &child, lifted, &path)
                    .or_else(|| self.untyped_member(of, &child, &path, lifted, boundary))
                {
                    Some(found) => found,
                    None => return Ok(self.method(of, step, child, path)),
                }
            }
        };
        let lifted = self.host.data_oriented(&child).map_or(lifted, |templated| !templated);
        let dependency = Dependency { origin: Origin::Member { of, step }, object: recorded, role, path };
        self.members.push(Member { dependency, typed, lifted, term: term.clone() });
        let term = self.varying_tensor(term, span)?;
        Ok(if self.in_static { self.pinned(term) } else { term })
    }

    /// A method of an object. A func is part of the code; what plain Python gives is evaluated again, by the name of the method.
    fn method(
        &mut self,
        of: usize,
        step: Step<H::Object>,
        child: H::Object,
        path: String,
    ) -> Term<H::Object> {
        let term = Term::Object(child.clone());
        if let Meaning::Func { .. } = self.host.meaning(&child) {
            let origin = Origin::Member { of, step };
            let dependency = Dependency { origin, object: child, role: Role::Method, path };
            self.members.push(Member { dependency, typed: false, lifted: false, term: term.clone() });
        }
        term
    }

    /// A number that was seen to change: an operand of formulas, under the number that its dependency gets. A vector or matrix that was
    /// is walked: its entries are such operands.
    fn varying_member(
        &self,
        of: usize,
        child: &H::Object,
        lifted: bool,
        path: &str,
    ) -> Option<(Term<H::Object>, Role)> {
        if lifted || !(self.varying.iter().any(|known| known == path) || self.is_varying_tensor(of)) {
            return None;
        }
        let now = match self.host.meaning(child) {
            Meaning::Int(value) => Number::Int(value),
            Meaning::Float(value) => Number::Float(value),
            Meaning::Tensor(_) if !self.in_static => {
                return Some((Term::Object(child.clone()), Role::Walked));
            }
            _ => return None,
        };
        let formula = Formula::operand(self.members.len());
        Some((Term::Formula(Box::new(Calculated { formula, now })), Role::Operand))
    }

    /// Whether an object that no argument leads to keeps something plain under a name.
    pub(crate) fn may_hold(&self, object: &H::Object, name: &str) -> bool {
        matches!(self.host.meaning(object), Meaning::Other | Meaning::Module)
            && self.host.has_plain_attribute(object, name)
    }

    /// A number, a vector or a matrix of an object that [may hold](Self::may_hold) one.
    pub(crate) fn held_number(
        &mut self,
        object: &H::Object,
        name: &str,
        child: &H::Object,
        span: Span,
    ) -> Fallible<Option<Term<H::Object>>> {
        if !(self.is_number(child) || matches!(self.host.meaning(child), Meaning::Tensor(_))) {
            return Ok(None);
        }
        let is_holder = |member: &Member<H::Object>| {
            member.dependency.role == Role::Holder && self.host.same(&member.dependency.object, object)
        };
        let of = if let Some(of) = self.members.iter().position(is_holder) {
            of
        } else {
            let holders = self.members.iter().filter(|member| member.dependency.role == Role::Holder);
            // Which object it is follows from the order in which the kernel comes to them.
            let path = format!("{}#{}", self.host.type_name(object), holders.count());
            let (origin, object) = (Origin::Held, object.clone());
            self.add_member(Dependency { origin, object, role: Role::Holder, path })
        };
        if let Some(known) = self.known_member(of, |step| matches!(step, Step::Attribute(n) if n == name)) {
            return Ok(Some(if self.in_static { self.pinned(known) } else { known }));
        }
        let path = format!("{}.{name}", self.members[of].dependency.path);
        let (term, role) = self
            .varying_member(of, child, false, &path)
            .unwrap_or_else(|| (Term::Object(child.clone()), Role::Constant));
        let origin = Origin::Member { of, step: Step::Attribute(name.to_owned()) };
        let dependency = Dependency { origin, object: child.clone(), role, path };
        self.members.push(Member { dependency, typed: false, lifted: false, term: term.clone() });
        let term = self.varying_tensor(term, span)?;
        Ok(Some(if self.in_static { self.pinned(term) } else { term }))
    }

    /// How an array is accessed that is a member of an object. Annotations do not type what an object leads to, but a dataclass that
    /// it leads to may say that indices are clamped.
    fn declared_boundary(&self, of: usize, step: &Step<H::Object>) -> Boundary {
        let Step::Attribute(name) = step else { return Boundary::Unsafe };
        // An annotation that cannot be evaluated says nothing here.
        let annotation = self.host.member_annotation(&self.members[of].dependency.object, name);
        match annotation.ok().flatten().map(|object| self.host.annotation(&object)) {
            Some(Annotation::Array(declared) | Annotation::View(declared)) => declared.boundary,
            _ => Boundary::Unsafe,
        }
    }

    /// What a member without annotation is; `None` for a method of the object.
    fn untyped_member(
        &mut self,
        of: usize,
        child: &H::Object,
        name: &str,
        lifted: bool,
        boundary: Boundary,
    ) -> Option<(Term<H::Object>, Role)> {
        match self.host.argument_array(child, ElementAnnotation::Any) {
            Some(ArgumentArray::Array(ty)) => {
                return Some(self.array_param(name, ArrayType { boundary, ..ty }));
            }
            Some(ArgumentArray::View(ty)) => {
                return Some(self.view_param(name, ArrayType { boundary, ..ty }));
            }
            None => {}
        }
        let constant = (Term::Object(child.clone()), Role::Constant);
        match self.host.meaning(child) {
            Meaning::Bool(_) | Meaning::Int(_) if lifted => {
                Some(self.lifted_param(name, self.options.default_ip.into()))
            }
            Meaning::Float(_) if lifted => Some(self.lifted_param(name, self.options.default_fp.into())),
            Meaning::Func { receiver: Some(receiver) } if self.is_object(of, &receiver) => None,
            Meaning::Callable { .. } | Meaning::Kernel | Meaning::HostOnly => match self.host.receiver(child)
            {
                Some(receiver) if self.is_object(of, &receiver) => None,
                _ => Some(constant),
            },
            Meaning::Tuple | Meaning::List | Meaning::Dict => {
                Some(self.object_member(child.clone(), Role::Walked))
            }
            Meaning::Field => Some(self.object_member(child.clone(), Role::Field { pinned: false })),
            Meaning::Other => {
                let role =
                    if self.host.data_oriented(child).is_some() { Role::Constant } else { Role::Walked };
                Some(self.object_member(child.clone(), role))
            }
            _ => Some(constant),
        }
    }

    /// Whether it is bound to the class of a member. The class is a member, too, then: what the method reads of it may change.
    fn is_class_method(&mut self, of: usize, child: &H::Object, span: Span) -> Fallible<bool> {
        let receiver = match self.host.meaning(child) {
            Meaning::Func { receiver } => receiver,
            Meaning::Callable { .. } | Meaning::HostOnly => self.host.receiver(child),
            _ => None,
        };
        let Some(receiver) = receiver else { return Ok(false) };
        let object = self.members[of].dependency.object.clone();
        if self.host.same(&object, &receiver) {
            return Ok(false);
        }
        let class = self.host_attribute(&object, "__class__", span)?;
        let is_class = self.host.same(&class, &receiver);
        if is_class {
            self.member_attribute(of, "__class__", span)?;
        }
        Ok(is_class)
    }

    pub(crate) fn is_number(&self, object: &H::Object) -> bool {
        matches!(self.host.meaning(object), Meaning::Bool(_) | Meaning::Int(_) | Meaning::Float(_))
    }

    pub(crate) fn is_text(&self, object: &H::Object) -> bool {
        matches!(self.host.meaning(object), Meaning::Str(_))
    }

    fn is_object(&self, of: usize, object: &H::Object) -> bool {
        self.host.same(&self.members[of].dependency.object, object)
    }

    /// An object whose members count: under another path to it, they are those that are known already.
    fn object_member(&mut self, object: H::Object, role: Role) -> (Term<H::Object>, Role) {
        // What code names by itself is the same object whatever arguments lead to.
        let role = if self.is_captured(&object) {
            pinned(role)
        } else {
            self.alias_of(&object).map_or(role, Role::Same)
        };
        (Term::Object(object), role)
    }

    fn number_param(&mut self, name: &str, data: Data) -> (Term<H::Object>, Role) {
        let (param, value) = self.add_param(name, data.into());
        (Term::Value(value), Role::Data { param, data })
    }

    fn lifted_param(&mut self, name: &str, data: Data) -> (Term<H::Object>, Role) {
        let (param, value) = self.add_param(name, data.into());
        (Term::Value(value), Role::Lifted { param, data })
    }

    fn check_number(
        &mut self,
        child: &H::Object,
        scalar: ScalarAnnotation,
        path: &str,
        span: Span,
    ) -> Fallible<()> {
        let scalar = self.scalar_of(scalar);
        match self.host.meaning(child) {
            Meaning::Bool(_) | Meaning::Int(_) => Ok(()),
            Meaning::Float(_) if scalar.is_real() => Ok(()),
            _ => Err(self.wrong_member(child, scalar.name(), path, span)),
        }
    }

    fn wrong_member(
        &self,
        child: &H::Object,
        wanted: &str,
        path: &str,
        span: Span,
    ) -> Box<octants_diag::Diagnostic> {
        let found = self.host.type_name(child);
        let diagnostic = self.diagnostic(
            Code::ArgumentType,
            span,
            format!(
                "Argument `{path}`: a value of type {found} cannot be converted into required type {wanted}"
            ),
        );
        Box::new(match self.host.meaning(child) {
            Meaning::Field => diagnostic
                .help("annotate the member with `oc.template()` to take a field, or with `oc.Tensor` to take fields and arrays"),
            _ => diagnostic,
        })
    }

    pub(crate) fn check_array(
        &self,
        ty: ArrayType,
        wanted: &ArrayAnnotation,
        path: &str,
        span: Span,
    ) -> Fallible<()> {
        let scalar = wanted.scalar.map(|scalar| self.scalar_of(scalar));
        if scalar.is_some_and(|scalar| ty.elem.elem() != Some(scalar))
            || !wanted.element.admits(ty.elem.tensor_shape())
        {
            return Err(self.error(
                Code::ArrayMismatch,
                span,
                format!(
                    "Invalid value for argument {path} - required element type: {}, but {} is provided",
                    describe_element(scalar, wanted.element),
                    crate::lower::values::convert::describe_data(ty.elem)
                ),
            ));
        }
        if let Some(ndim) = wanted.ndim
            && ndim != ty.rank
        {
            return Err(self.error(
                Code::ArrayMismatch,
                span,
                format!(
                    "Invalid value for argument {path} - required ndim={ndim}, but an array of ndim={} is provided",
                    ty.rank
                ),
            ));
        }
        Ok(())
    }
}

impl<H: Host> Lowerer<'_, H> {
    /// What host code is given for a term. The code is for this object alone then, and a launch evaluates again what host code makes of it; containers are compared
    /// by what they hold. The arrays in a container are given as expressions.
    pub(crate) fn exposed(&mut self, term: &Term<H::Object>, span: Span) -> Fallible<Term<H::Object>> {
        let object = match term {
            Term::Object(object) => object,
            Term::Static(inner) => return self.exposed(inner, span),
            other => return Ok(other.clone()),
        };
        let Some(of) = self.member_of(object) else { return Ok(term.clone()) };
        match self.host.meaning(object) {
            Meaning::Tuple | Meaning::List | Meaning::Dict
                if !self.holds_array(object, MAX_SEARCH_DEPTH, &mut { MAX_SEARCHED }) =>
            {
                self.pin(of);
                self.host.guard(object);
                Ok(term.clone())
            }
            Meaning::Tuple => Ok(Term::Tuple(self.items(term, span)?.unwrap_or_default())),
            Meaning::List => Ok(Term::List(self.items(term, span)?.unwrap_or_default())),
            Meaning::Dict => {
                let pairs = self
                    .host
                    .pairs(object)
                    .into_iter()
                    .map(|(key, _)| Ok((Term::Object(key.clone()), self.member_item(of, key, span)?)));
                Ok(Term::Dict(pairs.collect::<Fallible<_>>()?))
            }
            Meaning::Field => {
                self.pin_field(of);
                Ok(term.clone())
            }
            // A class is callable.
            Meaning::Other | Meaning::Callable { .. } => {
                self.pin(of);
                if self.host.is_collection(object) {
                    self.host.guard(object);
                }
                Ok(term.clone())
            }
            _ => Ok(term.clone()),
        }
    }

    /// Whether a container leads to an array, which host code is given as an expression.
    fn holds_array(&self, object: &H::Object, depth: usize, left: &mut usize) -> bool {
        if depth == 0 || *left == 0 {
            return false;
        }
        *left -= 1;
        let items = match self.host.meaning(object) {
            Meaning::Tuple | Meaning::List => self.host.items(object),
            Meaning::Dict => self.host.pairs(object).into_iter().map(|(_, value)| value).collect(),
            _ => return self.host.argument_array(object, ElementAnnotation::Any).is_some(),
        };
        items.iter().any(|item| self.holds_array(item, depth - 1, left))
    }

    /// `super()`: with the class of the method and its receiver, as Python adds them.
    pub(crate) fn parent(
        &mut self,
        callee: &H::Object,
        arguments: &[crate::lower::data::argument::Argument<H::Object>],
        span: Span,
    ) -> Fallible<Term<H::Object>> {
        if !arguments.is_empty() {
            return self.call_host(callee, arguments, span);
        }
        let host = self.host;
        let class = host.global(&self.frame().object, "__class__");
        let class = class.map_err(|exception| self.host_error(exception, span))?;
        let first = self.frame().function.params.first().map(|param| param.name.clone());
        let receiver = first.and_then(|name| self.frame().lookup(&name).cloned());
        let (Some(class), Some(Binding::Alias { term: Term::Object(receiver), .. })) = (class, receiver)
        else {
            return Err(self.error(Code::SuperOutsideMethod, span, "super() is used outside of a method"));
        };
        let parent = host.call(callee, &[class, receiver], &[], self);
        parent.map(Term::Object).map_err(|exception| self.host_error(exception, span))
    }
}

/// What an annotation wants elements to be.
fn describe_element(scalar: Option<Scalar>, element: ElementAnnotation) -> String {
    let of = scalar.map_or_else(String::new, |scalar| format!(" of {}", scalar.name()));
    match element {
        ElementAnnotation::Any | ElementAnnotation::Scalar => {
            scalar.map_or("a scalar", Scalar::name).to_owned()
        }
        ElementAnnotation::Vector => format!("a vector{of}"),
        ElementAnnotation::Matrix => format!("a matrix{of}"),
        ElementAnnotation::Is(shape) => format!("elements of shape {:?}{of}", shape.dims()),
    }
}

/// The role of an object that no other can take the place of.
fn pinned(role: Role) -> Role {
    match role {
        Role::Field { .. } => Role::Field { pinned: true },
        Role::Walked | Role::Keys => Role::Constant,
        role => role,
    }
}
