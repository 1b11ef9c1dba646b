//! The users' files that spans point into. Files are only ever added, so a [`FileId`] stays good.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock, RwLock};

use crate::span::{FileId, Span};

/// One file as it was when it was added.
#[derive(Debug)]
pub struct SourceFile {
    /// As the user knows it: a path, `<stdin>`, a notebook cell.
    pub name: String,
    pub text: Arc<str>,
    line_starts: OnceLock<Vec<u32>>,
}

impl SourceFile {
    fn new(name: &str, text: Arc<str>) -> Self {
        Self { name: name.to_owned(), text, line_starts: OnceLock::new() }
    }

    fn line_starts(&self) -> &[u32] {
        self.line_starts.get_or_init(|| {
            let ends = self.text.bytes().enumerate().filter(|&(_, byte)| byte == b'\n');
            std::iter::once(0).chain(ends.map(|(at, _)| at as u32 + 1)).collect()
        })
    }

    /// The 1-based line of a byte offset.
    pub fn line(&self, offset: u32) -> u32 {
        self.line_starts().partition_point(|&start| start <= offset) as u32
    }

    /// The 1-based column of a byte offset, in characters.
    pub fn column(&self, offset: u32) -> u32 {
        let start = self.line_range(self.line(offset)).start;
        self.text.get(start..offset as usize).map_or(1, |before| before.chars().count() as u32 + 1)
    }

    /// The bytes of a 1-based line, without its end; empty past the end of the file.
    pub fn line_range(&self, line: u32) -> std::ops::Range<usize> {
        let starts = self.line_starts();
        let index = (line as usize).saturating_sub(1);
        let start = starts.get(index).map_or(self.text.len(), |&at| at as usize);
        let end = starts.get(index + 1).map_or(self.text.len(), |&at| at as usize - 1);
        start..end.max(start)
    }
}

/// All files of a session. Shared between threads.
#[derive(Debug, Default)]
pub struct SourceMap {
    files: RwLock<Files>,
}

#[derive(Debug, Default)]
struct Files {
    list: Vec<Arc<SourceFile>>,
    by_name: HashMap<String, Vec<FileId>>,
}

impl Files {
    fn find(&self, name: &str, text: &Arc<str>) -> Option<FileId> {
        let same = |id: &&FileId| {
            let known = &self.list[id.0 as usize].text;
            Arc::ptr_eq(known, text) || known == text
        };
        self.by_name.get(name)?.iter().rev().find(same).copied()
    }
}

impl SourceMap {
    pub fn new() -> Self {
        Self::default()
    }

    /// The file with this name and this text, added if it is new. A file that changed on disk is another file.
    pub fn add(&self, name: &str, text: &Arc<str>) -> FileId {
        if let Some(id) = self.read().find(name, text) {
            return id;
        }
        let mut files = self.files.write().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(id) = files.find(name, text) {
            return id;
        }
        let id = FileId(files.list.len() as u32);
        files.list.push(Arc::new(SourceFile::new(name, text.clone())));
        files.by_name.entry(name.to_owned()).or_default().push(id);
        id
    }

    /// The file of an id that this map gave.
    pub fn file(&self, id: FileId) -> Option<Arc<SourceFile>> {
        self.read().list.get(id.0 as usize).cloned()
    }

    /// `path:line` of a span's start.
    pub fn describe(&self, span: Span) -> String {
        self.file(span.file)
            .map_or_else(String::new, |file| format!("{}:{}", file.name, file.line(span.start)))
    }

    fn read(&self) -> std::sync::RwLockReadGuard<'_, Files> {
        self.files.read().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_and_columns_count_from_one_and_columns_are_characters() {
        let map = SourceMap::new();
        let text: Arc<str> = "a = 1\nβ = a\n".into();
        let id = map.add("f.py", &text);
        assert_eq!(map.add("f.py", &Arc::from(&*text)), id);
        assert_ne!(map.add("f.py", &Arc::from("other")), id);
        let file = map.file(id).unwrap();
        assert_eq!((file.line(5), file.line(6), file.column(11)), (1, 2, 5));
        assert_eq!(&text[file.line_range(2)], "β = a");
        assert_eq!(map.describe(Span::new(id, 6, 8)), "f.py:2");
    }
}
