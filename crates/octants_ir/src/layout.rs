//! Layouts of fields: where each element lies in its tree's memory, known when a kernel is compiled.
//!
//! Data, and the algebra between an element's index and its offset in bytes. The first element's address is no part of it: a
//! launch passes that, so fields that are laid out alike share code. Where nodes lie inside their parents' cells, and who owns
//! the memory, is not known here.

/// How the elements of a field lie.
///
/// A tree of nodes cuts the index of each axis into *digits*, the outermost first; a digit counts cells of some node. Element `I`
/// lies `Σ ((I[axis] - origin[axis]) / below % extent) * stride` bytes behind the first one, over all digits.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Layout {
    /// The extent of each axis; never zero.
    pub shape: Vec<u32>,
    /// The index of the first element, by axis.
    pub origin: Vec<i32>,
    /// From the root down.
    pub levels: Vec<Level>,
}

/// The cells of one node.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Level {
    pub kind: NodeKind,
    /// In storage order, the outermost first.
    pub digits: Vec<Digit>,
}

/// What a node's cells are.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum NodeKind {
    /// All there, side by side.
    Dense,
    /// Each of its own, made when it is first written.
    Pointer,
    /// Side by side, with a bit each that says whether it is active.
    Bitmasked,
    /// A list that grows at its end.
    Dynamic,
}

impl NodeKind {
    pub const ALL: &'static [Self] = &[Self::Dense, Self::Pointer, Self::Bitmasked, Self::Dynamic];

    pub fn name(self) -> &'static str {
        match self {
            Self::Dense => "dense",
            Self::Pointer => "pointer",
            Self::Bitmasked => "bitmasked",
            Self::Dynamic => "dynamic",
        }
    }
}

/// A part of one axis' index that counts cells of a node.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Digit {
    pub axis: u8,
    /// How many elements of the axis lie in one cell: the product of the axis' extents below.
    pub below: u32,
    /// How many values it has.
    pub extent: u32,
    /// Bytes from one cell to the next. If 0, the digit says which element an access is of, and the others say where that lies: accesses
    /// that differ in it differ in them.
    pub stride: u64,
}

impl Layout {
    /// Elements side by side in row-major order, `bytes` each.
    pub fn row_major(shape: &[u32], bytes: u32) -> Self {
        let mut stride = u64::from(bytes);
        let mut digits = Vec::new();
        for (axis, &extent) in shape.iter().enumerate().rev() {
            digits.push(Digit { axis: axis as u8, below: 1, extent, stride });
            stride *= u64::from(extent);
        }
        digits.reverse();
        let levels = vec![Level { kind: NodeKind::Dense, digits }];
        Self { shape: shape.to_vec(), origin: vec![0; shape.len()], levels }.normalised()
    }

    /// The same addresses with as few levels and digits as say them, so that equal layouts are equal data: dense nodes inside each
    /// other are one level, digits of one value are left out, and neighbours that count on are one.
    #[must_use]
    pub fn normalised(mut self) -> Self {
        let mut levels: Vec<Level> = Vec::new();
        for level in self.levels {
            match levels.last_mut() {
                Some(last) if last.kind == NodeKind::Dense && level.kind == NodeKind::Dense => {
                    last.digits.extend(level.digits);
                }
                _ => levels.push(level),
            }
        }
        for level in &mut levels {
            level.digits.retain(|digit| digit.extent != 1);
            level.digits.dedup_by(|inner, outer| {
                let joins = outer.axis == inner.axis
                    && u64::from(outer.below) == u64::from(inner.below) * u64::from(inner.extent)
                    && outer.stride == inner.stride * u64::from(inner.extent);
                if joins {
                    *outer = Digit { extent: outer.extent * inner.extent, ..*inner };
                }
                joins
            });
        }
        levels.retain(|level| level.kind != NodeKind::Dense || !level.digits.is_empty());
        self.levels = levels;
        self
    }

    pub fn rank(&self) -> usize {
        self.shape.len()
    }

    /// Whether some elements may not be there: the strides mean nothing then.
    pub fn is_sparse(&self) -> bool {
        self.levels.iter().any(|level| level.kind != NodeKind::Dense)
    }

    /// How many elements there are.
    pub fn count(&self) -> u64 {
        self.shape.iter().map(|&extent| u64::from(extent)).product()
    }

    /// All digits in storage order, the outermost first.
    pub fn digits(&self) -> impl DoubleEndedIterator<Item = &Digit> {
        self.levels.iter().flat_map(|level| &level.digits)
    }

    /// The digits of one axis, the outermost first.
    pub fn digits_of(&self, axis: usize) -> impl DoubleEndedIterator<Item = &Digit> {
        self.digits().filter(move |digit| usize::from(digit.axis) == axis)
    }

    /// Bytes from the beginning of the first element to the end of the last in memory, if an element has this many.
    pub fn span(&self, element: u32) -> u64 {
        let last: u64 = self.digits().map(|digit| u64::from(digit.extent - 1) * digit.stride).sum();
        last + u64::from(element)
    }

    /// How many bytes behind the first element this one lies; `None` outside the shape, or for an index of another rank.
    pub fn offset_of(&self, index: &[i64]) -> Option<u64> {
        if index.len() != self.rank() {
            return None;
        }
        let from_origin = |axis: usize| {
            let distance = index[axis].checked_sub(self.origin[axis].into())?;
            u64::try_from(distance).ok().filter(|&distance| distance < self.shape[axis].into())
        };
        let distances = (0..self.rank()).map(from_origin).collect::<Option<Vec<u64>>>()?;
        let digit_offset = |digit: &Digit| {
            distances[usize::from(digit.axis)] / u64::from(digit.below) % u64::from(digit.extent)
                * digit.stride
        };
        Some(self.digits().map(digit_offset).sum())
    }

    /// Whether elements lie in the same way, whatever the first one's index is.
    pub fn lies_like(&self, other: &Self) -> bool {
        self.shape == other.shape && self.levels == other.levels
    }

    /// Loops that visit the elements of both in the same order: how many iterations, and bytes from one to the next in the one and the other. `None` if shapes differ,
    /// or digits cut an axis so that no loops do: 6 as 2 of 3 and as 3 of 2.
    pub fn loops_with(&self, other: &Self) -> Option<Vec<[u64; 3]>> {
        if self.shape != other.shape {
            return None;
        }
        let mut loops = Vec::new();
        for axis in 0..self.rank() {
            let [mut own, mut others] = [self, other].map(|layout| {
                layout.digits_of(axis).rev().map(|digit| (u64::from(digit.extent), digit.stride))
            });
            // What is left of a digit whose inner part was visited.
            let (mut left, mut right) = (own.next(), others.next());
            while let (Some((extent, stride)), Some((other_extent, other_stride))) = (left, right) {
                let count = extent.min(other_extent);
                if extent % count != 0 || other_extent % count != 0 {
                    return None;
                }
                loops.push([count, stride, other_stride]);
                let rest =
                    |extent: u64, stride: u64| (extent > count).then(|| (extent / count, stride * count));
                left = rest(extent, stride).or_else(|| own.next());
                right = rest(other_extent, other_stride).or_else(|| others.next());
            }
        }
        Some(loops)
    }

    /// What keeps it from being a layout of elements of `element` bytes made of scalars of `scalar` bytes, if anything does.
    ///
    /// Each axis is covered by digits whose extents multiply to its own, so that every index has an offset; and the cells of a
    /// digit do not reach into each other, so that no two indices have the same.
    pub fn check(&self, element: u32, scalar: u32) -> Result<(), String> {
        if self.origin.len() != self.rank() {
            return Err(format!("{} origins for {} axes", self.origin.len(), self.rank()));
        }
        if self.rank() > usize::from(u8::MAX) {
            return Err(format!("{} axes", self.rank()));
        }
        if let Some(level) = self.levels.iter().find(|level| level.kind != NodeKind::Dense) {
            return Err(format!("cells of a {} node have no fixed place", level.kind.name()));
        }
        for (axis, (&extent, &origin)) in self.shape.iter().zip(&self.origin).enumerate() {
            let end = i64::from(origin) + i64::from(extent);
            if extent == 0 || extent > i32::MAX as u32 || end > i64::from(i32::MAX) {
                return Err(format!("axis {axis} has {extent} elements from {origin} on"));
            }
            self.covers(axis)?;
        }
        if let Some(digit) = self.digits().find(|digit| usize::from(digit.axis) >= self.rank()) {
            return Err(format!("a digit is of axis {}", digit.axis));
        }
        let mut inside = u64::from(element);
        for digit in self.digits().collect::<Vec<_>>().into_iter().rev() {
            let Digit { stride, extent, .. } = *digit;
            if stride % u64::from(scalar) != 0 {
                return Err(format!("a stride of {stride} bytes is no multiple of the scalars' {scalar}"));
            }
            if stride == 0 {
                continue;
            }
            if stride < inside {
                return Err(format!("cells of {inside} bytes lie {stride} apart"));
            }
            let whole = stride.checked_mul(extent.into()).filter(|&bytes| i64::try_from(bytes).is_ok());
            inside = whole.ok_or_else(|| "more bytes than there are addresses".to_string())?;
        }
        Ok(())
    }

    /// Whether the digits of an axis say its index: each counts what the ones inside it make up.
    fn covers(&self, axis: usize) -> Result<(), String> {
        let mut below: u64 = 1;
        for digit in self.digits_of(axis).collect::<Vec<_>>().into_iter().rev() {
            if u64::from(digit.below) != below || digit.extent == 0 {
                let Digit { below: found, extent, .. } = digit;
                return Err(format!("axis {axis} has a digit of {extent} times {found} on top of {below}"));
            }
            below = below.saturating_mul(digit.extent.into());
        }
        if below != u64::from(self.shape[axis]) {
            return Err(format!("the digits of axis {axis} make up {below}, not {}", self.shape[axis]));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn digit(axis: u8, below: u32, extent: u32, stride: u64) -> Digit {
        Digit { axis, below, extent, stride }
    }

    fn layout(shape: &[u32], levels: &[&[Digit]]) -> Layout {
        let dense = |digits: &&[Digit]| Level { kind: NodeKind::Dense, digits: digits.to_vec() };
        let levels = levels.iter().map(dense).collect();
        Layout { shape: shape.to_vec(), origin: vec![0; shape.len()], levels }
    }

    /// Every index inside the shape, counted up like an odometer.
    fn indices(layout: &Layout) -> Vec<Vec<i64>> {
        let mut all = vec![Vec::new()];
        for (&extent, &origin) in layout.shape.iter().zip(&layout.origin) {
            let axis = (0..i64::from(extent)).map(|i| i + i64::from(origin));
            let longer = |index: &Vec<i64>| {
                axis.clone().map(|i| [index.as_slice(), &[i]].concat()).collect::<Vec<_>>()
            };
            all = all.iter().flat_map(longer).collect();
        }
        all
    }

    #[test]
    fn row_major_counts_elements_in_order() {
        let layout = Layout::row_major(&[2, 3, 4], 8);
        assert_eq!(layout.levels[0].digits, [digit(0, 1, 2, 96), digit(1, 1, 3, 32), digit(2, 1, 4, 8)]);
        let offsets: Vec<_> = indices(&layout).iter().map(|i| layout.offset_of(i).unwrap()).collect();
        assert_eq!(offsets, (0..24).map(|n| n * 8).collect::<Vec<_>>());
        assert_eq!((layout.count(), layout.span(8)), (24, 192));
    }

    #[test]
    fn origins_shift_the_index_and_nothing_lies_outside() {
        let layout = Layout { origin: vec![-2, 5], ..Layout::row_major(&[2, 3], 4) };
        assert_eq!(layout.offset_of(&[-2, 5]), Some(0));
        assert_eq!(layout.offset_of(&[-1, 7]), Some(20));
        for outside in [&[-3, 5][..], &[0, 5], &[-2, 4], &[-2, 8], &[-2], &[i64::MIN, 5], &[-2, i64::MAX]] {
            assert_eq!(layout.offset_of(outside), None, "{outside:?}");
        }
    }

    #[test]
    fn loops_over_two_layouts_visit_the_same_elements() {
        let rows = Layout::row_major(&[12, 8], 4);
        let columns = layout(&[12, 8], &[&[digit(1, 1, 8, 48), digit(0, 1, 12, 4)]]);
        let blocks = |inner: u32| {
            let block = u64::from(inner) * 32;
            let outer = [digit(0, inner, 12 / inner, 2 * block), digit(1, 4, 2, block)];
            layout(&[12, 8], &[&outer, &[digit(0, 1, inner, 32), digit(1, 1, 4, 8)]])
        };
        let elsewhere = Layout { origin: vec![-3, 7], ..rows.clone() };
        let layouts = [rows.clone(), columns, blocks(3), blocks(6), elsewhere];
        for (one, other) in layouts.iter().flat_map(|one| layouts.iter().map(move |other| (one, other))) {
            let mut places = vec![(0, 0)];
            for [count, stride, other_stride] in one.loops_with(other).unwrap() {
                let steps = |&(at, other_at): &(u64, u64)| {
                    (0..count).map(|n| (at + n * stride, other_at + n * other_stride)).collect::<Vec<_>>()
                };
                places = places.iter().flat_map(steps).collect();
            }
            let pairs = indices(one).into_iter().zip(indices(other));
            let expected: BTreeSet<_> =
                pairs.map(|(i, j)| (one.offset_of(&i).unwrap(), other.offset_of(&j).unwrap())).collect();
            assert_eq!((places.len(), expected.len()), (96, 96));
            assert_eq!(places.into_iter().collect::<BTreeSet<_>>(), expected);
        }
        assert_eq!(blocks(4).loops_with(&blocks(6)), None, "4 of 3 and 6 of 2 have no digits in common");
        assert_eq!(rows.loops_with(&Layout::row_major(&[8, 12], 4)), None);
        assert!(rows.lies_like(&layouts[4]) && !rows.lies_like(&layouts[1]));
    }

    #[test]
    fn a_field_of_rank_0_is_one_element() {
        let layout = Layout::row_major(&[], 4);
        assert_eq!(layout, Layout { shape: vec![], origin: vec![], levels: vec![] });
        assert_eq!((layout.offset_of(&[]), layout.count(), layout.span(4)), (Some(0), 1, 4));
        layout.check(4, 4).unwrap();
    }

    #[test]
    fn blocks_put_neighbours_together() {
        // 4 × 6 in blocks of 2 × 3.
        let inner = [digit(0, 1, 2, 12), digit(1, 1, 3, 4)];
        let layout = layout(&[4, 6], &[&[digit(0, 2, 2, 48), digit(1, 3, 2, 24)], &inner]).normalised();
        assert_eq!(layout.levels.len(), 1);
        layout.check(4, 4).unwrap();
        assert_eq!(layout.offset_of(&[1, 2]), Some(20));
        assert_eq!(layout.offset_of(&[0, 3]), Some(24));
        assert_eq!(layout.offset_of(&[2, 0]), Some(48));
    }

    #[test]
    fn what_counts_on_is_one_digit() {
        // Nested nodes of one axis without anything between are a plain array.
        let nested = layout(&[24], &[&[digit(0, 12, 2, 48)], &[digit(0, 4, 3, 16)], &[digit(0, 1, 4, 4)]]);
        assert_eq!(nested.normalised(), Layout::row_major(&[24], 4));
        // A hole between the cells keeps them apart, and so does another axis.
        let with_hole = layout(&[24], &[&[digit(0, 4, 6, 24)], &[digit(0, 1, 4, 4)]]);
        assert_eq!(with_hole.clone().normalised().levels[0].digits.len(), 2);
        let ones = layout(&[1, 5, 1], &[&[digit(0, 1, 1, 20), digit(1, 1, 5, 4), digit(2, 1, 1, 4)]]);
        assert_eq!(ones.normalised().levels[0].digits, [digit(1, 1, 5, 4)]);
    }

    #[test]
    fn what_is_no_layout_is_named() {
        let plain = Layout::row_major(&[4, 6], 4);
        plain.check(4, 4).unwrap();
        let changed = |change: fn(&mut Layout)| {
            let mut layout = plain.clone();
            change(&mut layout);
            layout.check(4, 4).unwrap_err()
        };
        let first = |change: fn(&mut Digit)| {
            let mut layout = plain.clone();
            change(&mut layout.levels[0].digits[0]);
            layout.check(4, 4).unwrap_err()
        };
        assert_eq!(changed(|l| l.origin.truncate(1)), "1 origins for 2 axes");
        assert_eq!(changed(|l| l.shape[0] = 0), "axis 0 has 0 elements from 0 on");
        assert_eq!(changed(|l| l.origin[1] = i32::MAX), "axis 1 has 6 elements from 2147483647 on");
        assert_eq!(changed(|l| l.shape[0] = 5), "the digits of axis 0 make up 4, not 5");
        assert_eq!(first(|d| d.below = 2), "axis 0 has a digit of 4 times 2 on top of 1");
        assert_eq!(first(|d| d.stride = 26), "a stride of 26 bytes is no multiple of the scalars' 4");
        assert_eq!(first(|d| d.stride = 20), "cells of 24 bytes lie 20 apart");
        let mut named = plain.clone();
        named.levels[0].digits[0].stride = 0;
        named.check(4, 4).unwrap();
        assert_eq!(first(|d| d.stride = 1 << 62), "more bytes than there are addresses");
        assert_eq!(changed(|l| l.levels[0].digits.push(digit(7, 1, 2, 4))), "a digit is of axis 7");
        assert_eq!(plain.check(8, 4).unwrap_err(), "cells of 8 bytes lie 4 apart");
    }

    /// Random trees of dense nodes: every element has an offset of its own inside the span, and normalising changes none.
    #[test]
    fn random_trees_have_disjoint_elements_wherever_they_are_cut() {
        let mut state: u64 = 7;
        let mut random = |n: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % n
        };
        for _ in 0..300 {
            let rank = 1 + random(3) as u8;
            let mut shape = vec![1_u32; usize::from(rank)];
            let mut cell = 4;
            let element = cell as u32;
            let mut levels = Vec::new();
            for _ in 0..=random(3) {
                let mut digits = Vec::new();
                // Other leaves may stand in the same cell.
                cell += 4 * random(3);
                for _ in 0..=random(2) {
                    let (axis, extent) = (random(rank.into()) as u8, 1 + random(4) as u32);
                    if digits.iter().any(|digit: &Digit| digit.axis == axis) {
                        continue;
                    }
                    digits.push(Digit { axis, below: shape[usize::from(axis)], extent, stride: cell });
                    shape[usize::from(axis)] *= extent;
                    cell *= u64::from(extent);
                }
                digits.reverse();
                levels.push(Level { kind: NodeKind::Dense, digits });
            }
            levels.reverse();
            let origin = shape.iter().map(|_| random(9) as i32 - 4).collect();
            let tree = Layout { shape, origin, levels };
            let normal = tree.clone().normalised();
            assert_eq!(normal.check(element, 4), Ok(()), "{tree:?}");
            assert_eq!(normal.clone().normalised(), normal);
            assert_eq!(tree.span(element), normal.span(element));
            let offsets: Vec<_> = indices(&tree).iter().map(|i| normal.offset_of(i).unwrap()).collect();
            let before: Vec<_> = indices(&tree).iter().map(|i| tree.offset_of(i).unwrap()).collect();
            assert_eq!(offsets, before, "{tree:?}");
            let distinct: BTreeSet<_> = offsets.iter().collect();
            assert_eq!(distinct.len() as u64, tree.count(), "{tree:?}");
            assert_eq!(offsets.iter().max().unwrap() + u64::from(element), tree.span(element));
        }
    }
}
