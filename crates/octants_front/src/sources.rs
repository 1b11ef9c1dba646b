//! The users' files: their text for diagnostics, and each parsed once.

use octants_diag::SourceMap;

/// Thread-safe; one per session or process.
#[derive(Debug, Default)]
pub struct Sources {
    map: SourceMap,
}

impl Sources {
    pub fn new() -> Self {
        Self::default()
    }

    /// The files' text, for rendering diagnostics.
    pub fn map(&self) -> &SourceMap {
        &self.map
    }
}
