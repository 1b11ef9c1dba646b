//! From text to an artifact: parse, optimise, emit.

use std::fmt;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use llvm_sys::target_machine::LLVMCodeGenFileType;

use crate::device_library;
use crate::fatal::LlvmThreadGuard;
use crate::gpu_approximations;
use crate::gpu_contraction;
use crate::handles::Context;
use crate::machines::Lease;
use crate::pipeline::OptLevel;
use crate::preserved_registers;
use crate::reciprocal_roots;
use crate::target::Target;
use crate::vector_math;

/// LLVM recurses over deep expressions; a compilation's thread has room for them. Chosen, not measured: untouched pages cost
/// nothing.
const STACK_BYTES: usize = 64 << 20;

/// What to make of the text.
#[derive(Clone, Debug)]
pub struct Options {
    pub target: Target,
    pub opt: OptLevel,
    /// The module's loops are over whole vectors of straight code, and so need fewer passes.
    pub straight: bool,
    /// Run this pipeline, in the syntax of LLVM's `opt -passes=`, instead of the one that `opt` stands for.
    pub passes: Option<String>,
    pub output: Output,
    /// Replace calls marked `afn` inside vectorised loops by the vector functions of the system's library, where the
    /// system has one. These are accurate to 4 ULP.
    pub vector_math: bool,
    /// Also return the optimised module as text, in [`Compiled::ir`].
    pub keep_ir: bool,
    /// Also return assembly, in [`Compiled::assembly`].
    pub keep_assembly: bool,
}

impl Default for Options {
    /// An object for the host, optimised.
    fn default() -> Options {
        Options {
            target: Target::host().clone(),
            opt: OptLevel::Default,
            straight: false,
            passes: None,
            output: Output::Object,
            vector_math: true,
            keep_ir: false,
            keep_assembly: false,
        }
    }
}

/// What [`Compiled::bytes`] is to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Output {
    /// A relocatable ELF object, for [`load`](crate::load).
    Object,
    /// The target's assembly, such as PTX.
    Assembly,
}

/// The result of a compilation.
#[derive(Clone, Debug)]
pub struct Compiled {
    pub bytes: Vec<u8>,
    /// The optimised module, if asked for.
    pub ir: Option<String>,
    /// The assembly, if asked for.
    pub assembly: Option<String>,
    pub timing: Timing,
}

/// Where the time of one compilation went. Does not count what the `keep_` options cost.
#[derive(Clone, Copy, Debug, Default)]
pub struct Timing {
    /// When it began, on whatever thread.
    pub started: Option<Instant>,
    pub parse: Duration,
    pub optimise: Duration,
    pub emit: Duration,
}

/// The part of a compilation that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// The text is not a valid module.
    Parse,
    /// LLVM does not know the target.
    Target,
    /// The target's library of functions is missing, or lacks one.
    Library,
    Optimise,
    Emit,
    /// LLVM stopped with an internal error at some point.
    Fatal,
}

/// Why a text was not compiled, with LLVM's own words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompileError {
    pub stage: Stage,
    pub message: String,
}

impl fmt::Display for CompileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.stage {
            Stage::Parse => "invalid LLVM text",
            Stage::Target => "unknown target",
            Stage::Library => "no library function",
            Stage::Optimise => "optimisation failed",
            Stage::Emit => "code generation failed",
            Stage::Fatal => "internal error of LLVM",
        };
        write!(f, "{what}: {}", self.message.trim_end())
    }
}

impl std::error::Error for CompileError {}

/// A compilation in progress on its own thread. Dropping it lets the thread finish unobserved.
pub struct Compilation {
    result: Receiver<Result<Compiled, CompileError>>,
}

impl Compilation {
    /// Waits for the result.
    pub fn wait(self) -> Result<Compiled, CompileError> {
        self.result.recv().unwrap_or_else(|_| Err(lost()))
    }

    /// Waits for a while; `None` if it is not finished by then, so that the caller can look for interrupts. Gives the
    /// result once.
    pub fn wait_for(&self, timeout: Duration) -> Option<Result<Compiled, CompileError>> {
        match self.result.recv_timeout(timeout) {
            Ok(result) => Some(result),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => Some(Err(lost())),
        }
    }
}

fn lost() -> CompileError {
    CompileError {
        stage: Stage::Fatal,
        message: "the compilation's thread ended without a result".to_owned(),
    }
}

/// Compiles a module given as LLVM text.
pub fn compile(text: &str, options: &Options) -> Result<Compiled, CompileError> {
    start(text.to_owned(), options.clone()).wait()
}

/// Begins to compile a module given as LLVM text, and returns at once.
pub fn start(text: String, options: Options) -> Compilation {
    let (send, result) = sync_channel(1);
    let failed = send.clone();
    let guard = LlvmThreadGuard::new();
    let spawned =
        thread::Builder::new().name("octants-llvm".to_owned()).stack_size(STACK_BYTES).spawn(move || {
            let on_fatal = send.clone();
            guard.report_to(Box::new(move |message| {
                drop(on_fatal.send(Err(CompileError { stage: Stage::Fatal, message })));
            }));
            let result = translate(&text, &options);
            drop(guard);
            // Nobody may be waiting any more.
            drop(send.send(result));
        });
    if let Err(error) = spawned {
        let message = format!("cannot start a thread: {error}");
        drop(failed.send(Err(CompileError { stage: Stage::Fatal, message })));
    }
    Compilation { result }
}

/// Brings what every compilation needs into memory and fills LLVM's tables, on a thread of its own. A first
/// compilation that follows takes half the time. Waiting for the result is allowed, but pointless.
pub fn warm_up() -> Compilation {
    const TEXT: &str = include_str!("warm_up.ll");
    start(TEXT.to_owned(), Options::default())
}

fn translate(text: &str, options: &Options) -> Result<Compiled, CompileError> {
    let at = |stage| move |message| CompileError { stage, message };
    let mut clock = Instant::now();
    let mut timing = Timing { started: Some(clock), ..Timing::default() };
    let mut lap = || {
        let now = Instant::now();
        now - std::mem::replace(&mut clock, now)
    };

    let machine = Lease::take(&options.target, options.opt).map_err(at(Stage::Target))?;
    let context = Context::new();
    let module = context.parse(text).map_err(at(Stage::Parse))?;
    if !options.keep_ir {
        context.discard_names();
    }
    machine.adopt(&module);
    device_library::link(&context, &module, &machine, &options.target).map_err(at(Stage::Library))?;
    if let Some(width) = options.target.prefer_vector_width {
        module.set_function_attribute(&context, ("prefer-vector-width", &width.to_string()), |_| true);
    }
    preserved_registers::keep(&context, &module, &options.target);
    if options.vector_math && options.opt != OptLevel::None {
        vector_math::offer(&context, &module, &options.target);
    }
    timing.parse = lap();

    let passes = options.passes.clone().or_else(|| {
        options.opt.passes(options.target.processor(), options.straight, module.has_private_functions())
    });
    if let Some(passes) = passes {
        machine.run_passes(&module, &passes).map_err(at(Stage::Optimise))?;
        context.check().map_err(at(Stage::Optimise))?;
    }
    reciprocal_roots::guard(&context, &module, &options.target);
    gpu_approximations::apply(&context, &module, &options.target);
    gpu_contraction::apply(&context, &module, &options.target);
    timing.optimise = lap();

    let ir = options.keep_ir.then(|| module.print());
    let assembly = if options.keep_assembly {
        let copy = module.duplicate();
        let bytes = machine.emit(copy, LLVMCodeGenFileType::LLVMAssemblyFile).map_err(at(Stage::Emit))?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    } else {
        None
    };
    lap();

    let kind = match options.output {
        Output::Object => LLVMCodeGenFileType::LLVMObjectFile,
        Output::Assembly => LLVMCodeGenFileType::LLVMAssemblyFile,
    };
    let bytes = machine.emit(module, kind).map_err(at(Stage::Emit))?;
    context.check().map_err(at(Stage::Emit))?;
    timing.emit = lap();

    Ok(Compiled { bytes, ir, assembly, timing })
}
