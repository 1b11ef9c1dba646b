//! In debug mode, fails where a derivative keeps more than its tape was made for.
//!
//! Before:
//! ```text
//! %t: tape<f32> = tape %m
//! …
//! store %t[%k], %v
//! ```
//! After:
//! ```text
//! %t: tape<f32> = tape %m
//! …
//! %1: i64 = cast %k
//! %2: i64 = cast %m
//! %3: u1 = lt %1, %2
//! assert tape %3, "…", %1, %2
//! store %t[%k], %v
//! ```
//! A loop that counts as it should never does; what was counted and what is kept come from the same loop by different ways. Cells that a branch leaves out stay
//! unused. Leaves the structured phase.

use octants_ir::ops::{AssertKind, CompareOp};
use octants_ir::rewrite::regions_in;
use octants_ir::{Builder, Kernel, Op, OpKind, Scalar, Value, ValueDef};

pub fn check_tapes(kernel: &mut Kernel) {
    if !kernel.options.debug {
        return;
    }
    let regions: Vec<_> = kernel.bodies().into_iter().flat_map(|body| regions_in(kernel, body)).collect();
    for region in regions {
        for op in std::mem::take(&mut kernel.regions[region].ops) {
            if let Some((index, count)) = kept(kernel, op) {
                let loc = kernel.ops[op].loc;
                let b = &mut Builder::at(kernel, region, loc);
                let (index, count) = (b.cast(index, Scalar::I64), b.cast(count, Scalar::I64));
                let fits = b.compare(CompareOp::Lt, index, count);
                b.assert(AssertKind::Tape, fits, MORE_THAN_COUNTED, &[index, count]);
            }
            kernel.regions[region].ops.push(op);
        }
    }
}

/// Of a store to a tape, which cell it is and how many there are.
fn kept(kernel: &Kernel, op: Op) -> Option<(Value, Value)> {
    let data = &kernel.ops[op];
    let (OpKind::Store, &[place, index, ..]) = (&data.kind, &data.operands[..]) else { return None };
    let ValueDef::Result(tape, _) = kernel.values[place].def else { return None };
    (kernel.ops[tape].kind == OpKind::Tape).then(|| (index, kernel.ops[tape].operands[0]))
}

const MORE_THAN_COUNTED: &str = "the derivative keeps value {} of a loop here, and memory was counted for {}: that is an error of Octants, or what the loop \
     reads was written meanwhile";
