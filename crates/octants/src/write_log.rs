//! Who wrote what since when: by it a derivative finds out whether memory still holds what the kernel saw.
//!
//! A log has entries with ascending numbers, one for each launch or write of the host. Of each it knows which boxes of which arrays it may have
//! written; later writes of a box stand for earlier ones of the same. Nothing here looks at memory: a write through an alias that nobody told of is not known.

use std::collections::BTreeMap;

use octants_ir::plan::{ArgLayout, ArgSlot, read_integer};
use octants_ir::{ArrayType, Boundary, Kernel, Layout, Scalar};
use octants_passes::analysis::{Footprint, Interval, Touched};

/// A part of an array's memory: a box of indices.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Region {
    pub array: ArrayMemory,
    /// One for each axis; none if it is all of the array.
    pub indices: Vec<Interval>,
}

/// Where an array lies.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct ArrayMemory {
    /// Of the element with index 0 everywhere; of a field, of its first one.
    pub first: u64,
    /// Of one element.
    pub bytes: u64,
    pub kind: MemoryKind,
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum MemoryKind {
    /// Elements of other fields may lie between its own. So many bytes from its first element to the end of its last.
    Field { span: u64 },
    /// Extents and strides in bytes of all axes.
    Array { extents: Vec<i64>, strides: Vec<i64> },
}

impl Region {
    pub fn all(array: ArrayMemory) -> Self {
        Self { array, indices: Vec::new() }
    }

    fn overlaps(&self, other: &Self) -> bool {
        let (a, b) = (&self.array, &other.array);
        let meet = |shift: i64| {
            let mut axes = self.indices.iter().zip(&other.indices).enumerate();
            // Where one is all of the array, nothing keeps them apart.
            axes.all(|(axis, (&mine, &theirs))| {
                let shift = if axis == 0 { shift } else { 0 };
                let theirs = Interval {
                    first: theirs.first.saturating_add(shift),
                    last: theirs.last.saturating_add(shift),
                };
                mine.meets(theirs)
            })
        };
        match (&a.kind, &b.kind) {
            (MemoryKind::Field { .. }, MemoryKind::Field { .. }) => {
                // Fields overlap if their first elements do: one is an entry of the other.
                a.first < b.first + b.bytes && b.first < a.first + a.bytes && meet(0)
            }
            (MemoryKind::Array { strides: mine, .. }, MemoryKind::Array { strides: theirs, .. }) => {
                let ((begin, end), (other_begin, other_end)) = (self.range(), other.range());
                if begin >= other_end || other_begin >= end {
                    return false;
                }
                // A view begins some elements of its first axis behind the array.
                let distance = b.first.wrapping_sub(a.first).cast_signed();
                match mine.first() {
                    Some(&stride) if mine == theirs && stride != 0 && distance % stride == 0 => {
                        meet(distance / stride)
                    }
                    _ => true,
                }
            }
            (MemoryKind::Field { .. }, MemoryKind::Array { .. })
            | (MemoryKind::Array { .. }, MemoryKind::Field { .. }) => {
                let ((begin, end), (other_begin, other_end)) = (self.range(), other.range());
                begin < other_end && other_begin < end
            }
        }
    }

    /// Where the elements lie, in bytes behind the first one. A field's are where its layout says.
    pub(crate) fn elements(&self, layout: Option<&Layout>) -> Vec<i64> {
        let axes: Vec<(i64, i64)> = match (&self.array.kind, layout) {
            (MemoryKind::Array { extents, .. }, _) => extents.iter().map(|&extent| (0, extent)).collect(),
            (MemoryKind::Field { .. }, Some(layout)) => {
                let axes = layout.origin.iter().zip(&layout.shape);
                axes.map(|(&first, &extent)| (first.into(), i64::from(extent))).collect()
            }
            (MemoryKind::Field { .. }, None) => return Vec::new(),
        };
        let mut found: Vec<Vec<i64>> = vec![Vec::new()];
        for (axis, &(first, extent)) in axes.iter().enumerate() {
            let wanted = self.indices.get(axis).copied().unwrap_or(Interval::ANY);
            let range = wanted.first.max(first)..=wanted.last.min(first + extent - 1);
            found = found
                .into_iter()
                .flat_map(|index| range.clone().map(move |i| index.iter().copied().chain([i]).collect()))
                .collect();
        }
        let offset = |index: Vec<i64>| match (&self.array.kind, layout) {
            (MemoryKind::Array { strides, .. }, _) => {
                Some(index.iter().zip(strides).map(|(&index, &stride)| index.wrapping_mul(stride)).sum())
            }
            (MemoryKind::Field { .. }, layout) => layout?.offset_of(&index).map(u64::cast_signed),
        };
        found.into_iter().filter_map(offset).collect()
    }

    /// The lowest byte, and the end of the highest.
    pub(crate) fn range(&self) -> (u64, u64) {
        let ArrayMemory { first, bytes, kind } = &self.array;
        let (extents, strides) = match kind {
            MemoryKind::Field { span } => return (*first, first + span),
            MemoryKind::Array { extents, strides } => (extents, strides),
        };
        let (mut below, mut above) = (0_i64, bytes.cast_signed());
        for (axis, (&extent, &stride)) in extents.iter().zip(strides).enumerate() {
            if extent == 0 {
                return (*first, *first);
            }
            let last = extent - 1;
            let (from, to) = match self.indices.get(axis) {
                Some(index) => (index.first.clamp(0, last), index.last.clamp(0, last)),
                None => (0, last),
            };
            let (from, to) = (from.wrapping_mul(stride), to.wrapping_mul(stride));
            below = below.wrapping_add(from.min(to));
            above = above.wrapping_add(from.max(to));
        }
        (first.wrapping_add_signed(below), first.wrapping_add_signed(above))
    }
}

impl ArrayMemory {
    /// An array in a block of arguments.
    pub(crate) fn of(kernel: &Kernel, slot: &ArgSlot, array: ArrayType, block: &[u8]) -> Self {
        let first = read_integer(block, slot.offset, Scalar::I64).cast_unsigned();
        let bytes = u64::from(slot.bytes);
        if kernel.layout(array).is_some() {
            return Self { first, bytes, kind: MemoryKind::Field { span: slot.span } };
        }
        let extents: Vec<_> =
            (0..array.rank).map(|axis| read_integer(block, slot.extent_offset(axis), Scalar::I32)).collect();
        let strides = if array.has_strides() {
            let scalar = i64::from(array.elem.elem().map_or(1, Scalar::bytes));
            let stride = |axis| read_integer(block, slot.stride_offset(axis), Scalar::I64);
            (0..array.rank).map(|axis| stride(axis).wrapping_mul(scalar)).collect()
        } else {
            let mut strides = vec![0; extents.len()];
            let mut next = bytes.cast_signed();
            let axes: Vec<usize> = array.order.axes(extents.len()).collect();
            for &axis in axes.iter().rev() {
                strides[axis] = next;
                next = next.wrapping_mul(extents[axis]);
            }
            strides
        };
        Self { first, bytes, kind: MemoryKind::Array { extents, strides } }
    }
}

/// The parts of its parameters that a launch with this block of arguments touches, where `wanted` says so.
pub(crate) fn regions(
    kernel: &Kernel,
    footprint: &Footprint,
    layout: &ArgLayout,
    block: &[u8],
    wanted: impl Fn(&Touched) -> bool,
) -> Vec<(usize, Region)> {
    let param = |number: usize| match layout.leaves[number][..] {
        [(offset, scalar)] if scalar.is_integral() => {
            Some(read_integer(block, layout.slots[number].offset + offset, scalar))
        }
        _ => None,
    };
    let extent = |number: usize, axis: u8| match layout.slots[number].array() {
        Some(array) => match kernel.layout(array) {
            Some(layout) => layout.shape[usize::from(axis)].into(),
            None => read_integer(block, layout.slots[number].extent_offset(axis), Scalar::I32),
        },
        None => 0,
    };
    let mut found = Vec::new();
    for touched in footprint.touched.iter().filter(|touched| wanted(touched)) {
        let slot = &layout.slots[touched.param];
        let Some(array) = slot.array() else { continue };
        let mut indices: Vec<_> =
            touched.indices.iter().map(|index| index.evaluate(&param, &extent)).collect();
        if array.boundary == Boundary::Clamp {
            for (axis, index) in indices.iter_mut().enumerate() {
                let last = (extent(touched.param, axis as u8) - 1).max(0);
                *index = Interval { first: index.first.clamp(0, last), last: index.last.clamp(0, last) };
            }
        }
        if indices.iter().any(|index| index.last < index.first) {
            continue;
        }
        let one = (touched.param, Region { array: ArrayMemory::of(kernel, slot, array, block), indices });
        if !found.contains(&one) {
            found.push(one);
        }
    }
    found
}

/// Writes, by the arrays that they were to.
#[derive(Debug, Default)]
pub struct WriteLog {
    /// Who wrote, by number.
    writers: Vec<String>,
    /// Writes whose derivatives are taken care of.
    recorded: BTreeMap<ArrayMemory, ArrayWrites>,
    /// All others.
    unrecorded: BTreeMap<ArrayMemory, ArrayWrites>,
}

/// The boxes of one array that were written, each with the last number. Those of one index along the first axis are found by it: programs
/// that keep all steps of a simulation write a row at a time.
#[derive(Debug, Default)]
struct ArrayWrites {
    rows: BTreeMap<i64, Vec<(Vec<Interval>, usize)>>,
    others: Vec<(Vec<Interval>, usize)>,
}

impl WriteLog {
    /// How many entries there are: the number of the next one.
    pub fn entries(&self) -> usize {
        self.writers.len()
    }

    /// A new entry. `recorded` says whether somebody sees to the derivative of the write.
    pub fn add(&mut self, writer: String, recorded: bool, regions: impl IntoIterator<Item = Region>) {
        let number = self.writers.len();
        self.writers.push(writer);
        let arrays = if recorded { &mut self.recorded } else { &mut self.unrecorded };
        for Region { array, indices } in regions {
            let writes = arrays.entry(array).or_default();
            let list = match indices.first() {
                Some(index) if index.first == index.last => writes.rows.entry(index.first).or_default(),
                _ => &mut writes.others,
            };
            match list.iter_mut().find(|(known, _)| *known == indices) {
                Some((_, last)) => *last = number,
                None => list.push((indices, number)),
            }
        }
    }

    /// Who wrote to the region in an entry from `number` on, if somebody did.
    pub fn writer_since(&self, number: usize, region: &Region) -> Option<&str> {
        self.search(&self.recorded, number, region).or_else(|| self.unrecorded_writer_since(number, region))
    }

    /// Likewise, of writes whose derivatives nobody sees to.
    pub fn unrecorded_writer_since(&self, number: usize, region: &Region) -> Option<&str> {
        self.search(&self.unrecorded, number, region)
    }

    fn search(
        &self,
        arrays: &BTreeMap<ArrayMemory, ArrayWrites>,
        number: usize,
        region: &Region,
    ) -> Option<&str> {
        let row = region.indices.first().filter(|index| index.first == index.last).map(|index| index.first);
        for (array, writes) in arrays {
            let same = *array == region.array;
            let rows = writes.rows.values().filter(|_| !same || row.is_none()).flatten();
            let exactly = row.filter(|_| same).and_then(|row| writes.rows.get(&row)).into_iter().flatten();
            let candidates = rows.chain(exactly).chain(&writes.others);
            for (indices, last) in candidates.filter(|(_, last)| *last >= number) {
                let written = Region { array: array.clone(), indices: indices.clone() };
                if written.overlaps(region) {
                    return Some(&self.writers[*last]);
                }
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(first: u64, indices: &[(i64, i64)]) -> Region {
        let kind = MemoryKind::Array { extents: vec![10, 4], strides: vec![16, 4] };
        let indices = indices.iter().map(|&(first, last)| Interval { first, last }).collect();
        Region { array: ArrayMemory { first, bytes: 4, kind }, indices }
    }

    #[test]
    fn rows_columns_views_and_neighbours_are_told_apart() {
        let mut log = WriteLog::default();
        let base = 4096;
        log.add("row 3".to_owned(), true, [rows(base, &[(3, 3), (0, 3)])]);
        log.add("column 2".to_owned(), false, [rows(base, &[(5, 9), (2, 2)])]);
        let asked = |since, region: Region| log.writer_since(since, &region);
        assert_eq!(asked(0, rows(base, &[(3, 3), (1, 1)])), Some("row 3"));
        assert_eq!(asked(0, rows(base, &[(2, 2), (0, 3)])), None);
        assert_eq!(asked(0, rows(base, &[(0, 4), (2, 2)])), Some("row 3"));
        assert_eq!(asked(0, rows(base, &[(6, 6), (0, 1)])), None);
        assert_eq!(asked(0, rows(base, &[(6, 6), (0, 2)])), Some("column 2"));
        assert_eq!(asked(0, rows(base, &[])), Some("row 3"));
        assert_eq!(asked(1, rows(base, &[(3, 3), (0, 3)])), None);
        assert_eq!(asked(2, rows(base, &[])), None);
        assert_eq!(log.unrecorded_writer_since(0, &rows(base, &[(3, 3)])), None);
        // A view that begins with row 2: its row 1 is row 3.
        assert_eq!(asked(0, rows(base + 32, &[(1, 1), (0, 3)])), Some("row 3"));
        assert_eq!(asked(0, rows(base + 32, &[(2, 2), (0, 1)])), None);
        assert_eq!(asked(0, rows(base + 160, &[])), None);
    }

    #[test]
    fn entries_of_a_field_overlap_it_and_its_neighbours_do_not() {
        let field = |first, bytes, row| Region {
            array: ArrayMemory { first, bytes, kind: MemoryKind::Field { span: 400 } },
            indices: vec![Interval::one(row)],
        };
        let mut log = WriteLog::default();
        log.add("vectors".to_owned(), true, [field(1000, 12, 7)]);
        assert_eq!(log.writer_since(0, &field(1004, 4, 7)), Some("vectors"));
        assert_eq!(log.writer_since(0, &field(1004, 4, 6)), None);
        assert_eq!(log.writer_since(0, &field(1012, 4, 7)), None);
    }
}
