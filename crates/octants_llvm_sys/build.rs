//! Links the few parts of LLVM 19 that the compiler uses, statically, and everything that they need in turn; and finds the library of
//! functions for NVIDIA's GPUs, which becomes part of the crate.
//!
//! `llvm-sys` only supplies declarations here (feature `no-llvm-linking`): its own script would bundle a copy of each
//! LLVM archive into an rlib and link z3 and libxml2, of which nothing is used.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, exit};

const PREFIX: &str = "LLVM_SYS_191_PREFIX";
/// The library for NVIDIA's GPUs: a file, or `none` to build without.
const LIBDEVICE: &str = "OCTANTS_LIBDEVICE";
/// The Python package that has it.
const LIBDEVICE_PACKAGE: &str = "nvidia-nvvm";

fn main() {
    // gdb looks for the symbols of its interface; a program that was stripped keeps those that are exported.
    println!("cargo:rustc-link-arg-tests=-rdynamic");
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-env-changed={PREFIX}");
    println!("cargo:rustc-check-cfg=cfg(nvptx)");

    let config = find_llvm_config();
    let available = ask(&config, &["--components"]);
    let available: Vec<&str> = available.split_whitespace().collect();

    let host = match env::var("CARGO_CFG_TARGET_ARCH").as_deref() {
        Ok("x86_64") => "x86",
        Ok("aarch64") => "aarch64",
        other => fail(&format!("octants compiles for x86_64 and aarch64 hosts, not for {other:?}")),
    };
    let mut components = ["passes", "irreader", "linker", "target"].map(str::to_owned).to_vec();
    components.push(format!("{host}codegen"));
    if available.contains(&"nvptxcodegen") {
        components.push("nvptxcodegen".to_owned());
        println!("cargo:rustc-cfg=nvptx");
    }

    println!("cargo:rustc-link-search=native={}", ask(&config, &["--libdir"]));
    let mut arguments = vec!["--link-static".to_owned(), "--libnames".to_owned()];
    arguments.append(&mut components);
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    for file in ask(&config, &arguments).split_whitespace() {
        let name = file.trim_start_matches("lib").trim_end_matches(".a");
        link_static(name);
    }

    // Compressed debug sections are never written, but LLVM's Support library refers to both compressors.
    let wanted = ask(&config, &["--link-static", "--system-libs"]);
    for (flag, library, package) in [("-lz", "z", "zlib1g-dev"), ("-lzstd", "zstd", "libzstd-dev")] {
        if wanted.split_whitespace().any(|one| one == flag) {
            link_archive_of_compiler(library, package);
        }
    }
    link_archive_of_compiler("stdc++", "libstdc++-12-dev or newer");

    let libdevice = find_libdevice();
    println!("cargo:rerun-if-changed={}", libdevice.display());
    println!("cargo:rustc-env=OCTANTS_LIBDEVICE_FILE={}", libdevice.display());
}

/// The file that [`LIBDEVICE`] names, an empty one if that is to be none, or the one in the first Python environment that has it:
/// the repository's, the active one, that of `python3`.
fn find_libdevice() -> PathBuf {
    println!("cargo:rerun-if-env-changed={LIBDEVICE}");
    match env::var_os(LIBDEVICE) {
        Some(none) if none == "none" => {
            let empty = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it")).join("none.bc");
            fs::write(&empty, []).expect("a folder of cargo's is writable");
            return empty;
        }
        Some(file) if !file.is_empty() => {
            let file = PathBuf::from(file);
            if !file.is_file() {
                fail(&format!("{LIBDEVICE} is {}, which is no file", file.display()));
            }
            return file;
        }
        _ => {}
    }
    // Asked for when it runs: another checkout may have compiled this script into the same folder.
    let root = Path::new(&env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it")).join("../..");
    let mut environments = vec![root.join(".venv")];
    environments.extend(main_worktree(&root).map(|main| main.join(".venv")));
    environments.extend(env::var_os("VIRTUAL_ENV").map(PathBuf::from));
    let mut folders: Vec<PathBuf> = environments.iter().flat_map(|folder| site_packages(folder)).collect();
    let list = "import sys; print('\\n'.join(sys.path))";
    if let Ok(output) = Command::new("python3").args(["-c", list]).output() {
        folders.extend(String::from_utf8_lossy(&output.stdout).lines().map(PathBuf::from));
    }
    folders.iter().find_map(|folder| libdevice_in(folder)).unwrap_or_else(|| {
        fail(&format!(
            "libdevice.10.bc, the functions of reals for NVIDIA's GPUs, was not found; install the Python package \
             {LIBDEVICE_PACKAGE} (`make build` does, and so does `pip install -r requirements-dev.txt`), or set \
             {LIBDEVICE} to the file, or to `none` to build without these functions"
        ))
    })
}

/// Where a linked worktree of git belongs to, and so where its developer keeps the Python environment.
fn main_worktree(root: &Path) -> Option<PathBuf> {
    let pointer = fs::read_to_string(root.join(".git")).ok()?;
    let worktree = PathBuf::from(pointer.strip_prefix("gitdir:")?.trim());
    // <main>/.git/worktrees/<name>
    worktree.ancestors().nth(3).map(Path::to_owned)
}

/// The folders of packages of a Python environment.
fn site_packages(environment: &Path) -> Vec<PathBuf> {
    let versions = fs::read_dir(environment.join("lib")).into_iter().flatten().flatten();
    versions.map(|version| version.path().join("site-packages")).collect()
}

/// The library in the folder `nvidia/<product>` of a folder of packages.
fn libdevice_in(packages: &Path) -> Option<PathBuf> {
    let mut products: Vec<_> =
        fs::read_dir(packages.join("nvidia")).ok()?.flatten().map(|product| product.path()).collect();
    products.sort();
    let files = products.iter().rev().map(|product| product.join("nvvm/libdevice/libdevice.10.bc"));
    files.into_iter().find(|file| file.is_file())
}

fn link_static(name: &str) {
    // Not bundled: the archives stay where they are and are read once, by the final link.
    println!("cargo:rustc-link-lib=static:-bundle={name}");
}

/// Links `lib<name>.a` from wherever the C compiler would find it, so that the result does not need the shared one.
fn link_archive_of_compiler(name: &str, package: &str) {
    let compiler = env::var("CC").unwrap_or_else(|_| "cc".to_owned());
    let file = format!("lib{name}.a");
    let found = ask(Path::new(&compiler), &[&format!("-print-file-name={file}")]);
    let path = PathBuf::from(&found);
    let Some(folder) = path.parent().filter(|_| path.is_absolute()) else {
        fail(&format!("{file} was not found; install the package {package}"));
    };
    println!("cargo:rustc-link-search=native={}", folder.display());
    link_static(name);
}

fn find_llvm_config() -> PathBuf {
    let mut candidates = Vec::new();
    if let Some(prefix) = env::var_os(PREFIX) {
        candidates.push(PathBuf::from(prefix).join("bin").join("llvm-config"));
    }
    candidates
        .extend(["llvm-config-19", "/usr/lib/llvm-19/bin/llvm-config", "llvm-config"].map(PathBuf::from));
    let mut others = Vec::new();
    for candidate in candidates {
        if let Ok(output) = Command::new(&candidate).arg("--version").output() {
            let version = String::from_utf8_lossy(&output.stdout).trim().to_owned();
            if version.starts_with("19.") {
                return candidate;
            }
            others.push(format!("{} is version {version}", candidate.display()));
        }
    }
    let found = if others.is_empty() { String::new() } else { format!(" ({})", others.join(", ")) };
    fail(&format!(
        "LLVM 19 was not found{found}; install the package llvm-19-dev, or set {PREFIX} to its prefix"
    ))
}

fn ask(program: &Path, arguments: &[&str]) -> String {
    match Command::new(program).args(arguments).output() {
        Ok(output) if output.status.success() => String::from_utf8_lossy(&output.stdout).trim().to_owned(),
        Ok(output) => fail(&format!(
            "{} {} failed: {}",
            program.display(),
            arguments.join(" "),
            String::from_utf8_lossy(&output.stderr).trim()
        )),
        Err(error) => fail(&format!("cannot run {}: {error}", program.display())),
    }
}

fn fail(message: &str) -> ! {
    eprintln!("error: {message}");
    exit(1)
}
