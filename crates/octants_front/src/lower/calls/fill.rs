//! `x.fill(value)` of a field, an array or a view: part of the kernel, like a loop over all elements.
//!
//! The loop is written in the kernel language, in the package. Here the value is evaluated and converted, once, before the loop.

use octants_diag::{Code, Span};
use octants_ir::Type;

use crate::ast::Name;
use crate::host::{FieldKind, Host};
use crate::lower::Lowerer;
use crate::lower::data::argument::Argument;
use crate::lower::data::term::Term;
use crate::lower::error::Fallible;

impl<H: Host> Lowerer<'_, H> {
    /// Calls the `fill` of what `target` is.
    pub(crate) fn fill_call(
        &mut self,
        target: Term<H::Object>,
        arguments: Vec<Argument<H::Object>>,
        span: Span,
    ) -> Fallible<Term<H::Object>> {
        let is_value = |name: &Option<Name>| match name.as_deref() {
            None => true,
            Some(name) => matches!(name, "val" | "value"),
        };
        let [argument] = &*arguments else { return Err(self.fill_arguments(span)) };
        if !is_value(&argument.name) {
            return Err(self.fill_arguments(argument.span));
        }
        let at = argument.span;
        let rvalue = self.loaded(argument.term.clone(), at)?;
        let value = match &target {
            Term::Array(array) => self.element_value(*array, rvalue, at)?,
            Term::View(view) => self.element_value(view.array, rvalue, at)?,
            Term::Object(field) => {
                let kind = self.field_kind(field, span)?;
                self.fill_value(&kind, rvalue, at)?
            }
            _ => return Err(self.fill_arguments(span)),
        };
        let Some(function) = self.host.array_method("fill") else {
            return Err(self.error(Code::NoAttribute, span, "arrays of this host have no `fill` in kernels"));
        };
        let argument = Argument { name: None, term: value, span: at, is_literal: false };
        self.inline_method(&function, (target, true), vec![argument], span)?;
        Ok(Term::None)
    }

    fn fill_arguments(&self, span: Span) -> Box<octants_diag::Diagnostic> {
        self.error(Code::IntrinsicArguments, span, "`fill` takes one value: `x.fill(value)`")
    }

    fn element_value(
        &mut self,
        array: octants_ir::Value,
        term: Term<H::Object>,
        span: Span,
    ) -> Fallible<Term<H::Object>> {
        match self.kernel.ty(array) {
            Type::Array(ty) => self.value_for(ty.elem, term, span).map(Term::Value),
            _ => Ok(term),
        }
    }

    /// The value of each element; one number is for all members and entries.
    fn fill_value(
        &mut self,
        kind: &FieldKind,
        term: Term<H::Object>,
        span: Span,
    ) -> Fallible<Term<H::Object>> {
        match kind {
            FieldKind::Leaf { elem, .. } => self.value_for(*elem, term, span).map(Term::Value),
            // Entries may have different types: the assignment in the loop converts each.
            FieldKind::Entries { .. } => Ok(term),
            FieldKind::Struct { members } => {
                let given = self.struct_members(&term, span)?;
                let fits = |given: &Vec<(Name, Term<H::Object>)>| {
                    given.len() == members.len()
                        && members.iter().all(|(name, _)| given.iter().any(|(known, _)| **known == **name))
                };
                if given.as_ref().is_some_and(|given| !fits(given)) {
                    let known: Vec<_> = members.iter().map(|(name, _)| format!("`{name}`")).collect();
                    let known = known.join(", ");
                    return Err(self.error(
                        Code::StructMembers,
                        span,
                        format!("the field has the members {known}, and is filled with all of them or with one number"),
                    ));
                }
                let mut values = Vec::with_capacity(members.len());
                for (name, member) in members {
                    let part = given.as_ref().and_then(|given| {
                        given.iter().find(|(known, _)| **known == **name).map(|(_, part)| part.clone())
                    });
                    let part = self.loaded(part.unwrap_or_else(|| term.clone()), span)?;
                    values.push((Name::from(name.as_str()), self.fill_value(member, part, span)?));
                }
                Ok(self.new_struct(values, None))
            }
        }
    }
}
