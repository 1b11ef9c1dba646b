//! How many iterations of a derivative keep values at once, and the arrays that they keep them in.
//!
//! The sizing kernel says how much one iteration needs at most. As many run at once as the device has threads for, or as the limit has memory for;
//! the others wait for their slots. The arrays are the launch's own, in the order of its stream.

use octants_ir::Scalar;
use octants_passes::{TapeParams, TapedLoop};

use crate::error::Error;

/// Bytes for devices whose threads have no memory that grows, if nothing is said: a thousand steps of one single in each of the 270,336 threads
/// of an H200. There, 64 steps in 2^20 iterations take as long with 32 MiB as with 256, a fifth longer with 16, and 2.7 times as long with 4.
const DEFAULT_LIMIT: u64 = 1 << 30;
/// Iterations that have slots at least, also on a device with few threads: each takes a chunk of neighbours, and runs them in the lanes of
/// vectors. Chosen, not measured.
const LEAST_SLOTS: u64 = 4096;
/// The part of a device's memory that a launch may have for what it keeps, whatever it needs: 1/16, which is 8.7 GiB of an H200. Chosen, not measured: the
/// default limit passes from 16 GiB on.
const RESERVED_DIVISOR: u64 = 16;
/// Cells of an array: an index is an `i32`.
const MOST_CELLS: u64 = i32::MAX as u64;

/// What one loop needs, and what it gets.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LoopMemory {
    /// Its iterations.
    pub points: u64,
    /// Cells of each scalar that one iteration needs at most.
    pub cells: Vec<(Scalar, u64)>,
    /// How many iterations keep anything, where they differ in that.
    pub keepers: Option<u64>,
    /// How many iterations have memory at once.
    pub slots: u64,
    /// How many iterations run at once: more than have memory, if only some of them need any and take it as they do.
    pub at_once: u64,
    /// Loops of different branches may run at the same time; those of one run one after the other, in the same memory.
    pub branch: usize,
}

impl LoopMemory {
    /// What one iteration needs at most.
    pub fn bytes_of_iteration(&self) -> u64 {
        self.cells.iter().fold(0, |sum, &(scalar, cells)| {
            sum.saturating_add(cells.saturating_mul(u64::from(scalar.bytes())))
        })
    }

    /// What all slots need.
    pub fn bytes(&self) -> u64 {
        self.bytes_of_iteration().saturating_mul(self.slots)
    }
}

/// What all loops take together, where those of one branch have the same memory.
pub fn total_bytes(loops: &[LoopMemory]) -> u64 {
    let branches = loops.iter().map(|memory| memory.branch + 1).max().unwrap_or(0);
    let of_branch = |branch| {
        let loops = loops.iter().filter(move |memory| memory.branch == branch);
        loops.map(LoopMemory::bytes).max().unwrap_or(0)
    };
    (0..branches).map(of_branch).fold(0, u64::saturating_add)
}

/// Bytes for all that a launch keeps.
pub(crate) fn limit_or_default(limit: Option<u64>) -> u64 {
    limit.unwrap_or(DEFAULT_LIMIT)
}

/// Bytes for what one branch keeps.
fn branch_limit(params: &TapeParams, limit: Option<u64>) -> u64 {
    limit_or_default(limit) / params.branches.max(1) as u64
}

/// How many iterations of a loop run at once at most.
pub(crate) fn most_slots(threads: u64) -> u64 {
    threads.max(LEAST_SLOTS)
}

/// How many cells each array has that is made before anyone knows what the launch needs, so that whatever the limit lets an iteration keep fits: all
/// that the limit lets a branch keep. Where several arrays would have that many, the limit must be none that was asked for. `None` if they would
/// take more than a part of the device's memory.
pub(crate) fn full_arrays(params: &TapeParams, limit: Option<u64>, reservable: u64) -> Option<Vec<u64>> {
    if limit.is_some() && params.arrays.len() > params.branches {
        return None;
    }
    let bytes = branch_limit(params, limit);
    let cells = params.arrays.iter().map(|array| (bytes / u64::from(array.scalar.bytes())).min(MOST_CELLS));
    let cells: Vec<_> = cells.collect();
    let all = params.arrays.iter().zip(&cells).map(|(array, cells)| cells * u64::from(array.scalar.bytes()));
    (all.sum::<u64>() <= reservable / RESERVED_DIVISOR).then_some(cells)
}

/// Slots for each loop. `sizes` are what the sizing kernel said: of each loop its points, then the cells of each scalar.
pub(crate) fn divide(
    params: &TapeParams,
    scalars: &[Scalar],
    sizes: &[i64],
    threads: u64,
    limit: Option<u64>,
) -> Result<Vec<LoopMemory>, Error> {
    let limit = branch_limit(params, limit);
    let mut loops = needed(params, scalars, sizes);
    for (memory, taped) in loops.iter_mut().zip(&params.loops) {
        (memory.slots, memory.at_once) = slots(taped, memory, threads, limit)?;
    }
    Ok(loops)
}

/// Likewise, where each of so many iterations that run at once has memory of its thread's.
pub(crate) fn in_threads(
    params: &TapeParams,
    scalars: &[Scalar],
    sizes: &[i64],
    at_once: u64,
) -> Vec<LoopMemory> {
    let mut loops = needed(params, scalars, sizes);
    for (memory, taped) in loops.iter_mut().zip(&params.loops) {
        memory.at_once = memory.points.min(if taped.in_order { 1 } else { at_once });
        memory.slots = memory.at_once.min(memory.keepers.unwrap_or(u64::MAX));
    }
    loops
}

/// What the loops need, before they get something.
fn needed(params: &TapeParams, scalars: &[Scalar], sizes: &[i64]) -> Vec<LoopMemory> {
    let amount = |size: i64| u64::try_from(size).unwrap_or(0);
    let loops = params.loops.iter().zip(sizes.chunks_exact(2 + scalars.len()));
    loops
        .map(|(taped, sizes)| {
            let cells = sizes[2..].iter().map(|&cells| amount(cells));
            let cells = scalars.iter().copied().zip(cells).filter(|&(_, cells)| cells > 0).collect();
            let keepers = taped.claims.map(|_| amount(sizes[1]));
            let points = amount(sizes[0]);
            LoopMemory { points, cells, keepers, slots: 0, at_once: 0, branch: taped.branch }
        })
        .collect()
}

/// How many iterations have memory, and how many run.
fn slots(taped: &TapedLoop, memory: &LoopMemory, threads: u64, limit: u64) -> Result<(u64, u64), Error> {
    let wanted = if taped.in_order { 1 } else { most_slots(threads) };
    let bytes = memory.bytes_of_iteration();
    let at_once = memory.points.min(wanted);
    if bytes == 0 {
        return Ok((at_once, at_once));
    }
    let most = memory.cells.iter().map(|&(_, cells)| cells).max().unwrap_or(1);
    let fitting = (limit / bytes).min(MOST_CELLS / most);
    if fitting == 0 && memory.points > 0 {
        return Err(Error::TapeLimit { bytes, limit });
    }
    // Each of those that keep anything has memory of its own then.
    match memory.keepers.filter(|&keepers| keepers < at_once && keepers <= fitting) {
        Some(keepers) => Ok((keepers, at_once)),
        None => Ok((at_once.min(fitting), at_once.min(fitting))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use octants_passes::TapeArray;

    fn divided(loops: &[(bool, usize)], sizes: &[i64], limit: Option<u64>) -> Result<Vec<u64>, u64> {
        let loops =
            loops.iter().map(|&(in_order, branch)| TapedLoop { slots: None, in_order, branch, claims: None });
        let loops: Vec<_> = loops.collect();
        let branches = loops.iter().map(|taped| taped.branch + 1).max().unwrap_or(0);
        let params = TapeParams { loops, branches, ..TapeParams::default() };
        let scalars = [Scalar::F64, Scalar::F32];
        match divide(&params, &scalars, sizes, 100_000, limit) {
            Ok(divided) => Ok(divided.into_iter().map(|memory| memory.slots).collect()),
            Err(Error::TapeLimit { bytes, .. }) => Err(bytes),
            Err(other) => panic!("{other}"),
        }
    }

    #[test]
    fn slots_follow_iterations_threads_and_memory() {
        assert_eq!(divided(&[(false, 0)], &[1 << 20, 0, 0, 64], None), Ok(vec![100_000]));
        assert_eq!(divided(&[(false, 0)], &[100, 0, 0, 64], None), Ok(vec![100]));
        assert_eq!(divided(&[(true, 0)], &[100, 0, 0, 64], None), Ok(vec![1]));
        assert_eq!(divided(&[(false, 0)], &[0, 0, 7, 0], None), Ok(vec![0]));
        assert_eq!(divided(&[(false, 0)], &[50, 0, 0, 0], Some(0)), Ok(vec![50]));
        // 24 bytes an iteration; branches that run at the same time share the limit.
        assert_eq!(divided(&[(false, 0)], &[1000, 0, 1, 4], Some(240)), Ok(vec![10]));
        assert_eq!(
            divided(&[(false, 0), (false, 1)], &[1000, 0, 1, 4, 9, 0, 1, 4], Some(240)),
            Ok(vec![5, 5])
        );
        assert_eq!(divided(&[(false, 0)], &[1000, 0, 1, 4], Some(23)), Err(24));
        // No count wraps.
        assert_eq!(divided(&[(false, 0)], &[1000, 0, 1 << 60, i64::MAX], None), Err(u64::MAX));
    }

    #[test]
    fn arrays_that_hold_whatever_may_be_needed() {
        let arrays = |scalars: &[(usize, Scalar)]| {
            let arrays = scalars.iter().map(|&(branch, scalar)| TapeArray { branch, scalar, param: 0 });
            let branches = scalars.iter().map(|&(branch, _)| branch + 1).max().unwrap_or(0);
            TapeParams { arrays: arrays.collect(), branches, ..TapeParams::default() }
        };
        let (one, apart) = (arrays(&[(0, Scalar::F64)]), arrays(&[(0, Scalar::F64), (1, Scalar::F32)]));
        let both = arrays(&[(0, Scalar::F64), (0, Scalar::F32)]);
        // All of the limit, and no more; branches have their shares of it.
        assert_eq!(full_arrays(&one, Some(130), 1 << 20), Some(vec![16]));
        assert_eq!(full_arrays(&apart, Some(130), 1 << 20), Some(vec![8, 16]));
        assert_eq!(full_arrays(&one, Some(1 << 16), (1 << 20) - 1), None);
        // Which of two an iteration needs more of is not known, and both together would be more than was asked for.
        assert_eq!(full_arrays(&both, Some(130), 1 << 20), None);
        assert_eq!(full_arrays(&both, None, 1 << 37), Some(vec![1 << 27, 1 << 28]));
        assert_eq!(full_arrays(&both, None, 1 << 34), None);
        assert_eq!(full_arrays(&one, None, 1 << 34), Some(vec![1 << 27]));
    }

    #[test]
    fn those_that_keep_nothing_have_no_memory() {
        let memory = |points, keepers| LoopMemory {
            points,
            cells: vec![(Scalar::F32, 64)],
            keepers: Some(keepers),
            slots: 0,
            at_once: 0,
            branch: 0,
        };
        let claims = Some(octants_passes::ClaimParams { columns: None, tickets: 2 });
        let taped = TapedLoop { slots: None, in_order: false, branch: 0, claims };
        let divided = |points, keepers, limit| slots(&taped, &memory(points, keepers), 100_000, limit).ok();
        assert_eq!(divided(1 << 20, 1000, 1 << 30), Some((1000, 100_000)));
        // As many as run at once, or more, or more than there is memory for: each that runs has memory.
        assert_eq!(divided(1 << 20, 100_000, 1 << 30), Some((100_000, 100_000)));
        assert_eq!(divided(1 << 20, 1000, 256 * 999), Some((999, 999)));
        assert_eq!(divided(50, 3, 1 << 30), Some((3, 50)));
        assert_eq!(divided(50, 0, 1 << 30), Some((0, 50)));
    }
}
