//! One test per file of `filetests/`, and two over all of them: no op goes untested, and no text makes anything panic.

use std::process::ExitCode;

use libtest_mimic::{Arguments, Failed, Trial};
use octants_filetests::{coverage, mutation, repository, run_file, test_files};

fn main() -> ExitCode {
    let root = repository().join("filetests");
    let files = test_files(&root).expect("the folder of test files can be read");
    let bless = std::env::var("OCTANTS_BLESS").is_ok_and(|value| value == "1");
    let mut trials: Vec<_> = files
        .iter()
        .map(|path| {
            let name = path.strip_prefix(&root).unwrap_or(path).display().to_string();
            let path = path.clone();
            Trial::test(name, move || run_file(&path, bless).map_err(Failed::from))
        })
        .collect();
    let all = files.clone();
    trials.push(Trial::test("mutated kernels are refused or run, and passes keep what they do", move || {
        let outcome = mutation::run_mutants(&all, 5)?;
        // Most mutants must be no kernels, and some must be: otherwise they test nothing.
        let shares = [outcome.unparsed, outcome.unlawful, outcome.ran];
        if shares.iter().all(|&share| share > 50) { Ok(()) } else { Err(format!("{outcome:?}").into()) }
    }));
    trials.push(Trial::test("every op is run by some test", move || {
        let untested = coverage::untested_ops(&files)?;
        if untested.is_empty() { Ok(()) } else { Err(format!("no test runs {untested:?}").into()) }
    }));
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}
