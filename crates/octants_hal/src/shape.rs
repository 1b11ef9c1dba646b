//! How a task's code expects its points to be dealt to threads.

use serde::{Deserialize, Serialize};

/// What a compiler for a GPU tells the device that launches its code. A device whose threads take chunks of points ignores it.
///
/// Any number of blocks is right: code whose blocks are fewer than there is work goes on from block to block. The device picks the
/// number, by the points of a launch and by what it has.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct LaunchShape {
    /// Threads of a block.
    pub block: u32,
    pub mapping: PointMapping,
    pub grid: Grid,
    /// Bytes of memory that the threads of a block share, apart from what the code declares itself.
    pub shared_bytes: u32,
    /// Functions call themselves: a thread needs as much stack as the device can give to all.
    pub deep_stack: bool,
    /// The code itself waits, before anything else, until the launch before it on its stream is over: the device may begin it earlier.
    pub waits: bool,
}

/// Which points a block takes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum PointMapping {
    /// One for each of its threads, numbered along the flattened iteration space. The code is right for blocks of any size.
    Points,
    /// A tile: a rectangle of the last two axes, or a piece of a single one. Each thread has so many `points` of the last axis in so many
    /// `rows` of the one before it, and so many threads, at most, lie `across`: as many as the axis needs, rounded up to a power of two; of a single axis all threads.
    /// Columns are counted from a multiple of [`LaunchShape::COLUMN_ALIGNMENT`] on. The code is right only for blocks of exactly the
    /// shape's size.
    Tiles { across: u32, points: u32, rows: u32 },
}

/// How many blocks are best.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Grid {
    /// One for each piece of work.
    Cover,
    /// One for each piece of work, or for several, one behind the other, as long as the device is busy for long enough: where a block begins takes
    /// as long as a short piece.
    Several,
    /// As many as the device runs at once: a block has something to begin or to end with, such as a reduction.
    Resident,
}

impl Default for LaunchShape {
    fn default() -> Self {
        Self {
            block: 256,
            mapping: PointMapping::Points,
            grid: Grid::Cover,
            shared_bytes: 0,
            deep_stack: false,
            waits: false,
        }
    }
}

impl LaunchShape {
    /// Where columns of tiles may begin: so that a warp's accesses to elements of four bytes begin with a line of the cache.
    pub const COLUMN_ALIGNMENT: i64 = 32;

    /// How many blocks there is work for; `bounds` has `lo` and `hi` of each axis, and no axis is empty.
    pub fn blocks(&self, bounds: &[i64], points: u64) -> u64 {
        let PointMapping::Tiles { across: most_across, points, rows } = self.mapping else {
            return points.div_ceil(self.block.into());
        };
        let extent = |axis: &[i64]| axis[1].abs_diff(axis[0]);
        let mut axes = bounds.chunks_exact(2).rev();
        let Some(last) = axes.next() else { return 1 };
        let length = last[1].abs_diff(last[0] & -Self::COLUMN_ALIGNMENT);
        let Some(row_axis) = axes.next() else {
            return length.div_ceil(u64::from(self.block) * u64::from(points));
        };
        let groups = length.div_ceil(points.into());
        let across = groups.next_power_of_two().min(most_across.into());
        let columns = groups.div_ceil(across);
        let rows = extent(row_axis).div_ceil((u64::from(self.block) / across).max(1) * u64::from(rows));
        axes.fold(columns.saturating_mul(rows), |blocks, axis| blocks.saturating_mul(extent(axis)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_cover_the_points() {
        let points = LaunchShape::default();
        assert_eq!(points.blocks(&[0, 1000], 1000), 4);
        let line = LaunchShape { mapping: PointMapping::Tiles { across: 32, points: 4, rows: 1 }, ..points };
        assert_eq!(line.blocks(&[0, 1024], 1024), 1);
        assert_eq!(line.blocks(&[0, 1025], 1025), 2);
        assert_eq!(line.blocks(&[1, 1025], 1024), 2, "columns are counted from 0");
        assert_eq!(line.blocks(&[32, 1056], 1024), 1);
        assert_eq!(line.blocks(&[-1, 1], 2), 1);
    }

    #[test]
    fn tiles_of_short_rows_have_more_of_them() {
        let tiles = LaunchShape {
            mapping: PointMapping::Tiles { across: 32, points: 4, rows: 1 },
            ..LaunchShape::default()
        };
        assert_eq!(tiles.blocks(&[1, 16383, 1, 16383], 16382 * 16382), 2048 * 128);
        assert_eq!(tiles.blocks(&[3, 5, 0, 9, 0, 129], 2 * 9 * 129), 2 * 2 * 2);
        assert_eq!(tiles.blocks(&[0, 1000, 0, 3], 3000), 4);
        assert_eq!(tiles.blocks(&[0, 1000, 0, 5], 5000), 8);
        // More points than 31 bits count, and more tiles.
        assert_eq!(tiles.blocks(&[0, 5, 0, 429_496_731], 5 * 429_496_731), 3_355_444);
        let most = i64::from(i32::MAX);
        assert_eq!(tiles.blocks(&[-most, most, -most, most], u64::MAX), 1 << 54);
        let twice = LaunchShape { mapping: PointMapping::Tiles { across: 32, points: 4, rows: 2 }, ..tiles };
        assert_eq!(twice.blocks(&[0, 33, 0, 129], 33 * 129), 3 * 2);
    }
}
