//! Which passes run, and why these.

use llvm_sys::target_machine::LLVMCodeGenOptLevel;

use crate::target::Processor;

/// LLVM's `-O3` spends much of its time on what kernels do not have: a call graph, exceptions, virtual functions, value
/// profiles. This list keeps what makes loops fast, in an order that does it once. On the kernels in `tests/kernels` it
/// takes 0.4 to 0.7 of the time of `-O3` (`examples/compile_time.rs` measures it), for code that runs as fast.
const KERNEL: &str = concat!(
    "function<eager-inv>(",
    // Values out of memory, and the obvious simplifications.
    "sroa<modify-cfg>,early-cse<memssa>,instcombine<no-verify-fixpoint>,simplifycfg,",
    // Conditions that do not change in a loop leave it. This must come before *any* loop is rotated (the loop manager
    // finishes an inner loop first), or the test of an inner loop for "no iteration at all" looks like such a
    // condition, and the outer loop is compiled twice.
    "loop-mssa(loop-instsimplify,loop-simplifycfg,licm<allowspeculation>,simple-loop-unswitch<nontrivial;trivial>),",
    "loop-mssa(loop-rotate<header-duplication>,licm<allowspeculation>),",
    "simplifycfg,instcombine<no-verify-fixpoint>,",
    // Loops that are a memset or a memcpy, wide induction variables, dead loops, short constant loops.
    "loop(loop-idiom,indvars,loop-deletion,loop-unroll-full),",
    // What unrolling made visible: constant indices of local arrays, loads of what was just stored.
    "sroa<modify-cfg>,gvn,dse,",
    "loop-vectorize,instcombine<no-verify-fixpoint>,",
    "simplifycfg<forward-switch-cond;switch-range-to-icmp;switch-to-lookup;no-keep-loops;hoist-common-insts;sink-common-insts>,",
    // No `slp-vectorizer`: in LLVM 19.1 it loses constants, where lanes that subtract a value stand beside lanes that
    // subtract a constant (`tests/language/test_regressions.py` has such a kernel).
    "vector-combine,",
    "loop-unroll<O3>,instcombine<no-verify-fixpoint>,loop-mssa(licm<allowspeculation>),simplifycfg",
    ")"
);

/// The same where loops are over whole vectors of straight code: what unrolls, vectorises and recognises loops would look at them for nothing.
/// It takes 0.6 of the time, and gives the same code.
const STRAIGHT: &str = concat!(
    "function<eager-inv>(",
    "sroa<modify-cfg>,early-cse<memssa>,instcombine<no-verify-fixpoint>,simplifycfg,",
    "loop-mssa(loop-instsimplify,loop-simplifycfg,licm<allowspeculation>,simple-loop-unswitch<nontrivial;trivial>),",
    "loop-mssa(loop-rotate<header-duplication>,licm<allowspeculation>),",
    "gvn,dse,vector-combine,instcombine<no-verify-fixpoint>,",
    "simplifycfg<forward-switch-cond;switch-range-to-icmp;switch-to-lookup;no-keep-loops;hoist-common-insts;sink-common-insts>",
    ")"
);

/// The obvious simplifications alone, for code that runs so few iterations that compiling it better takes longer.
const BRIEF: &str =
    "function<eager-inv>(sroa<modify-cfg>,early-cse<memssa>,instcombine<no-verify-fixpoint>,simplifycfg)";

/// The same as the first for a GPU: a thread is scalar, so nothing is vectorised across iterations, and loops are not cut into vectors and a rest.
/// Pointers get back the address space that they come from, so that accesses need not find it out; unrolled loops give the
/// scheduler loads to overlap. Arrays in a block's memory begin at multiples of 16 bytes: where indices are multiples of four, four loads become one.
const GPU_KERNEL: &str = concat!(
    "function<eager-inv>(",
    "sroa<modify-cfg>,infer-address-spaces,early-cse<memssa>,instcombine<no-verify-fixpoint>,simplifycfg,",
    "loop-mssa(loop-instsimplify,loop-simplifycfg,licm<allowspeculation>,simple-loop-unswitch<trivial>),",
    "loop-mssa(loop-rotate<header-duplication>,licm<allowspeculation>),",
    "simplifycfg,instcombine<no-verify-fixpoint>,",
    "loop(loop-idiom,indvars,loop-deletion,loop-unroll-full),",
    "sroa<modify-cfg>,infer-address-spaces,gvn,dse,instcombine<no-verify-fixpoint>,",
    "simplifycfg<forward-switch-cond;switch-range-to-icmp;no-keep-loops;hoist-common-insts;sink-common-insts>,",
    "loop-unroll<O3>,instcombine<no-verify-fixpoint>,loop-mssa(licm<allowspeculation>),simplifycfg,",
    "infer-alignment",
    ")"
);

/// In front of it, where the module has functions that only it can call.
const INLINE: &str = "always-inline,cgscc(inline),globaldce,";

/// The same for a GPU, whose library's functions ask at every step what was answered when they were linked. Each function is simplified before it is inlined, so that
/// a kernel gets no copies of what never runs.
const GPU_INLINE: &str = "function<eager-inv>(early-cse,simplifycfg),cgscc(inline,function<eager-inv>(early-cse,simplifycfg)),globaldce,";

/// How hard to optimise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum OptLevel {
    /// Straight translation. For finding out whether a wrong result is the optimiser's.
    None,
    /// What makes code short, for what runs few iterations. On a CPU LLVM takes half of the time that it takes otherwise for the first and last rows of a
    /// stencil, most of it saved in instruction selection and register allocation; a GPU's code is optimised as usual.
    Brief,
    /// Everything that makes kernels fast and pays for its compile time.
    #[default]
    Default,
    /// LLVM's own `-O3`, for comparison.
    Thorough,
}

impl OptLevel {
    pub(crate) fn codegen(self, processor: Processor) -> LLVMCodeGenOptLevel {
        match self {
            OptLevel::Brief if processor == Processor::Gpu => OptLevel::Default.codegen(processor),
            OptLevel::None | OptLevel::Brief => LLVMCodeGenOptLevel::LLVMCodeGenLevelNone,
            OptLevel::Default => LLVMCodeGenOptLevel::LLVMCodeGenLevelDefault,
            OptLevel::Thorough => LLVMCodeGenOptLevel::LLVMCodeGenLevelAggressive,
        }
    }

    /// The pipeline for a target in the syntax of `opt -passes=`; `None` if nothing is to be run.
    pub(crate) fn passes(
        self,
        processor: Processor,
        straight: bool,
        has_private_functions: bool,
    ) -> Option<String> {
        let kernel = match processor {
            Processor::X86 | Processor::OtherCpu if self == OptLevel::Brief => BRIEF,
            Processor::X86 | Processor::OtherCpu if straight => STRAIGHT,
            Processor::X86 | Processor::OtherCpu => KERNEL,
            Processor::Gpu => GPU_KERNEL,
        };
        match self {
            // Functions marked so must be inlined at every level.
            OptLevel::None => has_private_functions.then(|| "always-inline".to_owned()),
            OptLevel::Default | OptLevel::Brief if has_private_functions => {
                let inline = if processor == Processor::Gpu { GPU_INLINE } else { INLINE };
                Some(format!("{inline}{kernel}"))
            }
            OptLevel::Default | OptLevel::Brief => Some(kernel.to_owned()),
            OptLevel::Thorough => Some("default<O3>".to_owned()),
        }
    }
}
