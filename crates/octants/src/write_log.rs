//! Who wrote what since when: by it a derivative finds out whether memory still holds what the kernel saw.
//!
//! A log has entries with ascending numbers, one for each launch or write of the host. Of each it knows which boxes of which arrays it may have
//! written; later writes of a box stand for earlier ones of the same. Nothing here looks at memory: a write through an alias that nobody told of is not known.
//!
//! Law: **a question takes time with the logarithm of the number of writes**, whether the array was written or not: a way back through a program asks one for
//! each array of each launch.

use octants_ir::plan::{ArgLayout, ArgSlot, read_integer};
use octants_ir::{ArrayType, Boundary, Const, Kernel, Layout, Scalar};
use octants_passes::Told;
use octants_passes::analysis::{Course, Footprint, Index, Interval, Part, Touched};

mod boxes;
mod strided;

use boxes::Writes;
use strided::Lattice;

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

    /// Whether the two may share a byte.
    pub fn overlaps(&self, other: &Self) -> bool {
        let (a, b) = (&self.array, &other.array);
        match (&a.kind, &b.kind) {
            (MemoryKind::Field { .. }, MemoryKind::Field { .. }) => {
                // Fields overlap if their first elements do: one is an entry of the other. Where one is all of the field, nothing keeps them apart.
                let mut axes = self.indices.iter().zip(&other.indices);
                a.first < b.first + b.bytes
                    && b.first < a.first + a.bytes
                    && axes.all(|(&mine, &theirs)| mine.meets(theirs))
            }
            (MemoryKind::Array { .. }, MemoryKind::Array { .. })
            | (MemoryKind::Field { .. }, MemoryKind::Array { .. })
            | (MemoryKind::Array { .. }, MemoryKind::Field { .. }) => {
                let ((begin, end), (other_begin, other_end)) = (self.range(), other.range());
                begin < other_end
                    && other_begin < end
                    && a.lattice()
                        .zip(b.lattice())
                        .is_none_or(|(lattice, others)| lattice.meets(&self.indices, &others, &other.indices))
            }
        }
    }

    /// What is left of it without others, as boxes.
    pub fn without<'r>(self, others: impl IntoIterator<Item = &'r Self>) -> Vec<Self> {
        let mut left = vec![self];
        for other in others {
            left = left.into_iter().flat_map(|one| one.without_one(other)).collect();
        }
        left
    }

    fn without_one(self, other: &Self) -> Vec<Self> {
        let is_same_memory = match (&self.array.kind, &other.array.kind) {
            // An entry of a field is part of the field.
            (MemoryKind::Field { .. }, MemoryKind::Field { .. }) => {
                other.array.first <= self.array.first
                    && self.array.first + self.array.bytes <= other.array.first + other.array.bytes
            }
            _ => self.array == other.array,
        };
        if !is_same_memory {
            return if other.has_all_of(&self) { Vec::new() } else { vec![self] };
        }
        let mut left = Vec::new();
        let mut inside = self.indices.clone();
        for axis in 0..inside.len() {
            let Some(&taken) = other.indices.get(axis) else { continue };
            let mine = inside[axis];
            if !mine.meets(taken) {
                return vec![self];
            }
            let mut keep = |part: Interval| {
                let mut indices = inside.clone();
                indices[axis] = part;
                left.push(Self { array: self.array.clone(), indices });
            };
            if mine.first < taken.first {
                keep(Interval { first: mine.first, last: taken.first - 1 });
            }
            if taken.last < mine.last {
                keep(Interval { first: taken.last + 1, last: mine.last });
            }
            inside[axis] = Interval { first: mine.first.max(taken.first), last: mine.last.min(taken.last) };
        }
        // All of an array is left of it where only a part is taken.
        if self.indices.len() < other.indices.len() && !other.is_all() {
            return vec![self];
        }
        left
    }

    /// Whether it is all of its array, as far as is known.
    fn is_all(&self) -> bool {
        match &self.array.kind {
            MemoryKind::Field { .. } => self.indices.is_empty(),
            MemoryKind::Array { extents, .. } => {
                let is_all =
                    |(index, &extent): (&Interval, &i64)| index.first <= 0 && extent - 1 <= index.last;
                self.indices.iter().zip(extents).all(is_all)
            }
        }
    }

    /// Whether it has each byte from its lowest to its highest one, and all of the other one's among them.
    fn has_all_of(&self, other: &Self) -> bool {
        let MemoryKind::Array { extents, .. } = &self.array.kind else { return false };
        let ((begin, end), (first, last)) = (self.range(), other.range());
        let bytes =
            extents.iter().fold(self.array.bytes, |product, &extent| product * extent.cast_unsigned());
        self.is_all() && end - begin == bytes && begin <= first && last <= end
    }

    /// Where the elements lie: runs of so many bytes, by where they begin behind the first element. A field's are where its layout says.
    pub(crate) fn runs(&self, layout: Option<&Layout>) -> (Vec<i64>, u64) {
        let wanted = |axis: usize, first: i64, extent: i64| {
            let index = self.indices.get(axis).copied().unwrap_or(Interval::ANY);
            (index.first.max(first), index.last.min(first + extent - 1))
        };
        let bytes = self.array.bytes;
        match (&self.array.kind, layout) {
            (MemoryKind::Array { extents, strides }, _) => {
                let axes = extents.iter().zip(strides).enumerate();
                runs_of_box(axes.map(|(axis, (&extent, &stride))| (wanted(axis, 0, extent), stride)), bytes)
            }
            (MemoryKind::Field { .. }, None) => (Vec::new(), bytes),
            (MemoryKind::Field { .. }, Some(layout)) => {
                let mut found: Vec<Vec<i64>> = vec![Vec::new()];
                for (axis, (&first, &extent)) in layout.origin.iter().zip(&layout.shape).enumerate() {
                    let (first, last) = wanted(axis, first.into(), i64::from(extent));
                    let longer = |index: Vec<i64>| {
                        (first..=last).map(move |i| index.iter().copied().chain([i]).collect())
                    };
                    found = found.into_iter().flat_map(longer).collect();
                }
                let offset = |index: Vec<i64>| layout.offset_of(&index).map(u64::cast_signed);
                (found.into_iter().filter_map(offset).collect(), bytes)
            }
        }
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
    /// Where its elements are, if strides say so.
    fn lattice(&self) -> Option<Lattice<'_>> {
        match &self.kind {
            MemoryKind::Field { .. } => None,
            MemoryKind::Array { extents, strides } => {
                Some(Lattice { first: self.first, bytes: self.bytes, extents, strides })
            }
        }
    }

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

/// What a launch with this block of arguments tells the kernel.
pub(crate) fn told_by(kernel: &Kernel, layout: &ArgLayout, block: &[u8], told: Told) -> Option<Const> {
    match told {
        Told::Param(number) => match layout.leaves.get(number)?[..] {
            [(offset, scalar)] if scalar.is_integral() => {
                let number = read_integer(block, layout.slots[number].offset + offset, scalar);
                Some(Const::from_bits(scalar, number.cast_unsigned()))
            }
            _ => None,
        },
        Told::Extent(number, axis) => {
            let slot = layout.slots.get(number)?;
            let extent = match kernel.layout(slot.array()?) {
                Some(layout) => layout.shape[usize::from(axis)].into(),
                None => read_integer(block, slot.extent_offset(axis), Scalar::I32),
            };
            Some(Const::from_i128(Scalar::I32, extent.into()))
        }
    }
}

/// What a launch's block of arguments tells of indices.
struct Launch<'a> {
    kernel: &'a Kernel,
    layout: &'a ArgLayout,
    block: &'a [u8],
}

impl Launch<'_> {
    fn param(&self, number: usize) -> Option<i64> {
        match self.layout.leaves[number][..] {
            [(offset, scalar)] if scalar.is_integral() => {
                Some(read_integer(self.block, self.layout.slots[number].offset + offset, scalar))
            }
            _ => None,
        }
    }

    fn extent(&self, number: usize, axis: u8) -> i64 {
        match self.layout.slots[number].array() {
            Some(array) => match self.kernel.layout(array) {
                Some(layout) => layout.shape[usize::from(axis)].into(),
                None => read_integer(self.block, self.layout.slots[number].extent_offset(axis), Scalar::I32),
            },
            None => 0,
        }
    }

    /// Where an integer lies.
    fn interval(&self, index: &Index) -> Interval {
        index.evaluate(&|number| self.param(number), &|number, axis| self.extent(number, axis))
    }

    /// The part of a parameter's array that these indices may be.
    fn region(&self, param: usize, indices: &[Index]) -> Option<Region> {
        let slot = &self.layout.slots[param];
        let array = slot.array()?;
        let mut indices: Vec<_> = indices.iter().map(|index| self.interval(index)).collect();
        if array.boundary == Boundary::Clamp {
            for (axis, index) in indices.iter_mut().enumerate() {
                let last = (self.extent(param, axis as u8) - 1).max(0);
                *index = Interval { first: index.first.clamp(0, last), last: index.last.clamp(0, last) };
            }
        }
        let is_empty = indices.iter().any(|index| index.last < index.first);
        (!is_empty).then(|| Region { array: ArrayMemory::of(self.kernel, slot, array, self.block), indices })
    }

    /// Likewise, and none of them is outside of the array.
    fn region_inside(&self, param: usize, indices: &[Index]) -> Option<Region> {
        let mut region = self.region(param, indices)?;
        let layout = self.kernel.layout(self.layout.slots[param].array()?);
        for (axis, index) in region.indices.iter_mut().enumerate() {
            let first = layout.map_or(0, |layout| i64::from(layout.origin[axis]));
            let last = first + self.extent(param, axis as u8) - 1;
            *index = Interval { first: index.first.max(first), last: index.last.min(last) };
        }
        region.indices.iter().all(|index| index.first <= index.last).then_some(region)
    }

    /// The part that is surely written.
    fn surely(&self, part: &Part) -> Option<Region> {
        let is_known = |interval: Interval| interval.first != i64::MIN && interval.last != i64::MAX;
        let runs = part.loops.iter().all(|bounds| {
            let interval = self.interval(bounds);
            is_known(interval) && interval.first <= interval.last
        });
        let known = part.indices.iter().all(|index| is_known(self.interval(index)));
        if runs && known { self.region_inside(part.param, &part.indices) } else { None }
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
    let told = Launch { kernel, layout, block };
    let mut found = Vec::new();
    for touched in footprint.touched.iter().filter(|touched| wanted(touched)) {
        let Some(region) = told.region(touched.param, &touched.indices) else { continue };
        let one = (touched.param, region);
        if !found.contains(&one) {
            found.push(one);
        }
    }
    found
}

/// What a launch reads of what was there before it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReadBefore {
    pub param: usize,
    /// Only its derivative depends on that.
    pub folded: bool,
    /// What it has not surely written itself.
    pub parts: Vec<Region>,
}

/// What a launch with this block of arguments reads of what was there before, and what it surely writes.
pub(crate) fn read_and_written(
    kernel: &Kernel,
    course: &Course,
    layout: &ArgLayout,
    block: &[u8],
) -> (Vec<ReadBefore>, Vec<Region>) {
    let told = Launch { kernel, layout, block };
    let sure: Vec<_> = course.sure.iter().map(|part| told.surely(part)).collect();
    let mut reads = Vec::new();
    for read in &course.reads {
        let Some(region) = told.region_inside(read.part.param, &read.part.indices) else { continue };
        let behind: Vec<_> = read.behind.iter().filter_map(|&number| sure[number].as_ref()).collect();
        let parts = region.without(behind);
        let one = ReadBefore { param: read.part.param, folded: read.folded, parts };
        if !one.parts.is_empty() && !reads.contains(&one) {
            reads.push(one);
        }
    }
    let written = course.written.iter().filter_map(|&number| sure[number].clone()).collect();
    (reads, written)
}

/// The runs of a box: first and last index and stride of each axis. Axes that lie one behind the other make longer runs.
fn runs_of_box(axes: impl Iterator<Item = ((i64, i64), i64)>, bytes: u64) -> (Vec<i64>, u64) {
    let mut axes: Vec<_> = axes.collect();
    axes.sort_by_key(|&(_, stride)| stride.unsigned_abs());
    let (mut run, mut begin, mut outer) = (bytes, 0_i64, Vec::new());
    for ((first, last), stride) in axes {
        if last < first {
            return (Vec::new(), bytes);
        }
        if outer.is_empty() && stride == run.cast_signed() {
            begin = begin.wrapping_add(first.wrapping_mul(stride));
            run *= (last - first + 1).cast_unsigned();
        } else {
            outer.push((first, last, stride));
        }
    }
    let mut offsets = vec![begin];
    for (first, last, stride) in outer {
        let moved = |offset: i64| (first..=last).map(move |i| offset.wrapping_add(i.wrapping_mul(stride)));
        offsets = offsets.into_iter().flat_map(moved).collect();
    }
    (offsets, run)
}

/// Writes, by the arrays that they were to.
#[derive(Debug, Default)]
pub struct WriteLog {
    /// Who wrote, by number.
    writers: Vec<String>,
    /// Writes whose derivatives are taken care of.
    recorded: Writes,
    /// All others.
    unrecorded: Writes,
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
        let writes = if recorded { &mut self.recorded } else { &mut self.unrecorded };
        regions.into_iter().for_each(|region| writes.add(region, number));
    }

    /// Whether somebody saw to the derivatives of a write there.
    pub fn has_recorded(&self, region: &Region) -> bool {
        self.recorded.since(0, region).is_some()
    }

    /// Who wrote to the region in an entry from `number` on, if somebody did.
    pub fn writer_since(&self, number: usize, region: &Region) -> Option<&str> {
        let recorded = self.recorded.since(number, region).map(|entry| &*self.writers[entry]);
        recorded.or_else(|| self.unrecorded_writer_since(number, region))
    }

    /// Likewise, of writes whose derivatives nobody sees to.
    pub fn unrecorded_writer_since(&self, number: usize, region: &Region) -> Option<&str> {
        self.unrecorded.since(number, region).map(|entry| &*self.writers[entry])
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
    fn what_is_left_of_a_box_is_boxes() {
        let base = 4096;
        let all = || rows(base, &[(0, 9), (0, 3)]);
        let left = |others: &[Region]| -> Vec<_> {
            all()
                .without(others)
                .into_iter()
                .map(|one| one.indices.iter().map(|i| (i.first, i.last)).collect())
                .collect::<Vec<Vec<_>>>()
        };
        assert!(left(&[all()]).is_empty());
        assert!(left(&[rows(base, &[])]).is_empty());
        assert_eq!(left(&[rows(base, &[(2, 9), (0, 3)])]), [[(0, 1), (0, 3)]]);
        assert_eq!(
            left(&[rows(base, &[(2, 3), (1, 2)])]),
            [[(0, 1), (0, 3)], [(4, 9), (0, 3)], [(2, 3), (0, 0)], [(2, 3), (3, 3)]]
        );
        assert!(left(&[rows(base, &[(0, 4), (0, 3)]), rows(base, &[(5, 9), (0, 3)])]).is_empty());
        // Another array, or another look at this one, takes it away as a whole or not at all.
        assert_eq!(left(&[rows(base + 16, &[(0, 9), (0, 3)])]).len(), 1);
        let mut flat = rows(base, &[(0, 39)]);
        flat.array.kind = MemoryKind::Array { extents: vec![40], strides: vec![4] };
        assert!(left(&[flat.clone()]).is_empty());
        flat.indices = vec![Interval { first: 0, last: 38 }];
        assert_eq!(left(&[flat]).len(), 1);
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

    #[test]
    fn time_as_the_second_axis_is_told_apart() {
        let mut log = WriteLog::default();
        for column in 0..4 {
            log.add(format!("column {column}"), true, [rows(4096, &[(0, 9), (column, column)])]);
        }
        assert_eq!(log.writer_since(0, &rows(4096, &[(2, 3), (1, 1)])), Some("column 1"));
        assert_eq!(log.writer_since(2, &rows(4096, &[(2, 3), (1, 1)])), None);
        assert_eq!(log.writer_since(2, &rows(4096, &[(2, 3), (0, 2)])), Some("column 2"));
        assert_eq!(log.writer_since(4, &rows(4096, &[])), None);
    }

    #[test]
    fn answers_are_those_of_a_look_at_all_writes() {
        let mut state = 7_u64;
        let mut random = |below: i64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            ((state >> 33) as i64) % below
        };
        for _ in 0..200 {
            let (mut log, mut all) = (WriteLog::default(), Vec::new());
            let mut region = || {
                let first = 4096 + 16 * random(6).cast_unsigned() + 4 * (random(4) / 3).cast_unsigned();
                let mut side = |extent: i64| {
                    let first = random(extent);
                    (first, first + random(extent - first))
                };
                let (row, column) = (side(10), side(4));
                let axes: &[(i64, i64)] = &[row, column];
                let mut made = rows(first, &axes[..random(3) as usize]);
                if random(6) == 0 {
                    made.indices.iter_mut().for_each(|index| *index = Interval::ANY);
                }
                match random(25) {
                    0..5 => made.array.kind = MemoryKind::Field { span: 160 },
                    5..9 => {
                        made.array.kind = MemoryKind::Array { extents: vec![4, 10], strides: vec![4, 16] };
                    }
                    _ => {}
                }
                made
            };
            for number in 0..30 {
                let written = region();
                log.add(number.to_string(), true, [written.clone()]);
                all.push(written);
            }
            for _ in 0..30 {
                let asked = region();
                for since in 0..=30 {
                    let expected = all[since..].iter().any(|written| written.overlaps(&asked));
                    assert_eq!(
                        log.writer_since(since, &asked).is_some(),
                        expected,
                        "{asked:?} since {since}"
                    );
                }
            }
        }
    }

    #[test]
    fn a_question_does_not_look_at_all_writes() {
        let steps = 50_000;
        let array = |first, rows| ArrayMemory {
            first,
            bytes: 4,
            kind: MemoryKind::Array { extents: vec![rows, 4], strides: vec![16, 4] },
        };
        let (states, parameters) = (array(4096, steps), array(0, 10));
        let row = |row| Region { array: states.clone(), indices: vec![Interval::one(row), Interval::one(2)] };
        let mut log = WriteLog::default();
        let begin = std::time::Instant::now();
        for step in 0..steps {
            log.add(String::new(), true, [row(step)]);
        }
        for step in (0..steps).rev() {
            assert_eq!(log.writer_since(step as usize, &Region::all(parameters.clone())), None);
            assert_eq!(log.writer_since(step as usize + 1, &row(step)), None);
        }
        // A look at each write takes minutes.
        assert!(begin.elapsed().as_secs() < 20, "{:?}", begin.elapsed());
    }

    #[test]
    fn runs_are_as_long_as_memory_is_dense() {
        assert_eq!(rows(0, &[]).runs(None), (vec![0], 160));
        assert_eq!(rows(0, &[(2, 3)]).runs(None), (vec![32], 32));
        assert_eq!(rows(0, &[(2, 3), (1, 2)]).runs(None), (vec![36, 52], 8));
        let mut columns = rows(0, &[(1, 2), (0, 3)]);
        columns.array.kind = MemoryKind::Array { extents: vec![10, 4], strides: vec![4, 40] };
        assert_eq!(columns.runs(None), (vec![4, 44, 84, 124], 8));
        columns.array.kind = MemoryKind::Array { extents: vec![10, 4], strides: vec![-16, 4] };
        assert_eq!(columns.runs(None), (vec![-16, -32], 16));
    }
}
