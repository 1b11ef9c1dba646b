//! The guard at launch: do copies of arrays pay?
//!
//! A loop that only adds to an array may give each thread a copy of it, which needs no atomic instructions. The copies take memory
//! and have to be added to the array in the end, so there must be few elements and many additions.

use octants_hal::{Copied, Summand};
use octants_ir::Scalar;
use octants_ir::plan::{Plan, Task};
use smallvec::SmallVec;

/// The copies of one loop; the usual numbers need no allocation.
pub(crate) type Copies = SmallVec<[Copied; 4]>;

/// An element of all copies together is added by one atomic instruction in the end: there must be more additions than that.
const ADDITIONS_PER_ELEMENT: u64 = 2;
/// To look at an element that nobody touched takes as long as this part of an addition. Estimated, not measured: sixteen `f32` are a line.
const ELEMENTS_PER_ADDITION: u64 = 16;
/// Copies of so few bytes cost next to nothing, and save another version of the code. Chosen, not measured: less than a first-level cache.
const MAX_FREE_BYTES: u64 = 16 << 10;
/// Bytes of all copies of one loop. Chosen: a bound on memory.
const MAX_BYTES: u64 = 64 << 20;

/// Whether the plan has loops with copies.
pub(crate) fn has_copies(plan: &Plan) -> bool {
    plan.tasks.iter().any(|task| matches!(task, Task::Range { copied, .. } if !copied.is_empty()))
}

/// Whether copies, for so many threads, pay in all loops that have any.
pub(crate) fn copies_pay(plan: &Plan, args: &[u8], threads: usize) -> bool {
    plan.tasks.iter().all(|task| match task {
        Task::Range { copied, .. } if !copied.is_empty() => pay(plan, task, args, threads as u64),
        Task::Range { .. } | Task::Serial => true,
    })
}

fn pay(plan: &Plan, task: &Task, args: &[u8], threads: u64) -> bool {
    let Task::Range { axes, copied, .. } = task else { return true };
    if task.needs_temps() {
        return false;
    }
    let points = axes.iter().fold(1_u64, |points, (lo, hi)| {
        let extent = hi.evaluate(plan, args, &[]).saturating_sub(lo.evaluate(plan, args, &[]));
        points.saturating_mul(extent.max(0) as u64)
    });
    let (mut bytes, mut elements, mut additions) = (0_u64, 0_u64, 0_u64);
    for array in copied {
        let own = array.bytes(&plan.args, args);
        bytes = bytes.saturating_add(own);
        elements = elements.saturating_add(own / u64::from(array.scalar.bytes()));
        additions = additions.saturating_add(points.saturating_mul(array.updates.into()));
    }
    bytes <= MAX_FREE_BYTES
        || additions / ADDITIONS_PER_ELEMENT >= elements
            && additions.saturating_mul(ELEMENTS_PER_ADDITION) >= elements.saturating_mul(threads)
            && bytes.saturating_mul(threads) <= MAX_BYTES
}

/// What the device is told of a loop's copies.
pub(crate) fn copies_of(plan: &Plan, task: &Task, args: &[u8], copies: &mut Copies) {
    copies.clear();
    let Task::Range { copied, .. } = task else { return };
    for array in copied {
        let summand = match array.scalar {
            Scalar::I32 | Scalar::U32 => Summand::I32,
            Scalar::I64 | Scalar::U64 => Summand::I64,
            Scalar::F32 => Summand::F32,
            Scalar::F64 => Summand::F64,
            Scalar::U1 | Scalar::I8 | Scalar::I16 | Scalar::U8 | Scalar::U16 | Scalar::F16 => {
                panic!("a plan has no copies of arrays of {}", array.scalar)
            }
        };
        let bytes = array.bytes(&plan.args, args) as usize;
        copies.push(Copied { address_at: plan.args.slots[array.param].offset as usize, bytes, summand });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use octants_ir::plan::{ArgLayout, Bound, LaunchUses, ResultLayout, RunTime, Schedule, TempLayout};
    use octants_ir::{ArrayType, Boundary, Kernel, SiteTable, Type};

    /// A loop that adds once in each of so many iterations to an array of so many elements.
    fn pays(points: i64, elements: i32, threads: usize) -> bool {
        let mut kernel = Kernel::new("k");
        kernel.add_param("a", Type::Array(ArrayType::array(Scalar::F32, 1, Boundary::Unsafe)));
        let copied = vec![octants_ir::plan::Copied { param: 0, scalar: Scalar::F32, updates: 1, span: None }];
        let task = Task::Range {
            axes: vec![(Bound::Const(0), Bound::Const(points))],
            max_threads: None,
            block_dim: None,
            name: None,
            cost: 1,
            multiple: None,
            copied,
        };
        let plan = Plan {
            args: ArgLayout::of(&kernel),
            temps: TempLayout::default(),
            results: ResultLayout::default(),
            tasks: vec![task],
            schedule: Schedule::in_order(1),
            access: Vec::new(),
            needs_noalias: true,
            uses: LaunchUses::default(),
            run_time: RunTime::Unknown,
            sites: SiteTable::default(),
        };
        let mut args = vec![0; plan.args.bytes as usize];
        args[8..12].copy_from_slice(&elements.to_le_bytes());
        copies_pay(&plan, &args, threads)
    }

    #[test]
    fn copies_pay_for_many_additions_to_few_elements() {
        assert!(pays(1_000_000, 256, 4));
        assert!(pays(100, 1000, 4), "so few elements cost nothing");
        assert!(!pays(100, 10_000, 4), "too few additions");
        assert!(!pays(1_000_000, 900_000, 4), "too many elements");
        assert!(pays(1_000_000, 400_000, 4));
        assert!(!pays(1_000_000, 400_000, 64), "too many copies to look at");
        assert!(!pays(1 << 40, 16 << 20, 2), "too much memory");
    }
}
