//! Elements of what has no memory of its own, such as those of quantised fields: bits of the words of another field.
//!
//! How such an element is read, written and added to is said by functions in the kernel language, which the host gives and which are inlined
//! here. The front end knows no encoding. It knows that elements of a vector or struct are several such elements, and that assignments that
//! follow each other may go into one word: `pending` holds them back and writes them together. Where the host gives no function that reads
//! elements, they can only be added to: those of a list of summands.

use octants_diag::{Code, Span};
use octants_ir::{Data, TensorShape, TensorType, Value};

use crate::ast::Expr;
use crate::host::{BinaryOp, Host, Meaning};
use crate::intrinsics::Intrinsic;
use crate::lower::Lowerer;
use crate::lower::data::argument::Argument;
use crate::lower::data::term::{Encoded, Ndrange, Struct, Term};
use crate::lower::error::Fallible;
use crate::lower::statements::assign::Combine;
use crate::lower::values::promote::promote;

type Items<O> = Vec<(Term<O>, Span)>;

impl<H: Host> Lowerer<'_, H> {
    pub(crate) fn is_encoded(&self, term: &Term<H::Object>) -> bool {
        matches!(term, Term::Object(object) if self.host.encoded_method(object, "add").is_some())
    }

    /// `field[index]`.
    pub(crate) fn encoded_element(
        &mut self,
        field: &H::Object,
        base_expr: &Expr,
        index: &Expr,
        span: Span,
    ) -> Fallible<Term<H::Object>> {
        let items = self.index_operands(index)?;
        let name = self.text(base_expr.span);
        self.encoded_place(field, &name, items, span)
    }

    /// As [`Self::encoded_element`], with indices that are evaluated. The element of a field of structs is a struct of its members' elements.
    fn encoded_place(
        &mut self,
        field: &H::Object,
        name: &str,
        items: Items<H::Object>,
        span: Span,
    ) -> Fallible<Term<H::Object>> {
        let host = self.host;
        let members = self.encoded_attribute(field, "_member_fields", span)?;
        if !matches!(host.meaning(&members), Meaning::None) {
            let ty = self.encoded_attribute(field, "struct_type", span)?;
            let mut terms = Vec::new();
            for (key, member) in host.pairs(&members) {
                let Meaning::Str(key) = host.meaning(&key) else { continue };
                let name = format!("{name}.{key}");
                let term = if let Meaning::Field = host.meaning(&member) {
                    self.field_place(&member, &name, items.clone(), span)?
                } else {
                    self.encoded_place(&member, &name, items.clone(), span)?
                };
                terms.push((key.into(), term));
            }
            return Ok(Term::Struct(Struct { members: terms, ty: Some(ty), in_parallel: true }));
        }
        let bounds = self.encoded_bounds(field, span)?;
        let mut index = Vec::new();
        for (item, at) in items {
            let origin = bounds.get(index.len()).map_or(0, |&(origin, _)| origin);
            self.index_from(item, origin, at, &mut index)?;
        }
        self.check_rank(bounds.len(), index.len(), &format!("`{name}`"), span)?;
        let (origin, shape): (Vec<_>, Vec<_>) = bounds.into_iter().unzip();
        self.check_field_bounds(&origin, &shape, &index, name, span);
        let entries = self.encoded_attribute(field, "_entry_fields", span)?;
        let (fields, shape) = if let Meaning::None = host.meaning(&entries) {
            (vec![field.clone()], None)
        } else {
            let shape = self.encoded_attribute(field, "_element_shape", span)?;
            let shape: Vec<_> = host.items(&shape).iter().map(|extent| self.host_integer(extent)).collect();
            let shape = match *shape {
                [n, m] => TensorShape::Matrix(n as u16, m as u16),
                _ => TensorShape::Vector(shape[0] as u16),
            };
            (host.items(&entries), Some(shape))
        };
        Ok(Term::Encoded(Box::new(Encoded { fields, index, shape, chosen: None })))
    }

    /// The first index along each axis, and how many there are.
    fn encoded_bounds(&mut self, field: &H::Object, span: Span) -> Fallible<Vec<(i32, u32)>> {
        let bounds = self.encoded_attribute(field, "_bounds", span)?;
        let axes = self.host.items(&bounds);
        let of = |axis| {
            let pair: Vec<_> = self.host.items(axis).iter().map(|bound| self.host_integer(bound)).collect();
            (pair[0] as i32, (pair[1] - pair[0]) as u32)
        };
        Ok(axes.iter().map(of).collect())
    }

    fn host_integer(&self, object: &H::Object) -> i128 {
        match self.host.meaning(object) {
            Meaning::Int(value) => value,
            _ => 0,
        }
    }

    fn encoded_attribute(&mut self, field: &H::Object, name: &str, span: Span) -> Fallible<H::Object> {
        let host = self.host;
        host.getattr(field, name, self).map_err(|exception| {
            let mut diagnostic = self.diagnostic(Code::FieldNotPlaced, span, exception.message);
            diagnostic.cause = exception.cause;
            Box::new(diagnostic)
        })
    }

    pub(crate) fn load_encoded(
        &mut self,
        place: &Encoded<H::Object>,
        span: Span,
    ) -> Fallible<Term<H::Object>> {
        self.flush_pending()?;
        self.check_readable(place, Code::NotIndexable, span)?;
        if place.shape.is_none() && place.chosen.is_none() {
            return self.encoded_call(&place.fields[0], &place.index, "load", None, span);
        }
        let mut entries = Vec::with_capacity(place.fields.len());
        for field in &place.fields {
            let term = self.encoded_call(field, &place.index, "load", None, span)?;
            entries.push(self.value(term, span)?);
        }
        let elem =
            entries.iter().map(|&entry| self.elem(entry)).reduce(promote).unwrap_or(self.options.default_fp);
        let entries: Vec<_> = entries.into_iter().map(|entry| self.cast(entry, elem, span)).collect();
        let shape = place.shape.unwrap_or(TensorShape::Vector(entries.len() as u16));
        let tensor = self.at(span).tensor(Data::Tensor(TensorType { elem, shape }), entries);
        Ok(Term::Value(match place.chosen {
            Some(at) => self.tensor_entry(tensor, &[at], span),
            None => tensor,
        }))
    }

    pub(crate) fn store_encoded(
        &mut self,
        place: &Encoded<H::Object>,
        value: Term<H::Object>,
        span: Span,
    ) -> Fallible<()> {
        self.check_readable(place, Code::AssignTarget, span)?;
        if let Some(at) = place.chosen {
            let value = Term::Value(self.value(value, span)?);
            return self.for_number(at, place.fields.len(), span, |lowerer, number| {
                lowerer.hold_store(&place.fields[number], &place.index, value.clone(), span)
            });
        }
        let values = self.encoded_values(place, value, span)?;
        for (field, value) in place.fields.iter().zip(values) {
            self.hold_store(field, &place.index, value, span)?;
        }
        Ok(())
    }

    /// What each entry of an element is given, as values; a number is for all of them.
    fn encoded_values(
        &mut self,
        place: &Encoded<H::Object>,
        term: Term<H::Object>,
        span: Span,
    ) -> Fallible<Vec<Term<H::Object>>> {
        let Some(shape) = place.shape else {
            let value = self.value(term, span)?;
            if self.data(value).tensor_shape().is_some() {
                let what = self.describe(&Term::Value(value));
                let message = format!("cannot assign {what} to {}", self.describe_encoded(place));
                return Err(self.error(Code::LocalType, span, message));
            }
            return Ok(vec![Term::Value(value)]);
        };
        let value = self.number_or_tensor(term, span)?;
        match self.data(value).tensor_shape() {
            None => Ok(vec![Term::Value(value); place.fields.len()]),
            Some(given) if given == shape => {
                Ok(self.tensor_entries(value, span).into_iter().map(Term::Value).collect())
            }
            Some(_) => {
                let what = self.describe(&Term::Value(value));
                let message = format!("cannot assign {what} to {}", self.describe_encoded(place));
                Err(self.error(Code::LocalType, span, message))
            }
        }
    }

    pub(crate) fn describe_encoded(&self, place: &Encoded<H::Object>) -> String {
        match place.shape {
            None if !self.is_readable(place) => {
                format!("an element of a {}", self.host.type_name(&place.fields[0]))
            }
            None => "an element of a quantised field".to_owned(),
            Some(TensorShape::Vector(n)) => format!("a vector of {n} quantised entries"),
            Some(TensorShape::Matrix(n, m)) => format!("a {n}x{m} matrix of quantised entries"),
        }
    }

    fn is_readable(&self, place: &Encoded<H::Object>) -> bool {
        self.host.encoded_method(&place.fields[0], "load").is_some()
    }

    /// Refuses whatever is not adding, where elements can only be added to.
    fn check_readable(&self, place: &Encoded<H::Object>, code: Code, span: Span) -> Fallible<()> {
        if self.is_readable(place) {
            return Ok(());
        }
        let message = format!("{} can only be added to", self.describe_encoded(place));
        Err(self.error_with_help(code, span, message, "use `+=` or `-=`"))
    }

    /// Adds to an element as one indivisible step for each entry; what was there.
    pub(crate) fn add_to_encoded(
        &mut self,
        place: &Encoded<H::Object>,
        value: Term<H::Object>,
        span: Span,
    ) -> Fallible<Term<H::Object>> {
        self.flush_pending()?;
        if place.chosen.is_some() {
            return Err(self.error_with_help(
                Code::AtomicTarget,
                span,
                "an entry of a quantised vector that only the run chooses gives no old value",
                "use `+=`, or an index that is known while compiling",
            ));
        }
        let values = self.encoded_values(place, value, span)?;
        let mut seen = Vec::with_capacity(values.len());
        for (field, value) in place.fields.iter().zip(values) {
            let term = self.encoded_call(field, &place.index, "add", Some(value), span)?;
            seen.push(self.value(term, span)?);
        }
        let Some(shape) = place.shape else { return Ok(Term::Value(seen[0])) };
        let elem =
            seen.iter().map(|&entry| self.elem(entry)).reduce(promote).unwrap_or(self.options.default_fp);
        let seen: Vec<_> = seen.into_iter().map(|entry| self.cast(entry, elem, span)).collect();
        Ok(Term::Value(self.at(span).tensor(Data::Tensor(TensorType { elem, shape }), seen)))
    }

    /// `field[index] op= value`.
    pub(crate) fn augment_encoded(
        &mut self,
        place: &Encoded<H::Object>,
        op: BinaryOp,
        (term, at): (Term<H::Object>, Span),
        span: Span,
    ) -> Fallible<()> {
        let value = match op {
            BinaryOp::Add => term,
            BinaryOp::Sub => {
                let value = Term::Value(self.number_or_tensor(term, at)?);
                self.binary(op, (Term::Int(0), at), (value, at), span)?
            }
            _ => {
                self.check_readable(place, Code::AssignTarget, span)?;
                return Err(self.error_with_help(
                    Code::AssignTarget,
                    span,
                    "elements of a quantised field take `+=` and `-=` alone",
                    "read, calculate and assign: `x[i] = x[i] * 2`",
                ));
            }
        };
        let Some(chosen) = place.chosen else { return self.add_to_encoded(place, value, span).map(|_| ()) };
        let value = Term::Value(self.value(value, at)?);
        self.for_number(chosen, place.fields.len(), span, |lowerer, number| {
            let field = &place.fields[number];
            lowerer.encoded_call(field, &place.index, "add", Some(value.clone()), span).map(|_| ())
        })
    }

    /// `oc.atomic_…(field[index], value)`.
    pub(crate) fn atomic_of_encoded(
        &mut self,
        intrinsic: Intrinsic,
        combine: Combine,
        place: &Encoded<H::Object>,
        operand: Argument<H::Object>,
        span: Span,
    ) -> Fallible<Term<H::Object>> {
        self.check_readable(place, Code::AtomicTarget, span)?;
        let at = operand.span;
        let value = Term::Value(self.number_or_tensor(operand.term, at)?);
        let value = match combine {
            Combine::Add => value,
            Combine::Sub => self.binary(BinaryOp::Sub, (Term::Int(0), at), (value, at), span)?,
            _ => {
                return Err(self.error_with_help(
                    Code::AtomicTarget,
                    span,
                    format!("'{}' does not work on elements of a quantised field", intrinsic.name()),
                    "`atomic_add` and `atomic_sub` do; keep others in an ordinary field",
                ));
            }
        };
        self.add_to_encoded(place, value, span)
    }

    /// `element[components]`: an entry, which the run chooses where its components are not known.
    pub(crate) fn encoded_entry(
        &mut self,
        place: &Encoded<H::Object>,
        components: &[Value],
        span: Span,
    ) -> Term<H::Object> {
        let dims = place.shape.map_or(Vec::new(), TensorShape::dims);
        let known: Option<Vec<_>> =
            components.iter().map(|&component| self.kernel.as_const(component)?.as_i128()).collect();
        if let Some(known) = known {
            let at = known
                .iter()
                .zip(&dims)
                .fold(0, |at, (&component, &extent)| at * i128::from(extent) + component);
            let fields = vec![place.fields[(at as usize).min(place.fields.len() - 1)].clone()];
            return Term::Encoded(Box::new(Encoded {
                fields,
                index: place.index.clone(),
                shape: None,
                chosen: None,
            }));
        }
        let chosen = Some(self.flat_component(components, &dims, span));
        Term::Encoded(Box::new(Encoded { shape: None, chosen, ..place.clone() }))
    }

    /// Several entries of an element, where their components are known.
    pub(crate) fn encoded_entries(
        &mut self,
        place: &Encoded<H::Object>,
        components: &[Vec<Value>],
        shape: TensorShape,
        span: Span,
    ) -> Option<Term<H::Object>> {
        let mut fields = Vec::with_capacity(components.len());
        for components in components {
            match self.encoded_entry(place, components, span) {
                Term::Encoded(entry) if entry.chosen.is_none() => fields.push(entry.fields[0].clone()),
                _ => return None,
            }
        }
        let index = place.index.clone();
        Some(Term::Encoded(Box::new(Encoded { fields, index, shape: Some(shape), chosen: None })))
    }

    /// What a loop over such a field runs over; `None` if the object is none.
    pub(crate) fn encoded_domain(&mut self, object: &H::Object, span: Span) -> Fallible<Option<Ndrange>> {
        let Some(function) = self.host.encoded_method(object, "cells") else { return Ok(None) };
        match self.inline_method(&function, (Term::Object(object.clone()), true), Vec::new(), span)? {
            Term::Ndrange(range, _) => Ok(Some(range)),
            Term::Object(words) => {
                let range = self.field_domain(&words, span)?;
                let extents = self.encoded_attribute(object, "_word_shape", span)?;
                if let Meaning::None = self.host.meaning(&extents) {
                    return Ok(range);
                }
                let items = self.host.items(&extents);
                let extents: Vec<_> = items.iter().map(|extent| self.host_integer(extent) as u32).collect();
                Ok(range.map(|range| self.elements_of_words(range, &extents, span)))
            }
            _ => Ok(None),
        }
    }

    /// The elements of the words that a loop visits, so many along each axis.
    fn elements_of_words(&mut self, mut range: Ndrange, extents: &[u32], span: Span) -> Ndrange {
        if let Some(sparse) = &mut range.sparse {
            sparse.elements = extents.to_vec();
            for &extent in extents.iter().filter(|&&extent| extent > 1) {
                let mut builder = self.at(span);
                range.order.push(range.bounds.len());
                range.bounds.push((builder.i32(0), builder.i32(extent as i32)));
            }
        }
        range
    }

    fn encoded_call(
        &mut self,
        field: &H::Object,
        index: &[Value],
        name: &str,
        value: Option<Term<H::Object>>,
        span: Span,
    ) -> Fallible<Term<H::Object>> {
        let Some(function) = self.host.encoded_method(field, name) else {
            return Err(self.error(Code::NotIndexable, span, "elements of this field cannot be accessed"));
        };
        let argument = |term| Argument { name: None, term, span, is_literal: false };
        let mut arguments = vec![argument(encoded_index(index.to_vec()))];
        arguments.extend(value.map(argument));
        self.inline_access(&function, field, arguments, span)
    }

    /// Inlines a function of the library for an access of the user's, which all that it does is told as.
    pub(crate) fn inline_access(
        &mut self,
        function: &H::Object,
        field: &H::Object,
        arguments: Vec<Argument<H::Object>>,
        span: Span,
    ) -> Fallible<Term<H::Object>> {
        let outer = self.encoded_at;
        self.encoded_at = Some(self.loc(span));
        let result = self.inline_method(function, (Term::Object(field.clone()), true), arguments, span);
        self.encoded_at = outer;
        result
    }
}

/// The index of an element as the library takes it: a vector, or `None` for the one element of a field without axes.
pub(crate) fn encoded_index<O>(index: Vec<Value>) -> Term<O> {
    if index.is_empty() { Term::None } else { Term::Index(index) }
}
