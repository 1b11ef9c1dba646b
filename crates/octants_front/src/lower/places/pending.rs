//! Assignments to elements that share a word, held back so that one store does for several.
//!
//! ```text
//! x[i] = a        held back
//! y[i] = f(b)     held back with it: the same word
//! z = c           writes both, with one store
//! ```
//!
//! Only assignments that follow each other are held, all of one region: whatever enters or leaves a region, reads or adds to such an element,
//! calls a function of the kernel's own, or is another statement, writes them first.

use octants_diag::Span;
use octants_ir::{OpKind, Region, Value, ValueDef};

use crate::host::Host;
use crate::lower::Lowerer;
use crate::lower::data::argument::Argument;
use crate::lower::data::term::Term;
use crate::lower::error::Fallible;
use crate::lower::places::encoded::encoded_index;

/// Stores to one word that are not written yet.
pub(crate) struct PendingStores<O> {
    region: Region,
    words: O,
    index: Vec<Value>,
    stores: Vec<(O, Term<O>)>,
    span: Span,
}

/// How deep the calculation of two indices is compared. Chosen, not measured: `2 * i + 1` has a depth of 2.
const COMPARED_DEPTH: usize = 8;

impl<H: Host> Lowerer<'_, H> {
    /// Stores an element, now or with those that follow.
    pub(crate) fn hold_store(
        &mut self,
        field: &H::Object,
        index: &[Value],
        value: Term<H::Object>,
        span: Span,
    ) -> Fallible<()> {
        let host = self.host;
        let words =
            host.getattr(field, "_words", self).map_err(|exception| self.host_error(exception, span))?;
        let fits = self.pending.as_ref().is_some_and(|pending| {
            pending.region == self.region
                && host.same(&pending.words, &words)
                && pending.index.len() == index.len()
                && pending.index.iter().zip(index).all(|(&a, &b)| self.same_value(a, b, COMPARED_DEPTH))
        });
        if !fits {
            self.flush_pending()?;
            let (region, index) = (self.region, index.to_vec());
            self.pending = Some(PendingStores { region, words, index, stores: Vec::new(), span });
        }
        if let Some(pending) = &mut self.pending {
            pending.stores.retain(|(known, _)| !host.same(known, field));
            pending.stores.push((field.clone(), value));
            self.held_stores += 1;
        }
        Ok(())
    }

    /// Writes what is held back.
    pub(crate) fn flush_pending(&mut self) -> Fallible<()> {
        let Some(pending) = self.pending.take() else { return Ok(()) };
        debug_assert_eq!(pending.region, self.region, "held stores are written where they were made");
        let span = pending.span;
        let (fields, values): (Vec<_>, Vec<_>) = pending.stores.into_iter().unzip();
        let Some(function) = self.host.encoded_method(&fields[0], "store") else { return Ok(()) };
        let first = fields[0].clone();
        let argument = |term| Argument { name: None, term, span, is_literal: false };
        let arguments = vec![
            argument(encoded_index(pending.index)),
            argument(Term::Tuple(fields.into_iter().map(Term::Object).collect())),
            argument(Term::Tuple(values)),
        ];
        self.inline_access(&function, &first, arguments, span).map(|_| ())
    }

    /// Whether two values of the region that is being built are the same for certain.
    fn same_value(&self, a: Value, b: Value, depth: usize) -> bool {
        if a == b {
            return true;
        }
        let (ValueDef::Result(first, i), ValueDef::Result(second, j)) =
            (self.kernel.values[a].def, self.kernel.values[b].def)
        else {
            return false;
        };
        let (one, other) = (&self.kernel.ops[first], &self.kernel.ops[second]);
        let alike = i == j
            && depth > 0
            && one.kind == other.kind
            && self.kernel.ty(a) == self.kernel.ty(b)
            && one.operands.len() == other.operands.len()
            && one.operands.iter().zip(&other.operands).all(|(&a, &b)| self.same_value(a, b, depth - 1));
        if !alike {
            return false;
        }
        match one.kind {
            OpKind::Const(_)
            | OpKind::Arith(_)
            | OpKind::Bit(_)
            | OpKind::BitUnary(_)
            | OpKind::Compare(_)
            | OpKind::Convert(_) => true,
            // A variable that nothing stored to in between.
            OpKind::Load => {
                let ops = &self.kernel.regions[self.region].ops;
                let Some(at) = ops.iter().rposition(|&op| op == first) else { return false };
                ops[at..].iter().all(|&op| {
                    let op = &self.kernel.ops[op];
                    op.regions.is_empty()
                        && !matches!(op.kind, OpKind::Call(_))
                        && (matches!(op.kind, OpKind::Load) || op.operands.first() != one.operands.first())
                }) && self.is_local(one.operands[0])
            }
            _ => false,
        }
    }

    fn is_local(&self, base: Value) -> bool {
        matches!(self.kernel.def(base).map(|op| &op.kind), Some(OpKind::Local))
    }
}
