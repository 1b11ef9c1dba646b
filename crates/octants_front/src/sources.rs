//! The users' files: their text for diagnostics, and each parsed once.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use octants_diag::{Code, Diagnostic, FileId, SourceMap};

use crate::ast::Function;
use crate::host::FunctionSource;
use crate::parse::ParsedFile;

/// Thread-safe; one per session or process. Entries are by content, so a file that changed is parsed anew.
#[derive(Default)]
pub struct Sources {
    map: SourceMap,
    parsed: Mutex<HashMap<FileId, Arc<ParsedFile>>>,
}

impl Sources {
    pub fn new() -> Self {
        Self::default()
    }

    /// The files' text, for rendering diagnostics.
    pub fn map(&self) -> &SourceMap {
        &self.map
    }

    /// The tree of a function.
    pub(crate) fn function(&self, source: &FunctionSource) -> Result<Arc<Function>, Box<Diagnostic>> {
        if source.name == "<lambda>" {
            return Err(Box::new(
                Diagnostic::new(Code::LambdaKernel, "a lambda cannot be compiled")
                    .help("define the function with `def`"),
            ));
        }
        let file = self.map.add(&source.file_name, &source.text);
        self.parsed(file, &source.text).function(source)
    }

    fn parsed(&self, file: FileId, text: &Arc<str>) -> Arc<ParsedFile> {
        if let Some(parsed) = self.lock().get(&file) {
            return parsed.clone();
        }
        // Parsed outside of the lock: two threads may both do it, and the first one's tree is kept.
        let parsed = Arc::new(ParsedFile::new(file, text));
        self.lock().entry(file).or_insert(parsed).clone()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<FileId, Arc<ParsedFile>>> {
        self.parsed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for Sources {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sources").field("map", &self.map).finish_non_exhaustive()
    }
}
