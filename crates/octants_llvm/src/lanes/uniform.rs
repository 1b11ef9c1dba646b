//! Which values of a parallel loop's body differ between neighbouring iterations.
//!
//! A value varies if it is computed from a varying one, read from a varying place or a variable, or chosen by a varying
//! decision. Everything else is the same for all lanes of a widened loop, and stays a scalar.

use octants_ir::ops::Effects;
use octants_ir::{Kernel, OpKind, Region, SideTable, Type, Value};

/// The varying values of a region and of the regions inside, given those that vary from the start.
pub(crate) fn varying_values(kernel: &Kernel, body: Region, seeds: &[Value]) -> SideTable<Value, bool> {
    varying_values_but(kernel, body, seeds, &SideTable::new(false))
}

/// Likewise, where some values are known to be the same in all lanes, whatever they are computed from.
pub(crate) fn varying_values_but(
    kernel: &Kernel,
    body: Region,
    seeds: &[Value],
    same: &SideTable<Value, bool>,
) -> SideTable<Value, bool> {
    let mut varying = SideTable::new(false);
    for &seed in seeds {
        varying.set(seed, true);
    }
    let mut analysis = Analysis { kernel, varying, same, changed: true };
    while analysis.changed {
        analysis.changed = false;
        analysis.region(body);
    }
    analysis.varying
}

struct Analysis<'k> {
    kernel: &'k Kernel,
    varying: SideTable<Value, bool>,
    same: &'k SideTable<Value, bool>,
    changed: bool,
}

impl Analysis<'_> {
    fn mark(&mut self, value: Value, varies: bool) {
        if varies && !self.varying[value] && !self.same[value] {
            self.varying.set(value, true);
            self.changed = true;
        }
    }

    fn any(&self, values: &[Value]) -> bool {
        values.iter().any(|&value| self.varying[value])
    }

    /// `to[k]` varies if `from[k]` does, or all do.
    fn flow(&mut self, from: &[Value], to: &[Value], all: bool) {
        for (&from, &to) in from.iter().zip(to) {
            self.mark(to, all || self.varying[from]);
        }
    }

    fn region(&mut self, region: Region) {
        let kernel = self.kernel;
        for &op in &kernel.regions[region].ops {
            let data = &kernel.ops[op];
            let yielded = |region: Region| {
                kernel.terminator(region).map_or(&[][..], |terminator| &terminator.operands[..])
            };
            for &inner in &data.regions {
                self.region(inner);
            }
            match data.kind {
                OpKind::If => {
                    let decides = self.varying[data.operands[0]];
                    for &inner in &data.regions {
                        self.flow(yielded(inner), &data.results, decides);
                    }
                }
                OpKind::For => {
                    let body = data.regions[0];
                    let (bounds, initial) = data.operands.split_at(2);
                    let (index, carried) =
                        kernel.regions[body].params.split_first().expect("a loop's body has an index");
                    // Lanes that begin alike are at the same index while they run.
                    self.mark(*index, self.varying[bounds[0]]);
                    let decides = self.any(bounds);
                    self.flow(initial, carried, decides);
                    self.flow(yielded(body), carried, decides);
                    self.flow(carried, &data.results, decides);
                }
                OpKind::While => {
                    let (condition, body) = (data.regions[0], data.regions[1]);
                    let (tested, held) = (yielded(condition), &kernel.regions[condition].params);
                    let Some((&decision, tested)) = tested.split_first() else { continue };
                    let decides = self.varying[decision];
                    self.flow(&data.operands, held, decides);
                    self.flow(yielded(body), held, decides);
                    self.flow(tested, &kernel.regions[body].params, decides);
                    self.flow(tested, &data.results, decides);
                    // One type for the value wherever the loop carries it.
                    self.flow(held, &data.results, decides);
                    self.flow(&data.results, held, decides);
                    self.flow(&data.results, &kernel.regions[body].params, decides);
                }
                OpKind::Load => {
                    let private = matches!(kernel.ty(data.operands[0]), Type::Local(_) | Type::Tape(_));
                    let varies = private || self.any(&data.operands[1..]);
                    self.flow(&data.operands[..1], &data.results, varies);
                }
                _ => {
                    let own = Effects::NONDETERMINISTIC | Effects::CONVERGENT;
                    let varies = self.any(&data.operands) || data.kind.effects().intersects(own);
                    for &result in &data.results {
                        self.mark(result, varies);
                    }
                }
            }
        }
    }
}
