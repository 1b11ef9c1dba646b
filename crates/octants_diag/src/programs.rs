//! A wrong and a right program for each code, as `explain` and the error reference show them.
//!
//! The programs stand in `programs/*.md`, one file per area: a heading with the code, the wrong program, the right one. This module knows
//! how to find them there and nothing of what they mean; `tests/product/test_error_reference.py` runs them.

use std::fmt::Write as _;

use crate::code::Code;
use crate::diagnostic::Severity;

/// What every program begins with.
pub const PRELUDE: &str = "import numpy as np\nimport octants as oc\n";

const AREAS: [(&str, &str, &str); 13] = [
    ("00", "Source", include_str!("../programs/00_source.md")),
    ("01", "Signatures", include_str!("../programs/01_signatures.md")),
    ("02", "Names and scopes", include_str!("../programs/02_names.md")),
    ("03", "Types and operators", include_str!("../programs/03_types.md")),
    ("04", "Indices and arrays", include_str!("../programs/04_indices.md")),
    ("05", "Statements and control flow", include_str!("../programs/05_statements.md")),
    ("06", "Calls", include_str!("../programs/06_calls.md")),
    ("07", "Compile-time evaluation", include_str!("../programs/07_static.md")),
    ("08", "Arguments of a launch", include_str!("../programs/08_arguments.md")),
    ("09", "Failures of a running kernel", include_str!("../programs/09_running.md")),
    ("10", "Warnings", include_str!("../programs/10_warnings.md")),
    ("11", "Derivatives", include_str!("../programs/11_derivatives.md")),
    ("12", "Blocks of threads", include_str!("../programs/12_blocks.md")),
];

/// The wrong and the right program of a code.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Programs {
    pub wrong: &'static str,
    pub right: &'static str,
}

impl Code {
    /// The programs that show this mistake, for the codes that have them.
    pub fn programs(self) -> Option<Programs> {
        let name = self.name();
        let (_, _, text) = AREAS.iter().find(|(area, ..)| name[2..].starts_with(area))?;
        let section = text.split("## ").find_map(|section| section.strip_prefix(name))?;
        let mut blocks =
            section.split("```").skip(1).step_by(2).filter_map(|block| block.strip_prefix("python\n"));
        Some(Programs { wrong: blocks.next()?, right: blocks.next()? })
    }
}

/// The reference of all codes, as Markdown: `docs/reference/errors.md`.
pub fn reference() -> String {
    let mut text = String::from(
        "# Error codes\n\n<!-- Written by `OCTANTS_BLESS=1 cargo test -p octants_diag`: change crates/octants_diag instead. -->\n\n\
         Every error and warning of the compiler has a code, which never changes its meaning. `python -m octants explain CODE` and \
         `oc.explain(\"CODE\")` print what stands here. Where a code has two programs, the first gives the error (or the warning) and \
         the second is a way to write it right. Every program begins with\n\n",
    );
    let _ = write!(text, "```\n{PRELUDE}```\n");
    for (area, title, _) in AREAS {
        let _ = write!(text, "\n## {title}\n");
        for code in Code::ALL.iter().filter(|code| code.name()[2..].starts_with(area)) {
            let kind = if code.severity() == Severity::Warning { "Warning" } else { "Raises" };
            let _ = write!(
                text,
                "\n### {}: {}\n\n{kind}: `{}`. ",
                code.name(),
                code.title(),
                code.class().exception_name()
            );
            text += code.explanation();
            text += "\n";
            if let Some(programs) = code.programs() {
                let _ = write!(
                    text,
                    "\nWrong:\n\n```python\n{}```\n\nRight:\n\n```python\n{}```\n",
                    programs.wrong, programs.right
                );
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_section_is_about_a_code_of_its_area_and_has_two_programs() {
        for (area, _, text) in AREAS {
            for heading in text.lines().filter_map(|line| line.strip_prefix("## ")) {
                let code = Code::from_name(heading).unwrap_or_else(|| panic!("no code {heading}"));
                assert!(heading[2..].starts_with(area), "{heading} stands in the file of area {area}");
                let programs = code.programs().unwrap_or_else(|| panic!("{heading} needs two programs"));
                assert_ne!(programs.wrong, programs.right, "{heading}");
            }
        }
    }

    #[test]
    fn the_reference_is_up_to_date() {
        let root = std::env::var("CARGO_MANIFEST_DIR").expect("cargo sets it for tests");
        let path = format!("{root}/../../docs/reference/errors.md");
        if std::env::var_os("OCTANTS_BLESS").is_some() {
            std::fs::write(&path, reference()).unwrap();
        }
        let written = std::fs::read_to_string(path).unwrap_or_default();
        assert!(
            written == reference(),
            "docs/reference/errors.md is not what `reference` gives; run with OCTANTS_BLESS=1"
        );
    }
}
