//! Every kernel of the test files becomes PTX, and the vendor's own assembler takes it, where that is installed: GPU code is checked
//! without a GPU.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use octants_filetests::{gpu, test_files};
use octants_llvm_sys::{Options, Output, Target, compile};

/// Compute capabilities, each with a PTX version that knows it.
const CAPABILITIES: [(u32, u32); 3] = [(75, 63), (80, 70), (90, 78)];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[test]
fn the_assembler_takes_every_kernel() {
    let folder = std::env::temp_dir().join(format!("octants-ptx-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let assembler = gpu::assembler(&root());
    let (mut modules, mut failures) = (0, Vec::new());
    for (capability, ptx) in CAPABILITIES {
        let mut whole = Vec::new();
        for path in test_files(&root().join("filetests")).unwrap() {
            for task in gpu::tasks_of(&path).unwrap() {
                let options = Options {
                    target: Target::nvptx(capability, ptx).expect("LLVM knows the target"),
                    output: Output::Assembly,
                    vector_math: false,
                    ..Options::default()
                };
                let name = format!("{}: {} for {capability}", path.display(), task.symbol);
                match compile(&task.text, &options) {
                    Ok(compiled) => whole.push((name, compiled.bytes)),
                    Err(error) => failures.push(format!("{name}: {error}")),
                }
                modules += 1;
            }
        }
        if let Some(assembler) = &assembler {
            failures.extend(assemble(assembler, &folder, capability, &whole));
        }
    }
    std::fs::remove_dir_all(&folder).unwrap();
    assert!(failures.is_empty(), "{} of {modules} modules failed:\n{}", failures.len(), failures.join("\n"));
    assert!(modules > 1000, "only {modules} modules");
}

/// Functions of the vendor's library stay undefined, so modules are assembled for linking.
fn assemble(assembler: &Path, folder: &Path, capability: u32, modules: &[(String, Vec<u8>)]) -> Vec<String> {
    let mut failures = Vec::new();
    let (source, object) = (folder.join("module.ptx"), folder.join("module.o"));
    for (name, text) in modules {
        std::fs::write(&source, text).unwrap();
        let done = Command::new(assembler)
            .args([&format!("-arch=sm_{capability}"), "-c", "-O1", "-o"])
            .arg(&object)
            .arg(&source)
            .stdin(Stdio::null())
            .output()
            .unwrap();
        if !done.status.success() {
            failures.push(format!("{name}: {}", String::from_utf8_lossy(&done.stderr)));
        }
    }
    failures
}
