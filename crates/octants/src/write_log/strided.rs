//! Whether boxes of elements of strided arrays share bytes: views of one array have other beginnings, extents and orders of axes.
//!
//! An element lies at the sum of its indices times the strides. Two boxes share bytes if some distance that steps along the axes make brings an element of
//! one to one of the other. The search takes the longest strides first, of which few multiples come near enough.

use octants_passes::analysis::Interval;

/// After so many tries the answer is unknown. Chosen, not measured: an array that is cut out of another one by slices and transpositions takes one or two for
/// each axis.
const MAX_TRIES: usize = 512;

/// Where the elements of an array are.
#[derive(Clone, Copy)]
pub(super) struct Lattice<'a> {
    /// Of the element with index 0 everywhere.
    pub first: u64,
    /// Of one element.
    pub bytes: u64,
    pub extents: &'a [i64],
    /// In bytes.
    pub strides: &'a [i64],
}

/// What the indices of one array are in another one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Shift {
    /// Nowhere: no byte is of both.
    Apart,
    /// So much more along each axis, for whichever elements share bytes.
    By(Vec<i64>),
    Unknown,
}

/// Steps along an axis: between so many and so many.
#[derive(Clone, Copy)]
struct Steps {
    stride: i64,
    least: i64,
    most: i64,
}

impl Steps {
    /// The shortest and the longest distance.
    fn reach(self) -> (i128, i128) {
        let (a, b) = (
            i128::from(self.stride) * i128::from(self.least),
            i128::from(self.stride) * i128::from(self.most),
        );
        (a.min(b), a.max(b))
    }
}

impl Lattice<'_> {
    /// The indices of an axis that are asked for and exist; all of them if nothing is asked.
    fn indices(&self, axis: usize, asked: &[Interval]) -> (i64, i64) {
        let last = self.extents[axis] - 1;
        asked.get(axis).map_or((0, last), |index| (index.first.clamp(0, last), index.last.clamp(0, last)))
    }

    fn is_empty(&self) -> bool {
        self.extents.contains(&0)
    }

    /// By how many bytes elements lie behind the other's if they share bytes: more than the first, less than the second.
    fn window(&self, other: &Self) -> (i128, i128) {
        let distance = i128::from(other.first) - i128::from(self.first);
        (distance - i128::from(self.bytes), distance + i128::from(other.bytes))
    }

    /// Whether a box may share a byte with one of another array.
    pub(super) fn meets(&self, indices: &[Interval], other: &Self, others: &[Interval]) -> bool {
        if self.is_empty() || other.is_empty() {
            return false;
        }
        let mut steps: Vec<Steps> = Vec::with_capacity(self.strides.len() + other.strides.len());
        let mut add = |stride: i64, (first, last): (i64, i64)| {
            if stride == 0 || (first, last) == (0, 0) {
                return;
            }
            let (stride, least, most) =
                if stride < 0 { (stride.wrapping_neg(), -last, -first) } else { (stride, first, last) };
            // Steps of one length are as good along one axis as along another.
            match steps.iter_mut().find(|one| one.stride == stride) {
                Some(one) => {
                    one.least = one.least.saturating_add(least);
                    one.most = one.most.saturating_add(most);
                }
                None => steps.push(Steps { stride, least, most }),
            }
        };
        for (axis, &stride) in self.strides.iter().enumerate() {
            add(stride, self.indices(axis, indices));
        }
        for (axis, &stride) in other.strides.iter().enumerate() {
            add(stride.wrapping_neg(), other.indices(axis, others));
        }
        let mut search = Search::new(steps, 1);
        search.run(self.window(other));
        search.found.is_some()
    }

    /// What the other's indices are in this array.
    pub(super) fn shift(&self, other: &Self) -> Shift {
        if self.is_empty() || other.is_empty() {
            return Shift::Apart;
        }
        let rank = self.strides.len();
        let is_single = |axis: usize| self.extents[axis] == 1 && other.extents[axis] == 1;
        if other.strides.len() != rank
            || (0..rank).any(|axis| self.strides[axis] != other.strides[axis] && !is_single(axis))
        {
            return Shift::Unknown;
        }
        let steps = (0..rank).map(|axis| Steps {
            stride: if is_single(axis) { 0 } else { self.strides[axis] },
            least: 1 - other.extents[axis],
            most: self.extents[axis] - 1,
        });
        let mut search = Search::new(steps.collect(), 2);
        search.run(self.window(other));
        match (search.found, search.is_exhausted) {
            (None, _) => Shift::Apart,
            (Some(steps), true) => Shift::By(steps),
            (Some(_), false) => Shift::Unknown,
        }
    }
}

/// Looks for steps whose distance lies in a window.
struct Search {
    /// The longest stride first.
    steps: Vec<Steps>,
    /// Which axis each is of.
    axes: Vec<usize>,
    /// The distances that all steps behind one make together.
    rest: Vec<(i128, i128)>,
    chosen: Vec<i64>,
    /// How many ways are wanted at most.
    wanted: usize,
    tries: usize,
    ways: usize,
    /// One of the ways, by the axes; some if the search was given up.
    found: Option<Vec<i64>>,
    /// Whether there is no other way.
    is_exhausted: bool,
}

impl Search {
    fn new(steps: Vec<Steps>, wanted: usize) -> Self {
        let mut axes: Vec<usize> = (0..steps.len()).collect();
        axes.sort_by_key(|&axis| std::cmp::Reverse(steps[axis].stride.unsigned_abs()));
        let mut rest = vec![(0, 0); steps.len() + 1];
        for (position, &axis) in axes.iter().enumerate().rev() {
            let ((low, high), (below, above)) = (steps[axis].reach(), rest[position + 1]);
            rest[position] = (low + below, high + above);
        }
        let chosen = vec![0; steps.len()];
        Self { steps, axes, rest, chosen, wanted, tries: 0, ways: 0, found: None, is_exhausted: true }
    }

    /// `low` and `high` are just outside of the window.
    fn run(&mut self, (low, high): (i128, i128)) {
        self.choose(0, low, high);
    }

    /// Chooses the steps from a position on; gives whether to go on looking.
    fn choose(&mut self, position: usize, low: i128, high: i128) -> bool {
        self.tries += 1;
        if self.tries > MAX_TRIES {
            self.found.get_or_insert_with(|| self.chosen.clone());
            self.is_exhausted = false;
            return false;
        }
        let Some(&axis) = self.axes.get(position) else {
            if low < 0 && 0 < high {
                self.ways += 1;
                self.is_exhausted = self.ways < 2;
                self.found.get_or_insert_with(|| self.chosen.clone());
            }
            return self.ways < self.wanted;
        };
        let Steps { stride, least, most } = self.steps[axis];
        let (below, above) = self.rest[position + 1];
        // Strictly between these lies the distance along this axis.
        let (low_here, high_here) = (low - above, high - below);
        let (first, last) = match i128::from(stride) {
            0 if low_here < 0 && 0 < high_here => (least.into(), most.into()),
            0 => return true,
            stride if stride > 0 => (low_here.div_euclid(stride) + 1, (high_here - 1).div_euclid(stride)),
            stride => {
                let stride = -stride;
                (-((high_here - 1).div_euclid(stride)), -(low_here.div_euclid(stride) + 1))
            }
        };
        let (first, last) = (first.max(least.into()), last.min(most.into()));
        let mut count = first;
        while count <= last {
            let distance = count * i128::from(stride);
            // Within the extents of an array.
            self.chosen[axis] = count as i64;
            if !self.choose(position + 1, low - distance, high - distance) {
                return false;
            }
            count += 1;
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[derive(Debug)]
    struct Array {
        first: u64,
        extents: Vec<i64>,
        strides: Vec<i64>,
    }

    impl Array {
        fn lattice(&self) -> Lattice<'_> {
            Lattice { first: self.first, bytes: 4, extents: &self.extents, strides: &self.strides }
        }

        fn elements(&self, indices: &[Interval]) -> Vec<(Vec<i64>, u64)> {
            let mut found = vec![(Vec::new(), self.first)];
            for (axis, &stride) in self.strides.iter().enumerate() {
                let (first, last) = self.lattice().indices(axis, indices);
                let longer = |(index, address): (Vec<i64>, u64)| {
                    (first..=last).map(move |i| {
                        let index = index.iter().copied().chain([i]).collect();
                        (index, address.wrapping_add_signed(i * stride))
                    })
                };
                found = found.into_iter().flat_map(longer).collect();
            }
            found
        }
    }

    #[test]
    fn answers_are_those_of_a_look_at_all_bytes() {
        let mut state = 11_u64;
        let mut random = |below: i64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            ((state >> 33) as i64) % below
        };
        let mut counts = [0; 4];
        for _ in 0..3000 {
            // Slices and transpositions of one array, and other strides.
            let mut array = || {
                let mut array = Array { first: 4096, extents: vec![5, 4, 3], strides: vec![48, 12, 4] };
                for axis in 0..3 {
                    let (extent, stride) = (array.extents[axis], array.strides[axis]);
                    let begin = random(extent);
                    let (every, is_back) = (1 + random(2), random(4) == 0);
                    let length = 1 + random((extent - begin + every - 1) / every);
                    let at = if is_back { begin + (length - 1) * every } else { begin };
                    array.first = array.first.wrapping_add_signed(at * stride);
                    array.extents[axis] = length;
                    array.strides[axis] = if is_back { -stride * every } else { stride * every };
                }
                if random(3) == 0 {
                    array.extents.reverse();
                    array.strides.reverse();
                }
                if random(9) == 0 {
                    array.strides[random(3) as usize] = 0;
                }
                if random(9) == 0 {
                    array.strides[random(3) as usize] = 4 * (1 + random(12));
                }
                if random(9) == 0 {
                    array.first += 2;
                }
                let asked = |extent: i64| {
                    let first = random(extent);
                    Interval { first, last: first + random(extent - first) }
                };
                let indices = array.extents.clone().into_iter().map(asked).collect::<Vec<_>>();
                (array, indices)
            };
            let ((a, mine), (b, theirs)) = (array(), array());
            let bytes = |array: &Array, indices: &[Interval]| -> BTreeSet<u64> {
                array.elements(indices).into_iter().flat_map(|(_, first)| first..first + 4).collect()
            };
            let expected = !bytes(&a, &mine).is_disjoint(&bytes(&b, &theirs));
            let found = a.lattice().meets(&mine, &b.lattice(), &theirs);
            assert!(found || !expected, "{a:?} {mine:?} {b:?} {theirs:?}");
            counts[usize::from(found == expected)] += 1;
            match a.lattice().shift(&b.lattice()) {
                Shift::Unknown => {}
                Shift::Apart => {
                    assert!(bytes(&a, &[]).is_disjoint(&bytes(&b, &[])), "{a:?} {b:?}");
                    counts[2] += 1;
                }
                Shift::By(shift) => {
                    let others = b.elements(&[]);
                    for (index, address) in a.elements(&[]) {
                        for (other, at) in others.iter().filter(|(_, at)| at.abs_diff(address) < 4) {
                            let moved: Vec<i64> = other.iter().zip(&shift).map(|(i, by)| i + by).collect();
                            assert_eq!(index, moved, "{a:?} {b:?} {at}");
                        }
                    }
                    counts[3] += 1;
                }
            }
        }
        // The search is given up for few of them.
        assert!(counts[0] * 50 < counts[1] && counts[2] > 100 && counts[3] > 20, "{counts:?}");
    }

    #[test]
    fn views_of_large_arrays_take_few_tries() {
        let strides = [4_000_000, 4000, 4];
        let whole = Lattice { first: 0, bytes: 4, extents: &[1000, 1000, 1000], strides: &strides };
        let part = Lattice { first: 4_004_008, bytes: 4, extents: &[999, 999, 998], strides: &strides };
        assert_eq!(whole.shift(&part), Shift::By(vec![1, 1, 2]));
        assert_eq!(part.shift(&whole), Shift::By(vec![-1, -1, -2]));
        let back: Vec<i64> = strides.iter().rev().copied().collect();
        let columns = Lattice { first: 4, bytes: 4, extents: &[999, 1000, 1000], strides: &back };
        let at = |i, j, k| [Interval::one(i), Interval::one(j), Interval::one(k)];
        assert!(whole.meets(&at(3, 5, 7), &columns, &at(6, 5, 3)));
        assert!(!whole.meets(&at(3, 5, 7), &columns, &at(7, 5, 3)));
        let odd = Lattice { first: 4, bytes: 4, extents: &[1000, 1000, 500], strides: &[4_000_000, 4000, 8] };
        let even = Lattice { first: 0, ..odd };
        assert_eq!(even.shift(&odd), Shift::Apart);
        assert!(!even.meets(&[], &odd, &[]));
    }
}
