//! A kernel that is run: `; run: arguments => results`. Unless the head says otherwise it is also run after each pass of the
//! pipeline, with and without the assumption that arrays do not overlap (they do not here), and with its scalar arguments
//! known to the passes and not, and must do the same. What it prints stands behind its results.

use octants_interp::{Arg, Buffers, Datum, Limits, RunContext, run_in};
use octants_ir::rewrite::{ValueMap, replace_values};
use octants_ir::{
    Builder, Const, Kernel, LocData, Op, OpKind, Phase, SiteNumbers, SiteScope, SiteTable, Type,
};
use octants_passes::{Assumptions, PipelineOptions, run_pipeline};

use super::{CaseOutput, verified};
use crate::file::{Case, Head};
use crate::values;

/// What a test may run at most, unless it says.
const MAX_STEPS: u64 = 10_000_000;
/// What `launch_key` gives.
const KEY: u64 = 42;

pub fn run(head: &Head, case: &Case, kernel: &Kernel) -> Result<CaseOutput, String> {
    verified(kernel, "at first")?;
    let steps = head.steps.unwrap_or(MAX_STEPS);
    let mut notes = Vec::new();
    let mut ran = false;
    for note in &case.notes {
        let Some(line) = note.strip_prefix("; run:") else {
            notes.push(note.clone());
            continue;
        };
        ran = true;
        let (arguments, _) = line.split_once("=>").unwrap_or((line, ""));
        let arguments = arguments.trim();
        let outcome = outcome(kernel, kernel, arguments, steps)?;
        if !head.interpreter_only && !outcome.starts_with("trap:") && kernel.phase == Phase::Structured {
            passes_keep(kernel, arguments, steps, &outcome)?;
            let known = with_known_scalars(kernel, arguments)?;
            passes_keep(&known, arguments, steps, &outcome)
                .map_err(|e| format!("with known scalars, {e}"))?;
        }
        let space = if arguments.is_empty() { "" } else { " " };
        let result = if outcome.is_empty() { String::new() } else { format!(" {outcome}") };
        notes.push(format!("; run:{space}{arguments} =>{result}"));
    }
    if !ran {
        return Err("no `; run:` line stands below it".into());
    }
    Ok(CaseOutput { input: case.input.clone(), notes, output: None })
}

/// Results, then arrays that changed, as they are written behind `=>`. Arguments are read and shown as the parameters of `first` say:
/// what a pass made of it may see a field in another way.
fn outcome(kernel: &Kernel, first: &Kernel, arguments: &str, steps: u64) -> Result<String, String> {
    let mut memory = Buffers::new();
    let args = values::arguments(first, arguments, &mut memory)?;
    let before = memory.clone();
    let limits = Limits { steps: Some(steps), cancel: None };
    let mut printed = String::new();
    let sites = SiteTable::of(kernel, SiteScope::Reports);
    let numbers = SiteNumbers::of(kernel, SiteScope::Reports);
    let mut on_print = |op: Op, values: &[Const]| {
        printed.extend(sites.print_text(numbers.number(op), values, &place));
    };
    let context = RunContext { key: KEY, on_print: Some(&mut on_print), ..RunContext::default() };
    let results = match run_in(kernel, &args, &mut memory, &limits, context) {
        Ok(results) => results,
        Err(trap) => return Ok(format!("trap: {trap}")),
    };
    let mut shown: Vec<_> = results.iter().map(values::show).collect();
    for (index, arg) in args.iter().enumerate() {
        let Type::Array(array) = first.ty(first.regions[first.body].params[index]) else { continue };
        let (address, shape) = match (arg, first.layout(array)) {
            (Arg::Array { address, shape }, _) => (*address, shape.clone()),
            (Arg::Field { address }, Some(layout)) => {
                (*address, layout.shape.iter().map(|&extent| extent as i32).collect())
            }
            _ => continue,
        };
        let mut bytes = memory.bytes(address).to_vec();
        if bytes != before.bytes(address) {
            if let Some(layout) = first.layout(array) {
                bytes = values::row_major(first, array, layout, &bytes);
            }
            let name = &first.params[index].name;
            shown.push(format!("{name} = {}", values::show_array(first, array, &shape, &bytes)));
        }
    }
    if !printed.is_empty() {
        shown.push(format!("prints {printed:?}"));
    }
    Ok(shown.join(", "))
}

/// Where an op stands: these tests have no files.
fn place(loc: &LocData) -> String {
    loc.span.map_or_else(String::new, |span| format!("file {}, byte {}", span.file.0, span.start))
}

/// The kernel with constants in the place of its scalar parameters, so that passes can compute what the interpreter does.
fn with_known_scalars(kernel: &Kernel, arguments: &str) -> Result<Kernel, String> {
    let args = values::arguments(kernel, arguments, &mut Buffers::new())?;
    let mut kernel = kernel.clone();
    let mut known = ValueMap::new();
    let mut constants = Vec::new();
    for (index, arg) in args.iter().enumerate() {
        if let Arg::Data(Datum::Scalar(c)) = arg {
            let nowhere = Builder::new(&mut kernel).loc;
            let op = kernel.make_op(OpKind::Const(*c), [], [c.ty().into()], [], nowhere);
            known.insert(kernel.regions[kernel.body].params[index], kernel.ops[op].results[0]);
            constants.push(op);
        }
    }
    let body = kernel.body;
    replace_values(&mut kernel, body, &known);
    kernel.regions[body].ops.splice(0..0, constants);
    Ok(kernel)
}

fn passes_keep(first: &Kernel, arguments: &str, steps: u64, expected: &str) -> Result<(), String> {
    // Where threads form blocks, more is done with them than elsewhere.
    for (noalias, blocks) in [(false, false), (true, false), (true, true)] {
        let mut wrong = None;
        let mut look = |_, pass: &str, kernel: &Kernel| {
            if wrong.is_some() {
                return;
            }
            // What passes add (copies of bounds, temporaries) takes steps of its own.
            let found = outcome(kernel, first, arguments, steps.saturating_mul(4));
            if found.as_deref() != Ok(expected) {
                let text = octants_ir::text::print(kernel);
                wrong = Some(format!(
                    "after `{pass}` (noalias {noalias}, blocks {blocks}) {arguments} gives {found:?}, not {expected:?}:\n{text}"
                ));
            }
        };
        let assumptions =
            Assumptions { noalias, copies: false, exclusive: false, few_tasks: noalias, blocks };
        let options = PipelineOptions {
            assumptions,
            dump: Some(&mut look),
            verify: true,
            ..PipelineOptions::default()
        };
        run_pipeline(first.clone(), options);
        if let Some(message) = wrong {
            return Err(message);
        }
    }
    Ok(())
}
