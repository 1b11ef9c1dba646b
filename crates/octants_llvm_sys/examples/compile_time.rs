//! Says how long each part of a compilation takes.
//!
//! `cargo run --release -p octants_llvm_sys --example compile_time [--thorough|--brief|--none] [--straight] [--asm] [--ptx] [--passes=LIST] FILE.ll...`

use std::fs;
use std::process::exit;
use std::time::{Duration, Instant};

use octants_llvm_sys::{OptLevel, Options, Output, Target, compile, load, start};

fn main() {
    let mut options = Options::default();
    let mut files = Vec::new();
    let mut print_assembly = false;
    for argument in std::env::args().skip(1) {
        match argument.as_str() {
            "--thorough" => options.opt = OptLevel::Thorough,
            "--none" => options.opt = OptLevel::None,
            "--straight" => options.straight = true,
            "--brief" => options.opt = OptLevel::Brief,
            "--asm" => print_assembly = true,
            "--ptx" => {
                options.target = Target::nvptx(90, 80).expect("LLVM knows the target");
                options.output = Output::Assembly;
            }
            _ if argument.starts_with("--passes=") => {
                options.passes = Some(argument["--passes=".len()..].to_owned());
            }
            _ => files.push(argument),
        }
    }
    if files.is_empty() {
        eprintln!("give some files of LLVM text");
        exit(2);
    }
    let begin = Instant::now();
    octants_llvm_sys::warm_up().wait().expect("a compiler");
    println!("warm-up {:.1} ms", begin.elapsed().as_secs_f64() * 1e3);
    println!("{:24} {:>8} {:>8} {:>8} {:>8} {:>8}", "ms", "parse", "optimise", "emit", "whole", "load");
    for (index, file) in files.iter().enumerate() {
        let text = fs::read_to_string(file).expect("a readable file");
        if print_assembly {
            let options = Options { keep_assembly: true, keep_ir: true, ..options.clone() };
            let compiled = compile(&text, &options).unwrap_or_else(|error| panic!("{file}: {error}"));
            println!("{}\n{}", compiled.ir.unwrap_or_default(), compiled.assembly.unwrap_or_default());
            continue;
        }
        let mut best = [Duration::MAX; 5];
        for round in 0..rounds() {
            let begin = Instant::now();
            let compiled =
                start(text.clone(), options.clone()).wait().unwrap_or_else(|error| panic!("{file}: {error}"));
            let whole = begin.elapsed();
            let begin = Instant::now();
            if options.output == Output::Object {
                load(&compiled.bytes, &[]).unwrap_or_else(|error| panic!("{file}: {error}"));
            }
            let loading = begin.elapsed();
            let timing = compiled.timing;
            let now = [timing.parse, timing.optimise, timing.emit, whole, loading];
            if index == 0 && round == 0 {
                row("(the very first)", now);
            }
            for (best, now) in best.iter_mut().zip(now) {
                *best = now.min(*best);
            }
        }
        row(file.rsplit('/').next().unwrap_or(file), best);
    }
}

fn row(name: &str, times: [Duration; 5]) {
    print!("{name:24}");
    for time in times {
        print!(" {:8.3}", time.as_secs_f64() * 1e3);
    }
    println!();
}

fn rounds() -> usize {
    std::env::var("ROUNDS").ok().and_then(|text| text.parse().ok()).unwrap_or(15)
}
