//! What text is made for.

use crate::cpu::VectorLibrary;
use crate::gpu::{NVIDIA, Vendor};

/// What the text may assume, and what it is for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EmitOptions {
    /// No two array arguments overlap, unless both are only read.
    pub noalias: bool,
    /// The target's triple; empty if whoever compiles the text says it.
    pub triple: String,
    /// The target's data layout; empty if whoever compiles the text says it.
    pub data_layout: String,
    pub target: Target,
}

/// The kind of machine that code is for, and so what its tasks look like.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Target {
    Cpu(CpuOptions),
    Gpu(GpuOptions),
}

impl Default for EmitOptions {
    fn default() -> Self {
        Self::for_cpu(CpuOptions::default())
    }
}

impl EmitOptions {
    pub fn for_cpu(cpu: CpuOptions) -> Self {
        Self { noalias: true, triple: String::new(), data_layout: String::new(), target: Target::Cpu(cpu) }
    }
}

/// What code for a CPU is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CpuOptions {
    /// Width of the target's vector registers in bits.
    pub vector_bits: u32,
    /// Exactly that many iterations at once in every parallel loop that can be widened, instead of what seems best.
    pub force_lanes: Option<u32>,
    /// The kernel runs on one thread, and nothing else of the device's meanwhile, unless it has branches.
    pub exclusive: bool,
    /// A product and a sum are one instruction, which rounds once.
    pub fused: bool,
    /// The math functions that there are for vectors.
    pub vector_library: VectorLibrary,
}

impl Default for CpuOptions {
    fn default() -> Self {
        Self {
            vector_bits: 256,
            force_lanes: None,
            exclusive: false,
            fused: false,
            vector_library: VectorLibrary::EMPTY,
        }
    }
}

/// What code for a GPU is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GpuOptions {
    pub vendor: &'static Vendor,
    /// Two or four neighbouring reals of 32 bits are added to memory by one instruction.
    pub vector_sums: bool,
}

impl Default for GpuOptions {
    fn default() -> Self {
        Self { vendor: &NVIDIA, vector_sums: false }
    }
}
