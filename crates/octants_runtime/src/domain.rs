//! The points of a parallel loop, from its bounds at launch.

use octants_hal::{Domain, RangeDomain};
use octants_ir::plan::{Plan, Task};
use smallvec::SmallVec;

use crate::copies::{Copies, copies_of};
use crate::plan::Ended;

/// Bounds of all axes; the usual numbers of axes need no allocation.
type Bounds = SmallVec<[i64; 8]>;

/// What a domain refers to.
#[derive(Default)]
pub(crate) struct Room {
    bounds: Bounds,
    copies: Copies,
}

/// The points that a task runs for; `None` if there are none.
pub(crate) fn domain<'b>(
    plan: &Plan,
    task: &Task,
    args: &[u8],
    temps: &[u8],
    lanes: u32,
    room: &'b mut Room,
) -> Result<Option<Domain<'b>>, Ended> {
    let Task::Range { axes, max_threads, block_dim, cost, .. } = task else {
        return Ok(Some(Domain::Once));
    };
    copies_of(plan, task, args, &mut room.copies);
    let bounds = &mut room.bounds;
    bounds.clear();
    let mut points = Some(1_u64);
    for (lo, hi) in axes {
        let (lo, hi) = (lo.evaluate(plan, args, temps), hi.evaluate(plan, args, temps));
        if lo >= hi {
            return Ok(None);
        }
        points = points.and_then(|points| points.checked_mul(hi.wrapping_sub(lo) as u64));
        bounds.push(lo);
        bounds.push(hi);
    }
    match points {
        Some(points) if i64::try_from(points).is_ok() => Ok(Some(Domain::Range(RangeDomain {
            bounds,
            points,
            max_threads: *max_threads,
            block: *block_dim,
            cost: *cost,
            lanes,
            copied: &room.copies,
        }))),
        _ => Err(Ended::TooManyPoints),
    }
}
