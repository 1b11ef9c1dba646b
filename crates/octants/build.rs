//! Names the compiler by its sources, so that code which another state of it has made is never taken for its own.

use std::hash::{DefaultHasher, Hasher};
use std::path::{Path, PathBuf};

/// Crates that have no part in what a kernel's IR becomes.
const BESIDE: [&str; 4] = ["octants_python", "octants_front", "octants_filetests", "xtask"];

fn main() {
    // Asked for when it runs: a script that another checkout has compiled into the same folder would name the sources there.
    let here = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let crates = here.parent().expect("crates/octants has a parent").to_owned();
    let mut files = Vec::new();
    for one in entries(&crates) {
        let name = one.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if !BESIDE.contains(&name) {
            println!("cargo::rerun-if-changed={}", one.join("src").display());
            collect(&one.join("src"), &mut files);
            files.push(one.join("Cargo.toml"));
        }
    }
    if let Some(workspace) = crates.parent() {
        let lock = workspace.join("Cargo.lock");
        println!("cargo::rerun-if-changed={}", lock.display());
        files.push(lock);
    }
    files.sort();
    // 64 bits twice: which states of a compiler meet in a folder is left to chance.
    let hash = |seed: u8| {
        let mut hasher = DefaultHasher::new();
        hasher.write_u8(seed);
        for file in &files {
            let bytes = std::fs::read(file).unwrap_or_default();
            hasher.write_usize(bytes.len());
            hasher.write(&bytes);
        }
        hasher.finish()
    };
    println!("cargo::rustc-env=OCTANTS_COMPILER={:016x}{:016x}", hash(0), hash(1));
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for path in entries(folder) {
        if path.is_dir() {
            collect(&path, files);
        } else {
            files.push(path);
        }
    }
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}
