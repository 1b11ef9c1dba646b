//! Texts that show a compilation at some stage.

use std::path::{Path, PathBuf};

use octants::{CompiledKernel, Dump, NvidiaTools};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

use crate::gateway::errors;
use crate::gateway::under_way::Outside;

/// A stage by its name. `capability` says which of NVIDIA's GPUs the last two are for.
pub(crate) fn dump(
    py: Python<'_>,
    kernel: &CompiledKernel,
    stage: &str,
    capability: Option<u32>,
) -> PyResult<Option<String>> {
    let what = match stage {
        "ptx" | "sass" => return gpu_text(py, kernel, stage == "sass", capability).map(Some),
        _ if capability.is_some() => {
            return Err(PyTypeError::new_err("capability is for the stages ptx and sass alone"));
        }
        "ir" => Dump::Ir,
        "tasks" => Dump::IrAfterPasses,
        "llvm" => Dump::Llvm,
        "llvm-optimised" => Dump::OptimisedLlvm,
        "asm" => Dump::Assembly,
        _ => {
            let message = format!(
                "no stage is named {stage:?}; there are ir, tasks, llvm, llvm-optimised, asm, ptx and sass"
            );
            return Err(PyValueError::new_err(message));
        }
    };
    py.outside(|| kernel.dump(what)).map_err(|error| errors::from_error(py, &error))
}

fn gpu_text(
    py: Python<'_>,
    kernel: &CompiledKernel,
    machine_code: bool,
    capability: Option<u32>,
) -> PyResult<String> {
    let tools = if machine_code { Some(NvidiaTools::new(tool_folders(py)?)) } else { None };
    let text = py.outside(|| {
        let (capability, modules) = kernel.ptx(capability)?;
        match tools {
            Some(tools) => tools.sass(capability, &modules),
            None => Ok(modules.iter().map(|module| module.text.trim_start()).collect::<Vec<_>>().join("\n")),
        }
    });
    text.map_err(|error| errors::from_error(py, &error))
}

/// Where NVIDIA's Python packages keep programs: `nvidia/<product>/bin` wherever Python looks for packages.
fn tool_folders(py: Python<'_>) -> PyResult<Vec<PathBuf>> {
    let places: Vec<PathBuf> = py.import("sys")?.getattr("path")?.extract()?;
    let products = |place: &Path| std::fs::read_dir(place.join("nvidia")).into_iter().flatten().flatten();
    let mut folders: Vec<_> =
        places.iter().flat_map(|place| products(place)).map(|product| product.path().join("bin")).collect();
    folders.sort();
    Ok(folders)
}
