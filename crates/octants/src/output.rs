//! What a kernel prints.

use std::fmt::Write as _;

use octants_ir::ops::PrintPiece;
use octants_ir::{Const, LocData, SiteKind, SiteTable};
use octants_runtime::Printed;

use crate::fault::decode;

/// Says where an op stands in the user's files, as `file:line`.
pub type Locate<'a> = &'a (dyn Fn(&LocData) -> String + Sync);

/// How many overflows one launch reports with their lines, in messages; the others are counted. A loop of a million iterations that all
/// overflow would write 100 MB.
const MAX_REPORTED_OVERFLOWS: u64 = 32;

/// The text of one launch.
pub(crate) struct Output<'a> {
    locate: Locate<'a>,
    text: String,
    /// Overflows so far.
    overflows: u64,
}

impl<'a> Output<'a> {
    pub fn new(locate: Locate<'a>) -> Self {
        Self { locate, text: String::new(), overflows: 0 }
    }

    /// Adds a print of code with these sites.
    pub fn print(&mut self, sites: &SiteTable, printed: Printed<'_>) {
        let (site, operands) = match printed {
            Printed::Record { site, operands } => (site, operands),
            Printed::Dropped(count) => {
                let lines = if count == 1 { "print is" } else { "prints are" };
                let _ = writeln!(self.text, "[{count} more {lines} left out: a launch keeps 64 MiB of them]");
                return;
            }
        };
        let Some(kind) = sites.get(site).map(|site| &site.kind) else { return };
        if is_overflow(kind) {
            self.overflows += 1;
            if self.overflows > MAX_REPORTED_OVERFLOWS {
                return;
            }
        }
        let values: Vec<Const> =
            kind.words().into_iter().zip(operands).map(|(scalar, &word)| decode(scalar, word)).collect();
        if let Some(text) = sites.print_text(site, &values, &|loc| (self.locate)(loc)) {
            self.text.push_str(&text);
        }
    }

    pub fn into_text(self) -> String {
        let mut text = self.text;
        let more = self.overflows.saturating_sub(MAX_REPORTED_OVERFLOWS);
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
