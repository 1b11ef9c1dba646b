//! How a task's code expects its points to be dealt to threads.

/// What a compiler for a GPU tells the device that launches its code. A device whose threads take chunks of points ignores it.
///
/// Any number of blocks is right: code whose blocks are fewer than there is work goes on from block to block. The device picks the
/// number, by the points of a launch and by what it has.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct LaunchShape {
    /// Threads of a block.
    pub block: u32,
    pub dealing: Dealing,
    pub grid: Grid,
    /// Bytes of memory that the threads of a block share, apart from what the code declares itself.
    pub shared_bytes: u32,
}

/// Which points a block takes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Dealing {
    /// One for each of its threads, numbered along the flattened iteration space. The code is right for blocks of any size.
    Points,
    /// A rectangle of the last two axes, or of the last one where there is no other. Columns are cut at multiples of their number,
    /// rows from the first on. The code is right only for blocks of exactly the shape's size.
    Tiles { rows: u32, columns: u32 },
}

/// How many blocks are best.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Grid {
    /// One for each piece of work.
    Cover,
    /// As many as the device runs at once: a block has something to begin or to end with, such as a reduction.
    Resident,
}

impl Default for LaunchShape {
    fn default() -> Self {
        Self { block: 256, dealing: Dealing::Points, grid: Grid::Cover, shared_bytes: 0 }
    }
}

impl LaunchShape {
    /// How many blocks there are work for; `bounds` has `lo` and `hi` of each axis, and no axis is empty.
    pub fn blocks(&self, bounds: &[i64], points: u64) -> u64 {
        let Dealing::Tiles { rows, columns } = self.dealing else {
            return points.div_ceil(self.block.into());
        };
        let extent = |axis: &[i64]| axis[1].abs_diff(axis[0]);
        let mut axes = bounds.chunks_exact(2).rev();
        let columns = axes.next().map_or(1, |axis| {
            let columns = i64::from(columns);
            ((axis[1] - 1).div_euclid(columns) - axis[0].div_euclid(columns) + 1) as u64
        });
        let rows = axes.next().map_or(1, |axis| extent(axis).div_ceil(rows.into()));
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
        let line = LaunchShape { dealing: Dealing::Tiles { rows: 1, columns: 1024 }, ..points };
        assert_eq!(line.blocks(&[0, 1024], 1024), 1);
        assert_eq!(line.blocks(&[0, 1025], 1025), 2);
        assert_eq!(line.blocks(&[1, 1025], 1024), 2, "columns are cut at multiples of 1024");
        assert_eq!(line.blocks(&[-1, 1], 2), 2);
        let tiles = LaunchShape { dealing: Dealing::Tiles { rows: 8, columns: 128 }, ..points };
        assert_eq!(tiles.blocks(&[1, 16383, 1, 16383], 16382 * 16382), 2048 * 128);
        assert_eq!(tiles.blocks(&[3, 5, 0, 9, 0, 129], 2 * 9 * 129), 2 * 2 * 2);
    }
}
