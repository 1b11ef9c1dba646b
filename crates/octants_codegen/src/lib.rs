//! The compile driver: from a kernel's tasks to native objects, several at once.
//!
//! It joins the emitter, which knows no LLVM, and LLVM, which knows no kernels. It runs nothing: objects are a device's to load.

use std::collections::VecDeque;
use std::fmt;
use std::time::{Duration, Instant};

use octants_hal::Cancel;
use octants_ir::Kernel;
use octants_ir::plan::Plan;
use octants_llvm::{CpuOptions, EmitOptions, TaskText};
use octants_llvm_sys::{Compilation, Compiled, OptLevel, Options, Target, start};

/// How often a waiting compilation looks at the caller's flag.
const PATIENCE: Duration = Duration::from_millis(10);

/// How to compile.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NativeOptions {
    /// No two array arguments overlap, unless both are only read.
    pub noalias: bool,
    pub optimise: bool,
    /// Tasks that compile at the same time; at least 1.
    pub threads: usize,
}

/// Objects for all tasks of a kernel.
#[derive(Debug)]
pub struct NativeCode {
    /// By task number.
    pub tasks: Vec<NativeTask>,
    /// From IR to LLVM text.
    pub emit: Duration,
    /// All of LLVM, as the caller saw it.
    pub llvm: Duration,
}

#[derive(Debug)]
pub struct NativeTask {
    pub symbol: String,
    pub object: Vec<u8>,
    /// How many points of its range it runs at once.
    pub lanes: u32,
}

/// Texts of a kernel's code.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NativeText {
    Llvm,
    OptimisedLlvm,
    Assembly,
}

/// Why there is no code.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum NativeError {
    /// The caller's flag was raised.
    Cancelled,
    /// LLVM refuses what we emitted, in its own words: a bug of ours.
    Refused { symbol: String, message: String },
}

impl fmt::Display for NativeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cancelled => f.write_str("interrupted"),
            Self::Refused { symbol, message } => write!(f, "`{symbol}`: {message}"),
        }
    }
}

impl std::error::Error for NativeError {}

/// Compiles every task of a kernel in its tasks phase. A compilation that was begun when `cancel` is raised ends unobserved.
pub fn compile_native(
    kernel: &Kernel,
    plan: &Plan,
    options: NativeOptions,
    cancel: &Cancel,
) -> Result<NativeCode, NativeError> {
    let begin = Instant::now();
    let texts = emit(kernel, plan, options);
    let emitted = Instant::now();
    if cancel.is_wanted() {
        return Err(NativeError::Cancelled);
    }
    let compiled = compile_all(&texts, &llvm_options(options), options.threads, cancel)?;
    let tasks = texts
        .into_iter()
        .zip(compiled)
        .map(|(task, compiled)| NativeTask { symbol: task.symbol, object: compiled.bytes, lanes: task.lanes })
        .collect();
    Ok(NativeCode { tasks, emit: emitted - begin, llvm: emitted.elapsed() })
}

/// The code of all tasks as text, one after another.
pub fn native_text(
    kernel: &Kernel,
    plan: &Plan,
    options: NativeOptions,
    what: NativeText,
) -> Result<String, NativeError> {
    let texts = emit(kernel, plan, options);
    if what == NativeText::Llvm {
        return Ok(texts.into_iter().map(|task| task.text).collect::<Vec<_>>().join("\n"));
    }
    let (keep_ir, keep_assembly) = (what == NativeText::OptimisedLlvm, what == NativeText::Assembly);
    let llvm = Options { keep_ir, keep_assembly, ..llvm_options(options) };
    let compiled = compile_all(&texts, &llvm, options.threads, &Cancel::new())?;
    let texts = compiled.into_iter().filter_map(|compiled| compiled.ir.or(compiled.assembly));
    Ok(texts.collect::<Vec<_>>().join("\n"))
}

fn emit(kernel: &Kernel, plan: &Plan, options: NativeOptions) -> Vec<TaskText> {
    let cpu = CpuOptions { vector_bits: Target::host().vector_bits(), ..CpuOptions::default() };
    let options = EmitOptions { noalias: options.noalias, ..EmitOptions::for_cpu(cpu) };
    octants_llvm::emit(kernel, plan, &options)
}

fn llvm_options(options: NativeOptions) -> Options {
    let opt = if options.optimise { OptLevel::Default } else { OptLevel::None };
    Options { opt, ..Options::default() }
}

/// In the order of the texts; at most `threads` at a time.
fn compile_all(
    texts: &[TaskText],
    options: &Options,
    threads: usize,
    cancel: &Cancel,
) -> Result<Vec<Compiled>, NativeError> {
    let mut waiting = texts.iter();
    let mut running: VecDeque<(&TaskText, Compilation)> = VecDeque::new();
    let mut done = Vec::with_capacity(texts.len());
    loop {
        while running.len() < threads.max(1)
            && let Some(task) = waiting.next()
        {
            running.push_back((task, start(task.text.clone(), options.clone())));
        }
        let Some((task, compilation)) = running.pop_front() else { return Ok(done) };
        let result = loop {
            if cancel.is_wanted() {
                return Err(NativeError::Cancelled);
            }
            if let Some(result) = compilation.wait_for(PATIENCE) {
                break result;
            }
        };
        match result {
            Ok(compiled) => done.push(compiled),
            Err(error) => {
                return Err(NativeError::Refused { symbol: task.symbol.clone(), message: error.to_string() });
            }
        }
    }
}

/// Waits a moment for compilations that nobody waits for any more, before the process ends.
pub use octants_llvm_sys::wait_for_compilations;

/// The version of LLVM.
pub fn llvm_version() -> (u32, u32, u32) {
    octants_llvm_sys::version()
}
