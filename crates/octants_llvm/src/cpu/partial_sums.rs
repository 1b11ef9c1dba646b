//! Sums of reals over many short rows, part by part.
//!
//! A long row is summed in lanes, each of which adds up a small part of it. Short rows, as those of the blocks of a sparse tree, are added to one accumulator, whose
//! error grows with their number: 16 million numbers in blocks of 4 × 4 were off by 1.2e-4 in f32. So what rows add up to goes to a second accumulator
//! every [`PART`] iterations, and the first one begins anew.

use octants_ir::Scalar;
use octants_ir::ops::AtomicOp;
use octants_ir::views::ParallelLoop;

use crate::emitter::Emitter;
use crate::function::Phi;
use crate::value::{Label, Ty, Val};

/// Iterations whose sum is one part: as many parts make a million. Chosen for its error, 1e-7 in f32; the few instructions are beside
/// those that find the next row.
const PART: i64 = 1024;

const COUNTER: Ty = Ty { scalar: Scalar::I64, lanes: 1 };

/// The second accumulators of a loop over rows.
pub(super) struct PartialSums {
    /// For each reduction, if it is a sum of reals.
    totals: Vec<Option<Phi>>,
    /// Iterations since the last part.
    since: Phi,
}

/// What goes round the loop: the totals, and the iterations.
pub(super) struct Added {
    totals: Vec<Option<Val>>,
    since: Val,
}

impl Emitter<'_> {
    /// In the head of a loop over rows.
    pub(super) fn begin_partial_sums(
        &mut self,
        parallel: &ParallelLoop<'_>,
        initial: &[Val],
    ) -> Option<PartialSums> {
        let is_sum: Vec<_> = parallel.reductions().map(|r| r.op == AtomicOp::Add).collect();
        let is_sum = |index: usize| self.is_fast() && is_sum[index] && initial[index].ty.is_real();
        let sums: Vec<_> = (0..initial.len()).map(is_sum).collect();
        if !sums.contains(&true) {
            return None;
        }
        let since = self.f.phi(COUNTER);
        let totals = sums.iter().zip(initial);
        let totals = totals.map(|(&sum, value)| sum.then(|| self.f.phi(value.ty()))).collect();
        Some(PartialSums { totals, since })
    }

    /// Behind a row of so many iterations: gives what the first accumulators go on with, and the second ones.
    pub(super) fn add_partial_sums(
        &mut self,
        sums: Option<&PartialSums>,
        initial: &[Val],
        summed: &[Val],
        length: Val,
    ) -> (Vec<Val>, Option<Added>) {
        let Some(sums) = sums else { return (summed.to_vec(), None) };
        let since = self.binary("add nuw nsw", sums.since.value, length);
        let whole = self.compare("uge", since, Val::i64(PART));
        let since = self.select(whole, Val::i64(0), since);
        let (mut parts, mut totals) = (Vec::new(), Vec::new());
        for ((total, &part), &none) in sums.totals.iter().zip(summed).zip(initial) {
            let Some(total) = total else {
                parts.push(part);
                totals.push(None);
                continue;
            };
            let more = self.combine(AtomicOp::Add, total.value, part);
            totals.push(Some(self.select(whole, more, total.value)));
            parts.push(self.select(whole, none, part));
        }
        (parts, Some(Added { totals, since }))
    }

    pub(super) fn fill_partial_sums(
        &mut self,
        sums: &PartialSums,
        initial: &[Val],
        before: Label,
        added: &Added,
        latch: Label,
    ) {
        self.f.fill(sums.since, &[(Val::i64(0), before), (added.since, latch)]);
        for ((phi, &none), next) in sums.totals.iter().zip(initial).zip(&added.totals) {
            if let (Some(phi), Some(next)) = (phi, next) {
                self.f.fill(*phi, &[(none, before), (*next, latch)]);
            }
        }
    }

    /// Behind the loop: both accumulators in one.
    pub(super) fn whole_sums(&mut self, sums: Option<&PartialSums>, held: &[Val]) -> Vec<Val> {
        let Some(sums) = sums else { return held.to_vec() };
        let both = sums.totals.iter().zip(held);
        both.map(|(total, &part)| match total {
            Some(total) => self.combine(AtomicOp::Add, total.value, part),
            None => part,
        })
        .collect()
    }
}
