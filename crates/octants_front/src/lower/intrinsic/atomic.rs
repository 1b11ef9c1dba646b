//! Atomic operations and volatile loads.

use octants_diag::{Code, Span};
use octants_ir::ops::CompareOp;
use octants_ir::{Data, Scalar, Type};

use crate::host::Host;
use crate::intrinsics::Intrinsic;
use crate::lower::Lowerer;
use crate::lower::data::argument::Argument;
use crate::lower::data::term::{Place, Term};
use crate::lower::error::Fallible;
use crate::lower::sparse::Need;
use crate::lower::statements::assign::Combine;

impl<H: Host> Lowerer<'_, H> {
    pub(crate) fn atomic(
        &mut self,
        intrinsic: Intrinsic,
        combine: Combine,
        arguments: &[Argument<H::Object>],
        span: Span,
    ) -> Fallible<Term<H::Object>> {
        let [target, operand] = self.required(intrinsic, arguments, ["x", "y"], span)?;
        if let Term::Encoded(place) = &target.term {
            return self.atomic_of_encoded(intrinsic, combine, place, operand, span);
        }
        let place = self.atomic_target(intrinsic, &target)?;
        let data = self.place_data(&place);
        let Some(elem) = data.elem() else { return Err(self.bad_arguments(intrinsic, target.span)) };
        if combine.is_bitwise() && elem.is_real() {
            return Err(self.error(
                Code::IntegralOnly,
                target.span,
                format!("'{}' takes integral inputs only, not {}", intrinsic.name(), elem.name()),
            ));
        }
        let value = self.value_stored_as(operand.term, elem, operand.span)?;
        let value = match (data, self.data(value)) {
            (Data::Tensor(_), Data::Scalar(_)) => self.at(span).splat(data, value),
            _ => value,
        };
        Ok(Term::Value(self.combine(combine, &place, value, span)))
    }

    fn atomic_target(&mut self, intrinsic: Intrinsic, target: &Argument<H::Object>) -> Fallible<Place> {
        match &target.term {
            Term::Place(place) => Ok(place.clone()),
            _ => Err(self.error_with_help(
                Code::AtomicTarget,
                target.span,
                format!("cannot use a non-writable target as the first operand of '{}'", intrinsic.name()),
                "the first operand is a variable or an element of an array",
            )),
        }
    }

    pub(crate) fn atomic_cas(
        &mut self,
        intrinsic: Intrinsic,
        arguments: &[Argument<H::Object>],
        span: Span,
    ) -> Fallible<Term<H::Object>> {
        let [target, expected, desired] =
            self.required(intrinsic, arguments, ["x", "expected", "desired"], span)?;
        let place = self.atomic_target(intrinsic, &target)?;
        let elem = match self.place_data(&place) {
            Data::Scalar(elem @ (Scalar::I32 | Scalar::U32 | Scalar::I64 | Scalar::U64)) => elem,
            Data::Scalar(elem @ (Scalar::U8 | Scalar::U16)) if intrinsic == Intrinsic::AtomicCasWord => elem,
            other => {
                let what = crate::lower::values::convert::describe_data(other);
                return Err(self.error_with_help(
                    Code::AtomicCasType,
                    target.span,
                    format!("'atomic_cas' does not work on {what}"),
                    "use i32, u32, i64 or u64",
                ));
            }
        };
        let expected = self.value_stored_as(expected.term, elem, expected.span)?;
        let desired = self.value_stored_as(desired.term, elem, desired.span)?;
        if place.shared {
            let place = self.place_for(&place, Need::Active, span).into_owned();
            let old = self.access(&place, span, |builder| {
                builder.atomic_cas(place.base, &place.path, expected, desired)
            });
            return Ok(Term::Value(old));
        }
        let mut builder = self.at(span);
        let old = builder.load(place.base, &place.path);
        let same = builder.compare(CompareOp::Eq, old, expected);
        let new = builder.select(same, desired, old);
        builder.store(place.base, &place.path, new);
        Ok(Term::Value(old))
    }

    pub(crate) fn volatile_load(
        &mut self,
        arguments: &[Argument<H::Object>],
        span: Span,
    ) -> Fallible<Term<H::Object>> {
        let [target] = self.required(Intrinsic::VolatileLoad, arguments, ["target"], span)?;
        match &target.term {
            Term::Place(place) if matches!(self.kernel.ty(place.base), Type::Array(_)) => {
                Ok(Term::Value(self.volatile_load_place(place, span)))
            }
            term if !matches!(term, Term::Place(_) | Term::Entries(_)) => Err(self.error_with_help(
                Code::VolatileLvalue,
                target.span,
                "`volatile_load` needs an lvalue in memory: an element of an array",
                "write `oc.volatile_load(x[i])`, and calculate with what it gives",
            )),
            _ => Err(self.error_with_help(
                Code::VolatileTarget,
                target.span,
                "`volatile_load` of a local variable: it needs an lvalue in memory, not a local array or variable",
                "local variables are private, and nobody else can change them",
            )),
        }
    }
}
