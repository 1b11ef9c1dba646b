//! From a task's [`LaunchShape`] to a grid: how many blocks a launch has, by its points, and by what the device runs at once.

use octants_hal::{DeviceRangeDomain, Grid, LaunchShape, PointMapping, RangeDomain};

/// Blocks of a grid, at most, as the driver says for its first axis.
const MAX_BLOCKS: u64 = i32::MAX as u64;

/// Pieces of work that a block takes one behind the other, at most. A Julia set of 8192² pixels runs at 69.8, 79.0, 81.0, 81.5, 81.0 and
/// 81.4 Gpix/s on an H200 with 1, 4, 8, 12, 16 and 24 of them.
const MOST_PIECES: u64 = 12;
/// So many times as many blocks as run at once are left then, so that those that end late do not matter. The same Julia set has 20.
const LEAST_WAVES: u64 = 8;

/// A loaded function as a launch needs it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct FunctionShape {
    pub shape: LaunchShape,
    /// Blocks of the shape's size that all multiprocessors together run at once; at least 1.
    pub resident: u64,
}

/// Blocks, and threads of each.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct GridSize {
    pub blocks: u32,
    pub threads: u32,
}

impl GridSize {
    /// A task that runs once.
    pub const ONE: Self = Self { blocks: 1, threads: 1 };
}

impl FunctionShape {
    pub fn grid(&self, range: &RangeDomain<'_>) -> GridSize {
        let blocks = self.shape.blocks(range.bounds, range.points);
        let blocks = match self.shape.grid {
            Grid::Cover => blocks,
            Grid::Several => {
                let pieces = blocks / self.resident.saturating_mul(LEAST_WAVES).max(1);
                blocks.div_ceil(pieces.clamp(1, MOST_PIECES))
            }
            Grid::Resident => blocks.min(self.resident),
        };
        self.limited(blocks, range.max_threads)
    }

    /// The host does not know how many points there are: enough blocks to keep the device busy.
    pub fn device_grid(&self, range: &DeviceRangeDomain<'_>) -> GridSize {
        self.limited(self.resident, range.max_threads)
    }

    fn limited(&self, blocks: u64, max_threads: Option<u32>) -> GridSize {
        let block = self.shape.block;
        let (most, threads) = match (max_threads, self.shape.mapping) {
            (None, _) => (MAX_BLOCKS, block),
            (Some(most), PointMapping::Points) => ((most / block).max(1).into(), most.clamp(1, block)),
            (Some(most), PointMapping::Tiles { .. }) => ((most / block).max(1).into(), block),
        };
        GridSize { blocks: blocks.min(most) as u32, threads }
    }
}
