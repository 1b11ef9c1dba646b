//! Reads and writes of places.
//!
//! A place of a clamped array or view is *guarded*: its index is inside wherever there is an element, so the access takes place
//! only then. Without one it reads zero and writes nothing.

use std::borrow::Cow;

use octants_diag::Span;
use octants_ir::ops::{ArithOp, BitOp, CompareOp};
use octants_ir::{Boundary, Builder, Const, Data, Scalar, Type, Value};

use crate::host::Host;
use crate::lower::Lowerer;
use crate::lower::data::term::Place;
use crate::lower::sparse::Need;

impl<H: Host> Lowerer<'_, H> {
    pub(crate) fn load_place(&mut self, place: &Place, span: Span) -> Value {
        let found = &*self.place_for(place, Need::Read, span);
        let value = self.access(found, span, |builder| builder.load(found.base, &found.path));
        self.note_shared_load(place, value);
        value
    }

    pub(crate) fn volatile_load_place(&mut self, place: &Place, span: Span) -> Value {
        let place = &*self.place_for(place, Need::Read, span);
        self.access(place, span, |builder| builder.volatile_load(place.base, &place.path))
    }

    /// The place itself, or where an element of a sparse field is found.
    pub(crate) fn place_for<'p>(&mut self, place: &'p Place, need: Need, span: Span) -> Cow<'p, Place> {
        if place.sparse.is_some() { Cow::Owned(self.found(place, need, span)) } else { Cow::Borrowed(place) }
    }

    pub(crate) fn store_place(&mut self, place: &Place, value: Value, span: Span) {
        if let Some((op, value)) = self.update_of_shared(place, value) {
            let place = &*self.place_for(place, Need::Active, span);
            self.at(span).atomic(op, place.base, &place.path, value);
            return;
        }
        let place = &*self.place_for(place, Need::Active, span);
        let mut builder = self.at(span);
        match place.guard {
            None => builder.store(place.base, &place.path, value),
            Some(guard) => {
                let store = |builder: &mut Builder<'_>| {
                    builder.store(place.base, &place.path, value);
                    Vec::new()
                };
                builder.if_else(guard, store, |_| Vec::new());
            }
        }
    }

    /// An access that gives what was there before it.
    pub(crate) fn access(
        &mut self,
        place: &Place,
        span: Span,
        build: impl FnOnce(&mut Builder<'_>) -> Value,
    ) -> Value {
        let data = self.place_data(place);
        let mut builder = self.at(span);
        let Some(guard) = place.guard else { return build(&mut builder) };
        let results =
            builder.if_else(guard, |builder| vec![build(builder)], |builder| vec![zero(builder, data)]);
        results[0]
    }

    /// Whether a clamped array has elements; `None` where indices are not clamped. The first axis may be cut to a size.
    pub(crate) fn guard(&mut self, array: Value, size: Option<Value>, span: Span) -> Option<Value> {
        let Type::Array(ty) = self.kernel.ty(array) else { return None };
        if ty.boundary != Boundary::Clamp {
            return None;
        }
        let mut guard = None;
        for axis in 0..ty.rank {
            let mut builder = self.at(span);
            let extent = match size {
                Some(size) if axis == 0 => size,
                _ => builder.extent(array, axis),
            };
            let zero = builder.i32(0);
            let some = builder.compare(CompareOp::Gt, extent, zero);
            guard = Some(match guard {
                None => some,
                Some(others) => builder.bit(BitOp::And, others, some),
            });
        }
        guard
    }

    /// `low <= value <= high`, by the nearest of them.
    pub(crate) fn cut(&mut self, value: Value, low: Value, high: Value, span: Span) -> Value {
        let mut builder = self.at(span);
        let above = builder.arith(ArithOp::Max, value, low);
        builder.arith(ArithOp::Min, above, high)
    }

    /// An integer as `i32`; what does not fit becomes the nearest that does.
    pub(crate) fn saturated(&mut self, value: Value, span: Span) -> Value {
        let ty = self.elem(value);
        if let Some(known) = self.kernel.as_const(value).and_then(Const::as_i128) {
            let known = known.clamp(i32::MIN.into(), i32::MAX.into());
            return self.at(span).i32(known as i32);
        }
        let low = match ty {
            Scalar::I64 => Some(i32::MIN),
            Scalar::U32 | Scalar::U64 => None,
            _ => return self.cast(value, Scalar::I32, span),
        };
        let mut builder = self.at(span);
        let high = builder.constant(Const::from_i128(ty, i32::MAX.into()));
        let mut cut = builder.arith(ArithOp::Min, value, high);
        if let Some(low) = low {
            let low = builder.constant(Const::from_i128(ty, low.into()));
            cut = builder.arith(ArithOp::Max, cut, low);
        }
        self.cast(cut, Scalar::I32, span)
    }
}

fn zero(builder: &mut Builder<'_>, data: Data) -> Value {
    let scalar = builder.constant(Const::from_bits(data.elem().unwrap_or(Scalar::I32), 0));
    match data {
        Data::Tensor(_) => builder.splat(data, scalar),
        Data::Scalar(_) | Data::Struct(_) => scalar,
    }
}
