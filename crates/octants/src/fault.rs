//! From the record that code wrote to what a person reads.

use octants_ir::format::message_text;
use octants_ir::ops::AssertKind;
use octants_ir::{Arena, Const, Id, Kernel, Loc, LocData, Op, OpKind, Scalar};
use octants_runtime::FaultReport;

use crate::error::Fault;

/// `kernel` is the one that the faulting code was made from.
pub(crate) fn describe(kernel: &Kernel, report: &FaultReport) -> Fault {
    let op = &kernel.ops[Op::from_index(report.site as usize)];
    let (about, message, arguments) = if let OpKind::Assert(about, message) = &op.kind {
        let operands = op.operands.iter().skip(1).zip(report.arguments);
        let arguments: Vec<_> =
            operands.filter_map(|(&value, bits)| Some(decode(kernel.ty(value).scalar()?, bits))).collect();
        (*about, message_text(message, &arguments), arguments)
    } else if let OpKind::Call(function) = op.kind {
        let name = &kernel.functions[function].name;
        (
            AssertKind::Condition,
            format!("calls of `{name}` are nested too deep: it calls itself without an end, or too often"),
            Vec::new(),
        )
    } else {
        // Any other op is an access that the device itself checks: parameter, axis, index, extent, origin.
        let [param, axis, index, extent, origin, ..] = report.arguments;
        let name = kernel.params.get(param as usize).map_or("?", |param| &param.name);
        let index = Const::from_bits(Scalar::I64, index);
        let at = index.as_i128().unwrap_or_default();
        let mut message =
            format!("index {at} is out of bounds for axis {axis} of `{name}`, which has size {extent}");
        if origin != 0 {
            message = format!("{message} from {} on", origin as i64);
        }
        (AssertKind::Bounds, message, vec![index, Const::from_bits(Scalar::I64, extent)])
    };
    let locations = chain(&kernel.locs, op.loc);
    Fault { kernel: kernel.name.as_str().into(), about, message, arguments, locations }
}

/// The place itself, then each call that was inlined.
fn chain(locs: &Arena<Loc, LocData>, innermost: Loc) -> Vec<LocData> {
    let next = |loc: &Loc| locs[*loc].caller;
    std::iter::successors(Some(innermost), next).map(|loc| locs[loc].clone()).collect()
}

/// A scalar from the word that code wrote it into.
pub(crate) fn decode(scalar: Scalar, word: u64) -> Const {
    if scalar.is_real() {
        Const::from_f64(scalar, f64::from_bits(word))
    } else {
        Const::from_bits(scalar, word)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_shown_as_their_type_says() {
        let arguments = [
            decode(Scalar::I8, (-3_i64) as u64),
            decode(Scalar::F32, f64::from(0.1_f32).to_bits()),
            decode(Scalar::U1, 1),
            decode(Scalar::U64, u64::MAX),
        ];
        assert_eq!(message_text("{} {} {} {} {}", &arguments), "-3 0.1 True 18446744073709551615 {}");
    }
}
