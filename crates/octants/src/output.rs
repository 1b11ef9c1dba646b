//! What a kernel prints.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use octants_ir::ops::PrintPiece;
use octants_ir::{Const, LocData, SiteKind, SiteTable};

use crate::fault::decode;

/// Says where an op stands in the user's files, as `file:line`.
pub type Locate<'a> = &'a (dyn Fn(&LocData) -> String + Sync);

/// How many overflows one launch reports with their lines, in messages; the others are counted. A loop of a million iterations that all
/// overflow would write 100 MB.
const REPORTED_OVERFLOWS: u64 = 32;

/// The text of one launch. Threads append whole prints.
pub(crate) struct Output<'a> {
    locate: Locate<'a>,
    text: Mutex<String>,
    /// Overflows so far.
    overflows: AtomicU64,
}

impl<'a> Output<'a> {
    pub fn new(locate: Locate<'a>) -> Self {
        Self { locate, text: Mutex::new(String::new()), overflows: AtomicU64::new(0) }
    }

    /// Code ran the print at `site` with operands in `words`.
    pub fn print(&self, sites: &SiteTable, site: u32, words: &[u64]) {
        let Some(kind) = sites.get(site).map(|site| &site.kind) else { return };
        if is_overflow(kind) && self.overflows.fetch_add(1, Ordering::Relaxed) >= REPORTED_OVERFLOWS {
            return;
        }
        let values: Vec<Const> =
            kind.words().into_iter().zip(words).map(|(scalar, &word)| decode(scalar, word)).collect();
        let Some(text) = sites.print_text(site, &values, &|loc| (self.locate)(loc)) else { return };
        self.text.lock().unwrap_or_else(PoisonError::into_inner).push_str(&text);
    }

    pub fn into_text(self) -> String {
        let mut text = self.text.into_inner().unwrap_or_else(PoisonError::into_inner);
        let more = self.overflows.into_inner().saturating_sub(REPORTED_OVERFLOWS);
        if more > 0 {
            let _ = writeln!(text, "... and {more} more overflows in this launch");
        }
        text
    }
}

/// Whether a print is one that debug mode adds: only those say where they stand.
fn is_overflow(kind: &SiteKind) -> bool {
    matches!(kind, SiteKind::Print { spec, .. } if spec.pieces.contains(&PrintPiece::Location))
}
