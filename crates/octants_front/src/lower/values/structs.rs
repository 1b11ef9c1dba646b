//! Structs: values with named members. They exist in the front end only: the kernel sees their members.

use octants_diag::{Code, Span};
use octants_ir::{Data, Func, Type, Value};

use crate::ast::Name;
use crate::host::{Annotation, Host, Meaning};
use crate::lower::Lowerer;
use crate::lower::data::argument::Argument;
use crate::lower::data::term::{Method, Place, Struct, Term};
use crate::lower::error::Fallible;

impl<H: Host> Lowerer<'_, H> {
    /// The members of a struct type, in order.
    pub(crate) fn members_of(&mut self, ty: &H::Object, span: Span) -> Fallible<Vec<(Name, H::Object)>> {
        self.named(ty, "members", span)
    }

    /// An attribute of a host object that is a dict with names as keys.
    fn named(&mut self, object: &H::Object, attribute: &str, span: Span) -> Fallible<Vec<(Name, H::Object)>> {
        let host = self.host;
        let dict = host.getattr(object, attribute, self).map_err(|e| self.host_error(e, span))?;
        let named = host.pairs(&dict).into_iter().filter_map(|(key, value)| match host.meaning(&key) {
            Meaning::Str(name) => Some((Name::from(name), value)),
            _ => None,
        });
        Ok(named.collect())
    }

    pub(crate) fn new_struct(
        &self,
        members: Vec<(Name, Term<H::Object>)>,
        ty: Option<H::Object>,
    ) -> Term<H::Object> {
        Term::Struct(Struct { members, ty, in_parallel: self.in_parallel })
    }

    /// `Struct(**members)` or `Struct(dict)`
    pub(crate) fn struct_call(
        &mut self,
        arguments: &[Argument<H::Object>],
        span: Span,
    ) -> Fallible<Term<H::Object>> {
        if let [Argument { name: None, term, span: at, .. }] = arguments {
            let Some(members) = self.struct_members(term, *at)? else {
                let what = self.describe(term);
                return Err(self.error_with_help(
                    Code::StructMembers,
                    *at,
                    format!("a struct cannot be made from {what}"),
                    "write `oc.Struct(x=1, y=2)` or `oc.Struct({\"x\": 1})`",
                ));
            };
            return self.untyped(members, *at);
        }
        let mut members = Vec::new();
        for argument in arguments {
            let Some(name) = &argument.name else {
                return Err(self.error(
                    Code::StructMembers,
                    argument.span,
                    "oc.Struct takes one dict, or its members as keywords",
                ));
            };
            members.push((name.clone(), argument.term.clone()));
        }
        self.untyped(members, span)
    }

    /// Members without declared types: dicts are structs, lists are vectors or matrices.
    fn untyped(&mut self, members: Vec<(Name, Term<H::Object>)>, span: Span) -> Fallible<Term<H::Object>> {
        let mut typed = Vec::with_capacity(members.len());
        for (name, term) in members {
            if &*name == "__struct_methods" {
                continue;
            }
            let rvalue = self.loaded(term, span)?;
            let term = match rvalue {
                Term::Dict(_) => {
                    let inner = self.struct_members(&rvalue, span)?.unwrap_or_default();
                    self.untyped(inner, span)?
                }
                Term::Struct(_) => rvalue,
                number => Term::Value(self.number_or_tensor(number, span)?),
            };
            typed.push((name, term));
        }
        Ok(self.new_struct(typed, None))
    }

    /// The members of a struct or dict.
    pub(crate) fn struct_members(
        &mut self,
        term: &Term<H::Object>,
        span: Span,
    ) -> Fallible<Option<Vec<(Name, Term<H::Object>)>>> {
        match term {
            Term::Struct(of) => Ok(Some(of.members.clone())),
            Term::Static(inner) => self.struct_members(&inner.clone(), span),
            Term::Dict(items) => {
                let mut members = Vec::new();
                for (key, value) in items.clone() {
                    let Term::Str(name) = self.rvalue(key, span)? else { return Ok(None) };
                    members.push((name, value));
                }
                Ok(Some(members))
            }
            Term::Object(object) => match self.host.meaning(object) {
                Meaning::Expr(id) => {
                    let inner = self.expression(id, span)?;
                    self.struct_members(&inner, span)
                }
                Meaning::Struct { members, .. } => {
                    let named = members.into_iter().map(|(name, member)| (name.into(), Term::Object(member)));
                    Ok(Some(named.collect()))
                }
                Meaning::Dict => {
                    let items = self
                        .host
                        .pairs(object)
                        .into_iter()
                        .map(|(key, value)| (Term::Object(key), Term::Object(value)));
                    self.struct_members(&Term::Dict(items.collect()), span)
                }
                _ => Ok(None),
            },
            _ => Ok(None),
        }
    }

    /// A struct type, called: members in order or by name, or another struct with the same members.
    pub(crate) fn struct_type_call(
        &mut self,
        ty: &H::Object,
        arguments: &[Argument<H::Object>],
        span: Span,
    ) -> Fallible<Term<H::Object>> {
        let types = self.members_of(ty, span)?;
        if let [Argument { name: None, term, span: at, .. }] = arguments
            && let Some(given) = self.struct_members(term, *at)?
        {
            let first_is_struct = types
                .first()
                .is_some_and(|(_, first)| matches!(self.host.annotation(first), Annotation::Struct(_)));
            if !first_is_struct || same_names(&given, &types) {
                return self.struct_from(ty, given, *at);
            }
        }
        let mut given: Vec<Option<(Term<H::Object>, Span)>> = types.iter().map(|_| None).collect();
        let mut next = 0;
        for argument in arguments {
            let position = match &argument.name {
                None => {
                    next += 1;
                    next - 1
                }
                Some(name) => types.iter().position(|(known, _)| known == name).unwrap_or(usize::MAX),
            };
            match given.get_mut(position) {
                Some(slot @ None) => *slot = Some((argument.term.clone(), argument.span)),
                found => {
                    let known: Vec<_> = types.iter().map(|(name, _)| format!("`{name}`")).collect();
                    let message = match (&argument.name, found.is_some()) {
                        (Some(name), true) => format!("member `{name}` is given twice"),
                        (Some(name), false) => format!("the struct has no member `{name}`"),
                        (None, _) => {
                            format!(
                                "the struct has {}, got {}",
                                crate::lower::error::counted(known.len(), "member", "members"),
                                arguments.len()
                            )
                        }
                    };
                    let noun = if known.len() == 1 { "member" } else { "members" };
                    let help = format!("it has the {noun} {}", known.join(", "));
                    return Err(self.error_with_help(Code::StructMembers, argument.span, message, help));
                }
            }
        }
        let mut members = Vec::with_capacity(types.len());
        for ((name, member), given) in types.into_iter().zip(given) {
            let (term, at) = given.unwrap_or((Term::Int(0), span));
            members.push((name.clone(), self.typed_member(&member, term, at)?));
        }
        Ok(self.new_struct(members, Some(ty.clone())))
    }

    /// A struct of a type from members of the same names.
    fn struct_from(
        &mut self,
        ty: &H::Object,
        given: Vec<(Name, Term<H::Object>)>,
        span: Span,
    ) -> Fallible<Term<H::Object>> {
        let types = self.members_of(ty, span)?;
        if !same_names(&given, &types) {
            let list = |names: Vec<&Name>| {
                names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
            };
            let known = list(types.iter().map(|(name, _)| name).collect());
            let found = list(given.iter().map(|(name, _)| name).collect());
            return Err(self.error(
                Code::StructMembers,
                span,
                format!("the struct has the members {known}, got {found}"),
            ));
        }
        let mut members = Vec::with_capacity(types.len());
        for (name, member) in types {
            let term =
                given.iter().find(|(known, _)| *known == name).map_or(Term::Int(0), |(_, term)| term.clone());
            members.push((name, self.typed_member(&member, term, span)?));
        }
        Ok(self.new_struct(members, Some(ty.clone())))
    }

    /// A term as a value of a declared type; a number fills a vector or matrix, and goes to the first member of a struct.
    pub(crate) fn typed_member(
        &mut self,
        ty: &H::Object,
        term: Term<H::Object>,
        span: Span,
    ) -> Fallible<Term<H::Object>> {
        let annotation = self.host.annotation(ty);
        if let Annotation::Struct(_) = annotation {
            if let Some(given) = self.struct_members(&term, span)? {
                return self.struct_from(ty, given, span);
            }
            let rvalue = self.rvalue(term, span)?;
            if !super::fold::is_number(&rvalue)
                && !matches!(&rvalue, Term::Value(value) if self.data(*value).scalar().is_some())
            {
                let what = self.describe(&rvalue);
                return Err(self.error(
                    Code::StructType,
                    span,
                    format!("a struct cannot be made from {what}"),
                ));
            }
            // The number goes to the first member; the others are zero.
            let mut members = Vec::new();
            let mut number = rvalue;
            for (name, member) in self.members_of(ty, span)? {
                let term = std::mem::replace(&mut number, Term::Int(0));
                members.push((name, self.typed_member(&member, term, span)?));
            }
            return Ok(self.new_struct(members, Some(ty.clone())));
        }
        match self.data_of(&annotation) {
            Some(Data::Tensor(tensor)) => self.typed_tensor(tensor, vec![term], span).map(Term::Value),
            Some(Data::Scalar(scalar)) => {
                let rvalue = self.loaded(term, span)?;
                self.convert(rvalue, scalar, span).map(Term::Value)
            }
            _ => Err(self.error(Code::StructType, span, "a member of a struct has another type")),
        }
    }

    /// `s.name`: a member, a vector that is kept as members, or a method.
    pub(crate) fn struct_attribute(
        &mut self,
        of: Struct<H::Object>,
        name: &str,
        span: Span,
    ) -> Fallible<Term<H::Object>> {
        if let Some(member) = of.member(name) {
            return Ok(member.clone());
        }
        if let Some(ty) = of.ty.clone() {
            let unpacked = self.named(&ty, "unpacked", span)?;
            if let Some((_, names)) = unpacked.iter().find(|(known, _)| **known == *name) {
                let names = self.items(&Term::Object(names.clone()), span)?.unwrap_or_default();
                let mut parts = Vec::new();
                for part in names {
                    if let Term::Str(part) = self.rvalue(part, span)? {
                        parts.extend(of.member(&part).cloned());
                    }
                }
                self.unpacked.push(span);
                return Ok(Term::Tuple(parts));
            }
            let methods = self.named(&ty, "methods", span)?;
            if let Some((_, function)) = methods.into_iter().find(|(known, _)| **known == *name) {
                return self.method_of(of, function, span);
            }
        }
        match name {
            "keys" => Ok(Term::List(of.members.iter().map(|(name, _)| Term::Str(name.clone())).collect())),
            "items" => Ok(Term::List(
                of.members
                    .into_iter()
                    .map(|(name, member)| Term::Tuple(vec![Term::Str(name), member]))
                    .collect(),
            )),
            "entries" => Ok(Term::Dict(
                of.members.into_iter().map(|(name, member)| (Term::Str(name), member)).collect(),
            )),
            _ => {
                let known: Vec<_> = of.members.iter().map(|(name, _)| format!("`{name}`")).collect();
                Err(self.error_with_help(
                    Code::NoAttribute,
                    span,
                    format!("the struct has no member `{name}`"),
                    format!("it has {}", known.join(", ")),
                ))
            }
        }
    }

    fn method_of(
        &mut self,
        of: Struct<H::Object>,
        function: H::Object,
        span: Span,
    ) -> Fallible<Term<H::Object>> {
        let host = self.host;
        match &*host.type_name(&function) {
            "staticmethod" => {
                let inner =
                    host.getattr(&function, "__func__", self).map_err(|e| self.host_error(e, span))?;
                Ok(Term::Object(inner))
            }
            "property" => {
                let inner = host.getattr(&function, "fget", self).map_err(|e| self.host_error(e, span))?;
                self.inline_method(&inner, (Term::Struct(of), true), Vec::new(), span)
            }
            _ => Ok(Term::Method(Box::new(Method {
                function,
                receiver: Term::Struct(of),
                by_reference: true,
            }))),
        }
    }

    /// Whole-struct assignment: member by member, between structs with the same members.
    pub(crate) fn store_struct(
        &mut self,
        target: &Struct<H::Object>,
        term: &Term<H::Object>,
        span: Span,
    ) -> Fallible<()> {
        let Some(given) = self.struct_members(term, span)? else {
            let what = self.describe(term);
            return Err(self.error(
                Code::StructType,
                span,
                format!("only a struct or a dict can be assigned to a struct, not {what}"),
            ));
        };
        let names = |members: &[(Name, Term<H::Object>)]| {
            members.iter().map(|(name, _)| format!("`{name}`")).collect::<Vec<_>>().join(", ")
        };
        if given.len() != target.members.len() || given.iter().any(|(name, _)| target.member(name).is_none())
        {
            let (known, found) = (names(&target.members), names(&given));
            return Err(self.error(
                Code::StructType,
                span,
                format!("a struct with the members {found} cannot be assigned to one with {known}"),
            ));
        }
        // All members are read before any is written.
        let mut rvalue = Vec::with_capacity(given.len());
        for (name, term) in given {
            rvalue.push((name, self.loaded(term, span)?));
        }
        for (name, term) in rvalue {
            let Some(member) = target.member(&name) else { continue };
            match member {
                Term::Place(place) => self.store(place, term, span)?,
                Term::Entries(entries) => self.store_entries(entries, term, span)?,
                Term::Struct(inner) => self.store_struct(inner, &term, span)?,
                _ => {
                    return Err(self.error(
                        Code::AssignTarget,
                        span,
                        "this struct cannot be assigned to: it is not a variable",
                    ));
                }
            }
        }
        Ok(())
    }

    /// The struct with its members marked as seen by all iterations.
    pub(crate) fn shared_struct(of: &Struct<H::Object>) -> Struct<H::Object> {
        let share = |term: &Term<H::Object>| match term {
            Term::Place(place) => Term::Place(Place { shared: true, ..place.clone() }),
            Term::Struct(inner) => Term::Struct(Self::shared_struct(inner)),
            other => other.clone(),
        };
        let members = of.members.iter().map(|(name, member)| (name.clone(), share(member))).collect();
        Struct { members, ..of.clone() }
    }

    /// Adds the parameters of a kernel for a value of a declared type, one for each scalar, and puts the value together.
    pub(crate) fn typed_param(
        &mut self,
        name: &str,
        ty: &H::Object,
        span: Span,
    ) -> Fallible<Term<H::Object>> {
        self.typed_param_of(None, name, ty, span)
    }

    /// Likewise of a function of the kernel, if one is given.
    pub(crate) fn typed_param_of(
        &mut self,
        function: Option<Func>,
        name: &str,
        ty: &H::Object,
        span: Span,
    ) -> Fallible<Term<H::Object>> {
        let add = |lowerer: &mut Self, name: &str, ty: Type| match function {
            Some(function) => lowerer.kernel.add_function_param(function, name, ty),
            None => lowerer.kernel.add_param(name, ty),
        };
        let annotation = self.host.annotation(ty);
        if let Annotation::Struct(_) = annotation {
            let mut members = Vec::new();
            for (member, ty) in self.members_of(ty, span)? {
                let term = self.typed_param_of(function, &format!("{name}.{member}"), &ty, span)?;
                members.push((member, term));
            }
            return Ok(self.new_struct(members, Some(ty.clone())));
        }
        match self.data_of(&annotation) {
            Some(Data::Tensor(tensor)) => {
                let entries: Vec<Value> = (0..tensor.shape.count())
                    .map(|at| add(self, &format!("{name}.{at}"), tensor.elem.into()))
                    .collect();
                Ok(Term::Value(self.at(span).tensor(Data::Tensor(tensor), entries)))
            }
            Some(data) => Ok(Term::Value(add(self, name, Type::Data(data)))),
            None => Err(self.error(Code::InvalidAnnotation, span, "a parameter of this type has no value")),
        }
    }
}

fn same_names<A, B>(given: &[(Name, A)], types: &[(Name, B)]) -> bool {
    given.len() == types.len() && types.iter().all(|(name, _)| given.iter().any(|(known, _)| known == name))
}
