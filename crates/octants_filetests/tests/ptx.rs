//! Every kernel of the test files becomes PTX, and the vendor's own assembler takes it, where that is installed.

use octants_codegen::PtxTarget;
use octants_filetests::gpu::{Assembler, Module, compile, kernels_of};
use octants_filetests::{repository, test_files};

/// Architectures, each with a version of PTX that the oldest driver reads, and one that has more.
const TARGETS: [PtxTarget; 4] = [
    PtxTarget { capability: 75, version: 78 },
    PtxTarget { capability: 80, version: 78 },
    PtxTarget { capability: 90, version: 78 },
    PtxTarget { capability: 90, version: 83 },
];

#[test]
fn the_assembler_takes_every_kernel() {
    let assembler = Assembler::find(&repository());
    let (mut modules, mut failures) = (0, Vec::new());
    for target in TARGETS {
        let mut compiled = Vec::new();
        for path in test_files(&repository().join("filetests")).unwrap() {
            for kernel in kernels_of(&path).unwrap() {
                match compile(kernel, target) {
                    Ok(tasks) => compiled.extend(tasks.into_iter().map(|task| {
                        let name = format!("{}: {} for {}", path.display(), task.symbol, target.capability);
                        Module { name, task }
                    })),
                    Err(error) => failures.push(format!("{}: {error}", path.display())),
                }
            }
        }
        modules += compiled.len();
        if let Some(assembler) = &assembler {
            failures.extend(assembler.failures(target.capability, &compiled));
        }
    }
    assert!(failures.is_empty(), "{} of {modules} modules failed:\n{}", failures.len(), failures.join("\n"));
    assert!(modules > 1000, "only {modules} modules");
}

/// A batch with one wrong module gives one failure, of that module.
#[test]
fn the_assembler_tells_which_module_is_wrong() {
    let Some(assembler) = Assembler::find(&repository()) else { return };
    let path = repository().join("filetests/llvm/gpu.oir");
    let mut modules = Vec::new();
    for kernel in kernels_of(&path).unwrap() {
        let tasks = compile(kernel, TARGETS[0]).unwrap();
        modules.extend(tasks.into_iter().map(|task| Module { name: task.symbol.clone(), task }));
    }
    assert!(modules.len() > 1);
    assert_eq!(assembler.failures(TARGETS[0].capability, &modules), [""; 0]);
    let wrong = &mut modules[1].task.bytes;
    let end = wrong.iter().rposition(|&byte| byte == b'}').unwrap();
    wrong.truncate(end);
    let failures = assembler.failures(TARGETS[0].capability, &modules);
    assert_eq!(failures.len(), 1, "{failures:?}");
    assert!(failures[0].starts_with(&modules[1].name), "{failures:?}");
}
