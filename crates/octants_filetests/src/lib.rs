//! Runs the text tests of `filetests/`: IR and what is expected of it, in one file.
//!
//! The first line names the kind of test. A file holds cases: a kernel, and below it what is expected.
//!
//! | first line | a case | expected |
//! |---|---|---|
//! | `; test roundtrip` | a kernel | prints to the very text of the file |
//! | `; test verify-error` | a kernel that breaks laws | `; error: …` lines, one for each violation |
//! | `; test run` | a kernel | `; run: arguments => results, array = contents` lines (see [`values`]) |
//! | `; test pass NAMES…` | a kernel | after a line `; ----`, the text after these passes, ended by `; ====` or the file |
//! | `; test llvm` | a kernel of any phase | likewise, the LLVM text of its tasks |
//! | `; test plan` | a kernel of any phase | likewise, the text of its plan |
//! | `; test derivative MODE` | a kernel | likewise, the text of its derivative, `forward` or `reverse`; `sizes` for how much tape that takes, `placed` with its tapes in arrays |
//! | `; test gradient` | a kernel | `; check: arguments => agrees` lines: reverse mode, forward mode and differences agree there |
//!
//! In both of the last, `; constant: x` and `; missing: y` below a kernel name arrays without storage for a derivative.
//!
//! More lines of the head: `; assume noalias` (passes, LLVM, plan), `; assume exclusive` (LLVM, plan), `; vector_bits 512`, `; lanes 4`, `; target gpu` (LLVM), `; steps 1000` (run: at most that many
//! ops), `; interpreter only` (run: otherwise each kernel is also run after every pass of the pipeline, and must do the same).
//!
//! With the environment variable `OCTANTS_BLESS=1` expectations are rewritten in place to what was found.

pub mod coverage;
mod difference;
mod file;
pub mod gpu;
pub mod gradients;
mod kinds;
pub mod mutation;
pub mod values;

use std::path::{Path, PathBuf};

pub use file::{Case, Head, Kind, TestFile};

/// The repository that cargo runs a test of: not the one that it was compiled in, which may have been another that uses the same target folder.
pub fn repository() -> PathBuf {
    Path::new(&std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it")).join("../..")
}

/// Runs one file; if `bless` is set, writes what was found into it instead of comparing.
pub fn run_file(path: &Path, bless: bool) -> Result<(), String> {
    let text = std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
    let file = TestFile::parse(&text)?;
    let found = kinds::run(&file)?;
    if found == text {
        return Ok(());
    }
    if bless {
        return std::fs::write(path, found).map_err(|e| format!("{}: {e}", path.display()));
    }
    let difference = difference::lines(&text, &found);
    Err(format!(
        "not what the file says (`-` expected, `+` found; OCTANTS_BLESS=1 accepts it):\n{difference}"
    ))
}

/// All test files under a folder, in order of their names.
pub fn test_files(root: &Path) -> Result<Vec<PathBuf>, String> {
    let mut files = Vec::new();
    let mut folders = vec![root.to_path_buf()];
    while let Some(folder) = folders.pop() {
        let entries = std::fs::read_dir(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
        for entry in entries {
            let path = entry.map_err(|e| e.to_string())?.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "oir") {
                files.push(path);
            }
        }
    }
    files.sort();
    Ok(files)
}
