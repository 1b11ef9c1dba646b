//! One of several scalars in memory, where only the run tells which: an entry of a field that has an array for each entry.

use octants_diag::Span;
use octants_ir::ops::{ArithOp, CompareOp};
use octants_ir::{OpKind, Value};

use crate::host::Host;
use crate::lower::Lowerer;
use crate::lower::data::term::{Choice, Place, Term};
use crate::lower::error::Fallible;

impl<H: Host> Lowerer<'_, H> {
    pub(crate) fn load_choice(&mut self, choice: &Choice, span: Span) -> Value {
        let value = self.load_entries(&choice.entries, span);
        self.tensor_entry(value, &choice.components, span)
    }

    pub(crate) fn store_choice(
        &mut self,
        choice: &Choice,
        term: &Term<H::Object>,
        span: Span,
    ) -> Fallible<()> {
        self.for_chosen(choice, span, |lowerer, place| lowerer.store(place, term.clone(), span))
    }

    /// Builds what is done to the chosen place: `if at == 0 { … } if at == 1 { … } …`. Beyond the entries, nothing is done.
    pub(crate) fn for_chosen(
        &mut self,
        choice: &Choice,
        span: Span,
        mut build: impl FnMut(&mut Self, &Place) -> Fallible<()>,
    ) -> Fallible<()> {
        let at = self.flat_component(&choice.components, &choice.entries.shape.dims(), span);
        let places = &choice.entries.places;
        self.for_number(at, places.len(), span, |inner, number| build(inner, &places[number]))
    }

    /// The number of an entry in row-major order.
    pub(crate) fn flat_component(&mut self, components: &[Value], dims: &[u32], span: Span) -> Value {
        let mut at = components[0];
        for (&component, &extent) in components.iter().zip(dims).skip(1) {
            let mut builder = self.at(span);
            let extent = builder.i32(extent as i32);
            let above = builder.arith(ArithOp::Mul, at, extent);
            at = builder.arith(ArithOp::Add, above, component);
        }
        at
    }

    /// Builds what is done for the number that a value has.
    pub(crate) fn for_number(
        &mut self,
        at: Value,
        count: usize,
        span: Span,
        mut build: impl FnMut(&mut Self, usize) -> Fallible<()>,
    ) -> Fallible<()> {
        for number in 0..count {
            let mut builder = self.at(span);
            let this = builder.i32(number as i32);
            let chosen = builder.compare(CompareOp::Eq, at, this);
            let (then_region, ()) = self.open_region(&[], |inner, _| build(inner, number))?;
            self.end_region(then_region, span, &[]);
            let (else_region, ()) = self.open_region(&[], |_, _| Ok(()))?;
            self.end_region(else_region, span, &[]);
            self.at(span).op(OpKind::If, [chosen], [], [then_region, else_region]);
        }
        Ok(())
    }
}
