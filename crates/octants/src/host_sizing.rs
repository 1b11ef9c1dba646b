//! How much a derivative keeps, computed by the host: where it follows from the values and shapes of arguments alone, no kernel runs for it, and
//! nothing waits for the device.
//!
//! Reads the block of arguments only, never memory that an address in it names.

use octants_interp::{Arg, Buffers, Limits, run};
use octants_ir::ops::Effects;
use octants_ir::plan::ArgLayout;
use octants_ir::rewrite::ops_in;
use octants_ir::{Kernel, OpKind, Type};
use octants_passes::{Assumptions, run_pass};

/// Ops that the host computes at most, in some hundred microseconds; what takes longer is the device's. Chosen, not measured.
const MOST_OPS: u64 = 1000;

/// A sizing kernel that the host can run.
pub(crate) struct HostSizing {
    kernel: Kernel,
}

impl HostSizing {
    /// `None` if the kernel loads from arrays, or has a loop over many iterations.
    pub fn new(sizing: &Kernel) -> Option<Self> {
        let mut kernel = sizing.clone();
        for pass in ["promote_locals", "simplify"] {
            run_pass(pass, &mut kernel, Assumptions { noalias: true, ..Assumptions::default() });
        }
        let is_known = |op| {
            let data = &kernel.ops[op];
            match data.kind {
                OpKind::ParallelFor(_) | OpKind::ForCells(_) => false,
                OpKind::Load => !matches!(kernel.ty(data.operands[0]), Type::Array(_)),
                ref kind => {
                    let effects = kind.effects();
                    let elsewhere = Effects::OUTPUT | Effects::CONVERGENT;
                    !effects.differs_between_launches() && !effects.intersects(elsewhere)
                }
            }
        };
        let known = ops_in(&kernel, kernel.body).into_iter().all(is_known);
        known.then_some(Self { kernel })
    }

    /// The sizes, of which there are `count`, for arguments whose block begins so. `None` if that takes too long.
    pub fn sizes(&self, layout: &ArgLayout, block: &[u8], count: usize) -> Option<Vec<i64>> {
        let mut memory = Buffers::new();
        let address = memory.add(vec![0; 8 * count]);
        let own = self.kernel.params.len() - 1;
        let mut args = Vec::with_capacity(own + 1);
        let slots = layout.slots.get(..own)?.iter();
        args.extend(slots.map(|slot| Arg::in_block(&self.kernel, slot, block)));
        args.push(Arg::Array { address, shape: vec![i32::try_from(count).ok()?] });
        run(&self.kernel, &args, &mut memory, &Limits { steps: Some(MOST_OPS), cancel: None }).ok()?;
        let words = memory.bytes(address).chunks_exact(8);
        words.map(|word| Some(i64::from_le_bytes(word.try_into().ok()?))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use octants_ir::text::parse;

    #[test]
    fn arguments_and_shapes_are_known_and_arrays_are_not() {
        let sizing = |amount: &str| {
            let text = format!(
                r#"kernel @sizes(%0 "x": array<f32, 2>, %1 "n": i32, %2 "rows": array<i64, 1>, %3 "sizes": array<i64, 1>) {{
                  %4: i32 = const 1
                  %5: i32 = extent 1 %0
                  {amount}
                  store %3[%4], %6
                  return
                }}"#
            );
            parse(&text).unwrap_or_else(|error| panic!("{error}"))
        };
        let known = sizing("%7: i64 = cast %1\n%8: i64 = cast %5\n%6: i64 = mul %7, %8");
        let layout = ArgLayout::of(&known);
        let mut block = vec![0; layout.bytes as usize];
        let at = layout.slots[0].extent_offset(1) as usize;
        block[at..at + 4].copy_from_slice(&7_i32.to_le_bytes());
        let at = layout.slots[1].offset as usize;
        block[at..at + 4].copy_from_slice(&6_i32.to_le_bytes());
        let found = HostSizing::new(&known).expect("no array is loaded from");
        assert_eq!(found.sizes(&layout, &block, 3), Some(vec![0, 42, 0]));
        assert!(HostSizing::new(&sizing("%6: i64 = load %2[%4]")).is_none());
        // A short loop is run, a long one is the device's.
        let looped = "%7: i64 = const 1\n%8: i32 = const 0\n\
                      %6: i64 = for %9: i32 in %8..%1 carry (%10: i64 = %7) {\n%11: i64 = add %10, %10\nyield %11 }";
        let found = HostSizing::new(&sizing(looped)).expect("no array is loaded from");
        assert_eq!(found.sizes(&layout, &block, 2), Some(vec![0, 64]));
        block[at..at + 4].copy_from_slice(&1_000_000_i32.to_le_bytes());
        assert_eq!(found.sizes(&layout, &block, 2), None);
    }
}
