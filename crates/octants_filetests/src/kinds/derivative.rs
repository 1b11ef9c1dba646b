//! A kernel's derivative as text, and whether derivatives agree.

use octants_interp::Buffers;
use octants_ir::text::print;
use octants_ir::{Kernel, Scalar, Type};
use octants_passes::{Assumptions, Derivative, Mode, Refusal, Storage, differentiate, run_pass};

use super::{CaseOutput, verified};
use crate::file::Case;
use crate::{gradients, values};

/// The text of what is shown of the derivative, its variables made values.
pub fn run_text(
    mode: Mode,
    case: &Case,
    kernel: &Kernel,
    shown: impl FnOnce(Derivative) -> Kernel,
) -> Result<CaseOutput, String> {
    verified(kernel, "before it is differentiated")?;
    let output = match differentiate(kernel, mode, &storage(kernel, case)) {
        Ok(derivative) => {
            let mut kernel = shown(derivative);
            verified(&kernel, "differentiated")?;
            for pass in ["promote_locals", "simplify"] {
                run_pass(pass, &mut kernel, Assumptions { noalias: true, ..Assumptions::default() });
            }
            print(&kernel)
        }
        Err(refusals) => refusals.iter().map(|refusal| said(kernel, refusal)).collect(),
    };
    Ok(CaseOutput { input: case.input.clone(), notes: case.notes.clone(), output: Some(output) })
}

/// The result of each `; check: arguments` line: `agrees`, or why there is no derivative.
pub fn run_checks(case: &Case, kernel: &Kernel) -> Result<CaseOutput, String> {
    verified(kernel, "before it is differentiated")?;
    let storage = storage(kernel, case);
    let mut notes = Vec::new();
    let mut checked = false;
    for note in &case.notes {
        let Some(line) = note.strip_prefix("; check:") else {
            notes.push(note.clone());
            continue;
        };
        checked = true;
        let arguments = line.split_once("=>").map_or(line, |(arguments, _)| arguments).trim();
        let mut memory = Buffers::new();
        let args = values::arguments(kernel, arguments, &mut memory)?;
        let result = match gradients::check(kernel, &storage, args, memory)? {
            Ok(()) => "agrees".to_owned(),
            Err((mode, refusals)) => refused(mode, kernel, &refusals),
        };
        notes.push(format!("; check: {arguments} => {result}"));
    }
    if !checked {
        return Err("no `; check:` line stands below it".into());
    }
    Ok(CaseOutput { input: case.input.clone(), notes, output: None })
}

/// Every real array has storage for its derivative, but for those that `; constant: x, y` and `; missing: z` name.
fn storage(kernel: &Kernel, case: &Case) -> Vec<Storage> {
    let named = |word: &str, name: &str| {
        let lists = case.notes.iter().filter_map(|note| note.strip_prefix(word));
        lists.flat_map(|list| list.split(',')).any(|other| other.trim() == name)
    };
    let params = &kernel.regions[kernel.body].params;
    let of = |(index, &param): (usize, _)| {
        let name = &kernel.params[index].name;
        let real =
            matches!(kernel.ty(param), Type::Array(array) if array.elem.elem().is_some_and(Scalar::is_real));
        if !real || named("; constant:", name) {
            Storage::Constant
        } else if named("; missing:", name) {
            Storage::Missing
        } else if named("; dropped:", name) {
            Storage::Dropped
        } else {
            Storage::Companion(None)
        }
    };
    params.iter().enumerate().map(of).collect()
}

fn said(kernel: &Kernel, refusal: &Refusal) -> String {
    let about = refusal.param.map(|param| format!(" {}", kernel.params[param].name)).unwrap_or_default();
    format!("refused: {:?}{about}\n", refusal.kind)
}

fn refused(mode: Mode, kernel: &Kernel, refusals: &[Refusal]) -> String {
    let all: Vec<_> = refusals.iter().map(|refusal| said(kernel, refusal).trim().to_owned()).collect();
    let mode = match mode {
        Mode::Forward => "forward",
        Mode::Reverse => "reverse",
    };
    format!("{mode} {}", all.join(", "))
}
