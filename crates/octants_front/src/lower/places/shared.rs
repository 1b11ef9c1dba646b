//! Arrays that the threads of a block share: what they consist of, and what is known of them while compiling, which is their shape.

use octants_diag::{Code, Diagnostic, Span};
use octants_ir::{Const, Data, OpKind, Scalar, TensorShape, Type, Value, ValueDef};

use super::slice::has_slice;
use crate::ast::{Expr, Name};
use crate::host::{Annotation, Host, Meaning};
use crate::intrinsics::Intrinsic;
use crate::lower::Lowerer;
use crate::lower::data::argument::Argument;
use crate::lower::data::term::{Struct, StructArray, Term};
use crate::lower::error::Fallible;

/// What an array consists of.
pub(crate) enum Element<O> {
    Data(Data),
    Struct(Vec<(Name, Element<O>)>, O),
}

impl<O> Element<O> {
    pub(crate) fn bytes(&self) -> u128 {
        match self {
            Self::Data(data) => {
                u128::from(data.elem().map_or(0, Scalar::bytes))
                    * u128::from(data.tensor_shape().map_or(1, TensorShape::count))
            }
            Self::Struct(members, _) => members.iter().map(|(_, member)| member.bytes()).sum(),
        }
    }
}

impl<H: Host> Lowerer<'_, H> {
    /// The type of elements that an argument names.
    pub(crate) fn element_of_shared(&mut self, dtype: &Argument<H::Object>) -> Fallible<Element<H::Object>> {
        let term = self.rvalue(dtype.term.clone(), dtype.span)?;
        if let Term::Object(object) = &term
            && let Meaning::Intrinsic(Intrinsic::MatrixType | Intrinsic::StructType) =
                self.host.meaning(object)
            && let Some(element) = self.element_of_type(object, dtype.span)?
        {
            return Ok(element);
        }
        self.dtype(&dtype.term, dtype.span).map(|scalar| Element::Data(Data::Scalar(scalar)))
    }

    fn element_of_type(&mut self, ty: &H::Object, span: Span) -> Fallible<Option<Element<H::Object>>> {
        let annotation = self.host.annotation(ty);
        if !matches!(annotation, Annotation::Struct(_)) {
            return Ok(self.data_of(&annotation).map(Element::Data));
        }
        let mut members = Vec::new();
        for (name, member) in self.members_of(ty, span)? {
            let Some(element) = self.element_of_type(&member, span)? else { return Ok(None) };
            members.push((name, element));
        }
        Ok(Some(Element::Struct(members, ty.clone())))
    }

    /// Memory of the block; of structs, an array for each member.
    pub(crate) fn new_shared(
        &mut self,
        element: &Element<H::Object>,
        extents: &[u32],
        span: Span,
    ) -> Term<H::Object> {
        match element {
            Element::Data(data) => {
                let array = self.at(span).shared(*data, extents);
                if let (ValueDef::Result(op, _), Some(nest)) =
                    (self.kernel.values[array].def, self.parallel_nest.as_mut())
                {
                    nest.shared.push((op, span));
                }
                Term::Array(array)
            }
            Element::Struct(members, ty) => {
                let members = members
                    .iter()
                    .map(|(name, member)| (name.clone(), self.new_shared(member, extents, span)))
                    .collect();
                Term::Structs(Box::new(StructArray { members, ty: ty.clone() }))
            }
        }
    }

    /// The extents of a shared array.
    pub(crate) fn shared_extents(&self, term: &Term<H::Object>) -> Option<Vec<u32>> {
        match term {
            Term::Array(array) => {
                if !matches!(self.kernel.def(*array).map(|op| &op.kind), Some(OpKind::Shared)) {
                    return None;
                }
                let Type::Array(ty) = self.kernel.ty(*array) else { return None };
                Some(self.kernel.layouts[ty.layout?].shape.clone())
            }
            Term::Structs(array) => array.members.iter().find_map(|(_, member)| self.shared_extents(member)),
            Term::Static(inner) => self.shared_extents(inner),
            _ => None,
        }
    }

    /// `array.shape`; that of a shared array is known.
    pub(crate) fn array_shape(&self, array: Value) -> Term<H::Object> {
        match self.shared_extents(&Term::Array(array)) {
            Some(extents) => known_shape(&extents),
            None => Term::Shape(array),
        }
    }

    /// An index that is known and lies outside of a shared array.
    pub(crate) fn check_constant_indices(
        &self,
        array: Value,
        path: &[Value],
        name: &str,
        spans: &[Span],
        span: Span,
    ) -> Fallible<()> {
        let Some(extents) = self.shared_extents(&Term::Array(array)) else { return Ok(()) };
        for (axis, (&index, extent)) in path.iter().zip(extents).enumerate() {
            let known = self.kernel.as_const(index).and_then(Const::as_i128);
            let Some(known) = known.filter(|known| !(0..i128::from(extent)).contains(known)) else {
                continue;
            };
            // An index may be a vector.
            let at = if spans.len() == path.len() { spans[axis] } else { span };
            return Err(self.error(
                Code::StaticIndexRange,
                at,
                format!("index {known} is out of range of axis {axis} of {name}, which has {extent}"),
            ));
        }
        Ok(())
    }

    /// `array[index]` of an array of structs: a struct of elements.
    pub(crate) fn struct_of_array(
        &mut self,
        array: &StructArray<H::Object>,
        base: &Expr,
        index: &Expr,
        span: Span,
    ) -> Fallible<Term<H::Object>> {
        let name = self.text(base.span);
        if has_slice(index) {
            return Err(self.no_numbers(&name, "a struct", span));
        }
        let items = self.index_operands(index)?;
        self.element_of_structs(array, &name, &items, span)
    }

    fn element_of_structs(
        &mut self,
        array: &StructArray<H::Object>,
        name: &str,
        items: &[(Term<H::Object>, Span)],
        span: Span,
    ) -> Fallible<Term<H::Object>> {
        let mut members = Vec::with_capacity(array.members.len());
        for (member, of) in &array.members {
            let element = match of {
                Term::Array(of) => {
                    Term::Place(self.array_place(*of, &format!("`{name}`"), items.to_vec(), span)?)
                }
                Term::Structs(of) => self.element_of_structs(of, name, items, span)?,
                other => other.clone(),
            };
            members.push((member.clone(), element));
        }
        // Other threads see it, wherever it is named.
        Ok(Term::Struct(Struct { members, ty: Some(array.ty.clone()), in_parallel: true }))
    }

    /// `array.name`: its shape, or the array that a member is.
    pub(crate) fn struct_array_attribute(
        &mut self,
        array: &StructArray<H::Object>,
        name: &str,
        span: Span,
    ) -> Fallible<Term<H::Object>> {
        if let Some((_, member)) = array.members.iter().find(|(known, _)| **known == *name) {
            return Ok(member.clone());
        }
        let whole = Term::Structs(Box::new(array.clone()));
        if let ("shape", Some(extents)) = (name, self.shared_extents(&whole)) {
            return Ok(known_shape(&extents));
        }
        let known: Vec<_> = array.members.iter().map(|(name, _)| format!("`{name}`")).collect();
        Err(self.error_with_help(
            Code::NoAttribute,
            span,
            format!("an array of structs has no attribute `{name}`"),
            format!("it has `shape`, and the members {}", known.join(", ")),
        ))
    }

    /// A function of the kernel's own has no block whose memory it could be passed.
    pub(crate) fn refuse_shared_argument(
        &self,
        argument: &Argument<H::Object>,
        function: &str,
    ) -> Fallible<()> {
        match self.shared_extents(&argument.term) {
            Some(_) => Err(self.shared_argument(function, argument.span)),
            None => Ok(()),
        }
    }

    pub(crate) fn shared_argument(&self, function: &str, span: Span) -> Box<Diagnostic> {
        self.error_with_help(
            Code::ArgumentKind,
            span,
            format!("a shared array cannot be passed to the real function `{function}`"),
            "make it an `@oc.func`, which becomes part of the loop that calls it, or pass elements",
        )
    }
}

fn known_shape<O>(extents: &[u32]) -> Term<O> {
    Term::Tuple(extents.iter().map(|&extent| Term::Int(extent.into())).collect())
}
