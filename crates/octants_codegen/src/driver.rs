//! What all targets share: the tasks of a kernel go through LLVM, several at a time.

use std::collections::VecDeque;
use std::fmt;
use std::time::{Duration, Instant};

use octants_hal::{Cancel, LaunchShape};
use octants_ir::Kernel;
use octants_ir::plan::Plan;
use octants_llvm::{EmitOptions, TaskText, emit};
use octants_llvm_sys::{Compilation, CompileError, Compiled, Options, Stage, Timing, start};

/// How often a waiting compilation looks at the caller's flag. Chosen: Ctrl-C is to be heard within half a second.
const CANCEL_POLL_INTERVAL: Duration = Duration::from_millis(10);

/// Code for all tasks of a kernel.
#[derive(Debug)]
pub struct KernelCode {
    /// By task number.
    pub tasks: Vec<CompiledTask>,
    /// From IR to LLVM text.
    pub emit: Duration,
    /// All of LLVM, as the caller saw it.
    pub llvm: Duration,
}

#[derive(Debug)]
pub struct CompiledTask {
    pub symbol: String,
    /// An ELF object, or PTX text.
    pub bytes: Vec<u8>,
    /// How many points of its range it runs at once.
    pub lanes: u32,
    /// How it deals its points to the threads of a GPU.
    pub shape: LaunchShape,
    /// Where LLVM's time went.
    pub timing: Timing,
}

/// Texts of a kernel's code.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum KernelText {
    Llvm,
    OptimisedLlvm,
    /// The target's own: of a CPU, or PTX.
    Assembly,
}

/// Why there is no code.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum CodegenError {
    /// The caller's flag was raised.
    Cancelled,
    /// LLVM refuses what we emitted, in its own words: a bug of ours.
    Refused { symbol: String, message: String },
    /// This build cannot make code for the target, for this reason.
    Unsupported { message: String },
}

impl fmt::Display for CodegenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cancelled => f.write_str("interrupted"),
            Self::Refused { symbol, message } => write!(f, "`{symbol}`: {message}"),
            Self::Unsupported { message } => f.write_str(message),
        }
    }
}

impl std::error::Error for CodegenError {}

/// What one target's code is made with.
pub(crate) struct CompileOptions {
    pub emit: EmitOptions,
    pub llvm: Options,
    /// Tasks that compile at the same time; at least 1.
    pub threads: usize,
}

/// Compiles every task of a kernel in its tasks phase. A compilation that was begun when `cancel` is raised ends unobserved.
pub(crate) fn compile(
    kernel: &Kernel,
    plan: &Plan,
    options: &CompileOptions,
    cancel: &Cancel,
) -> Result<KernelCode, CodegenError> {
    let begin = Instant::now();
    let texts = emit(kernel, plan, &options.emit);
    let emitted = Instant::now();
    if cancel.is_wanted() {
        return Err(CodegenError::Cancelled);
    }
    let compiled = compile_all(&texts, &options.llvm, options.threads, cancel)?;
    let tasks = texts
        .into_iter()
        .zip(compiled)
        .map(|(task, compiled)| CompiledTask {
            symbol: task.symbol,
            bytes: compiled.bytes,
            timing: compiled.timing,
            lanes: task.lanes,
            shape: task.shape,
        })
        .collect();
    Ok(KernelCode { tasks, emit: emitted - begin, llvm: emitted.elapsed() })
}

/// The code of all tasks as text, one after another.
pub(crate) fn text(
    kernel: &Kernel,
    plan: &Plan,
    options: &CompileOptions,
    what: KernelText,
) -> Result<String, CodegenError> {
    let texts = emit(kernel, plan, &options.emit);
    if what == KernelText::Llvm {
        return Ok(texts.into_iter().map(|task| task.text).collect::<Vec<_>>().join("\n"));
    }
    let (keep_ir, keep_assembly) = (what == KernelText::OptimisedLlvm, what == KernelText::Assembly);
    let llvm = Options { keep_ir, keep_assembly, ..options.llvm.clone() };
    let compiled = compile_all(&texts, &llvm, options.threads, &Cancel::new())?;
    let texts = compiled.into_iter().filter_map(|compiled| compiled.ir.or(compiled.assembly));
    Ok(texts.collect::<Vec<_>>().join("\n"))
}

/// In the order of the texts; at most `threads` at a time.
fn compile_all(
    texts: &[TaskText],
    options: &Options,
    threads: usize,
    cancel: &Cancel,
) -> Result<Vec<Compiled>, CodegenError> {
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
                return Err(CodegenError::Cancelled);
            }
            if let Some(result) = compilation.wait_for(CANCEL_POLL_INTERVAL) {
                break result;
            }
        };
        match result {
            Ok(compiled) => done.push(compiled),
            Err(CompileError { stage: Stage::Library, message }) => {
                return Err(CodegenError::Unsupported { message });
            }
            Err(error) => {
                return Err(CodegenError::Refused {
                    symbol: task.symbol.clone(),
                    message: error.to_string(),
                });
            }
        }
    }
}
