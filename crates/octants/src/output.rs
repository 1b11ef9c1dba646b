//! What a kernel prints.

use std::sync::{Mutex, PoisonError};

use octants_ir::{Const, LocData, SiteTable};

use crate::fault::decode;

/// Says where an op stands in the user's files, as `file:line`.
pub type Locate<'a> = &'a (dyn Fn(&LocData) -> String + Sync);

/// The text of one launch. Threads append whole prints.
pub(crate) struct Output<'a> {
    locate: Locate<'a>,
    text: Mutex<String>,
}

impl<'a> Output<'a> {
    pub fn new(locate: Locate<'a>) -> Self {
        Self { locate, text: Mutex::new(String::new()) }
    }

    /// Code ran the print at `site` with operands in `words`.
    pub fn print(&self, sites: &SiteTable, site: u32, words: &[u64]) {
        let Some(kind) = sites.get(site).map(|site| &site.kind) else { return };
        let values: Vec<Const> =
            kind.words().into_iter().zip(words).map(|(scalar, &word)| decode(scalar, word)).collect();
        let Some(text) = sites.print_text(site, &values, &|loc| (self.locate)(loc)) else { return };
        self.text.lock().unwrap_or_else(PoisonError::into_inner).push_str(&text);
    }

    pub fn into_text(self) -> String {
        self.text.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}
