//! What launches of a tape and of its way back are checked for: the logs of who writes which arrays are told of a launch, and derivatives ask them.

use std::collections::BTreeMap;

use octants::diag::{Code, Diagnostic, SourceMap};
use octants::{Checksum, CompiledKernel, RaceSearch, Region};
use pyo3::prelude::*;

use super::{LaunchArguments, Specialisation};
use crate::arrays::write_log::{WriteLog, tell_of};
use crate::gateway::errors;

/// What the launches of a kernel in a tape are checked for: parameters without memory for gradients through which these would be lost, and iterations that meet.
#[derive(Default)]
pub struct TapeChecks {
    /// What the kernel stores there has gradients.
    pub sinks: Vec<usize>,
    /// What the kernel computes depends on them.
    pub constants: Vec<usize>,
    /// In debug mode, where only a run shows whether iterations of a parallel loop meet.
    pub races: Option<RaceSearch>,
    /// Whether the kernel has sparse fields, of whose runs nothing shows that.
    pub has_trees: bool,
}

/// Of a log: what a derivative must not be overtaken by.
#[derive(Clone, Copy)]
pub struct LogBounds<'a> {
    pub log: &'a WriteLog,
    /// What it needs must not have been written in an entry from here on.
    pub values: usize,
    /// What it hands derivatives through must not have been written in an unrecorded entry from here on.
    pub derivatives: usize,
}

impl LogBounds<'_> {
    /// Refuses to run the derivative of a call on memory that is not as that left it.
    pub fn check(self, py: Python<'_>, called: &str, code: &Specialisation, block: &[u8]) -> PyResult<()> {
        let Some(gradient) = &code.derivative else { return Ok(()) };
        let kernel = gradient.kernel();
        let log = self.log.log();
        let refused = |param: usize, text: &str, writer: &str, help: &str| {
            let array = kernel.param_name(param);
            let text = format!(
                "the gradients of {called} need {text} `{array}`, and {writer} has written there since"
            );
            let diagnostic = Diagnostic::new(Code::DerivativeChanged, text).help(help);
            Err(errors::from_diagnostic(py, diagnostic, &SourceMap::new()))
        };
        let params = gradient.written().len();
        let needed = |param: usize| param < params && code.is_needed(param);
        for (param, region) in kernel.touches(code.footprint(), block, needed) {
            if let Some(writer) = log.writer_since(self.values, &region) {
                let help = "write to another array or to another row of it, or use oc.ad.checkpoint, which keeps what steps overwrite";
                return refused(param, "what it saw of", writer, help);
            }
        }
        // Gradients lie beside what was written.
        for &(param, companion) in gradient.companions() {
            for (_, beside) in kernel.touches(code.footprint(), block, |touched| touched == companion) {
                let Some(region) = kernel.same_part(param, &beside, block) else { continue };
                if let Some(writer) = log.unrecorded_writer_since(self.derivatives, &region) {
                    let help = "write it by a kernel that the tape records, so that gradients of what was there before are kept apart, or write it before the tape uses it";
                    return refused(param, "those of", writer, help);
                }
            }
        }
        Ok(())
    }
}

/// A kernel of this name is about to be launched.
#[cold]
pub fn tell_of_launch(py: Python<'_>, name: &str, code: &Specialisation, block: &[u8]) -> PyResult<()> {
    let written = code.compiled.writes(code.footprint(), block);
    let observed = written.into_iter().filter(|&(param, _)| code.is_observed(param));
    let regions: Vec<_> = observed.map(|(_, region)| region).collect();
    tell_of(py, &format!("the kernel `{name}`"), "at", &regions, true)
}

/// Refuses a launch that reads what was written since an entry of a log, unless its caller has written it itself.
pub fn require_unchanged(
    py: Python<'_>,
    code: &Specialisation,
    block: &[u8],
    (log, since): (&WriteLog, usize),
    own: &WriteLog,
    called: &str,
) -> PyResult<()> {
    let (log, own) = (log.log(), own.log());
    for (param, region) in code.compiled.reads(code.footprint(), block) {
        let Some(writer) = log.writer_since(since, &region) else { continue };
        if own.writer_since(0, &region).is_some() {
            continue;
        }
        let array = code.compiled.param_name(param);
        let text = format!(
            "the gradients of {called} need what it saw of `{array}`, and {writer} has written there since"
        );
        let help = "write to another array or to another row of it, or keep what the function for the gradients needs";
        let diagnostic = Diagnostic::new(Code::DerivativeChanged, text).help(help);
        return Err(errors::from_diagnostic(py, diagnostic, &SourceMap::new()));
    }
    Ok(())
}

/// What a derivative reads of its kernel's arrays: the parameters, and a checksum of the values of each that is wanted.
pub fn needed_values(
    code: &Specialisation,
    launch: &LaunchArguments<'_>,
    wanted: impl Fn(usize) -> bool,
) -> PyResult<Vec<(usize, u64)>> {
    let Some(gradient) = &code.derivative else { return Ok(Vec::new()) };
    let params = gradient.written().len();
    let wanted = |param| param < params && wanted(param);
    let touched = gradient.kernel().touches(code.footprint(), launch.bytes(), wanted);
    checksums(gradient.kernel(), touched, launch)
}

/// Of what a kernel reads: likewise.
pub fn read_values(
    code: &Specialisation,
    launch: &LaunchArguments<'_>,
    wanted: impl Fn(usize) -> bool,
) -> PyResult<Vec<(usize, u64)>> {
    let read = code.compiled.reads(code.footprint(), launch.bytes());
    checksums(&code.compiled, read.into_iter().filter(|&(param, _)| wanted(param)).collect(), launch)
}

/// A checksum of the values of each parameter in these parts.
fn checksums(
    kernel: &CompiledKernel,
    parts: Vec<(usize, Region)>,
    launch: &LaunchArguments<'_>,
) -> PyResult<Vec<(usize, u64)>> {
    let mut found: BTreeMap<usize, Checksum> = BTreeMap::new();
    for (param, region) in parts {
        let (offsets, bytes) = kernel.runs_of(param, &region);
        let (Some(&first), Some(&last)) = (offsets.iter().min(), offsets.iter().max()) else { continue };
        let begin = region.array.first.wrapping_add_signed(first);
        let Some(memory) = launch.read(begin, (last - first) as usize + bytes as usize)? else { continue };
        let sum = found.entry(param).or_default();
        for offset in offsets {
            let at = (offset - first) as usize;
            sum.add(&memory[at..at + bytes as usize]);
        }
    }
    Ok(found.into_iter().map(|(param, sum)| (param, sum.finish())).collect())
}
