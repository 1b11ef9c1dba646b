//! What a session is made with.

use octants_ir::KernelOptions;

/// A kind of device.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Arch {
    /// The host's processor: native code on a pool of threads.
    #[default]
    Cpu,
    /// An NVIDIA GPU.
    Cuda,
    /// The host's processor, by the interpreter that defines what each op means. Slow, and the oracle of tests.
    Reference,
    /// The same with memory that the host does not see, as a GPU's: for tests of what travels between the two.
    Remote,
    /// No processor at all: compiles, and records what a device would be told to do. For tests of ordering.
    Null,
}

impl Arch {
    pub const ALL: &'static [Arch] = &[Arch::Cpu, Arch::Cuda, Arch::Reference, Arch::Remote, Arch::Null];

    /// The number of its memory's kind in DLPack, by which libraries share arrays; nothing if they have none for it.
    pub fn dlpack_kind(self) -> Option<i32> {
        match self {
            Self::Cpu | Self::Reference => Some(1),
            Self::Cuda => Some(2),
            Self::Remote | Self::Null => None,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Cuda => "cuda",
            Self::Reference => "reference",
            Self::Remote => "remote",
            Self::Null => "null",
        }
    }

    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|arch| arch.name() == name)
    }
}

/// Options of a session. They hold for every kernel that it compiles and are part of the key under which it keeps them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SessionOptions {
    pub arch: Arch,
    /// Which of several devices of the architecture, counted from zero.
    pub device: u32,
    /// Threads that run kernels, the caller among them; 0 means one for each core that the process may use.
    pub threads: usize,
    /// Threads that compile one kernel's tasks; 0 means one for each core.
    pub num_compile_threads: usize,
    /// What its kernels are compiled under: relaxed in their reals if they allow it, too, and in debug mode if they or the session are.
    pub kernel: KernelOptions,
    /// 0 leaves all optimisation out; anything else asks for all of it.
    pub opt_level: u8,
    pub random_seed: u64,
    /// Whether launches are recorded by the session's profiler.
    pub kernel_profiler: bool,
    /// The most bytes that a derivative may keep values of loops in, at once. With nothing, threads of a host's processor take what they need, and
    /// other devices have a limit of their own.
    pub tape_memory_limit: Option<u64>,
    /// The most bytes that the cells of one sparse node may take. With nothing, all that the device has.
    pub sparse_memory_limit: Option<u64>,
}

impl Default for SessionOptions {
    fn default() -> Self {
        Self {
            arch: Arch::Cpu,
            device: 0,
            threads: 0,
            num_compile_threads: 0,
            kernel: KernelOptions { fast_math: true, ..KernelOptions::default() },
            opt_level: 1,
            random_seed: 0,
            kernel_profiler: false,
            tape_memory_limit: None,
            sparse_memory_limit: None,
        }
    }
}
