//! GPU code of the test files' kernels, and the vendor's assembler, which takes it or says why not: GPU code is checked without a GPU.

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use octants_codegen::{CompiledTask, PtxOptions, PtxTarget, compile_ptx};
use octants_hal::Cancel;
use octants_ir::rewrite::ops_in;
use octants_ir::{Kernel, OpKind, text, verify};
use octants_passes::{
    Assumptions, Mode, SizesLayout, Storage, declare_sized_tape_arrays, declare_tape_arrays, differentiate,
};

use crate::kinds::plan::planned;
use crate::{Kind, TestFile};

/// Entries of one run of the assembler. Starting it takes as long as assembling ten small ones.
const ENTRIES_PER_RUN: usize = 64;

/// The kernels of a file that keep the laws; of those that gradients are tested with, also their derivatives.
pub fn kernels_of(path: &Path) -> Result<Vec<Kernel>, String> {
    let source = std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
    let file = TestFile::parse(&source)?;
    let kernels = file.cases.iter().filter_map(|case| text::parse(&case.input).ok());
    let mut kernels: Vec<_> = kernels.filter(|kernel| verify(kernel).is_ok()).collect();
    if file.head.kind == Kind::Gradient {
        let derivatives: Vec<_> = kernels.iter().flat_map(derivatives_of).collect();
        kernels.extend(derivatives);
    }
    // A GPU's threads have no tapes of their own.
    kernels.retain(|kernel| !kernel.has_tapes());
    Ok(kernels)
}

/// Both derivatives as a GPU runs them, and the kernel that computes how much they keep.
fn derivatives_of(kernel: &Kernel) -> Vec<Kernel> {
    let storage = vec![Storage::Companion(None); kernel.params.len()];
    let mut kernels = Vec::new();
    for mode in [Mode::Forward, Mode::Reverse] {
        if let Ok(mut made) = differentiate(kernel, mode, &storage) {
            if let Some(tapes) = made.tapes {
                let (scalars, varies) = (&tapes.scalars[..], &tapes.varies[..]);
                // The host computes from arguments what it can.
                let ops = ops_in(&tapes.sizing, tapes.sizing.body);
                if ops.into_iter().any(|op| tapes.sizing.ops[op].kind == OpKind::Load) {
                    let layout = SizesLayout { scalars, varies, with_duals: false, limit: 1 << 30 };
                    declare_sized_tape_arrays(&mut made.kernel, layout);
                } else {
                    declare_tape_arrays(&mut made.kernel, varies);
                }
                kernels.push(tapes.sizing);
            }
            kernels.push(made.kernel);
        }
    }
    kernels
}

/// The PTX of a kernel's tasks.
pub fn compile(kernel: Kernel, target: PtxTarget) -> Result<Vec<CompiledTask>, String> {
    let (kernel, plan) = planned(
        kernel,
        Assumptions { noalias: true, copies: true, exclusive: false, few_tasks: true, blocks: true },
    );
    let options = PtxOptions { target, noalias: true, optimise: true, threads: 1 };
    let code = compile_ptx(&kernel, &plan, options, None, None, &Cancel::new());
    code.map(|code| code.tasks).map_err(|error| format!("{}: {error}", kernel.name))
}

/// A PTX module with one entry.
pub struct Module {
    /// Where it comes from, for messages.
    pub name: String,
    pub task: CompiledTask,
}

/// What the assembler says of an entry.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct EntryStatistics {
    pub registers: u32,
    /// Bytes of a thread's local memory for variables.
    pub stack: u32,
    /// Bytes that do not fit into registers, stored and loaded.
    pub spill_stores: u32,
    pub spill_loads: u32,
    /// Bytes of a block's shared memory.
    pub shared: u32,
}

impl fmt::Display for EntryStatistics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { registers, stack, spill_stores, spill_loads, shared } = self;
        write!(f, "{registers} registers, {stack} bytes stack, ")?;
        write!(f, "{spill_stores} bytes spill stores, {spill_loads} bytes spill loads, {shared} bytes shared")
    }
}

/// The assembler of the GPU's vendor.
pub struct Assembler {
    program: PathBuf,
}

impl Assembler {
    /// `ptxas` of a Python package in the repository's environment, or on the path.
    pub fn find(root: &Path) -> Option<Self> {
        let name = "ptxas";
        let roots = [Some(root.to_owned()), main_worktree(root)];
        let packages = roots.into_iter().flatten().flat_map(|root| nvidia_packages(&root.join(".venv/lib")));
        let on_path = std::env::var_os("PATH")
            .map(|path| std::env::split_paths(&path).map(|folder| folder.join(name)).collect::<Vec<_>>())
            .unwrap_or_default();
        let candidates = packages.map(|package| package.join("bin").join(name)).chain(on_path);
        candidates.into_iter().find(|candidate| candidate.is_file()).map(|program| Self { program })
    }

    /// Its release, such as `13.4`.
    pub fn release(&self) -> Option<String> {
        let done = Command::new(&self.program).arg("--version").output().ok()?;
        let text = String::from_utf8_lossy(&done.stdout).into_owned();
        text.split_once("release ").and_then(|(_, rest)| rest.split(',').next()).map(str::to_owned)
    }

    /// Assembles whole modules, each on its own as far as others can tell, and gives the failures.
    pub fn failures(&self, capability: u32, modules: &[Module]) -> Vec<String> {
        let mut failures = Vec::new();
        for batch in modules.chunks(ENTRIES_PER_RUN) {
            if self.run(capability, &["-O1"], batch).status.success() {
                continue;
            }
            for module in batch {
                let done = self.run(capability, &["-O1"], std::slice::from_ref(module));
                if !done.status.success() {
                    let text = String::from_utf8_lossy(&done.stderr).into_owned();
                    failures.push(format!("{}: {text}", module.name));
                }
            }
        }
        failures
    }

    /// What it says of a module's entry when it optimises as the driver does.
    pub fn statistics(&self, capability: u32, module: &Module) -> Result<EntryStatistics, String> {
        let done = self.run(capability, &["-O3", "-v"], std::slice::from_ref(module));
        let text = String::from_utf8_lossy(&done.stderr).into_owned();
        if !done.status.success() {
            return Err(format!("{}: {text}", module.name));
        }
        let entry = text.split("Compiling entry function").nth(1).unwrap_or_default();
        let number = |unit: &str| {
            let before = entry.split_once(unit)?.0;
            before.split(|c: char| !c.is_ascii_digit()).next_back()?.parse().ok()
        };
        let needed = |unit: &str| number(unit).ok_or_else(|| format!("`{unit}` is not in: {text}"));
        Ok(EntryStatistics {
            registers: needed(" registers")?,
            stack: needed(" bytes stack frame")?,
            spill_stores: needed(" bytes spill stores")?,
            spill_loads: needed(" bytes spill loads")?,
            shared: number(" bytes smem").unwrap_or(0),
        })
    }

    /// One run; entries and tables get names that are unique in it.
    fn run(&self, capability: u32, options: &[&str], modules: &[Module]) -> Output {
        static RUN: AtomicU32 = AtomicU32::new(0);
        let number = RUN.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("octants-ptx-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder for temporary files");
        let mut command = Command::new(&self.program);
        command.arg(format!("-arch=sm_{capability}")).args(options).arg("-o").arg(folder.join("out.cubin"));
        for (index, module) in modules.iter().enumerate() {
            let text = String::from_utf8_lossy(&module.task.bytes);
            let entry = format!(".entry {}(", module.task.symbol);
            let text = text.replace(&entry, &format!(".entry e{index}_{}(", module.task.symbol));
            // Tables of the library: two of the same name end the assembler with a segmentation fault.
            let text = text.replace("__cudart_", &format!("e{index}_cudart_"));
            let path = folder.join(format!("{index}.ptx"));
            std::fs::write(&path, text).expect("a writable file");
            command.arg(path);
        }
        let done = command.stdin(Stdio::null()).output().expect("the assembler runs");
        std::fs::remove_dir_all(&folder).expect("the folder was made above");
        done
    }
}

/// Where a linked worktree of git belongs to, whose developer keeps the Python environment there.
fn main_worktree(root: &Path) -> Option<PathBuf> {
    let pointer = std::fs::read_to_string(root.join(".git")).ok()?;
    let worktree = PathBuf::from(pointer.strip_prefix("gitdir:")?.trim());
    worktree.ancestors().nth(3).map(Path::to_owned)
}

/// The folders `nvidia/<product>` of the packages of a Python environment, in a fixed order.
fn nvidia_packages(libraries: &Path) -> Vec<PathBuf> {
    let folders = |path: &Path| {
        let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
        let mut paths: Vec<_> = entries.map(|entry| entry.path()).collect();
        paths.sort();
        paths
    };
    let versions = folders(libraries);
    versions.iter().flat_map(|version| folders(&version.join("site-packages/nvidia"))).collect()
}
