//! One test per file of `filetests/`, and one that no op goes untested.

use std::path::Path;
use std::process::ExitCode;

use libtest_mimic::{Arguments, Failed, Trial};
use octants_filetests::{coverage, run_file, test_files};

fn main() -> ExitCode {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../filetests");
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
    trials.push(Trial::test("every op is run by some test", move || {
        let untested = coverage::untested_ops(&files)?;
        if untested.is_empty() { Ok(()) } else { Err(format!("no test runs {untested:?}").into()) }
    }));
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}
