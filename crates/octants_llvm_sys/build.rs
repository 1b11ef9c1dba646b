//! Links the few parts of LLVM 19 that the compiler uses, statically, and everything that they need in turn.
//!
//! `llvm-sys` only supplies declarations here (feature `no-llvm-linking`): its own script would bundle a copy of each
//! LLVM archive into an rlib and link z3 and libxml2, of which nothing is used.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, exit};

const PREFIX: &str = "LLVM_SYS_191_PREFIX";

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
    let mut components =
        vec!["passes".to_owned(), "irreader".to_owned(), "target".to_owned(), format!("{host}codegen")];
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
