//! A kernel's code for NVIDIA's GPUs to look at, whatever the session's device: PTX, and what the vendor's tools make of it.

use std::fs::DirBuilder;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::ErrorKind;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use octants_codegen::{PtxOptions, PtxTarget, compile_ptx};
use octants_hal::Cancel;
use octants_ir::Kernel;
use octants_passes::{Assumptions as PassAssumptions, Outcome, declare_tape_arrays};
use octants_runtime::Assumptions;

use crate::backend::{codegen_error, compile_threads};
use crate::error::Error;
use crate::kernel_source::KernelSource;

/// What code is shown for where the session's device is no GPU and the caller names none.
const DEFAULT_CAPABILITY: u32 = 90;
/// The oldest architecture that code is made for.
const OLDEST_CAPABILITY: u32 = 70;

/// The PTX of one task.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PtxModule {
    pub symbol: String,
    pub text: String,
}

impl KernelSource {
    /// The PTX of the kernel's tasks for a compute capability (90 for 9.0), or for the session's device, and the capability.
    pub(crate) fn ptx(
        &self,
        capability: Option<u32>,
        assume: Assumptions,
    ) -> Result<(u32, Vec<PtxModule>), Error> {
        if let Some(old) = capability.filter(|&capability| capability < OLDEST_CAPABILITY) {
            let (major, minor) = (old / 10, old % 10);
            return Err(Error::invalid(format!(
                "kernels are compiled for compute capability 7.0 (capability=70) and newer, not for {major}.{minor}"
            )));
        }
        let target = match (capability, self.compiler.ptx_target()) {
            (None, Some(own)) => own,
            (capability, _) => PtxTarget::newest(capability.unwrap_or(DEFAULT_CAPABILITY)),
        };
        // Whether copies of arrays fit into a block's memory is asked by the code itself.
        let noalias = assume.noalias;
        let assumptions =
            PassAssumptions { noalias, copies: noalias, exclusive: false, few_tasks: true, blocks: true };
        // Threads of the session's device may have memory for tapes; those of a GPU have arrays.
        let mut kernel = Kernel::clone(&self.kernel);
        declare_tape_arrays(&mut kernel, &[]);
        let Outcome { kernel, plan, .. } = self.run_passes_on(kernel, assumptions).0;
        let options = PtxOptions {
            target,
            noalias,
            optimise: self.options.opt_level > 0,
            threads: compile_threads(self),
        };
        let code = compile_ptx(&kernel, &plan, options, None, None, &Cancel::new())
            .map_err(|e| codegen_error(&e))?;
        let modules = code.tasks.into_iter().map(|task| {
            let text = String::from_utf8_lossy(&task.bytes).into_owned();
            PtxModule { symbol: task.symbol, text }
        });
        Ok((target.capability, modules.collect()))
    }
}

/// Programs of NVIDIA's toolkit, which Octants does not contain.
#[derive(Clone, Debug, Default)]
pub struct NvidiaTools {
    folders: Vec<PathBuf>,
}

impl NvidiaTools {
    /// Looks on the path, then in these folders.
    pub fn new(folders: impl IntoIterator<Item = PathBuf>) -> Self {
        let path = std::env::var_os("PATH").unwrap_or_default();
        Self { folders: std::env::split_paths(&path).chain(folders).collect() }
    }

    /// The machine code of PTX modules for a capability, as text.
    pub fn sass(&self, capability: u32, modules: &[PtxModule]) -> Result<String, Error> {
        let (assembler, disassembler) = (self.find("ptxas")?, self.find("nvdisasm")?);
        let folder = TemporaryFolder::new()?;
        let mut texts = Vec::new();
        for module in modules {
            let (source, object) = (folder.0.join("module.ptx"), folder.0.join("module.cubin"));
            write(&source, module.text.as_bytes())?;
            run(Command::new(&assembler)
                .arg(format!("-arch=sm_{capability}"))
                .arg("-o")
                .args([&object, &source]))?;
            texts.push(run(Command::new(&disassembler).arg("--print-code").arg(&object))?);
        }
        Ok(texts.join("\n"))
    }

    /// The machine code of a cubin, as text.
    pub fn disassemble(&self, cubin: &[u8]) -> Result<String, Error> {
        let disassembler = self.find("nvdisasm")?;
        let folder = TemporaryFolder::new()?;
        let object = folder.0.join("module.cubin");
        write(&object, cubin)?;
        run(Command::new(&disassembler).arg("--print-code").arg(&object))
    }

    fn find(&self, name: &str) -> Result<PathBuf, Error> {
        let found = self.folders.iter().map(|folder| folder.join(name)).find(|file| file.is_file());
        found.ok_or_else(|| Error::Unsupported {
            message: format!(
                "machine code is shown by NVIDIA's programs `ptxas` and `nvdisasm`, and `{name}` was not found; the CUDA toolkit \
                 has both, and so have the Python packages nvidia-cuda-nvcc and nvidia-cuda-nvdisasm"
            ),
        })
    }
}

/// A folder that only this user can look into, removed with what is in it.
struct TemporaryFolder(PathBuf);

impl TemporaryFolder {
    /// Law: it is new. Others can write to the system's folder for such things, and what they put there under whatever name, a link for instance, is
    /// neither followed nor used: a name that is taken gives way to another one.
    fn new() -> Result<Self, Error> {
        Self::inside(&std::env::temp_dir(), || RandomState::new().build_hasher().finish())
    }

    fn inside(parent: &Path, mut random: impl FnMut() -> u64) -> Result<Self, Error> {
        loop {
            let path = parent.join(format!("octants-sass-{:016x}", random()));
            match DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => return Ok(Self(path)),
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => return Err(failed(&path.display().to_string(), &error)),
            }
        }
    }
}

impl Drop for TemporaryFolder {
    fn drop(&mut self) {
        drop(std::fs::remove_dir_all(&self.0));
    }
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    std::fs::write(path, bytes).map_err(|error| failed(&path.display().to_string(), &error))
}

/// What the program writes.
fn run(command: &mut Command) -> Result<String, Error> {
    let name = command.get_program().to_string_lossy().into_owned();
    let done = command.stdin(Stdio::null()).output().map_err(|error| failed(&name, &error))?;
    if done.status.success() {
        Ok(String::from_utf8_lossy(&done.stdout).into_owned())
    } else {
        Err(failed(&name, &String::from_utf8_lossy(&done.stderr).trim()))
    }
}

fn failed(what: &str, why: &dyn std::fmt::Display) -> Error {
    Error::Unsupported { message: format!("machine code cannot be shown: {what}: {why}") }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn a_temporary_folder_is_new_and_private_whatever_others_have_put_there() {
        let parent = TemporaryFolder::new().unwrap();
        let elsewhere = parent.0.join("elsewhere");
        std::fs::create_dir(&elsewhere).unwrap();
        symlink(&elsewhere, parent.0.join("octants-sass-0000000000000001")).unwrap();
        std::fs::create_dir(parent.0.join("octants-sass-0000000000000002")).unwrap();
        let mut numbers = 1..;
        let made = TemporaryFolder::inside(&parent.0, || numbers.next().unwrap()).unwrap();
        assert!(made.0.ends_with("octants-sass-0000000000000003"), "{}", made.0.display());
        assert_eq!(std::fs::metadata(&made.0).unwrap().permissions().mode() & 0o777, 0o700);
        write(&made.0.join("module.ptx"), b"text").unwrap();
        assert_eq!(std::fs::read_dir(&elsewhere).unwrap().count(), 0);
    }
}
