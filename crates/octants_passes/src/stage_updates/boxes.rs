//! How many iterations a block takes along each axis of a loop.

use super::Tile;
use super::reach::Nest;

/// Bytes of the tiles of a block. Chosen, not measured: with 227 KiB for each core, seven blocks of 256 threads run there at once.
const MOST_BYTES: u64 = 32 << 10;
/// Elements of a tile for each thread, without those around a block's own. Chosen, not measured: few are around as many as that.
const ELEMENTS_OF_THREAD: u64 = 4;
/// Fewest elements of a tile.
const LEAST_ELEMENTS: u64 = 32;
/// Iterations of a thread. Chosen, not measured.
const POINTS_OF_THREAD: u64 = 64;
/// An axis of so few iterations is a digit, and is not cut.
const MOST_DIGITS: u64 = 16;
/// Iterations along an axis that no index grows with. Chosen, not measured: each is one more update of the same elements.
const ALONG_OTHERS: u64 = 16;
/// So many updates are done for each element of a tile at least. Chosen, not measured: each element is cleared, loaded, and added once to the array.
const LEAST_UPDATES: u64 = 2;

/// Iterations of a block, by axis, and which axes follow each other slower than the others do.
pub(super) struct Boxes {
    pub sizes: Vec<u32>,
    /// Axes, the slowest first: those that no index grows with, so that neighbouring threads add to different elements.
    pub order: Vec<usize>,
}

impl Boxes {
    /// Boxes for these tiles, of which those stay that pay; none if none does.
    pub fn choose(nest: &Nest<'_>, tiles: &mut Vec<Tile>, threads: u32) -> Option<Self> {
        let threads = u64::from(threads);
        let mut elements = ELEMENTS_OF_THREAD * threads;
        while elements >= LEAST_ELEMENTS {
            let (used, sizes) = sizes(nest, tiles, elements, POINTS_OF_THREAD * threads);
            let points: u64 = sizes.iter().map(|&size| u64::from(size)).product();
            let before = tiles.len();
            tiles.retain(|tile| pays(tile, &sizes, points));
            if tiles.is_empty() {
                return None;
            }
            let bytes: u64 = tiles
                .iter()
                .map(|tile| tile.elements(&sizes).saturating_mul(tile.scalar.bytes().into()))
                .fold(0, u64::saturating_add);
            if tiles.len() == before && bytes <= MOST_BYTES {
                let (mut order, mut fast): (Vec<_>, Vec<_>) = (0..sizes.len()).partition(|&axis| !used[axis]);
                order.append(&mut fast);
                return Some(Self { sizes, order });
            }
            if tiles.len() == before {
                elements /= 2;
            }
        }
        None
    }
}

impl Tile {
    /// How many elements it has.
    pub fn elements(&self, sizes: &[u32]) -> u64 {
        let components = self.components.iter().map(|&count| u64::from(count));
        let widths = self.axes.iter().map(|axis| axis.width(sizes));
        components.chain(widths).fold(1, u64::saturating_mul)
    }
}

fn pays(tile: &Tile, sizes: &[u32], points: u64) -> bool {
    let updates = tile.updates.iter().map(|update| update.times).fold(0, u64::saturating_add);
    let grows = tile.axes.iter().any(|axis| !axis.axes.is_empty());
    grows && updates.saturating_mul(points) >= tile.elements(sizes).saturating_mul(LEAST_UPDATES)
}

/// Which axes indices grow with, and how many iterations there are along each axis.
fn sizes(nest: &Nest<'_>, tiles: &[Tile], most: u64, most_points: u64) -> (Vec<bool>, Vec<u32>) {
    let extents: Vec<_> =
        nest.ranges.iter().map(|range| range.map(|(first, last)| last.abs_diff(first) + 1)).collect();
    let mut used = vec![false; extents.len()];
    for &(axis, _) in tiles.iter().flat_map(|tile| &tile.axes).flat_map(|axis| &axis.axes) {
        used[axis] = true;
    }
    let mut sizes = vec![1_u64; extents.len()];
    let mut points = 1_u64;
    for axis in (0..extents.len()).rev().filter(|&axis| used[axis]) {
        if let Some(extent) = extents[axis].filter(|&extent| extent <= MOST_DIGITS && points * extent <= most)
        {
            sizes[axis] = extent;
            points *= extent;
        }
    }
    // The shortest side grows, the last of those first.
    loop {
        let grows = |&axis: &usize| used[axis] && extents[axis].is_none_or(|extent| sizes[axis] < extent);
        let Some(axis) = (0..extents.len()).rev().filter(grows).min_by_key(|&axis| sizes[axis]) else {
            break;
        };
        let size = extents[axis].map_or(2 * sizes[axis], |extent| extent.min(2 * sizes[axis]));
        let more = points / sizes[axis] * size;
        if more > most {
            break;
        }
        (sizes[axis], points) = (size, more);
    }
    for axis in (0..extents.len()).rev().filter(|&axis| !used[axis]) {
        let along = extents[axis].map_or(ALONG_OTHERS, |extent| extent.min(4 * ALONG_OTHERS));
        let along = along.min(most_points / points).max(1);
        sizes[axis] = along;
        points *= along;
    }
    (used, sizes.into_iter().map(|size| size as u32).collect())
}
