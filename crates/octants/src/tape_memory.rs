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
/// Cells of an array: an index is an `i32`.
const MOST_CELLS: u64 = i32::MAX as u64;

/// What one loop needs, and what it gets.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LoopMemory {
    /// Its iterations.
    pub points: u64,
    /// Cells of each scalar that one iteration needs at most.
    pub cells: Vec<(Scalar, u64)>,
    /// How many iterations have memory at once.
    pub slots: u64,
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

/// Slots for each loop. `sizes` are what the sizing kernel said: of each loop its points, then the cells of each scalar.
pub(crate) fn divide(
    params: &TapeParams,
    scalars: &[Scalar],
    sizes: &[i64],
    threads: u64,
    limit: Option<u64>,
) -> Result<Vec<LoopMemory>, Error> {
    let limit = limit.unwrap_or(DEFAULT_LIMIT) / params.branches.max(1) as u64;
    let mut loops = needed(params, scalars, sizes);
    for (memory, taped) in loops.iter_mut().zip(&params.loops) {
        memory.slots = slots(taped, memory, threads, limit)?;
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
        memory.slots = memory.points.min(if taped.in_order { 1 } else { at_once });
    }
    loops
}

/// What the loops need, before they get something.
fn needed(params: &TapeParams, scalars: &[Scalar], sizes: &[i64]) -> Vec<LoopMemory> {
    let amount = |size: i64| u64::try_from(size).unwrap_or(0);
    let loops = params.loops.iter().zip(sizes.chunks_exact(1 + scalars.len()));
    loops
        .map(|(taped, sizes)| {
            let cells = sizes[1..].iter().map(|&cells| amount(cells));
            let cells = scalars.iter().copied().zip(cells).filter(|&(_, cells)| cells > 0).collect();
            LoopMemory { points: amount(sizes[0]), cells, slots: 0, branch: taped.branch }
        })
        .collect()
}

fn slots(taped: &TapedLoop, memory: &LoopMemory, threads: u64, limit: u64) -> Result<u64, Error> {
    let wanted = if taped.in_order { 1 } else { threads.max(LEAST_SLOTS) };
    let bytes = memory.bytes_of_iteration();
    if bytes == 0 {
        return Ok(memory.points.min(wanted));
    }
    let most = memory.cells.iter().map(|&(_, cells)| cells).max().unwrap_or(1);
    let fitting = (limit / bytes).min(MOST_CELLS / most);
    if fitting == 0 && memory.points > 0 {
        return Err(Error::TapeLimit { bytes, limit });
    }
    Ok(memory.points.min(wanted).min(fitting))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn divided(loops: &[(bool, usize)], sizes: &[i64], limit: Option<u64>) -> Result<Vec<u64>, u64> {
        let loops = loops.iter().map(|&(in_order, branch)| TapedLoop { slots: 0, in_order, branch });
        let loops: Vec<_> = loops.collect();
        let branches = loops.iter().map(|taped| taped.branch + 1).max().unwrap_or(0);
        let params = TapeParams { loops, arrays: Vec::new(), branches };
        let scalars = [Scalar::F64, Scalar::F32];
        match divide(&params, &scalars, sizes, 100_000, limit) {
            Ok(divided) => Ok(divided.into_iter().map(|memory| memory.slots).collect()),
            Err(Error::TapeLimit { bytes, .. }) => Err(bytes),
            Err(other) => panic!("{other}"),
        }
    }

    #[test]
    fn slots_follow_iterations_threads_and_memory() {
        assert_eq!(divided(&[(false, 0)], &[1 << 20, 0, 64], None), Ok(vec![100_000]));
        assert_eq!(divided(&[(false, 0)], &[100, 0, 64], None), Ok(vec![100]));
        assert_eq!(divided(&[(true, 0)], &[100, 0, 64], None), Ok(vec![1]));
        assert_eq!(divided(&[(false, 0)], &[0, 7, 0], None), Ok(vec![0]));
        assert_eq!(divided(&[(false, 0)], &[50, 0, 0], Some(0)), Ok(vec![50]));
        // 24 bytes an iteration; branches that run at the same time share the limit.
        assert_eq!(divided(&[(false, 0)], &[1000, 1, 4], Some(240)), Ok(vec![10]));
        assert_eq!(divided(&[(false, 0), (false, 1)], &[1000, 1, 4, 9, 1, 4], Some(240)), Ok(vec![5, 5]));
        assert_eq!(divided(&[(false, 0)], &[1000, 1, 4], Some(23)), Err(24));
        // No count wraps.
        assert_eq!(divided(&[(false, 0)], &[1000, 1 << 60, i64::MAX], None), Err(u64::MAX));
    }
}
