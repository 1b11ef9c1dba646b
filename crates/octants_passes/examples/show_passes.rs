//! Shows what the pipeline makes of a kernel: `show_passes FILE [noalias] [all]`. With `all`, after every pass.

use std::time::Duration;

use octants_passes::{Assumptions, PassTiming, PipelineOptions, run_pipeline};

fn main() {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let has = |word: &str| arguments.iter().any(|argument| argument == word);
    let Some(path) = arguments.first() else { return eprintln!("usage: show_passes FILE [noalias] [all]") };
    let kernel = match std::fs::read_to_string(path).map(|text| octants_ir::text::parse(&text)) {
        Ok(Ok(kernel)) => kernel,
        Ok(Err(error)) => return eprintln!("{path}: {error}"),
        Err(error) => return eprintln!("{path}: {error}"),
    };
    let mut dump = |number: usize, name: &str, kernel: &octants_ir::Kernel| {
        println!("; {number} {name}\n{}", octants_ir::text::print(kernel));
    };
    let outcome = run_pipeline(
        kernel,
        PipelineOptions {
            assumptions: Assumptions { noalias: has("noalias"), ..Assumptions::default() },
            dump: has("all").then_some(&mut dump),
            ..PipelineOptions::default()
        },
    );
    if !has("all") {
        println!("{}", octants_ir::text::print(&outcome.kernel));
    }
    for PassTiming { name, time, .. } in &outcome.timings {
        println!("; {name}: {time:?}");
    }
    println!("; in all {:?}", outcome.timings.iter().map(|timing| timing.time).sum::<Duration>());
    println!("{}", octants_ir::plan::print(&outcome.plan));
}
