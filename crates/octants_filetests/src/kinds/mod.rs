//! One file per kind of test: from a case to what its expectations should say.

mod derivative;
mod llvm;
mod pass;
pub(crate) mod plan;
mod roundtrip;
mod run;
mod verify_error;

use octants_ir::Kernel;
use octants_ir::text::{parse, print};
use octants_passes::{
    Mode, SizesLayout, TapePlan, declare_sized_tape_arrays, declare_tape_arrays, place_tapes,
};

use crate::file::{END, Kind, OUTPUT, TestFile};

/// What a case turned out to be.
pub(crate) struct CaseOutput {
    /// The kernel's text.
    pub input: String,
    pub notes: Vec<String>,
    pub output: Option<String>,
}

/// The file's text as it should be.
pub fn run(file: &TestFile) -> Result<String, String> {
    let mut text = file.head_text.clone();
    let mut line = text.lines().count();
    for case in &file.cases {
        let begin = line + case.before.lines().count();
        let kernel = parse(&case.input)
            .map_err(|e| format!("line {}, column {}: {}", begin + e.line as usize, e.column, e.message))?;
        prints_alike(&kernel)?;
        let found = match &file.head.kind {
            Kind::RoundTrip => Ok(roundtrip::run(case, &kernel)),
            Kind::VerifyError => verify_error::run(case, &kernel),
            Kind::Run => run::run(&file.head, case, &kernel),
            Kind::Pass(names) => pass::run(&file.head, names, case, kernel),
            Kind::Llvm => llvm::run(&file.head, case, kernel),
            Kind::Plan => plan::run(&file.head, case, kernel),
            Kind::Derivative(mode) => derivative::run_text(*mode, case, &kernel, |made| made.kernel),
            Kind::Sizes => derivative::run_text(Mode::Reverse, case, &kernel, |made| {
                made.tapes.map_or_else(|| Kernel::new("no_tapes"), |tapes| tapes.sizing)
            }),
            Kind::Placed => derivative::run_text(Mode::Reverse, case, &kernel, |mut made| {
                let varies = made.tapes.take().map_or_else(Vec::new, |tapes| tapes.varies);
                declare_tape_arrays(&mut made.kernel, &varies);
                place_tapes(&mut made.kernel);
                made.kernel
            }),
            Kind::Sized => derivative::run_text(Mode::Reverse, case, &kernel, |mut made| {
                if let Some(TapePlan { scalars, varies, .. }) = &made.tapes {
                    let layout = SizesLayout { scalars, varies, with_duals: false, limit: 1 << 30 };
                    declare_sized_tape_arrays(&mut made.kernel, layout);
                }
                place_tapes(&mut made.kernel);
                made.kernel
            }),
            Kind::Gradient => derivative::run_checks(case, &kernel),
        };
        let found = found.map_err(|e| format!("the kernel at line {}: {e}", begin + 1))?;
        text += &case.before;
        text += &found.input;
        for note in &found.notes {
            text += note;
            text.push('\n');
        }
        if let Some(output) = &found.output {
            text += OUTPUT;
            text.push('\n');
            text += output;
            text += END;
            text.push('\n');
        }
        line = text.lines().count();
    }
    Ok(text + &file.after)
}

/// Whatever is tested, the kernel must print to text that prints alike.
fn prints_alike(kernel: &Kernel) -> Result<(), String> {
    let text = print(kernel);
    let again = parse(&text).map_err(|e| format!("printed text does not parse: {e}\n{text}"))?;
    if print(&again) == text { Ok(()) } else { Err(format!("printed text does not round-trip:\n{text}")) }
}

fn verified(kernel: &Kernel, when: &str) -> Result<(), String> {
    octants_ir::verify(kernel).map_err(|violations| {
        let lines: Vec<_> = violations.iter().map(ToString::to_string).collect();
        format!("{when} it breaks laws:\n{}\n{}", lines.join("\n"), print(kernel))
    })
}
