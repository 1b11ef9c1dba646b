//! Assignment: new variables, stores, unpacking, augmented assignment.

use octants_diag::{Code, Span};
use octants_ir::ops::{ArithOp, AtomicOp, BitOp};
use octants_ir::{Data, Scalar, TensorShape, TensorType, Value};

use crate::ast::{Expr, ExprKind, Name};
use crate::host::{Annotation, BinaryOp, Host, Meaning};
use crate::lower::Lowerer;
use crate::lower::data::scope::{AliasKind, Binding};
use crate::lower::data::term::{Choice, Entries, Place, Term};
use crate::lower::error::{Fallible, counted};
use crate::lower::sparse::Need;

impl<H: Host> Lowerer<'_, H> {
    /// `a = b = value`
    pub(crate) fn assign(&mut self, targets: &[Expr], value: &Expr) -> Fallible<()> {
        let term = self.expr(value)?;
        if let Term::Static(inner) = term {
            for target in targets {
                self.assign_static(target, &inner, value.span)?;
            }
            return Ok(());
        }
        let term = match self.column_or_slice(term, value.span)? {
            Term::Slice(slice) => return self.assign_slice(targets, &slice, value.span),
            other => other,
        };
        // All of the right side is evaluated before anything is stored.
        let term = self.loaded(term, value.span)?;
        for target in targets {
            self.assign_to(target, term.clone(), value.span)?;
        }
        Ok(())
    }

    /// The term is an rvalue; `from` is where it stands.
    fn assign_to(&mut self, target: &Expr, term: Term<H::Object>, from: Span) -> Fallible<()> {
        match &target.kind {
            ExprKind::Name(name) => self.assign_name_from(name, term, target.span, from),
            ExprKind::Tuple(targets) | ExprKind::List(targets) => {
                self.refuse_starred(targets)?;
                let items = self.unpack(&term, targets.len(), target.span, from)?;
                for (target, item) in targets.iter().zip(items) {
                    let item = self.loaded(item, from)?;
                    self.assign_to(target, item, from)?;
                }
                Ok(())
            }
            ExprKind::Subscript { .. } | ExprKind::Attribute { .. } => match self.expr(target)? {
                Term::Place(place) => self.store(&place, term, from),
                Term::Entries(entries) => self.store_entries(&entries, term, from),
                Term::Choice(choice) => self.store_choice(&choice, &term, from),
                Term::Encoded(place) => self.store_encoded(&place, term, from),
                Term::Struct(of) => {
                    if !matches!(term, Term::Struct(_)) && self.is_tile(&of) {
                        return Err(self.not_loaded_from(&term, from));
                    }
                    self.store_struct(&of, &term, from)
                }
                Term::Slice(slice) => self.store_tile(&slice, &term, target.span),
                _ => Err(self.not_assignable(target)),
            },
            _ => Err(self.not_assignable(target)),
        }
    }

    /// No target takes what is left over.
    pub(crate) fn refuse_starred(&mut self, targets: &[Expr]) -> Fallible<()> {
        match targets.iter().find(|target| matches!(target.kind, ExprKind::Starred(_))) {
            Some(starred) => Err(self.not_assignable(starred)),
            None => Ok(()),
        }
    }

    fn not_assignable(&mut self, target: &Expr) -> Box<octants_diag::Diagnostic> {
        if let ExprKind::Starred(inner) = &target.kind {
            return self.error_with_help(
                Code::AssignTarget,
                target.span,
                "a starred name on the left of `=` is not supported in a kernel",
                format!(
                    "name each item: `a, b, c = ...`, or pick the rest by a slice: `{} = items[1:]`",
                    self.text(inner.span)
                ),
            );
        }
        if let ExprKind::Subscript { value, .. } = &target.kind
            && let Ok(Term::Object(object)) = self.expr(value)
            && let Meaning::Ndarray | Meaning::HostArray = self.host.meaning(&object)
        {
            return self.captured_array(&object, target.span);
        }
        if let ExprKind::Subscript { value, .. } = &target.kind
            && let Ok(Term::Object(object)) = self.expr(value)
            && let Meaning::List | Meaning::Dict | Meaning::Tuple = self.host.meaning(&object)
        {
            let what = self.host.type_name(&object);
            return self.error_with_help(
                Code::AssignTarget,
                target.span,
                format!("an item of a {what} of the host cannot be assigned in a kernel"),
                "globals and members of objects are constants of a kernel: keep the numbers in a field or an array, or in a list or a vector that the kernel makes",
            );
        }
        if let ExprKind::Attribute { .. } = target.kind {
            return self.error_with_help(
                Code::AssignTarget,
                target.span,
                "members of an object cannot be assigned in a kernel",
                "objects are read-only there: use a variable, an array, or a struct of the kernel's own",
            );
        }
        self.error_with_help(
            Code::AssignTarget,
            target.span,
            "this cannot be assigned to",
            "assign to a variable, an element of an array, or a tuple of these",
        )
    }

    /// `name := value`. A new name belongs to the statement's block, also where this part of the statement may not run: its variable then
    /// begins as zero.
    pub(crate) fn assign_in_expression(
        &mut self,
        name: &Name,
        term: Term<H::Object>,
        span: Span,
    ) -> Fallible<()> {
        if self.frame().lookup(name).is_some() {
            return self.assign_name_from(name, term, span, span);
        }
        let term = self.loaded(term, span)?;
        let term = if self.region == self.statement_region {
            self.copied(term, span)?
        } else {
            self.copied_to_statement(name, term, span)?
        };
        let binding = self.variable_or_alias(term, span);
        self.frame_mut().declare_in_statement(name.clone(), binding);
        Ok(())
    }

    /// `name := value` inside of `oc.static`: another name for what is known.
    pub(crate) fn name_static(&mut self, name: &Name, term: &Term<H::Object>, span: Span) -> Fallible<()> {
        if let Some(known) = self.frame_mut().static_alias(name) {
            *known = term.clone();
        } else if self.frame().lookup(name).is_some() {
            return self.assign_name_from(name, term.clone(), span, span);
        } else {
            let binding = Binding::Alias { term: term.clone(), kind: AliasKind::Static, span };
            self.frame_mut().declare_in_statement(name.clone(), binding);
        }
        Ok(())
    }

    /// Like [`copied`](Self::copied), with the variables in the region of the statement, where they begin as zero.
    fn copied_to_statement(
        &mut self,
        name: &Name,
        term: Term<H::Object>,
        span: Span,
    ) -> Fallible<Term<H::Object>> {
        Ok(match self.loaded(term, span)? {
            Term::Tuple(items) => Term::Tuple(self.items_to_statement(name, items, span)?),
            Term::List(items) => Term::List(self.items_to_statement(name, items, span)?),
            Term::Struct(of) => {
                let mut members = Vec::with_capacity(of.members.len());
                for (member_name, member) in of.members {
                    members.push((member_name, self.copied_to_statement(name, member, span)?));
                }
                self.new_struct(members, of.ty)
            }
            term @ (Term::Value(_)
            | Term::Index(_)
            | Term::Bool(_)
            | Term::Int(_)
            | Term::Float(_)
            | Term::Formula(_)) => {
                let value = self.value(term, span)?;
                let region = self.statement_region;
                let place = self.within(region, |outer| {
                    let zero = outer.constant_like(value, 0, span);
                    Ok(outer.new_local(zero, span))
                })?;
                self.at(span).store(place.base, &[], value);
                Term::Place(place)
            }
            known if known.is_static() => known,
            other => {
                let what = self.describe(&other);
                return Err(self.error_with_help(
                    Code::UnsupportedExpression,
                    span,
                    format!("\"{name}\" would stand for {what} of a part of the statement that may not run"),
                    format!("assign `{name}` in a statement of its own"),
                ));
            }
        })
    }

    fn items_to_statement(
        &mut self,
        name: &Name,
        items: Vec<Term<H::Object>>,
        span: Span,
    ) -> Fallible<Vec<Term<H::Object>>> {
        items.into_iter().map(|item| self.copied_to_statement(name, item, span)).collect()
    }

    fn assign_name_from(
        &mut self,
        name: &Name,
        term: Term<H::Object>,
        span: Span,
        from: Span,
    ) -> Fallible<()> {
        let binding = self.frame().lookup(name).cloned();
        match binding {
            None => self.define_at(name, term, span, from),
            Some(Binding::Variable { place, .. }) => self.store(
                &Place { base: place, path: Vec::new(), shared: false, guard: None, sparse: None },
                term,
                from,
            ),
            Some(Binding::Alias { term: Term::Place(place), kind: AliasKind::Reference, .. }) => {
                self.store(&place, term, from)
            }
            Some(Binding::Alias {
                term: Term::Struct(of),
                kind: AliasKind::Reference | AliasKind::Named,
                ..
            }) => self.store_struct(&of, &term, from),
            Some(Binding::Alias { term: Term::Entries(entries), kind: AliasKind::Reference, .. }) => {
                self.store_entries(&entries, term, from)
            }
            Some(Binding::Alias { term: old, kind: AliasKind::Named, .. })
                if is_array(&old) && is_array(&term) && self.names_in_this_block(name) =>
            {
                self.frame_mut().rebind(name, term, span);
                Ok(())
            }
            Some(Binding::Alias { kind, term: old, span: defined }) => {
                Err(self.not_reassignable(name, kind, &old, defined, span))
            }
        }
    }

    /// Whether the innermost block has made a name, so that giving it to something else is seen by all that follows.
    fn names_in_this_block(&self, name: &str) -> bool {
        self.frame().names().iter().any(|(known, _)| **known == *name)
    }

    fn define_at(&mut self, name: &Name, term: Term<H::Object>, span: Span, from: Span) -> Fallible<()> {
        let term = match term {
            number @ (Term::Bool(_) | Term::Int(_) | Term::Float(_) | Term::Formula(_)) => {
                Term::Value(self.value(number, from)?)
            }
            other => other,
        };
        self.define(name, term, span)
    }

    fn not_reassignable(
        &mut self,
        name: &Name,
        kind: AliasKind,
        old: &Term<H::Object>,
        defined: Span,
        span: Span,
    ) -> Box<octants_diag::Diagnostic> {
        let diagnostic = match kind {
            AliasKind::Argument => self
                .diagnostic(
                    Code::AssignToArgument,
                    span,
                    format!("Kernel argument \"{name}\" is immutable in the kernel"),
                )
                .help(if self.has_elements(old) {
                    format!("change an element of it: `{name}[i]`, or `{name}[None]` if its rank is 0")
                } else {
                    format!("copy it to a variable first: `{name}_ = {name}`")
                }),
            AliasKind::Static => self
                .diagnostic(
                    Code::StaticRecreated,
                    span,
                    format!("Recreating variables is not allowed: \"{name}\" is a compile-time value"),
                )
                .help("use another name"),
            AliasKind::Reference | AliasKind::Constant => {
                let what = self.describe(old);
                self.diagnostic(
                    Code::AssignTarget,
                    span,
                    format!("\"{name}\" stands for {what} that cannot be assigned to"),
                )
            }
            AliasKind::Named => {
                let what = self.describe(old);
                self.diagnostic(
                    Code::LocalType,
                    span,
                    format!("\"{name}\" holds {what} and cannot be assigned again"),
                )
                .help("use another name")
            }
        };
        Box::new(diagnostic.label(defined, "bound here"))
    }

    fn has_elements(&self, term: &Term<H::Object>) -> bool {
        matches!(term, Term::Array(_) | Term::View(_)) || self.is_field_or_node(term)
    }

    /// `x = oc.static(...)`: another name for a compile-time value.
    fn assign_static(&mut self, target: &Expr, term: &Term<H::Object>, from: Span) -> Fallible<()> {
        match &target.kind {
            ExprKind::Name(name) => {
                if let Some(binding) = self.frame().lookup(name) {
                    return Err(Box::new(
                        self.diagnostic(
                            Code::StaticRecreated,
                            target.span,
                            format!("Recreating variables is not allowed: \"{name}\""),
                        )
                        .label(binding.span(), "already bound here")
                        .help("use another name"),
                    ));
                }
                let binding =
                    Binding::Alias { term: term.clone(), kind: AliasKind::Static, span: target.span };
                self.frame_mut().declare(name.clone(), binding);
                Ok(())
            }
            ExprKind::Tuple(targets) | ExprKind::List(targets) => {
                self.refuse_starred(targets)?;
                let items = self.unpack(term, targets.len(), target.span, from)?;
                for (target, item) in targets.iter().zip(items) {
                    self.assign_static(target, &item, from)?;
                }
                Ok(())
            }
            _ => Err(self.error_with_help(
                Code::StaticAssign,
                target.span,
                "Static assign cannot be used on elements in arrays",
                "remove `oc.static`, or assign to a plain name",
            )),
        }
    }

    /// As many items as there are names on the left.
    pub(crate) fn unpack(
        &mut self,
        term: &Term<H::Object>,
        count: usize,
        span: Span,
        from: Span,
    ) -> Fallible<Vec<Term<H::Object>>> {
        let Some(items) = self.items(term, from)? else {
            let what = self.describe(term);
            return Err(self.error(Code::NotUnpackable, from, format!("{what} cannot be unpacked")));
        };
        if items.len() != count {
            let known = items.len();
            return Err(Box::new(
                self.diagnostic(
                    Code::UnpackCount,
                    span,
                    format!(
                        "{} cannot be unpacked into {}",
                        counted(known, "value", "values"),
                        counted(count, "name", "names")
                    ),
                )
                .label(from, format!("has {}", counted(known, "value", "values"))),
            ));
        }
        Ok(items)
    }

    /// `x: T = value`
    pub(crate) fn assign_annotated(
        &mut self,
        target: &Expr,
        annotation: &Expr,
        value: Option<&Expr>,
        span: Span,
    ) -> Fallible<()> {
        let ExprKind::Name(name) = &target.kind else { return Err(self.not_assignable(target)) };
        let Some(value) = value else {
            return Err(self.error_with_help(
                Code::UnsupportedStatement,
                span,
                "a declaration without a value is not supported",
                format!("write `{}: {} = 0`", name, self.text(annotation.span)),
            ));
        };
        let annotated = self.static_expr(annotation)?;
        let typed = match &annotated {
            Term::Object(object) => match self.host.annotation(object) {
                Annotation::Tensor(..) | Annotation::Struct(_) => Some(object.clone()),
                _ => None,
            },
            _ => None,
        };
        let dtype = match typed {
            Some(_) => Scalar::I32,
            None => self.dtype(&annotated, annotation.span)?,
        };
        let term = self.expr(value)?;
        let term = self.column_entry(term, value.span)?;
        if let Term::Static(_) = term {
            return Err(self.error_with_help(
                Code::StaticAssign,
                span,
                "Static assign cannot be used with type annotations",
                "remove the annotation or `oc.static`",
            ));
        }
        let term = match &typed {
            Some(ty) => self.typed_member(ty, term, value.span)?,
            None => Term::Value(self.value_stored_as(term, dtype, value.span)?),
        };
        if self.frame().lookup(name).is_some() {
            return self.assign_name_from(name, term, target.span, span);
        }
        self.define(name, term, target.span)
    }

    /// What a place holds.
    pub(crate) fn place_data(&self, place: &Place) -> Data {
        match self.kernel.ty(place.base).place() {
            Some((data, rank)) if place.path.len() > rank => data.elem().map_or(data, Data::from),
            Some((data, _)) => data,
            None => Data::Scalar(Scalar::I32),
        }
    }

    /// Stores a number, cast to what the place holds.
    pub(crate) fn store(&mut self, place: &Place, term: Term<H::Object>, span: Span) -> Fallible<()> {
        let data = self.place_data(place);
        let value = self.value_for(data, term, span)?;
        self.store_place(place, value, span);
        Ok(())
    }

    /// A term converted to what a place holds; a scalar is spread over a tensor's entries.
    pub(crate) fn value_for(&mut self, data: Data, term: Term<H::Object>, span: Span) -> Fallible<Value> {
        let mut rvalue = self.loaded(term, span)?;
        if let Data::Tensor(_) = data
            && let Some(tensor) = self.sequence_tensor(&rvalue, span)?
        {
            rvalue = Term::Value(tensor);
        }
        let fits = match &rvalue {
            Term::Value(value) => {
                let shape = self.data(*value).tensor_shape();
                shape.is_none() || shape == data.tensor_shape()
            }
            Term::Index(values) => {
                data.tensor_shape().is_some_and(|shape| shape.count() as usize == values.len())
            }
            Term::Bool(_) | Term::Int(_) | Term::Float(_) | Term::Formula(_) => true,
            _ => false,
        };
        let Some(elem) = data.elem().filter(|_| fits) else {
            if let Term::Nothing(function) = &rvalue {
                return Err(self.no_value(function, span));
            }
            let given = match &rvalue {
                Term::Value(value) => tensor_text(self.data(*value)),
                _ => None,
            };
            let (what, of) = match given.zip(tensor_text(data)) {
                Some(texts) => texts,
                None => (self.describe(&rvalue), crate::lower::values::convert::describe_data(data)),
            };
            return Err(self.error(Code::LocalType, span, format!("cannot assign {what} to {of}")));
        };
        let value = self.value_stored_as(rvalue, elem, span)?;
        Ok(match (data, self.data(value)) {
            (Data::Tensor(_), Data::Scalar(_)) => self.at(span).splat(data, value),
            _ => value,
        })
    }

    /// `target op= value`: atomic on what other iterations may touch.
    pub(crate) fn assign_augmented(
        &mut self,
        target: &Expr,
        op: BinaryOp,
        value: &Expr,
        span: Span,
    ) -> Fallible<()> {
        let place = match &target.kind {
            ExprKind::Name(name) => {
                if let Some(Binding::Alias { term: Term::Struct(_), .. }) = self.frame().lookup(name)
                    && let Term::Struct(of) = self.name(name, target.span)?
                    && self.is_tile(&of)
                {
                    return self.augment_tile(of, op, value, span);
                }
                self.variable(name, target.span)?
            }
            ExprKind::Subscript { .. } | ExprKind::Attribute { .. } => match self.expr(target)? {
                Term::Place(place) => place,
                Term::Entries(entries) => {
                    let term = self.operand(value)?;
                    return self.augment_entries(&entries, op, (term, value.span), span);
                }
                Term::Encoded(place) => {
                    let term = self.operand(value)?;
                    return self.augment_encoded(&place, op, (term, value.span), span);
                }
                Term::Choice(choice) => {
                    let term = self.operand(value)?;
                    return self.augment_choice(&choice, op, (term, value.span), span);
                }
                Term::Struct(of) if self.is_tile(&of) => return self.augment_tile(of, op, value, span),
                _ => return Err(self.not_assignable(target)),
            },
            _ => return Err(self.not_assignable(target)),
        };
        let term = self.operand(value)?;
        let Some(combine) = Combine::of(op) else {
            let old = self.load_place(&place, target.span);
            let result = self.binary(op, (Term::Value(old), target.span), (term, value.span), span)?;
            return self.store(&place, result, span);
        };
        let data = self.place_data(&place);
        if combine.is_bitwise() {
            self.check_bitwise(combine, data, &term, value.span, span)?;
        }
        let value = self.value_for(data, term, value.span)?;
        self.combine(combine, &place, value, span);
        Ok(())
    }

    /// `v.xy op= value`, entry by entry.
    fn augment_entries(
        &mut self,
        entries: &Entries,
        op: BinaryOp,
        (term, at): (Term<H::Object>, Span),
        span: Span,
    ) -> Fallible<()> {
        let Some(combine) = Combine::of(op) else {
            let old = self.load_entries(entries, span);
            let result = self.binary(op, (Term::Value(old), span), (term, at), span)?;
            return self.store_entries(entries, result, span);
        };
        if combine.is_bitwise() {
            self.check_bitwise(combine, self.entries_data(entries), &term, at, span)?;
        }
        let values = self.values_for_entries(entries, term, at)?;
        for (place, value) in entries.places.iter().zip(values) {
            self.combine(combine, place, value, span);
        }
        Ok(())
    }

    /// `v[i] op= value`, where each entry is in an array of its own.
    fn augment_choice(
        &mut self,
        choice: &Choice,
        op: BinaryOp,
        (term, at): (Term<H::Object>, Span),
        span: Span,
    ) -> Fallible<()> {
        let Some(combine) = Combine::of(op) else {
            let old = self.load_choice(choice, span);
            let result = self.binary(op, (Term::Value(old), span), (term, at), span)?;
            return self.store_choice(choice, &result, span);
        };
        if combine.is_bitwise() {
            self.check_bitwise(combine, self.entries_data(&choice.entries), &term, at, span)?;
        }
        self.for_chosen(choice, span, |lowerer, place| {
            let value = lowerer.value_for(lowerer.place_data(place), term.clone(), at)?;
            lowerer.combine(combine, place, value, span);
            Ok(())
        })
    }

    fn check_bitwise(
        &mut self,
        combine: Combine,
        data: Data,
        term: &Term<H::Object>,
        value_span: Span,
        span: Span,
    ) -> Fallible<()> {
        let value_type = match term {
            Term::Float(_) => self.options.default_fp,
            Term::Value(value) => self.elem(*value),
            _ => Scalar::I32,
        };
        let target_type = data.elem().unwrap_or(Scalar::I32);
        if target_type.is_integral() && value_type.is_integral() {
            return Ok(());
        }
        Err(Box::new(
            self.diagnostic(
                Code::OperandTypes,
                span,
                format!(
                    "unsupported operand type(s) for '{}=': '{}' and '{}'",
                    combine.symbol(),
                    target_type.name(),
                    value_type.name()
                ),
            )
            .label(value_span, "bitwise operators take integers"),
        ))
    }

    /// `place = combine(place, value)`, returning the old value. The value has the place's type.
    pub(crate) fn combine(&mut self, combine: Combine, place: &Place, value: Value, span: Span) -> Value {
        if place.shared {
            let place = &*self.place_for(place, Need::Active, span);
            return self.access(place, span, |builder| {
                builder.atomic(combine.atomic(), place.base, &place.path, value)
            });
        }
        let mut builder = self.at(span);
        let old = builder.load(place.base, &place.path);
        let new = match combine {
            Combine::Add => builder.arith(ArithOp::Add, old, value),
            Combine::Sub => builder.arith(ArithOp::Sub, old, value),
            Combine::Mul => builder.arith(ArithOp::Mul, old, value),
            Combine::Min => builder.arith(ArithOp::Min, old, value),
            Combine::Max => builder.arith(ArithOp::Max, old, value),
            Combine::And => builder.bit(BitOp::And, old, value),
            Combine::Or => builder.bit(BitOp::Or, old, value),
            Combine::Xor => builder.bit(BitOp::Xor, old, value),
            Combine::Exchange => value,
        };
        builder.store(place.base, &place.path, new);
        old
    }

    /// A name that augmented assignment cannot change, as no variable of the function has it.
    fn augmented_global(&mut self, name: &Name, span: Span) -> Fallible<Box<octants_diag::Diagnostic>> {
        let host = self.host;
        let global = host.global(&self.frame().object, name);
        let Some(object) = global.map_err(|exception| self.host_error(exception, span))? else {
            return Ok(Box::new(self.undefined(name, span)));
        };
        let term = Term::Object(object);
        let what = self.describe(&term);
        let message = format!("\"{name}\" is a global ({what}) and cannot be changed as a whole");
        let help = match &term {
            Term::Object(object) if self.is_field_or_node(&term) => match host.field(object) {
                Ok(kind) if kind.layout().is_some_and(|layout| layout.rank() == 0) => {
                    format!("write `{name}[None]`, its only element")
                }
                _ => format!("change an element of it: `{name}[i]`"),
            },
            _ => format!(
                "globals are constants of a kernel: copy it to a variable first, `{name}_ = {name}`, or keep the number in a field of shape ()"
            ),
        };
        Ok(self.error_with_help(Code::GlobalAssigned, span, message, help))
    }

    /// The place of a name that augmented assignment changes.
    fn variable(&mut self, name: &Name, span: Span) -> Fallible<Place> {
        match self.frame().lookup(name).cloned() {
            None => Err(self.augmented_global(name, span)?),
            Some(Binding::Alias { term: Term::Place(place), kind: AliasKind::Reference, .. }) => Ok(place),
            Some(Binding::Alias { kind, term, span: defined }) => {
                Err(self.not_reassignable(name, kind, &term, defined, span))
            }
            Some(Binding::Variable { place, in_parallel, .. }) => {
                let shared = self.in_parallel && !in_parallel;
                Ok(Place { base: place, path: Vec::new(), shared, guard: None, sparse: None })
            }
        }
    }
}

/// Whether it is memory that names only stand for.
fn is_array<O>(term: &Term<O>) -> bool {
    matches!(term, Term::Array(_) | Term::Structs(_) | Term::View(_))
}

/// `'[Tensor (3) i32]'`
fn tensor_text(data: Data) -> Option<String> {
    let Data::Tensor(TensorType { elem, shape }) = data else { return None };
    let dims = match shape {
        TensorShape::Vector(n) => format!("({n})"),
        TensorShape::Matrix(n, m) => format!("({n}, {m})"),
    };
    Some(format!("'[Tensor {dims} {}]'", elem.name()))
}

/// Updates that have an atomic form.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Combine {
    Add,
    Sub,
    Mul,
    Min,
    Max,
    And,
    Or,
    Xor,
    Exchange,
}

impl Combine {
    /// The operators whose augmented assignment is atomic; the others are load, op, store.
    fn of(op: BinaryOp) -> Option<Self> {
        match op {
            BinaryOp::Add => Some(Self::Add),
            BinaryOp::Sub => Some(Self::Sub),
            BinaryOp::BitAnd => Some(Self::And),
            BinaryOp::BitOr => Some(Self::Or),
            BinaryOp::BitXor => Some(Self::Xor),
            BinaryOp::Mul
            | BinaryOp::Div
            | BinaryOp::FloorDiv
            | BinaryOp::Mod
            | BinaryOp::Pow
            | BinaryOp::Shl
            | BinaryOp::Shr
            | BinaryOp::MatMul => None,
        }
    }

    pub(crate) fn is_bitwise(self) -> bool {
        matches!(self, Self::And | Self::Or | Self::Xor)
    }

    fn symbol(self) -> &'static str {
        match self {
            Self::And => "&",
            Self::Or => "|",
            Self::Xor => "^",
            Self::Add => "+",
            Self::Sub => "-",
            Self::Mul => "*",
            Self::Min => "min",
            Self::Max => "max",
            Self::Exchange => "exchange",
        }
    }

    fn atomic(self) -> AtomicOp {
        match self {
            Self::Add => AtomicOp::Add,
            Self::Sub => AtomicOp::Sub,
            Self::Mul => AtomicOp::Mul,
            Self::Min => AtomicOp::Min,
            Self::Max => AtomicOp::Max,
            Self::And => AtomicOp::And,
            Self::Or => AtomicOp::Or,
            Self::Xor => AtomicOp::Xor,
            Self::Exchange => AtomicOp::Exchange,
        }
    }
}
