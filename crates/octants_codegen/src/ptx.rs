//! Code for NVIDIA's GPUs: PTX text, which the driver compiles.

use octants_hal::Cancel;
use octants_ir::Kernel;
use octants_ir::plan::Plan;
use octants_llvm::{EmitOptions, GpuOptions, NVIDIA, Target as Machine};
use octants_llvm_sys::{OptLevel, Options, Output, Target};

use crate::driver::{CodegenError, CompileOptions, KernelCode, KernelText, TaskStore, compile, text};
use crate::ptx_launch_order::{can_wait, with_waits};
use crate::ptx_target::PtxTarget;
use crate::ptx_workarounds::mend;

/// How to compile.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PtxOptions {
    /// The device and the driver that code is for.
    pub target: PtxTarget,
    /// No two array arguments overlap, unless both are only read.
    pub noalias: bool,
    pub optimise: bool,
    /// Tasks that compile at the same time; at least 1.
    pub threads: usize,
}

/// What makes machine code of PTX; `None` if it leaves that to whoever loads the code.
pub type Assemble<'a> = &'a (dyn Fn(&[u8]) -> Option<Vec<u8>> + Sync);

/// Compiles every task of a kernel in its tasks phase, each to a PTX module that is complete: functions of the vendor's library are
/// linked in. A compilation that was begun when `cancel` is raised ends unobserved.
pub fn compile_ptx(
    kernel: &Kernel,
    plan: &Plan,
    options: PtxOptions,
    store: Option<TaskStore<'_>>,
    assemble: Option<Assemble<'_>>,
    cancel: &Cancel,
) -> Result<KernelCode, CodegenError> {
    let make = |bytes: Vec<u8>| {
        let ptx = finish(&String::from_utf8_lossy(&bytes), options.target);
        let assemble = assemble.filter(|_| is_one_function(&ptx));
        assemble.and_then(|assemble| assemble(ptx.as_bytes())).unwrap_or_else(|| ptx.into_bytes())
    };
    let mut code = compile(kernel, plan, &compile_options(options)?, store, Some(&make), cancel)?;
    for task in &mut code.tasks {
        task.shape.waits = can_wait(options.target);
    }
    Ok(code)
}

/// The code of all tasks as text, one after another.
pub fn ptx_text(
    kernel: &Kernel,
    plan: &Plan,
    options: PtxOptions,
    what: KernelText,
) -> Result<String, CodegenError> {
    let text = text(kernel, plan, &compile_options(options)?, what)?;
    Ok(if what == KernelText::Assembly { finish(&text, options.target) } else { text })
}

/// Whether a module consists of its kernel alone. A driver's assembler takes modules for parts of a program: where they have functions it
/// inlines none, and a kernel with a sine has 44 registers instead of 28. What it makes of others is what loading makes, bit for bit.
fn is_one_function(ptx: &str) -> bool {
    !ptx.contains(".func")
}

/// LLVM's text as the driver gets it.
fn finish(ptx: &str, target: PtxTarget) -> String {
    let mended = mend(ptx);
    if can_wait(target) { with_waits(&mended) } else { mended }
}

fn compile_options(options: PtxOptions) -> Result<CompileOptions, CodegenError> {
    let PtxTarget { capability, version } = options.target;
    let target = Target::nvptx(capability, version).ok_or_else(|| CodegenError::Unsupported {
        message: "LLVM was built without its target for NVIDIA's GPUs".to_owned(),
    })?;
    // Vector forms of `red`: PTX ISA 8.1, on sm_90.
    let gpu = GpuOptions { vendor: &NVIDIA, vector_sums: capability >= 90 && version >= 81 };
    let opt = if options.optimise { OptLevel::Default } else { OptLevel::None };
    Ok(CompileOptions {
        emit: EmitOptions { noalias: options.noalias, target: Machine::Gpu(gpu), ..EmitOptions::default() },
        llvm: Options { target, opt, output: Output::Assembly, vector_math: false, ..Options::default() },
        threads: options.threads,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_with_functions_are_left_to_whoever_loads_them() {
        assert!(is_one_function(".visible .entry k_t0(\n.param .u64 k_t0_param_0\n)\n{\n\tret;\n}\n"));
        assert!(!is_one_function(
            ".func f()\n{\n\tret;\n}\n.visible .entry k_t0()\n{\n\tcall.uni f, ();\n}\n"
        ));
        assert!(!is_one_function(".extern .func (.param .b32 r) vprintf(.param .b64 a, .param .b64 b);\n"));
    }
}
