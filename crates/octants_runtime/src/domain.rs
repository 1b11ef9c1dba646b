//! The points of a parallel loop, from its bounds at launch.

use octants_hal::{DeviceBound, DeviceRangeDomain, Domain, LaunchContext, RangeDomain};
use octants_ir::plan::{Bound, Plan, Task};
use smallvec::SmallVec;

use crate::copies::{Copies, copies_of};
use crate::run::RunError;

/// Bounds of all axes; the usual numbers of axes need no allocation.
type Bounds = SmallVec<[i64; 8]>;

/// Memory that a domain refers to, kept from task to task.
#[derive(Default)]
pub(crate) struct ScratchBounds {
    bounds: Bounds,
    device_bounds: Vec<DeviceBound>,
    copies: Copies,
}

/// The points that a task runs for; `None` if there are none.
pub(crate) fn domain<'b>(
    plan: &Plan,
    task: &Task,
    args: &[u8],
    temps: &[u8],
    lanes: u32,
    scratch: &'b mut ScratchBounds,
) -> Result<Option<Domain<'b>>, RunError> {
    let Task::Range { axes, max_threads, block_dim, cost, multiple, .. } = task else {
        return Ok(Some(Domain::Once));
    };
    copies_of(plan, task, args, &mut scratch.copies);
    let bounds = &mut scratch.bounds;
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
    if let (Some(points), &Some(multiple)) = (points, multiple)
        && points % u64::from(multiple) != 0
    {
        return Err(RunError::PartialBlock(points, multiple));
    }
    match points {
        Some(points) if i64::try_from(points).is_ok() => Ok(Some(Domain::Range(RangeDomain {
            bounds,
            points,
            max_threads: *max_threads,
            block: *block_dim,
            cost: *cost,
            lanes,
            copied: &scratch.copies,
        }))),
        _ => Err(RunError::TooManyPoints),
    }
}

/// The points that a task runs for, with bounds that stay on the device.
///
/// # Panics
/// If a bound needs a temporary and is not one, or the task is no range.
pub(crate) fn device_domain<'b>(
    plan: &Plan,
    task: &Task,
    context: &LaunchContext<'_>,
    lanes: u32,
    scratch: &'b mut ScratchBounds,
) -> Domain<'b> {
    let Task::Range { axes, max_threads, block_dim, cost, .. } = task else {
        panic!("only a range has bounds");
    };
    copies_of(plan, task, context.args, &mut scratch.copies);
    let bounds = axes.iter().flat_map(|(lo, hi)| [lo, hi]).map(|bound| match bound {
        Bound::Temp(temp) => {
            let slot = &plan.temps.slots[*temp];
            let ty = slot.data.scalar().expect("a bound's temporary holds a scalar");
            let at = context.memory.temps.offset(slot.offset as usize);
            DeviceBound::InMemory { at, bits: ty.bits(), signed: ty.is_signed() }
        }
        known => DeviceBound::Known(known.evaluate(plan, context.args, &[])),
    });
    scratch.device_bounds.clear();
    scratch.device_bounds.extend(bounds);
    Domain::DeviceRange(DeviceRangeDomain {
        bounds: &scratch.device_bounds,
        max_threads: *max_threads,
        block: *block_dim,
        cost: *cost,
        lanes,
        copied: &scratch.copies,
    })
}
