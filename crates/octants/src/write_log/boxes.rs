//! Boxes of indices that were written, found by where they lie.

use std::collections::BTreeMap;

use octants_passes::analysis::Interval;

use super::strided::Shift;
use super::{ArrayMemory, MemoryKind, Region};

/// The last writes of boxes, by the arrays that they were to.
#[derive(Debug, Default)]
pub(super) struct Writes {
    arrays: BTreeMap<ArrayMemory, BoxTree>,
    /// Ranges of bytes that are apart from each other, by where they begin: the end of each, and the arrays there.
    clusters: BTreeMap<u64, (u64, Vec<ArrayMemory>)>,
}

impl Writes {
    pub(super) fn add(&mut self, region: Region, number: usize) {
        let Region { array, indices } = within_extents(region);
        if !self.arrays.contains_key(&array) {
            self.add_array(array.clone());
        }
        self.arrays.entry(array).or_default().add(&indices, number);
    }

    fn add_array(&mut self, array: ArrayMemory) {
        let (mut begin, mut end) = Region::all(array.clone()).range();
        let mut arrays = vec![array];
        let met: Vec<u64> = self.overlapping(begin, end).map(|(&first, _)| first).collect();
        for first in met {
            let Some((last, others)) = self.clusters.remove(&first) else { continue };
            (begin, end) = (begin.min(first), end.max(last));
            arrays.extend(others);
        }
        self.clusters.insert(begin, (end, arrays));
    }

    /// The clusters that share bytes with a range.
    fn overlapping(&self, begin: u64, end: u64) -> impl Iterator<Item = (&u64, &(u64, Vec<ArrayMemory>))> {
        // What is apart ends in the order in which it begins. An empty array is where it begins.
        let below = self.clusters.range(..end.max(begin.saturating_add(1))).rev();
        below.take_while(move |(first, (last, _))| *last > begin || **first == begin)
    }

    /// The number of the last write of a box that overlaps the region, if that is not below `number`.
    pub(super) fn since(&self, number: usize, region: &Region) -> Option<usize> {
        let region = &within_extents(region.clone());
        let (begin, end) = region.range();
        for array in self.overlapping(begin, end).flat_map(|(_, (_, arrays))| arrays) {
            let Some(boxes) = self.arrays.get(array).filter(|boxes| boxes.latest >= number) else { continue };
            let asked = match same_indices(array, &region.array) {
                Shift::Apart => continue,
                Shift::By(shift) => Some(shifted(&region.indices, &shift)),
                Shift::Unknown => None,
            };
            let found = boxes.since(number, array, asked.as_deref(), &mut Vec::new(), region);
            if found.is_some() {
                return found;
            }
        }
        None
    }
}

/// Indices that an array has: what is outside counts as its edge.
fn within_extents(mut region: Region) -> Region {
    if let MemoryKind::Array { extents, .. } = &region.array.kind {
        for (index, &extent) in region.indices.iter_mut().zip(extents) {
            let last = (extent - 1).max(0);
            *index = Interval { first: index.first.clamp(0, last), last: index.last.clamp(0, last) };
        }
    }
    region
}

/// What the other's indices are in an array.
fn same_indices(of: &ArrayMemory, other: &ArrayMemory) -> Shift {
    match (&of.kind, &other.kind) {
        (MemoryKind::Field { .. }, MemoryKind::Field { .. }) => Shift::By(Vec::new()),
        _ => of.lattice().zip(other.lattice()).map_or(Shift::Unknown, |(of, other)| of.shift(&other)),
    }
}

fn shifted(indices: &[Interval], shift: &[i64]) -> Vec<Interval> {
    let by = shift.iter().copied().chain(std::iter::repeat(0));
    let moved = indices.iter().zip(by).map(|(index, by)| Interval {
        first: index.first.saturating_add(by),
        last: index.last.saturating_add(by),
    });
    moved.collect()
}

/// Boxes that are equal in the axes before one. In that axis they are found by their length, as a power of two, and by where they begin: those that meet an
/// interval begin no further before it than they are long.
#[derive(Debug, Default)]
struct BoxTree {
    lengths: BTreeMap<u32, BTreeMap<(i64, i64), BoxTree>>,
    /// The box that ends before this axis, which is all of the rest: the number of its last write.
    here: Option<usize>,
    /// The highest number.
    latest: usize,
}

impl BoxTree {
    fn add(&mut self, indices: &[Interval], number: usize) {
        self.latest = number;
        let Some((&Interval { first, last }, rest)) = indices.split_first() else {
            self.here = Some(number);
            return;
        };
        let length = last.saturating_sub(first).checked_ilog2().map_or(0, |log| log + 1);
        let same = self.lengths.entry(length).or_default();
        same.entry((first, last)).or_default().add(rest, number);
    }

    /// The number of a write, not below `number`, of a box that overlaps the region. `asked` are the region's indices in this array from this axis on; nothing if
    /// nobody can tell. `path` are those of the axes before.
    fn since(
        &self,
        number: usize,
        array: &ArrayMemory,
        asked: Option<&[Interval]>,
        path: &mut Vec<Interval>,
        region: &Region,
    ) -> Option<usize> {
        if self.latest < number {
            return None;
        }
        if let Some(entry) = self.here.filter(|&entry| entry >= number) {
            let written = Region { array: array.clone(), indices: path.clone() };
            if written.overlaps(region) {
                return Some(entry);
            }
        }
        let (index, rest) = match asked.and_then(<[_]>::split_first) {
            Some((&index, rest)) => (index, Some(rest)),
            None => (Interval::ANY, None),
        };
        for (&length, boxes) in &self.lengths {
            // So much at most from the first to the last index.
            let begin = match length {
                0..=62 => index.first.saturating_sub((1_i64 << length) - 1),
                _ => i64::MIN,
            };
            if index.last < begin {
                continue;
            }
            for (&(first, last), below) in boxes.range((begin, i64::MIN)..=(index.last, i64::MAX)) {
                if last < index.first {
                    continue;
                }
                path.push(Interval { first, last });
                let found = below.since(number, array, rest, path, region);
                path.pop();
                if found.is_some() {
                    return found;
                }
            }
        }
        None
    }
}
