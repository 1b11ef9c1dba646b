//! What code is compiled for: the host processor, or a GPU.

use std::sync::OnceLock;

use llvm_sys::target_machine as tm;

use crate::fatal;
use crate::handles::{TargetMachine, owned_message};
use crate::pipeline::OptLevel;

/// A processor in LLVM's words.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Target {
    /// Architecture, vendor and system, such as `x86_64-pc-linux-gnu`.
    pub triple: String,
    /// The processor's name, such as `sapphirerapids` or `sm_90`.
    pub cpu: String,
    /// What it can do beyond (`+avx512f`) or short of (`-amx-tile`) its name, separated by commas.
    pub features: String,
    /// How wide vectors should be in bits, where LLVM's own choice for this processor is too cautious.
    pub prefer_vector_width: Option<u32>,
}

/// The kinds of processors that code is optimised for in ways of their own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Processor {
    X86,
    OtherCpu,
    Gpu,
}

impl Target {
    /// The processor that this process runs on. Found once, then remembered.
    pub fn host() -> &'static Target {
        static HOST: OnceLock<Target> = OnceLock::new();
        HOST.get_or_init(|| {
            fatal::initialise();
            // SAFETY: each function returns a fresh C string, which `owned_message` copies and releases.
            let (triple, cpu, features) = unsafe {
                (
                    owned_message(tm::LLVMGetDefaultTargetTriple()),
                    owned_message(tm::LLVMGetHostCPUName()),
                    owned_message(tm::LLVMGetHostCPUFeatures()),
                )
            };
            let prefer_vector_width = wide_vectors_pay_off(&cpu, &features).then_some(512);
            Target { triple, cpu, features, prefer_vector_width }
        })
    }

    /// A CUDA device of the given compute capability (90 for 9.0) and PTX version (78 for 7.8). Compiling for it gives
    /// PTX text, so only [`Output::Assembly`](crate::Output::Assembly) makes sense. `None` if LLVM was built without it.
    pub fn nvptx(capability: u32, ptx: u32) -> Option<Target> {
        cfg!(nvptx).then(|| Target {
            triple: "nvptx64-nvidia-cuda".to_owned(),
            cpu: format!("sm_{capability}"),
            features: format!("+ptx{ptx}"),
            prefer_vector_width: None,
        })
    }

    pub(crate) fn processor(&self) -> Processor {
        match self.triple.split('-').next() {
            Some("x86_64") => Processor::X86,
            Some("nvptx64" | "amdgcn") => Processor::Gpu,
            _ => Processor::OtherCpu,
        }
    }

    /// Width in bits of the vector registers that code is to use; 0 for a target without.
    pub fn vector_bits(&self) -> u32 {
        let has = |feature: &str| self.features.split(',').any(|one| one == feature);
        match (self.prefer_vector_width, self.processor()) {
            (Some(bits), _) => bits,
            (None, Processor::X86) if has("+avx2") => 256,
            (None, Processor::X86 | Processor::OtherCpu) => 128,
            (None, Processor::Gpu) => 0,
        }
    }

    /// Whether a product and a sum are one instruction on a CPU.
    pub fn fuses(&self) -> bool {
        match self.processor() {
            Processor::X86 => self.features.split(',').any(|one| one == "+fma"),
            Processor::OtherCpu => self.triple.starts_with("aarch64"),
            Processor::Gpu => false,
        }
    }

    /// The data layout that LLVM uses for this target; an error if LLVM does not know the target.
    pub fn data_layout(&self) -> Result<String, String> {
        Ok(TargetMachine::new(self, OptLevel::None)?.data_layout())
    }
}

/// LLVM, like gcc, prefers 256-bit vectors on every Intel processor with AVX-512, because the first generations lowered
/// their clock for wider ones. On Sapphire Rapids wider vectors measure faster (n-body, stencils in cache) or equal
/// (streaming loops); Ice Lake and AMD's are counted with it, unmeasured.
fn wide_vectors_pay_off(cpu: &str, features: &str) -> bool {
    const CLOCK_SUFFERS: [&str; 4] = ["skylake-avx512", "cascadelake", "cooperlake", "knl"];
    features.split(',').any(|one| one == "+avx512vl") && !CLOCK_SUFFERS.contains(&cpu)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wide_vectors_need_a_processor_that_keeps_its_clock() {
        assert!(wide_vectors_pay_off("sapphirerapids", "+sse2,+avx512vl"));
        assert!(!wide_vectors_pay_off("skylake-avx512", "+sse2,+avx512vl"));
        assert!(!wide_vectors_pay_off("haswell", "+sse2,-avx512vl"));
    }

    #[test]
    fn the_host_is_a_target_that_llvm_knows() {
        let host = Target::host();
        assert!(host.triple.contains(std::env::consts::ARCH), "{host:?}");
        assert!(host.data_layout().unwrap().starts_with("e-"));
        let unknown = Target { triple: "pdp11-dec-unix".to_owned(), ..host.clone() };
        assert!(unknown.data_layout().unwrap_err().contains("pdp11"));
    }
}
