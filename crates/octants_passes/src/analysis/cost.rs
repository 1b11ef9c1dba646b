//! Roughly how many instructions a region runs.

use octants_ir::ops::{ArithOp, MathOp};
use octants_ir::{Kernel, Op, OpKind, Region};

use super::trips::{LIKELY_TRIPS, trips};

// Instructions of what is more than one. Orders of magnitude, not measured: a device times the first launches and goes by that.
const MATH: u32 = 16;
const DIVISION: u32 = 6;
const ATOMIC: u32 = 20;
const RANDOM: u32 = 100;
const CALL: u32 = 5;
const PRINT: u32 = 1000;
/// Reading it waits for what runs.
const CLOCK: u32 = 32;
const VOLATILE_LOAD: u32 = 2;

/// Calls inside calls that are followed; the rest counts as a loop. Chosen, not measured: it bounds the walk over functions that call each
/// other.
const MAX_CALL_DEPTH: u32 = 4;

pub fn cost(kernel: &Kernel, region: Region) -> u32 {
    cost_within(kernel, region, MAX_CALL_DEPTH)
}

/// Of an op without regions.
pub fn own_cost(kernel: &Kernel, op: Op) -> u32 {
    cost_of(kernel, op, 0)
}

fn cost_within(kernel: &Kernel, region: Region, depth: u32) -> u32 {
    kernel.regions[region].ops.iter().fold(0, |sum: u32, &op| sum.saturating_add(cost_of(kernel, op, depth)))
}

fn cost_of(kernel: &Kernel, op: Op, depth: u32) -> u32 {
    let data = &kernel.ops[op];
    let inner = |index: usize| cost_within(kernel, data.regions[index], depth);
    match &data.kind {
        OpKind::Const(_)
        | OpKind::Extent(_)
        | OpKind::Address
        | OpKind::Local
        | OpKind::Tape
        | OpKind::Temp
        | OpKind::Yield
        | OpKind::Return
        | OpKind::Tensor(_)
        | OpKind::StructNew
        | OpKind::StructGet(_)
        | OpKind::StructSet(_) => 0,
        OpKind::Arith(
            ArithOp::Div | ArithOp::FloorDiv | ArithOp::Mod | ArithOp::RawDiv | ArithOp::RawMod,
        ) => DIVISION,
        OpKind::Arith(_)
        | OpKind::Bit(_)
        | OpKind::BitUnary(_)
        | OpKind::Compare(_)
        | OpKind::Select
        | OpKind::Convert(_)
        | OpKind::Load
        | OpKind::Store
        | OpKind::StoreResult(_)
        | OpKind::Assert(..)
        | OpKind::LaunchKey => 1,
        OpKind::Clock => CLOCK,
        OpKind::VolatileLoad => VOLATILE_LOAD,
        OpKind::Math(MathOp::Pow | MathOp::Atan2) => 2 * MATH,
        OpKind::MathUnary(_) => MATH,
        OpKind::Random => RANDOM,
        OpKind::Print(_) => PRINT,
        OpKind::Call(_) if depth == 0 => LIKELY_TRIPS,
        OpKind::Call(function) => {
            CALL.saturating_add(cost_within(kernel, kernel.functions[*function].body, depth - 1))
        }
        OpKind::Atomic(_) | OpKind::AtomicCas | OpKind::GrowPool => ATOMIC,
        OpKind::If => 1_u32.saturating_add(inner(0).max(inner(1))),
        OpKind::For | OpKind::ForCells(_) | OpKind::While => {
            let once = (0..data.regions.len()).fold(1_u32, |sum, region| sum.saturating_add(inner(region)));
            once.saturating_mul(trips(kernel, op, LIKELY_TRIPS))
        }
        OpKind::ParallelFor(_) | OpKind::Serial => inner(0),
        OpKind::Fork => (0..data.regions.len()).fold(0, |sum: u32, branch| sum.saturating_add(inner(branch))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use octants_ir::text::parse;

    /// Loops inside each other, and an `if` around the innermost.
    fn nest(depth: usize) -> Kernel {
        let mut body = "if %c { store %x[%n], %n } else { }".to_string();
        for level in 0..depth {
            body = format!("for %i{level}: i32 in %zero..%n {{ {body} }}");
        }
        let text = format!(
            "kernel @k(%x \"x\": array<i32, 1>, %n \"n\": i32, %c \"c\": u1) {{\n\
             %zero: i32 = const 0\nparallel_for (%i: i32) in (%zero..%n) {{ {body} }}\nreturn\n}}"
        );
        parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"))
    }

    #[test]
    fn deep_nests_cost_more_and_the_deepest_the_most_that_can_be_said() {
        let cost_of = |depth| {
            let kernel = nest(depth);
            cost(&kernel, kernel.body)
        };
        assert_eq!(cost_of(0), 2);
        for depth in 0..10 {
            assert!(cost_of(depth + 1) >= cost_of(depth), "{depth} loops");
        }
        assert_eq!((cost_of(6), cost_of(7), cost_of(30)), (u32::MAX, u32::MAX, u32::MAX));
    }
}
