//! Roughly how many instructions a region runs.

use octants_ir::ops::Regions;
use octants_ir::{Kernel, Op, OpKind, Region};

use super::trips::{LIKELY_TRIPS, trips};

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
    let own = data.kind.cost();
    let inner = data.regions.iter().map(|&region| cost_within(kernel, region, depth));
    match data.kind.info().regions {
        Regions::Without => match data.kind {
            OpKind::Call(_) if depth == 0 => LIKELY_TRIPS,
            OpKind::Call(function) => {
                own.saturating_add(cost_within(kernel, kernel.functions[function].body, depth - 1))
            }
            _ => own,
        },
        Regions::Either => own.saturating_add(inner.max().unwrap_or(0)),
        Regions::Repeated(_) => {
            inner.fold(own, u32::saturating_add).saturating_mul(trips(kernel, op, LIKELY_TRIPS))
        }
        Regions::Task | Regions::Branches => inner.fold(own, u32::saturating_add),
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
