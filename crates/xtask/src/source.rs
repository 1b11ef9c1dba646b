//! What the dependency tables cannot show: `unsafe` outside the boundary crates, vendors named in generic layers.
//!
//! Reads the text of each source file with comments and literals blanked out, so that prose may use any word.

use std::fs;
use std::path::{Path, PathBuf};

use crate::layers::{UNSAFE_ALLOWED, VENDOR_NEUTRAL, VENDORS};
use crate::workspace::Crate;

/// Reads every source file of every crate. Each complaint is one line, `file:line: what`.
pub fn check(crates: &[Crate]) -> Result<Vec<String>, String> {
    let mut complaints = Vec::new();
    for one in crates {
        let unsafe_allowed = UNSAFE_ALLOWED.contains(&one.name.as_str());
        let vendor_neutral = VENDOR_NEUTRAL.contains(&one.name.as_str());
        for path in source_files(&one.directory)? {
            let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
            for (index, line) in blank_prose(&text).lines().enumerate() {
                let mut complain = |what: String| {
                    let file = path.strip_prefix(one.directory.join("../..")).unwrap_or(&path);
                    complaints.push(format!("{}:{}: {what}", file.display(), index + 1));
                };
                if !unsafe_allowed && has_unsafe_code(line) {
                    complain(format!("`unsafe` outside the boundary crates ({})", UNSAFE_ALLOWED.join(", ")));
                }
                if vendor_neutral && let Some(vendor) = named_vendor(line) {
                    complain(format!("`{}` serves every device but names `{vendor}`", one.name));
                }
            }
        }
    }
    Ok(complaints)
}

pub fn source_files(directory: &Path) -> Result<Vec<PathBuf>, String> {
    let mut files = Vec::new();
    let mut pending = vec![directory.join("src")];
    while let Some(folder) = pending.pop() {
        let Ok(entries) = fs::read_dir(&folder) else { continue };
        for entry in entries {
            let path = entry.map_err(|error| format!("{}: {error}", folder.display()))?.path();
            if path.is_dir() {
                pending.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                files.push(path);
            }
        }
    }
    files.sort();
    Ok(files)
}

/// Blocks, functions, impls and traits, and lifting the lint. The type of a pointer to an unsafe function is none of these:
/// naming it does nothing, and calling through it needs a block.
fn has_unsafe_code(line: &str) -> bool {
    let names_unsafe_code = words(line).any(|word| word == "unsafe_code");
    let mut after = line.split("unsafe").skip(1).map(str::trim_start);
    let stands_alone = words(line).any(|word| word == "unsafe");
    names_unsafe_code || (stands_alone && !after.all(is_pointer_type))
}

/// Whether the text after `unsafe` goes on as a pointer type does: `fn(` or `extern "C" fn(`, without a name. The ABI's
/// literal is blanked by now.
fn is_pointer_type(after: &str) -> bool {
    let after = after.strip_prefix("extern").unwrap_or(after).trim_start();
    after.strip_prefix("fn").is_some_and(|rest| rest.trim_start().starts_with('('))
}

fn words(line: &str) -> impl Iterator<Item = &str> {
    line.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty())
}

/// A vendor's name as a whole part of an identifier: `launch_cuda`, `CudaStream`, `CUDA`, but not `chip`.
fn named_vendor(line: &str) -> Option<&'static str> {
    words(line).flat_map(parts).find_map(|part| VENDORS.iter().copied().find(|vendor| *vendor == part))
}

/// The parts of an identifier, in lower case: `CudaStream` and `cuda_stream` are both `cuda`, `stream`.
fn parts(word: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut previous_is_lower = false;
    for c in word.chars() {
        if c == '_' || (c.is_uppercase() && previous_is_lower) {
            parts.push(String::new());
        }
        if c != '_' {
            parts.last_mut().expect("never empty").extend(c.to_lowercase());
        }
        previous_is_lower = c.is_lowercase();
    }
    parts
}

/// Replaces comments and the contents of string literals by spaces. Lines stay where they are.
pub fn blank_prose(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let prose = prose_length(rest);
        if prose > 0 {
            out.extend(rest[..prose].chars().map(|c| if c == '\n' { '\n' } else { ' ' }));
            rest = &rest[prose..];
        } else if let Some(word) = identifier_length(rest) {
            out.push_str(&rest[..word]);
            rest = &rest[word..];
        } else {
            out.push(c);
            rest = &rest[c.len_utf8()..];
        }
    }
    out
}

/// The length of the comment or literal that the text begins with; zero when it begins with code.
fn prose_length(text: &str) -> usize {
    if text.starts_with("//") {
        text.find('\n').unwrap_or(text.len())
    } else if text.starts_with("/*") {
        block_comment_length(text)
    } else if text.starts_with('"') || text.starts_with("b\"") || text.starts_with("c\"") {
        quoted_length(text)
    } else if text.starts_with(['r', 'b', 'c']) {
        raw_string_length(text)
    } else if text.starts_with("'\"'") {
        3
    } else if text.starts_with("'\\\"'") {
        4
    } else {
        0
    }
}

fn block_comment_length(text: &str) -> usize {
    let (mut at, mut depth) = (0, 0);
    loop {
        let rest = &text[at..];
        if rest.starts_with("/*") {
            depth += 1;
            at += 2;
        } else if rest.starts_with("*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else if let Some(c) = rest.chars().next() {
            at += c.len_utf8();
        } else {
            return at;
        }
    }
}

fn quoted_length(text: &str) -> usize {
    let open = text.find('"').expect("begins with a quote");
    let mut escaped = false;
    for (at, c) in text[open + 1..].char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return open + 1 + at + 1,
            _ => {}
        }
    }
    text.len()
}

/// `r"…"`, `r#"…"#`, `br"…"` and so on; zero when the text begins with something else.
fn raw_string_length(text: &str) -> usize {
    let after = text.trim_start_matches(['b', 'c']);
    let Some(after) = after.strip_prefix('r') else { return 0 };
    let hashes = after.len() - after.trim_start_matches('#').len();
    if text.len() - after.len() > 2 || !after[hashes..].starts_with('"') {
        return 0;
    }
    let close = format!("\"{}", "#".repeat(hashes));
    let begin = text.len() - after.len() + hashes + 1;
    text[begin..].find(&close).map_or(text.len(), |at| begin + at + close.len())
}

fn identifier_length(text: &str) -> Option<usize> {
    let length = text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len());
    (length > 0).then_some(length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prose_is_blanked_and_lines_stay() {
        let text =
            "// unsafe\nlet a = \"un\\\"safe\"; /* un /* nested */ safe */ b\nr#\"unsafe \" \"# c 'x' '\"' d";
        let blanked = blank_prose(text);
        assert_eq!(blanked.lines().count(), 3);
        assert_eq!(words(&blanked).collect::<Vec<_>>(), ["let", "a", "b", "c", "x", "d"]);
    }

    #[test]
    fn the_type_of_a_pointer_to_an_unsafe_function_is_not_unsafe_code() {
        let found = |text: &str| has_unsafe_code(&blank_prose(text));
        assert!(!found("pub type Print = unsafe extern \"C\" fn(prints: *const c_void);"));
        assert!(!found("call: unsafe fn(u32),"));
        assert!(found("unsafe { *pointer }"));
        assert!(found("pub unsafe fn read(p: *const u8) -> u8 {"));
        assert!(found("unsafe extern \"C\" fn name(p: *const u8) {"));
        assert!(found("unsafe extern \"C\" {"));
        assert!(found("unsafe impl Send for Frame {}"));
        assert!(found("let f: unsafe fn(u32) = g; unsafe { f(1) }"));
        assert!(found("#![allow(unsafe_code)]"));
        assert!(!found("// unsafe { }"));
    }

    #[test]
    fn vendors_are_found_as_parts_of_identifiers() {
        assert_eq!(named_vendor("let s = CudaStream::new();"), Some("cuda"));
        assert_eq!(named_vendor("fn launch_hip()"), Some("hip"));
        assert_eq!(named_vendor("let ship = chip; relationship"), None);
    }
}
