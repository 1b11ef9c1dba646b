//! Checks of the repository that cargo itself does not make.
//!
//! `cargo xtask check-deps` reads the workspace and compares it with the map in `layers.rs`: dependencies point
//! downward, a third-party crate with an owner is used by its owner alone, `unsafe` stays in the boundary crates, the generic layers name no
//! vendor, and ops answer for themselves.

mod layers;
mod ops;
mod source;
mod workspace;

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments != ["check-deps"] {
        eprintln!("usage: cargo xtask check-deps");
        return ExitCode::from(2);
    }
    report(check_deps())
}

fn check_deps() -> Result<Vec<String>, String> {
    let crates = workspace::read()?;
    let mut complaints = layers::check(&crates);
    complaints.extend(source::check(&crates)?);
    complaints.extend(ops::check(&crates)?);
    Ok(complaints)
}

fn report(outcome: Result<Vec<String>, String>) -> ExitCode {
    match outcome {
        Ok(complaints) if complaints.is_empty() => ExitCode::SUCCESS,
        Ok(complaints) => {
            for complaint in &complaints {
                eprintln!("error: {complaint}");
            }
            eprintln!("\nThe map of the crates is in crates/xtask/src/layers.rs and ARCHITECTURE.md.");
            ExitCode::FAILURE
        }
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::from(2)
        }
    }
}
