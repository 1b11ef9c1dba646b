//! The GPU text of every kernel in the test files, for whoever assembles it.

use std::path::{Path, PathBuf};

use octants_ir::{text, verify};
use octants_llvm::{EmitOptions, GpuOptions, Target, TaskText, emit};
use octants_passes::Assumptions;

use crate::TestFile;
use crate::kinds::plan::planned;

/// The tasks of a file's kernels that keep the laws.
pub fn tasks_of(path: &Path) -> Result<Vec<TaskText>, String> {
    let source = std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
    let options = EmitOptions { target: Target::Gpu(GpuOptions::default()), ..EmitOptions::default() };
    let mut tasks = Vec::new();
    for case in TestFile::parse(&source)?.cases {
        let Ok(kernel) = text::parse(&case.input) else { continue };
        if verify(&kernel).is_ok() {
            let (kernel, plan) = planned(kernel, Assumptions { noalias: true, copies: false });
            tasks.extend(emit(&kernel, &plan, &options));
        }
    }
    Ok(tasks)
}

/// The assembler of the GPU's vendor: `ptxas` of a Python package beside this interpreter's, or on the path.
pub fn assembler(root: &Path) -> Option<PathBuf> {
    let name = "ptxas";
    let installed = root.join(".venv/lib");
    let versions = std::fs::read_dir(&installed).into_iter().flatten().flatten();
    let mut candidates: Vec<_> = versions
        .flat_map(|version| {
            let packages = version.path().join("site-packages/nvidia");
            std::fs::read_dir(packages)
                .into_iter()
                .flatten()
                .flatten()
                .map(|package| package.path().join("bin").join(name))
        })
        .collect();
    candidates.sort();
    let on_path = std::env::var_os("PATH")
        .map(|path| std::env::split_paths(&path).map(|folder| folder.join(name)).collect::<Vec<_>>())
        .unwrap_or_default();
    candidates.into_iter().chain(on_path).find(|candidate| candidate.is_file())
}
