//! Roughly how many instructions a region runs.

use octants_ir::ops::{ArithOp, MathOp};
use octants_ir::{Const, Kernel, Op, OpKind, Region};

/// A loop whose trip count is not known counts as this many.
const UNKNOWN_TRIPS: u32 = 64;
const MATH: u32 = 16;
const DIVISION: u32 = 6;
const ATOMIC: u32 = 20;
const RANDOM: u32 = 100;
const CALL: u32 = 5;
const PRINT: u32 = 1000;

/// Calls inside calls that are followed; the rest counts as a loop.
const DEEPEST: u32 = 4;

pub fn cost(kernel: &Kernel, region: Region) -> u32 {
    cost_within(kernel, region, DEEPEST)
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
        // Reading it waits for what runs.
        OpKind::Clock => 32,
        OpKind::VolatileLoad => 2,
        OpKind::Math(MathOp::Pow | MathOp::Atan2) => 2 * MATH,
        OpKind::MathUnary(_) => MATH,
        OpKind::Random => RANDOM,
        OpKind::Print(_) => PRINT,
        OpKind::Call(_) if depth == 0 => UNKNOWN_TRIPS,
        OpKind::Call(function) => {
            CALL.saturating_add(cost_within(kernel, kernel.functions[*function].body, depth - 1))
        }
        OpKind::Atomic(_) | OpKind::AtomicCas => ATOMIC,
        OpKind::If => 1_u32.saturating_add(inner(0).max(inner(1))),
        OpKind::For => {
            let bound = |index: usize| kernel.as_const(data.operands[index]).and_then(Const::as_i128);
            let trips = match (bound(0), bound(1)) {
                (Some(lo), Some(hi)) => u32::try_from(hi.saturating_sub(lo).max(0)).unwrap_or(u32::MAX),
                _ => UNKNOWN_TRIPS,
            };
            1_u32.saturating_add(inner(0)).saturating_mul(trips)
        }
        OpKind::While => {
            (1_u32.saturating_add(inner(0)).saturating_add(inner(1))).saturating_mul(UNKNOWN_TRIPS)
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
