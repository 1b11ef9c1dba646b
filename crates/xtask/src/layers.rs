//! The map: which crate stands above which, who owns which third-party crate, where `unsafe` may live.
//!
//! A crate may depend on crates of lower layers only. Tests may look sideways (a pass is tested with the interpreter),
//! but below the facade not even they may reach the facade or Python.

use crate::workspace::{Crate, Kind};

/// Every crate and its layer. A new crate must be placed here before the check passes.
const LAYERS: &[(&str, u8)] = &[
    ("octants_abi", 0),
    ("octants_cache", 0),
    ("octants_diag", 0),
    ("octants_direct", 0),
    ("octants_hal", 0),
    ("octants_llvm_sys", 0),
    ("octants_ir", 1),
    ("octants_front", 2),
    ("octants_interp", 2),
    ("octants_llvm", 2),
    ("octants_passes", 2),
    ("octants_codegen", 3),
    ("octants_cpu", 3),
    ("octants_cuda", 4),
    ("octants_gpu", 3),
    ("octants_reference", 3),
    ("octants_runtime", 3),
    ("octants", FACADE),
    ("octants_filetests", FACADE),
    ("octants_python", FACADE + 1),
    ("xtask", FACADE + 1),
];

/// The layer of the facade: all that a host language needs, and nothing of Python.
const FACADE: u8 = 5;

/// Third-party crates that exactly one of ours may use.
const OWNED: &[(&str, &str, &str)] = &[
    ("llvm-sys", "octants_llvm_sys", "only this crate links LLVM"),
    ("object", "octants_llvm_sys", "objects are read where they are loaded"),
    ("pyo3", "octants_python", "nothing below the facade links Python"),
    ("numpy", "octants_python", "nothing below the facade links Python"),
    ("annotate-snippets", "octants_diag", "rendering of diagnostics has one home"),
    ("ruff_python_ast", "octants_front", "the Python parser is wrapped there"),
    ("ruff_python_parser", "octants_front", "the Python parser is wrapped there"),
    ("ruff_text_size", "octants_front", "the Python parser is wrapped there"),
    ("blake3", "octants_cache", "keys have one home"),
    ("cudarc", "octants_cuda", "a vendor's driver is known to its device alone"),
];

/// Crates on a boundary: LLVM's C API, device memory, generated code, the Python C API.
pub const UNSAFE_ALLOWED: &[&str] = &[
    "octants_llvm_sys",
    "octants_hal",
    "octants_cpu",
    "octants_cuda",
    "octants_gpu",
    "octants_reference",
    "octants_runtime",
    "octants_python",
];

/// Crates that serve every device and therefore name none.
pub const VENDOR_NEUTRAL: &[&str] =
    &["octants_gpu", "octants_hal", "octants_runtime", "octants_ir", "octants_passes"];

/// Words that a vendor-neutral crate does not use.
pub const VENDORS: &[&str] = &["cuda", "nvidia", "nvptx", "amdgpu", "rocm", "hip", "vulkan", "metal"];

fn layer(name: &str) -> Option<u8> {
    LAYERS.iter().find(|(known, _)| *known == name).map(|&(_, layer)| layer)
}

/// Compares the dependency tables with the map. Each complaint is one line.
pub fn check(crates: &[Crate]) -> Vec<String> {
    let mut complaints = Vec::new();
    for one in crates {
        match layer(&one.name) {
            Some(own_layer) => check_crate(one, own_layer, &mut complaints),
            None => complaints.push(format!("crate `{}` has no layer: place it on the map", one.name)),
        }
    }
    complaints
}

fn check_crate(one: &Crate, own_layer: u8, complaints: &mut Vec<String>) {
    for dependency in &one.dependencies {
        if let Some(&(_, owner, why)) = OWNED.iter().find(|(owned, ..)| *owned == dependency.name) {
            if owner != one.name {
                complaints.push(format!(
                    "`{}` depends on `{}`, which belongs to `{owner}`: {why}",
                    one.name, dependency.name
                ));
            }
            continue;
        }
        let Some(other_layer) = layer(&dependency.name) else { continue };
        let allowed = match dependency.kind {
            Kind::Normal | Kind::Build => other_layer < own_layer,
            Kind::Dev => own_layer >= FACADE || other_layer < FACADE,
        };
        if !allowed {
            complaints.push(format!(
                "`{}` (layer {own_layer}) depends on `{}` (layer {other_layer}): dependencies point downward",
                one.name, dependency.name
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::Dependency;

    fn complaints(name: &str, kind: Kind, dependency: &str) -> Vec<String> {
        let dependencies = vec![Dependency { name: dependency.into(), kind }];
        check(&[Crate { name: name.into(), directory: ".".into(), dependencies }])
    }

    #[test]
    fn upward_and_sideways_dependencies_are_refused() {
        assert_eq!(complaints("octants_passes", Kind::Normal, "octants_ir"), [""; 0]);
        assert_eq!(
            complaints("octants_ir", Kind::Normal, "octants_passes"),
            ["`octants_ir` (layer 1) depends on `octants_passes` (layer 2): dependencies point downward"]
        );
        assert_eq!(complaints("octants_runtime", Kind::Build, "octants_cpu").len(), 1);
    }

    #[test]
    fn tests_look_sideways_but_never_to_the_facade() {
        assert_eq!(complaints("octants_passes", Kind::Dev, "octants_interp"), [""; 0]);
        assert_eq!(complaints("octants_passes", Kind::Dev, "octants").len(), 1);
    }

    #[test]
    fn owned_crates_are_used_by_their_owner_alone() {
        assert_eq!(complaints("octants_python", Kind::Normal, "pyo3"), [""; 0]);
        assert_eq!(
            complaints("octants_front", Kind::Dev, "pyo3"),
            [
                "`octants_front` depends on `pyo3`, which belongs to `octants_python`: nothing below the facade links Python"
            ]
        );
    }

    #[test]
    fn a_crate_without_a_layer_is_refused() {
        assert_eq!(
            complaints("octants_extra", Kind::Normal, "serde"),
            ["crate `octants_extra` has no layer: place it on the map"]
        );
    }
}
