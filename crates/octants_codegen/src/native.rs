//! Code for the processor that this process runs on: ELF objects.

use octants_hal::Cancel;
use octants_ir::Kernel;
use octants_ir::plan::Plan;
use octants_llvm::{CpuOptions, EmitOptions, VectorFunction, VectorLibrary};
use octants_llvm_sys::{OptLevel, Options, Target, host_vector_function};

use crate::driver::{CodegenError, CompileOptions, KernelCode, KernelText, TaskStore, compile, text};

/// How to compile.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NativeOptions {
    /// No two array arguments overlap, unless both are only read.
    pub noalias: bool,
    /// Nothing else of the device's runs meanwhile, and the kernel runs on one thread, unless it has branches.
    pub exclusive: bool,
    pub optimise: bool,
    /// Tasks that compile at the same time; at least 1.
    pub threads: usize,
}

/// Compiles every task of a kernel in its tasks phase. A compilation that was begun when `cancel` is raised ends unobserved.
pub fn compile_native(
    kernel: &Kernel,
    plan: &Plan,
    options: NativeOptions,
    store: Option<TaskStore<'_>>,
    cancel: &Cancel,
) -> Result<KernelCode, CodegenError> {
    compile(kernel, plan, &compile_options(options), store, None, cancel)
}

/// The code of all tasks as text, one after another.
pub fn native_text(
    kernel: &Kernel,
    plan: &Plan,
    options: NativeOptions,
    what: KernelText,
) -> Result<String, CodegenError> {
    text(kernel, plan, &compile_options(options), what)
}

/// The processor that code is made for, and whose functions it calls. Code for one is never loaded on another.
pub fn native_identity() -> String {
    format!("{:?} {}", Target::host(), octants_llvm_sys::system_libraries())
}

/// The vector functions of the C library on this machine.
const SYSTEM_LIBRARY: VectorLibrary = VectorLibrary(|VectorFunction { name, arguments, bits, lanes }| {
    host_vector_function(name, arguments, bits, lanes)
});

fn compile_options(options: NativeOptions) -> CompileOptions {
    let host = Target::host();
    let (vector_bits, fused) = (host.vector_bits(), host.fuses());
    let vector_library = if options.optimise { SYSTEM_LIBRARY } else { VectorLibrary::EMPTY };
    let exclusive = options.exclusive;
    let cpu = CpuOptions { vector_bits, exclusive, fused, vector_library, ..CpuOptions::default() };
    let opt = if options.optimise { OptLevel::Default } else { OptLevel::None };
    CompileOptions {
        emit: EmitOptions { noalias: options.noalias, ..EmitOptions::for_cpu(cpu) },
        llvm: Options { opt, ..Options::default() },
        threads: options.threads,
    }
}
