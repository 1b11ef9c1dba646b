//! From the record that code wrote to what a person reads.

use octants_hal::Fault as Record;
use octants_ir::format::message_text;
use octants_ir::ops::AssertKind;
use octants_ir::{Const, Scalar, SiteKind, SiteTable, Together};
use octants_runtime::{DeferredFault, FaultReport};

use crate::error::{Error, Fault};

/// What a launch that failed reports; nothing if the table lacks the first site.
pub(crate) fn describe_all(kernel: &str, sites: &SiteTable, report: &FaultReport) -> Option<Fault> {
    let others = report.others.iter().filter_map(|record| describe(kernel, sites, record)).collect();
    Some(Fault { others, ..describe(kernel, sites, &report.first)? })
}

/// What a launch of before reports that nobody waited for.
pub(crate) fn describe_late(late: &DeferredFault) -> Error {
    match describe(&late.kernel.name, &late.sites, &late.fault) {
        Some(fault) => Error::Late(Box::new(fault)),
        None => Error::internal("launch", "code names a site that its plan lacks"),
    }
}

/// What a record of a kernel's code means; nothing if the table has no such site.
fn describe(kernel: &str, sites: &SiteTable, report: &Record) -> Option<Fault> {
    let site = sites.get(report.site)?;
    let words = site.kind.words().into_iter().zip(report.arguments);
    let arguments = || words.map(|(scalar, word)| decode(scalar, word)).collect::<Vec<_>>();
    let (about, message, arguments) = match &site.kind {
        SiteKind::Assert { about, message, .. } => {
            let arguments = arguments();
            (*about, message_text(message, &arguments), arguments)
        }
        SiteKind::Call { function } => (
            AssertKind::Condition,
            format!(
                "calls of `{function}` are nested too deep: it calls itself without an end, or too often"
            ),
            Vec::new(),
        ),
        SiteKind::Tape => (
            AssertKind::Condition,
            format!(
                "one step of the loop keeps {} bytes of its values, and there is no memory for them",
                report.arguments[0]
            ),
            Vec::new(),
        ),
        SiteKind::Access if report.arguments[0] == SiteKind::RACE => {
            let [_, lane, other, ..] = report.arguments;
            let text = format!(
                "lanes {other} and {lane} of a block touch the same element of shared memory without a barrier between"
            );
            (AssertKind::Condition, text, Vec::new())
        }
        SiteKind::Together { about } => (AssertKind::Condition, together_text(*about, report), Vec::new()),
        SiteKind::Access => {
            let [param, axis, index, extent, origin, ..] = report.arguments;
            let name = sites.param_name(param as usize).unwrap_or("a shared array");
            let index = Const::from_bits(Scalar::I64, index);
            let at = index.as_i128().unwrap_or_default();
            let mut message =
                format!("index {at} is out of bounds for axis {axis} of `{name}`, which has size {extent}");
            if origin != 0 {
                message = format!("{message} from {} on", origin as i64);
            }
            (AssertKind::Bounds, message, vec![index, Const::from_bits(Scalar::I64, extent)])
        }
        SiteKind::Print { .. } => return None,
    };
    Some(Fault {
        kernel: kernel.into(),
        about,
        message,
        arguments,
        locations: sites.locations(site),
        others: Vec::new(),
    })
}

fn together_text(about: Together, report: &Record) -> String {
    let [lane, wanted, kind, ..] = report.arguments;
    match about {
        _ if kind == SiteKind::PARTIAL => {
            format!(
                "{lane} iterations are no whole number of blocks of {wanted} threads, and threads of a block wait for each other"
            )
        }
        Together::Barrier(scope) => {
            format!(
                "a barrier that lane {lane} of the {} never reaches, while others wait for it",
                scope.name()
            )
        }
        Together::Exchange if wanted == 0 => {
            format!("lanes exchange values, and lane {lane} of the subgroup is elsewhere")
        }
        Together::Exchange => format!("lane {lane} asks for the value of lane {wanted}, which does not run"),
    }
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
        assert_eq!(message_text("{{}} {:.2d} {{{}}} {x} }", &arguments), "{} -03 {0.1} {x} }");
    }
}
