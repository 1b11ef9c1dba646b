//! The guard at launch: do arrays overlap?
//!
//! Code that assumes "no two array arguments share memory, unless both are only read" is right only where that holds; a launch
//! knows all addresses and sizes, so it looks.

use std::ops;
use std::sync::Mutex;

use octants_ir::plan::{Access, ArgLayout, ArgSlot};

/// What to read of a block of arguments to tell whether arrays overlap.
#[derive(Debug)]
pub struct OverlapGuard {
    /// Those that are written come first.
    arrays: Vec<GuardedArray>,
    written: usize,
    /// The bytes of the block that say where the arrays lie: neighbours are one range.
    places: Vec<ops::Range<usize>>,
    /// A block whose many arrays were last found to be apart: a kernel is usually launched with the same ones again. To compare its bytes takes a
    /// quarter of the time of working out where each of 50 to 150 fields lies (kernels of Genesis).
    apart: Mutex<Vec<u8>>,
}

#[derive(Debug)]
struct GuardedArray {
    offset: usize,
    /// How many extents follow the address.
    rank: usize,
    element: u64,
    /// Of an array that is not dense.
    spaced: Option<ArgSlot>,
    /// Of a field: bytes from its first element to the end of its last.
    span: Option<u64>,
    written: bool,
}

/// The bytes of one array, or from a field's first element to its last: `start..end`.
#[derive(Clone, Copy)]
struct Range {
    start: u64,
    end: u64,
    written: bool,
    /// Of a field: where its first element ends.
    first: Option<u64>,
}

impl Range {
    /// Whether the two share memory that one of them writes.
    ///
    /// Elements of two fields may lie between each other, but no byte belongs to two, unless they are the same field or one is a
    /// part of the other; then their first elements share bytes.
    #[inline]
    fn clashes(self, other: Self) -> bool {
        let ends = match (self.first, other.first) {
            (Some(first), Some(second)) => (first, second),
            _ => (self.end, other.end),
        };
        self.start < ends.1 && other.start < ends.0 && (self.written || other.written)
    }
}

/// Up to this many arrays are compared pair by pair, without allocating. Chosen, not measured: 120 comparisons, if all are written.
const MAX_PAIRWISE: usize = 16;

impl OverlapGuard {
    /// `access` says of each parameter whether the kernel writes its memory.
    pub fn new(args: &ArgLayout, access: &[Access]) -> Self {
        let mut arrays: Vec<_> = args
            .slots
            .iter()
            .zip(access)
            .filter_map(|(slot, access)| {
                let array = slot.array()?;
                (access.read || access.written).then(|| GuardedArray {
                    offset: slot.offset as usize,
                    rank: if array.layout.is_some() { 0 } else { array.rank.into() },
                    element: slot.bytes.into(),
                    spaced: array.has_strides().then_some(*slot),
                    span: array.layout.map(|_| slot.span),
                    written: access.written,
                })
            })
            .collect();
        // With nothing written, or nothing beside it, nothing can clash.
        if arrays.len() < 2 || arrays.iter().all(|array| !array.written) {
            arrays.clear();
        }
        let places = merged(arrays.iter().map(GuardedArray::place));
        arrays.sort_by_key(|array| !array.written);
        let written = arrays.iter().filter(|array| array.written).count();
        Self { arrays, written, places, apart: Mutex::default() }
    }

    /// Whether arrays can overlap at all.
    pub fn is_needed(&self) -> bool {
        !self.arrays.is_empty()
    }

    /// Whether two arrays in this block share memory and one of them is written.
    pub fn overlaps(&self, args: &[u8]) -> bool {
        if self.arrays.len() > MAX_PAIRWISE {
            return self.many_overlap(args);
        }
        let mut clashes = false;
        for (n, array) in self.arrays[..self.written].iter().enumerate() {
            let range = array.range(args);
            // To work out where an array lies takes about as long as to keep it for the next one that is written.
            clashes |= self.arrays[n + 1..].iter().any(|other| range.clashes(other.range(args)));
        }
        clashes
    }

    fn many_overlap(&self, args: &[u8]) -> bool {
        let ranges = || self.arrays.iter().map(|array| array.range(args)).collect();
        // Another thread that launches the same kernel is not waited for.
        let Ok(mut apart) = self.apart.try_lock() else { return many_overlap(ranges()) };
        let same = |place: &ops::Range<usize>| apart[place.clone()] == args[place.clone()];
        if apart.len() == args.len() && self.places.iter().all(same) {
            return false;
        }
        apart.clear();
        let overlap = many_overlap(ranges());
        if !overlap {
            apart.extend_from_slice(args);
        }
        overlap
    }
}

/// Ranges of bytes that come in ascending order; those with less than a word between them become one.
fn merged(places: impl Iterator<Item = ops::Range<usize>>) -> Vec<ops::Range<usize>> {
    let mut merged: Vec<ops::Range<usize>> = Vec::new();
    for place in places {
        match merged.last_mut() {
            Some(last) if place.start < last.end + 8 => last.end = place.end,
            _ => merged.push(place),
        }
    }
    merged
}

impl GuardedArray {
    /// The bytes of a block that say where it lies.
    fn place(&self) -> ops::Range<usize> {
        let end = match &self.spaced {
            Some(slot) => slot.stride_offset(self.rank as u8) as usize,
            None => self.offset + 8 + 4 * self.rank,
        };
        self.offset..end
    }

    #[inline]
    fn range(&self, args: &[u8]) -> Range {
        let start = u64::from_le_bytes(word(args, self.offset));
        if let Some(span) = self.span {
            let (end, first) = (start.wrapping_add(span), start.wrapping_add(self.element));
            return Range { start, end, written: self.written, first: Some(first) };
        }
        if let Some(slot) = &self.spaced {
            let (start, end) = slot.spaced_range(args);
            return Range { start, end, written: self.written, first: None };
        }
        let mut bytes = self.element;
        for axis in 0..self.rank {
            // Extents are never negative; what lies in memory has fewer than 2⁶⁴ bytes.
            let extent = u32::from_le_bytes(word(args, self.offset + 8 + 4 * axis));
            bytes = bytes.wrapping_mul(extent.into());
        }
        Range { start, end: start.wrapping_add(bytes), written: self.written, first: None }
    }
}

#[inline]
fn word<const N: usize>(args: &[u8], offset: usize) -> [u8; N] {
    args[offset..offset + N].try_into().expect("a slice of that length")
}

fn many_overlap(mut ranges: Vec<Range>) -> bool {
    ranges.retain(|range| range.start < range.end);
    ranges.sort_unstable_by_key(|range| range.start);
    let (fields, arrays): (Vec<_>, Vec<_>) = ranges.into_iter().partition(|range| range.first.is_some());
    clash_in_order(fields.iter().map(|field| Range { end: field.first.unwrap_or(field.end), ..*field }))
        || fields.iter().any(|field| arrays.iter().any(|&array| field.clashes(array)))
        || clash_in_order(arrays.iter().copied())
}

/// Whether two of the ranges, which come in ascending order, share bytes, and one of them is written.
fn clash_in_order(ranges: impl Iterator<Item = Range>) -> bool {
    // Among the ranges that began already, how far all of them reach, and how far the written ones do.
    let (mut all, mut written) = (0, 0);
    for range in ranges {
        if range.start < written || (range.written && range.start < all) {
            return true;
        }
        all = all.max(range.end);
        if range.written {
            written = written.max(range.end);
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use octants_ir::{ArrayType, Boundary, Kernel, Layout, Scalar, Type};

    /// A guard over `written.len()` arrays of rank one, and how they lie in a block.
    fn guard(written: &[bool]) -> (OverlapGuard, ArgLayout) {
        let mut kernel = Kernel::new("k");
        let ty = Type::Array(ArrayType::array(Scalar::F32, 1, Boundary::Unsafe));
        for n in 0..written.len() {
            kernel.add_param(format!("a{n}"), ty);
        }
        let layout = ArgLayout::of(&kernel);
        let access: Vec<_> = written.iter().map(|&written| Access { read: true, written }).collect();
        (OverlapGuard::new(&layout, &access), layout)
    }

    /// A block with these `(address, extent)`s.
    fn block(layout: &ArgLayout, arrays: &[(u64, u32)]) -> Vec<u8> {
        let mut block = vec![0; layout.bytes as usize];
        for (slot, (address, extent)) in layout.slots.iter().zip(arrays) {
            let at = slot.offset as usize;
            block[at..at + 8].copy_from_slice(&address.to_le_bytes());
            block[at + 8..at + 12].copy_from_slice(&extent.to_le_bytes());
        }
        block
    }

    fn clash(written: &[bool], arrays: &[(u64, u32)]) -> bool {
        let (guard, layout) = guard(written);
        guard.overlaps(&block(&layout, arrays))
    }

    #[test]
    fn many_arrays_are_looked_at_again_where_one_moved_or_grew() {
        let (guard, layout) = guard(&[true; MAX_PAIRWISE + 4]);
        let apart: Vec<_> = (0..MAX_PAIRWISE as u64 + 4).map(|n| (64 + 64 * n, 16)).collect();
        let (mut moved, mut grown) = (apart.clone(), apart.clone());
        moved[7].0 -= 4;
        grown[3].1 += 1;
        for (arrays, overlap) in [
            (&apart, false),
            (&apart, false),
            (&moved, true),
            (&moved, true),
            (&apart, false),
            (&grown, true),
        ] {
            assert_eq!(guard.overlaps(&block(&layout, arrays)), overlap);
        }
    }

    #[test]
    fn numbers_between_many_fields_are_not_looked_at() {
        let mut kernel = Kernel::new("k");
        let field = kernel.field_type(Scalar::F32, Layout::row_major(&[4], 4));
        for n in 0..MAX_PAIRWISE + 4 {
            kernel.add_param(format!("f{n}"), field);
            if n == 8 {
                kernel.add_param("s", Type::Data(Scalar::I32.into()));
            }
        }
        let layout = ArgLayout::of(&kernel);
        let guard =
            OverlapGuard::new(&layout, &vec![Access { read: true, written: true }; layout.slots.len()]);
        assert_eq!(guard.places.len(), 2);
        let mut block = vec![0; layout.bytes as usize];
        for (n, slot) in (1_u64..).zip(&layout.slots) {
            let (at, bytes) = (slot.offset as usize, (64 * n).to_le_bytes());
            let count = if slot.array().is_some() { 8 } else { 4 };
            block[at..at + count].copy_from_slice(&bytes[..count]);
        }
        assert!(!guard.overlaps(&block));
        block[layout.slots[9].offset as usize] ^= 1;
        assert!(!guard.overlaps(&block));
        let (first, last) = (layout.slots[0].offset as usize, layout.slots[MAX_PAIRWISE + 4].offset as usize);
        block.copy_within(first..first + 8, last);
        assert!(guard.overlaps(&block));
    }

    #[test]
    fn only_shared_bytes_with_a_writer_clash() {
        assert!(!clash(&[true], &[(64, 10)]));
        assert!(!clash(&[true, false], &[(64, 16), (128, 16)]), "neighbours touch but share nothing");
        assert!(clash(&[true, false], &[(64, 17), (128, 16)]));
        assert!(clash(&[false, true], &[(64, 100), (64, 100)]));
        assert!(!clash(&[false, false], &[(64, 100), (64, 100)]));
        assert!(!clash(&[false, false, true], &[(64, 10), (64, 10), (1000, 5)]));
        assert!(!clash(&[true, true], &[(64, 0), (64, 10)]), "an empty array shares nothing");
    }

    /// A guard over fields `(address, written)` of 16 interleaved elements, and an array of one element, with this block.
    fn field_clash(fields: &[(u64, bool)], array: Option<(u64, bool)>) -> bool {
        let mut kernel = Kernel::new("k");
        let mut layout = Layout::row_major(&[16], 4);
        layout.levels[0].digits[0].stride = 8;
        let field = kernel.field_type(Scalar::F32, layout);
        for n in 0..fields.len() {
            kernel.add_param(format!("f{n}"), field);
        }
        if array.is_some() {
            kernel.add_param("a", Type::Array(ArrayType::array(Scalar::F32, 1, Boundary::Unsafe)));
        }
        let layout = ArgLayout::of(&kernel);
        let all: Vec<_> = fields.iter().copied().chain(array).collect();
        let access: Vec<_> = all.iter().map(|&(_, written)| Access { read: true, written }).collect();
        let mut block = vec![0; layout.bytes as usize];
        for (slot, (address, _)) in layout.slots.iter().zip(&all) {
            let at = slot.offset as usize;
            block[at..at + 8].copy_from_slice(&address.to_le_bytes());
        }
        if array.is_some() {
            let at = layout.slots[fields.len()].offset as usize + 8;
            block[at..at + 4].copy_from_slice(&1_u32.to_le_bytes());
        }
        OverlapGuard::new(&layout, &access).overlaps(&block)
    }

    #[test]
    fn fields_clash_only_with_themselves_and_with_arrays_inside_them() {
        assert!(!field_clash(&[(64, true), (68, true)], None), "members of one node lie between each other");
        assert!(field_clash(&[(64, true), (64, false)], None));
        assert!(!field_clash(&[(64, false), (64, false)], None));
        assert!(field_clash(&[(64, true), (66, false)], None), "a part of it");
        assert!(field_clash(&[(64, false)], Some((184, true))));
        assert!(!field_clash(&[(64, false)], Some((188, true))));
        let mut many: Vec<_> = (0..20).map(|n| (64 + 4 * n, n == 3)).collect();
        assert!(!field_clash(&many, None));
        assert!(!field_clash(&many, Some((4, true))));
        assert!(field_clash(&many, Some((100, true))));
        many[5].0 = many[3].0;
        assert!(field_clash(&many, None));
        many[5].0 = many[3].0 + 2;
        assert!(field_clash(&many, None));
        many[5].0 = many[4].0;
        assert!(!field_clash(&many, None));
    }

    #[test]
    fn many_arrays_answer_as_few_do() {
        let apart: Vec<_> = (0..40_u64).map(|n| (n * 100, 25)).collect();
        let mut written = [false; 40];
        written[7] = true;
        assert!(!clash(&written, &apart));
        let mut close = apart.clone();
        close[39] = (701, 3);
        assert!(clash(&written, &close));
        close[39] = (601, 20);
        assert!(!clash(&written, &close), "two that are only read");
        close[39] = (601, 25);
        assert!(clash(&written, &close));
    }
}
