//! An op answers for itself: what it is stands in its row of the table, and passes ask the row.
//!
//! * An op is named in few files: where it means something, or is rewritten.
//! * No match over op kinds answers `true` by default: an op that nobody thought of would be moved, dropped or run elsewhere.
//! * Questions with a yes or a no for several ops by name are counted, and do not become more. Those that are left say of known ops that
//!   something may be done with them, and refuse all others.
//!
//! Reads text, not types: a match is one over op kinds if an arm of its own names one.

use std::fs;

use crate::source::{blank_prose, source_files};
use crate::workspace::Crate;

/// Files that may name an op which is none of those below.
const MOST_FILES: usize = 8;

/// What kernels are made of, and what most passes rewrite: these are named everywhere.
const COMMON: &[&str] = &[
    "Arith",
    "Assert",
    "Atomic",
    "AtomicCas",
    "Bit",
    "BitUnary",
    "Call",
    "Compare",
    "Const",
    "Convert",
    "Extent",
    "For",
    "ForCells",
    "Fork",
    "If",
    "Load",
    "Local",
    "Math",
    "MathUnary",
    "ParallelFor",
    "Print",
    "Return",
    "Select",
    "Serial",
    "Store",
    "StoreResult",
    "StructGet",
    "StructNew",
    "StructSet",
    "Tape",
    "Tensor",
    "VolatileLoad",
    "While",
    "Yield",
];

/// How many questions with a yes or a no a file asks of several ops by name. Never more; ask the table of ops.
const QUESTIONS: &[(&str, usize)] = &[
    ("crates/octants_front/src/lower/places/pending.rs", 1),
    ("crates/octants_ir/src/verify/places.rs", 2),
    ("crates/octants_ir/src/verify/tasks.rs", 2),
    ("crates/octants_llvm/src/cpu/fill.rs", 1),
    ("crates/octants_llvm/src/gpu/bounds.rs", 1),
    ("crates/octants_llvm/src/gpu/guards.rs", 1),
    ("crates/octants_llvm/src/gpu/stages.rs", 1),
    ("crates/octants_llvm/src/index_range.rs", 1),
    ("crates/octants_llvm/src/lanes/mask.rs", 1),
    ("crates/octants_llvm/src/lanes/offsets.rs", 1),
    ("crates/octants_passes/src/analysis/access.rs", 1),
    ("crates/octants_passes/src/analysis/course.rs", 3),
    ("crates/octants_passes/src/analysis/footprint.rs", 1),
    ("crates/octants_passes/src/demote_atomics.rs", 1),
    ("crates/octants_passes/src/differentiate/forward_extremes.rs", 1),
    ("crates/octants_passes/src/differentiate/dependence.rs", 1),
    ("crates/octants_passes/src/differentiate/record_sizes.rs", 1),
    ("crates/octants_passes/src/differentiate/reverse/facts.rs", 1),
    ("crates/octants_passes/src/differentiate/rules/mod.rs", 1),
    ("crates/octants_passes/src/lower_random.rs", 2),
    ("crates/octants_passes/src/analysis/change.rs", 2),
    ("crates/octants_passes/src/promote_locals.rs", 1),
    ("crates/octants_passes/src/recognise_reductions/mod.rs", 2),
    ("crates/octants_passes/src/simplify/control.rs", 1),
    ("crates/octants_passes/src/simplify/number.rs", 1),
    ("crates/octants_passes/src/simplify/ranges.rs", 1),
    ("crates/octants_passes/src/split_tasks/launch.rs", 1),
];

/// Each complaint is one line, `file:line: what`.
pub fn check(crates: &[Crate]) -> Result<Vec<String>, String> {
    let (mut complaints, mut named, mut files) = (Vec::new(), Vec::new(), Vec::new());
    for one in crates {
        let root = one.directory.ancestors().nth(2).unwrap_or(&one.directory);
        for path in source_files(&one.directory)? {
            let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
            let file = path.strip_prefix(root).unwrap_or(&path).display().to_string();
            let code = blank_prose(&text);
            complaints.extend(complaints_of(&file, &code));
            let mut ops = kinds(&code);
            ops.sort_unstable();
            ops.dedup();
            files.push(file);
            named.extend(ops.into_iter().map(str::to_owned));
        }
    }
    for (file, _) in QUESTIONS.iter().filter(|(file, _)| !files.iter().any(|found| found == file)) {
        complaints.push(format!("{file} asks no questions: it is no file"));
    }
    named.sort_unstable();
    for files in named.chunk_by(|a, b| a == b).filter(|files| files.len() > MOST_FILES) {
        if !COMMON.contains(&files[0].as_str()) {
            complaints.push(format!(
                "`OpKind::{}` is named in {} files, more than {MOST_FILES}: passes ask the table of ops",
                files[0],
                files.len()
            ));
        }
    }
    Ok(complaints)
}

fn complaints_of(file: &str, code: &str) -> Vec<String> {
    let mut complaints = Vec::new();
    let mut questions = Vec::new();
    let line = |at: usize| code[..at].matches('\n').count() + 1;
    for (at, default) in defaults(code) {
        match default {
            "true" => {
                complaints.push(format!("{file}:{}: a match over op kinds says `true` by default", line(at)));
            }
            "false" => questions.push(line(at)),
            _ => {}
        }
    }
    questions.extend(tests(code).map(line));
    questions.sort_unstable();
    let allowed = QUESTIONS.iter().find(|(name, _)| *name == file).map_or(0, |&(_, count)| count);
    if questions.len() != allowed {
        complaints.push(format!(
            "{file}: {} questions of several ops by name (lines {questions:?}) instead of {allowed}; ask the table of ops, or say here how many",
            questions.len()
        ));
    }
    complaints
}

/// The op kinds that some code names.
fn kinds(code: &str) -> Vec<&str> {
    let mut found = Vec::new();
    for after in code.split("OpKind::").skip(1) {
        let end = after.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(after.len());
        if after.starts_with(char::is_uppercase) {
            found.push(&after[..end]);
        }
    }
    found
}

/// Where `matches!` names several op kinds.
fn tests(code: &str) -> impl Iterator<Item = usize> {
    code.match_indices("matches!(").filter_map(|(at, head)| {
        let (inside, _) = enclosed(&code[at + head.len() - 1..])?;
        (kinds(inside).len() > 1).then_some(at)
    })
}

/// Of each match with an arm that names an op kind: where it stands, and what its default arm gives, which is one word.
fn defaults(code: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    for (at, _) in code.match_indices("match ") {
        let Some(open) = body_of(&code[at..]) else { continue };
        let Some((body, _)) = enclosed(&code[at + open..]) else { continue };
        let arms = arms(body);
        let names = arms.iter().any(|(pattern, _)| !kinds(pattern).is_empty());
        let default = arms.iter().find(|(pattern, _)| *pattern == "_");
        if let (true, Some((_, value))) = (names, default) {
            let value = value.trim_matches(['{', '}', ' ', '\n', ';']);
            found.push((at, value.strip_prefix("return ").unwrap_or(value)));
        }
    }
    found
}

/// Where the arms of a match open that the code begins with.
fn body_of(code: &str) -> Option<usize> {
    let mut depth = 0;
    for (at, c) in code.char_indices() {
        match c {
            '(' | '[' => depth += 1,
            ')' | ']' if depth == 0 => return None,
            ')' | ']' => depth -= 1,
            '{' if depth == 0 => return Some(at),
            ';' => return None,
            _ => {}
        }
    }
    None
}

/// What stands between the bracket that the code begins with and the one that closes it, and what stands behind.
fn enclosed(code: &str) -> Option<(&str, &str)> {
    let mut depth = 0;
    for (at, c) in code.char_indices() {
        match c {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some((&code[1..at], &code[at + 1..]));
        }
    }
    None
}

/// Pattern and value of each arm.
fn arms(mut body: &str) -> Vec<(&str, &str)> {
    let mut arms = Vec::new();
    while let Some(arrow) = at_top(body, "=>") {
        let (pattern, value) = (body[..arrow].trim(), body[arrow + 2..].trim_start());
        let end = match value.starts_with('{').then(|| enclosed(value)).flatten() {
            Some((_, rest)) => value.len() - rest.len(),
            None => at_top(value, ",").unwrap_or(value.len()),
        };
        arms.push((pattern, value[..end].trim()));
        body = value[end..].trim_start().trim_start_matches(',');
    }
    arms
}

/// Where a mark stands outside of brackets.
fn at_top(code: &str, mark: &str) -> Option<usize> {
    let mut depth = 0;
    for (at, c) in code.char_indices() {
        if depth == 0 && code[at..].starts_with(mark) {
            return Some(at);
        }
        match c {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth -= 1,
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const WAITS: &str = "fn may_wait(kind: &OpKind) -> bool {\n    match kind {\n        OpKind::While | OpKind::Call(_) => true,\n        _ => false,\n    }\n}";

    #[test]
    fn a_default_arm_that_says_yes_is_refused() {
        let known = WAITS.replace("=> true", "=> { false }").replace("_ => false", "_ => { true }");
        assert_eq!(complaints_of("a.rs", &known), ["a.rs:2: a match over op kinds says `true` by default"]);
    }

    #[test]
    fn questions_of_several_ops_are_counted() {
        let of = |code: &str| complaints_of("a.rs", code).len();
        assert_eq!(of(WAITS), 1);
        assert_eq!(of("let long = matches!(kind, OpKind::While | OpKind::Call(_));"), 1);
        assert_eq!(of("let is_if = matches!(kind, OpKind::If);"), 0);
        assert_eq!(of("match kind { OpKind::If => 1, OpKind::For => { f(|x| x, y) } _ => 2 }"), 0);
        assert_eq!(of("match kind { OpKind::If => true, kind => kind.is_pure() }"), 0);
        assert_eq!(of("match other { Some(kind) => match kind { OpKind::If => 1, _ => 2 }, _ => false }"), 0);
    }
}
