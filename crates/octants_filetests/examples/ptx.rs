//! Prints the PTX of a file's kernels, with what the assembler says of them.
//!
//! `cargo run -p octants_filetests --example ptx -- FILE.oir [CAPABILITY [PART OF A NAME]]`

use std::path::Path;

use octants_codegen::PtxTarget;
use octants_filetests::gpu::{Assembler, Module, compile, kernels_of};
use octants_filetests::repository;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().expect("a file of IR text");
    let capability = arguments.next().map_or(90, |text| text.parse().expect("a number such as 90"));
    let part = arguments.next().unwrap_or_default();
    let assembler = Assembler::find(&repository());
    let kernels = kernels_of(Path::new(&path)).expect("a test file");
    for kernel in kernels.into_iter().filter(|kernel| kernel.name.contains(&part)) {
        let tasks = compile(kernel, PtxTarget { capability, version: 83 });
        for task in tasks.expect("a kernel that compiles") {
            println!("// {} {:?}", task.symbol, task.shape);
            println!("{}", String::from_utf8_lossy(&task.bytes));
            if let Some(assembler) = &assembler {
                let module = Module { name: task.symbol.clone(), task };
                match assembler.statistics(capability, &module) {
                    Ok(statistics) => println!("// {}: {statistics}", module.name),
                    Err(error) => println!("// {error}"),
                }
            }
        }
    }
}
