//! Why a kernel has no derivative, in the words of the program.

use octants::diag::{Code, Diagnostic, Span};
use octants::ir::{Kernel, Loc};
use octants::{FoundRace, Mode, Refusal, RefusalKind};

use crate::gateway::errors;

/// A diagnostic for each refusal.
pub fn refused(kernel: &Kernel, mode: Mode, refusals: &[Refusal]) -> Vec<Diagnostic> {
    let mut told: Vec<_> = refusals.iter().map(|refusal| diagnostic(kernel, mode, refusal)).collect();
    // Parts of one field, of which each has memory of its own, have one name.
    told.dedup_by(|one, other| one.span == other.span && one.message == other.message);
    told
}

/// A warning for each store that loses a part of the derivative.
pub fn dropped(kernel: &Kernel, mode: Mode, refusals: &[Refusal]) -> Vec<Diagnostic> {
    let told = |refusal: &Refusal| {
        let mut diagnostic = diagnostic(kernel, mode, refusal);
        diagnostic.code = Code::DroppedDerivative;
        let array = refusal.param.map_or("a field", |param| &kernel.params[param].name);
        diagnostic.message = format!(
            "what is stored in `{array}` here depends on an input, and counts as a constant where `{array}` is read: it has no memory for its derivative"
        );
        diagnostic
    };
    refusals.iter().map(told).collect()
}

/// Iterations of a parallel loop that meet at an element.
pub fn meeting(kernel: &str, met: &FoundRace) -> Diagnostic {
    let FoundRace { name, one, write, is_read, iterations: [first, second] } = met;
    let (text, label) = if *is_read {
        (
            format!(
                "validation: iteration {first} reads an element of `{name}` here that iteration {second} of the same parallel loop writes: which comes first is left to chance"
            ),
            "it is written here",
        )
    } else {
        (
            format!(
                "validation: iterations {first} and {second} of a parallel loop assign to one element of `{name}`: which one is last is left to chance"
            ),
            "and here",
        )
    };
    let mut diagnostic = errors::located(Diagnostic::new(Code::DerivativeMeeting, text), one);
    if let Some(span) =
        write.first().and_then(|place| place.span).filter(|&span| Some(span) != diagnostic.span)
    {
        diagnostic = diagnostic.label(span, label);
    }
    diagnostic.notes.push(format!("in the kernel `{kernel}`, whose derivative would be wrong"));
    diagnostic.help("read from one array and write to another, combine with `+=`, or put `oc.loop_config(serialize=True)` before the loop")
}

fn diagnostic(kernel: &Kernel, mode: Mode, refusal: &Refusal) -> Diagnostic {
    // A second derivative has parameters of its own behind the kernel's.
    let param_name = |param: usize| kernel.params.get(param).map_or("its gradients", |param| &param.name);
    let name = refusal.param.map_or_else(String::new, |param| format!(" of `{}`", param_name(param)));
    let other = refusal.other.and_then(|other| span(kernel, other));
    let diagnostic = |code, message: String| {
        let calls = std::iter::successors(Some(refusal.at), |&loc: &Loc| kernel.locs[loc].caller);
        let places: Vec<_> = calls.map(|loc| kernel.locs[loc].clone()).collect();
        let mut diagnostic = errors::located(Diagnostic::new(code, message), &places);
        diagnostic.notes.push(format!("in the derivative of the kernel `{}`", kernel.name));
        diagnostic
    };
    let labelled = |diagnostic: Diagnostic, text: &str| match other {
        Some(other) => diagnostic.label(other, text),
        None => diagnostic,
    };
    match refusal.kind {
        RefusalKind::Overwritten => {
            let text = format!("the derivative needs the value{name} that is read here, which the kernel overwrites");
            labelled(diagnostic(Code::DerivativeOverwritten, text), "it is overwritten here")
                .help("call the kernel inside of oc.ad.Tape, which keeps what a kernel overwrites, or write to another array or element")
        }
        RefusalKind::Unkeepable => {
            let text = format!("the derivative needs the value{name} that is read here, which the kernel overwrites");
            labelled(diagnostic(Code::DerivativeOverwritten, text), "it is overwritten here")
                .help("write to another array, or write in a kernel of its own; `oc.loop_config(serialize=True)` before the loop gives its iterations an order")
        }
        RefusalKind::NoStorage => {
            let (what, option) = match mode {
                Mode::Forward => ("dual", "needs_dual=True"),
                Mode::Reverse => ("grad", "needs_grad=True"),
            };
            let array = refusal.param.map_or("an array", param_name);
            let text = format!(
                "Gradients of `{array}` are not allocated: what is stored here depends on an input, and `{array}.{what}` has no memory"
            );
            let help = format!("make `{array}` with {option}, or place `{array}.{what}`");
            diagnostic(Code::DerivativeStorage, text).help(help)
        }
        RefusalKind::Rounded => {
            let text = "what is stored in a quantised field here depends on an input: rounded numbers have no derivative, and it would be lost";
            diagnostic(Code::DerivativeStorage, text.to_owned())
                .help("keep it in an ordinary field with gradients, and round it in a kernel outside of the tape, or in one that `oc.ad.no_grad` decorates")
        }
        RefusalKind::Random => labelled(
            diagnostic(
                Code::NotDifferentiable,
                "the derivative needs this random number, and would draw another one".to_owned(),
            ),
            "it is needed here",
        )
        .help("draw the numbers in a kernel of their own, and store them in an array"),
        RefusalKind::Clock => labelled(
            diagnostic(Code::NotDifferentiable, "the derivative needs this time, which has passed".to_owned()),
            "it is needed here",
        )
        .help("store the time in an array, in a kernel of its own"),
        RefusalKind::Race => labelled(
            diagnostic(
                Code::NotDifferentiable,
                format!("iterations of a parallel loop overwrite each other's value{name} here: which one is last is left to chance"),
            ),
            "it is written here, too",
        )
        .help("combine with `+=`, write to an element of the iteration's own, or put `oc.loop_config(serialize=True)` before the loop"),
        RefusalKind::Crossed => labelled(
            diagnostic(
                Code::NotDifferentiable,
                format!("the value{name} that is read here is written by other iterations of the parallel loop: which comes first is left to chance"),
            ),
            "it is written here",
        )
        .help("read from one array and write to another, or put `oc.loop_config(serialize=True)` before the loop"),
        RefusalKind::Uncounted => labelled(
            diagnostic(
                Code::DerivativeOverwritten,
                format!("how many values must be kept for the derivative depends on the value{name} that is read here, which the kernel writes"),
            ),
            "it is written here",
        )
        .help("write it in a kernel of its own, before this one, or keep it in a variable while the loop runs, and store it behind the loop"),
        RefusalKind::Recursion => diagnostic(
            Code::NotDifferentiable,
            "a function that calls itself has no derivative".to_owned(),
        )
        .help("write a loop"),
        RefusalKind::AtomicResult => labelled(
            diagnostic(
                Code::NotDifferentiable,
                format!("the derivative needs what this atomic update{name} gave, which depends on the order of threads"),
            ),
            "it is needed here",
        )
        .help("do not use the old value that the update gives, or compute it in a kernel of its own"),
        RefusalKind::NoRule(op) => diagnostic(
            Code::NotDifferentiable,
            format!("`{op}` has no derivative, and what it is given depends on an input"),
        ),
    }
}

fn span(kernel: &Kernel, loc: Loc) -> Option<Span> {
    kernel.locs[loc].span
}
