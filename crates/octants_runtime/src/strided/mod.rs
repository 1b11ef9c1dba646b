//! Copies between a device's memory, where elements lie as a tree of nodes puts them, and the host, where they lie in rows.

mod elements;
mod interleave;
mod loops;
mod transpose;

use std::sync::Arc;

use crate::memory::{HostQueue, Memory, MemoryError};
use interleave::Planes;
use loops::{Loop, Pointers};

/// One loop of a strided copy: how many times, and how far it moves on each side, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stride {
    pub count: usize,
    pub device: usize,
    pub host: usize,
}

/// A nest of loops, the outermost first, around a run of bytes that lie side by side on both sides. The device's side begins at
/// an offset into the memory, the host's at the beginning of its bytes. A host stride of zero repeats the host's bytes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Strided {
    pub offset: usize,
    pub loops: Vec<Stride>,
    pub run: usize,
}

impl Strided {
    /// The same copy in as few loops as say it.
    #[must_use]
    pub fn merged(mut self) -> Self {
        self.loops.retain(|one| one.count != 1);
        self.loops.dedup_by(|inner, outer| {
            let joins = outer.device == inner.device * inner.count && outer.host == inner.host * inner.count;
            if joins {
                *outer = Stride { count: outer.count * inner.count, ..*inner };
            }
            joins
        });
        while let Some(&inner) = self.loops.last()
            && inner.device == self.run
            && inner.host == self.run
        {
            self.run *= inner.count;
            self.loops.pop();
        }
        self
    }

    /// One copy that says the same as several, which are alike and lie at one distance from each other: with a loop over them.
    fn joined<'a>(mut copies: impl Iterator<Item = &'a Self> + Clone) -> Option<Self> {
        let all = copies.clone();
        let (first, second) = (copies.next()?, copies.next()?);
        let apart = second.offset.checked_sub(first.offset)?;
        let follows = |(n, copy): (usize, &Self)| {
            copy.run == first.run && copy.loops == first.loops && copy.offset == first.offset + n * apart
        };
        let count = all.clone().count();
        if !all.enumerate().all(follows) {
            return None;
        }
        let mut joined = first.clone();
        joined.loops.push(Stride { count, device: apart, host: first.run });
        Some(joined.merged())
    }

    /// Parts of several copies of the same number of elements, such that a part of all of them stays in a cache: the copies take turns. Each
    /// comes with where its host's bytes begin. `None` if they are not alike.
    fn in_turns(copies: &[Self]) -> Option<Vec<Vec<(Self, usize)>>> {
        let outer = *copies.first()?.loops.first()?;
        let is_alike = |one: &Self| one.loops.first().is_some_and(|own| own.count == outer.count);
        if !copies.iter().all(is_alike) {
            return None;
        }
        let at_once = (TURN_BYTES / outer.host.max(outer.device).max(1)).max(1);
        let part = |first: usize| {
            let count = at_once.min(outer.count - first);
            let of = |copy: &Self| {
                let mut loops = copy.loops.clone();
                loops[0].count = count;
                let offset = copy.offset + first * loops[0].device;
                let host = first * loops[0].host;
                (Self { offset, loops, run: copy.run }, host)
            };
            copies.iter().map(of).collect()
        };
        Some((0..outer.count).step_by(at_once).map(part).collect())
    }

    /// Bytes from the first to the last that the device's side touches.
    fn device_span(&self) -> Option<usize> {
        self.span(|one| one.device)
    }

    fn host_span(&self) -> Option<usize> {
        self.span(|one| one.host)
    }

    fn span(&self, stride: impl Fn(&Stride) -> usize) -> Option<usize> {
        if self.loops.iter().any(|one| one.count == 0) {
            return Some(0);
        }
        let reach = |sum: usize, one: &Stride| sum.checked_add(stride(one).checked_mul(one.count - 1)?);
        self.loops.iter().try_fold(self.run, reach)
    }
}

/// Bytes of the host that copies which take turns go over at once: half of a usual first-level cache.
const TURN_BYTES: usize = 16 << 10;

/// The host's bytes of a copy.
pub enum HostSide<'a> {
    Read(&'a [u8]),
    Written(&'a mut [u8]),
}

impl HostSide<'_> {
    pub fn len(&self) -> usize {
        match self {
            Self::Read(from) => from.len(),
            Self::Written(to) => to.len(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Which side is written.
#[derive(Clone, Copy)]
enum Direction {
    ToHost,
    ToDevice,
}

impl Memory {
    /// Copies elements to the host, and waits.
    pub fn read_strided(
        &self,
        queue: HostQueue<'_>,
        what: &Strided,
        to: &mut [u8],
    ) -> Result<(), MemoryError> {
        let span = self.checked(what, to.len())?;
        if span == 0 {
            return Ok(());
        }
        if what.loops.is_empty() {
            return self.read(queue, what.offset, &mut to[..what.run]);
        }
        if let Some(base) = self.host_pointer()? {
            self.wait(queue)?;
            // SAFETY: the whole span lies inside this allocation and the other inside the slice, which are distinct.
            unsafe {
                copy(what, Pointers { from: base.add(what.offset), to: to.as_mut_ptr() }, Direction::ToHost);
            }
            return Ok(());
        }
        let mut staging = vec![0; span];
        self.read(queue, what.offset, &mut staging)?;
        // SAFETY: as above; the staging holds the span.
        unsafe { copy(what, Pointers { from: staging.as_ptr(), to: to.as_mut_ptr() }, Direction::ToHost) };
        Ok(())
    }

    /// Copies elements from the host, and waits. Bytes between them stay as they are.
    pub fn write_strided(
        &self,
        queue: HostQueue<'_>,
        what: &Strided,
        from: &[u8],
    ) -> Result<(), MemoryError> {
        let span = self.checked(what, from.len())?;
        if span == 0 {
            return Ok(());
        }
        if what.loops.is_empty() {
            return self.write(queue, what.offset, &from[..what.run]);
        }
        if let Some(base) = self.host_pointer()? {
            self.wait(queue)?;
            // SAFETY: as in `read_strided`. Kernels and views that touch the same bytes race, as `Memory` says.
            unsafe {
                copy(what, Pointers { from: from.as_ptr(), to: base.add(what.offset) }, Direction::ToDevice);
            }
            return Ok(());
        }
        let mut staging = vec![0; span];
        self.read(queue, what.offset, &mut staging)?;
        // SAFETY: as above.
        unsafe {
            copy(what, Pointers { from: from.as_ptr(), to: staging.as_mut_ptr() }, Direction::ToDevice);
        }
        self.write(queue, what.offset, &staging)
    }

    /// The bytes that the device's side spans, if both sides have them.
    fn checked(&self, what: &Strided, host: usize) -> Result<usize, MemoryError> {
        let span = what.device_span().ok_or(MemoryError::Range)?;
        let end = what.offset.checked_add(span).ok_or(MemoryError::Range)?;
        if end > self.bytes() || what.host_span().is_none_or(|bytes| bytes > host) {
            return Err(MemoryError::Range);
        }
        Ok(span)
    }
}

/// Several copies between the memory of each and the host, where the elements of all that have one index lie side by side, in the order of
/// the copies. Waits.
pub fn copy_together(
    copies: &[(Arc<Memory>, Strided)],
    mut host: HostSide<'_>,
    queue: HostQueue<'_>,
) -> Result<(), MemoryError> {
    if interleave_planes(copies, &mut host, queue)? {
        return Ok(());
    }
    if let Some((memory, whole)) = as_one(copies) {
        return match &mut host {
            HostSide::Read(from) => memory.write_strided(queue, &whole, from),
            HostSide::Written(to) => memory.read_strided(queue, &whole, to),
        };
    }
    let begins: Vec<usize> = copies
        .iter()
        .scan(0, |next, (_, copy)| {
            let begin = *next;
            *next += copy.run;
            Some(begin)
        })
        .collect();
    let all: Vec<Strided> = copies.iter().map(|(_, copy)| copy.clone().merged()).collect();
    let seen = copies.iter().all(|(memory, _)| matches!(memory.host_pointer(), Ok(Some(_))));
    // Copies that go to another memory are few and long.
    let turns = if seen { Strided::in_turns(&all) } else { None };
    let turns = turns.unwrap_or_else(|| vec![all.into_iter().map(|copy| (copy, 0)).collect()]);
    for turn in &turns {
        for (((copy, first), begin), (memory, _)) in turn.iter().zip(&begins).zip(copies) {
            match &mut host {
                HostSide::Read(from) => memory.write_strided(queue, copy, &from[first + begin..])?,
                HostSide::Written(to) => memory.read_strided(queue, copy, &mut to[first + begin..])?,
            }
        }
    }
    Ok(())
}

/// Several copies of one memory that the host sees, as one.
fn as_one(copies: &[(Arc<Memory>, Strided)]) -> Option<(&Arc<Memory>, Strided)> {
    let (memory, _) = copies.first()?;
    let is_seen = matches!(memory.host_pointer(), Ok(Some(_)));
    if !is_seen || copies.iter().any(|(other, _)| !Arc::ptr_eq(memory, other)) {
        return None;
    }
    Some((memory, Strided::joined(copies.iter().map(|(_, copy)| copy))?))
}

/// Copies whose elements lie side by side in the device's memory, if the host sees it; says whether they are such.
fn interleave_planes(
    copies: &[(Arc<Memory>, Strided)],
    host: &mut HostSide<'_>,
    queue: HostQueue<'_>,
) -> Result<bool, MemoryError> {
    let Some((first_memory, first)) = copies.first() else { return Ok(false) };
    let (width, planes) = (first.run, copies.len());
    let alike = |(_, copy): &(Arc<Memory>, Strided)| copy.run == width && copy.loops == first.loops;
    if !Planes::fits(planes, width) || !copies.iter().all(alike) {
        return Ok(false);
    }
    let joined = Strided { run: 0, ..first.clone() }.merged();
    let Some((row, outer)) = joined.loops.split_last() else { return Ok(false) };
    if row.device != width || row.host != planes * width {
        return Ok(false);
    }
    let Some(base) = first_memory.host_pointer()? else { return Ok(false) };
    let mut offsets = Vec::with_capacity(planes);
    for (n, (memory, copy)) in copies.iter().enumerate() {
        memory.checked(copy, host.len().saturating_sub(n * width))?;
        memory.wait(queue)?;
        let Some(own) = memory.host_pointer()? else { return Ok(false) };
        offsets.push((own as isize).wrapping_sub(base as isize) + copy.offset as isize);
    }
    let (from, to, direction) = match host {
        HostSide::Read(from) => (from.as_ptr(), base, Direction::ToDevice),
        HostSide::Written(to) => (base.cast_const(), to.as_mut_ptr(), Direction::ToHost),
    };
    let outer: Vec<Loop> = outer.iter().map(|one| Loop::new(one, direction)).collect();
    let planes = Planes { offsets: &offsets, width, count: row.count, outer: &outer, direction };
    // SAFETY: each plane's span lies inside its allocation, and all elements inside the host's bytes, which are distinct from those.
    unsafe { planes.copy(Pointers { from, to }) };
    Ok(true)
}

/// Code of its own for each of these lengths of a run: of scalars, and of usual vectors and matrices.
macro_rules! by_width {
    ($what:ident, $pointers:ident, $loops:ident: $($width:literal)*) => {
        match $what.run {
            $($width => elements::copy::<$width>($loops, $pointers),)*
            run => elements::runs(run, &$loops, $pointers),
        }
    };
}

/// # Safety
/// Both sides have their span of bytes, and do not overlap.
unsafe fn copy(what: &Strided, pointers: Pointers, direction: Direction) {
    let loops: Vec<Loop> = what.loops.iter().map(|one| Loop::new(one, direction)).collect();
    // SAFETY: the caller's promise; the run is the one that the elements are copied by.
    unsafe { by_width!(what, pointers, loops: 1 2 3 4 6 8 9 12 16 18 24 32 36 48 64 72 128) }
}

#[cfg(test)]
mod tests {
    use octants_hal::null::NullDevice;

    use super::*;
    use crate::context::Context;

    fn stride(count: usize, device: usize, host: usize) -> Stride {
        Stride { count, device, host }
    }

    #[test]
    fn what_lies_side_by_side_on_both_sides_is_one_run() {
        let rows =
            Strided { offset: 0, loops: vec![stride(3, 32, 32), stride(1, 9, 9), stride(4, 8, 8)], run: 8 };
        assert_eq!(rows.merged(), Strided { offset: 0, loops: vec![], run: 96 });
        let columns = Strided { offset: 4, loops: vec![stride(3, 8, 32), stride(4, 24, 8)], run: 8 };
        assert_eq!(columns.clone().merged(), columns);
        let repeated = Strided { offset: 0, loops: vec![stride(3, 32, 0), stride(4, 8, 0)], run: 8 };
        assert_eq!(repeated.merged().loops, [stride(12, 8, 0)]);
    }

    #[test]
    fn elements_of_every_width_change_places() {
        for (width, rows, columns) in [
            (1, 600, 531),
            (2, 400, 371),
            (3, 5, 4000),
            (4, 270, 261),
            (5, 150, 131),
            (8, 190, 231),
            (12, 7000, 3),
            (24, 150, 131),
            (36, 101, 131),
            (72, 150, 65),
            // Few lines on one side.
            (4, 7000, 3),
            (4, 3, 7001),
            (8, 16, 999),
            (2, 1001, 5),
            (1, 13, 1003),
            // So many bytes that they are written past the caches.
            (4, 2101, 1103),
            (1, 3001, 3111),
        ] {
            let elements = |n: usize| (0..width).map(move |byte| (n * 31 + byte * 7) as u8);
            let from: Vec<u8> = (0..rows * columns).flat_map(elements).collect();
            let mut to = vec![0; from.len()];
            let loops = vec![stride(columns, width, rows * width), stride(rows, columns * width, width)];
            let what = Strided { offset: 0, loops, run: width };
            // SAFETY: both sides have all elements.
            unsafe { copy(&what, Pointers { from: from.as_ptr(), to: to.as_mut_ptr() }, Direction::ToHost) };
            for n in 0..rows * columns {
                let (row, column) = (n / columns, n % columns);
                let place = (column * rows + row) * width;
                assert_eq!(to[place..place + width], from[n * width..][..width], "{width}: {row}, {column}");
            }
        }
    }

    #[test]
    fn axes_of_any_order_change_places() {
        // Axes of the host, and in which order the device has them.
        let cases: [([usize; 4], [usize; 4]); 6] = [
            ([17, 3, 40, 5], [3, 2, 1, 0]),
            ([9, 33, 2, 18], [1, 3, 0, 2]),
            ([5, 6, 7, 8], [2, 3, 1, 0]),
            ([300, 2, 3, 4], [3, 2, 1, 0]),
            ([2, 3, 4, 300], [3, 1, 2, 0]),
            ([16, 16, 16, 16], [3, 0, 2, 1]),
        ];
        for (shape, order) in cases {
            let strides = |axes: [usize; 4]| {
                let mut strides = [0; 4];
                let mut next = 4;
                for &axis in axes.iter().rev() {
                    strides[axis] = next;
                    next *= shape[axis];
                }
                strides
            };
            let (host, device) = (strides([0, 1, 2, 3]), strides(order));
            let bytes = 4 * shape.iter().product::<usize>();
            let from: Vec<u8> = (0..bytes).map(|n| (n * 37 + n / 251) as u8).collect();
            let loops = (0..4).map(|axis| stride(shape[axis], device[axis], host[axis])).collect();
            let what = Strided { offset: 0, loops, run: 4 };
            for (direction, [near, far]) in
                [(Direction::ToHost, [device, host]), (Direction::ToDevice, [host, device])]
            {
                let mut to = vec![0; bytes];
                // SAFETY: both sides have all elements.
                unsafe { copy(&what, Pointers { from: from.as_ptr(), to: to.as_mut_ptr() }, direction) };
                for n in 0..bytes / 4 {
                    let place = |strides: [usize; 4]| {
                        let mut rest = n;
                        (0..4).rev().fold(0, |sum, axis| {
                            let index = rest % shape[axis];
                            rest /= shape[axis];
                            sum + index * strides[axis]
                        })
                    };
                    let (read, written) = (place(near), place(far));
                    assert_eq!(to[written..written + 4], from[read..read + 4], "{shape:?}, {order:?}: {n}");
                }
            }
        }
    }

    #[test]
    fn entries_that_lie_apart_come_together_whatever_their_number_and_width() {
        for width in [1, 2, 4, 8] {
            for planes in 2..=interleave::MAX_PLANES {
                let (rows, count) = (3, 37);
                // Rows of a plane lie further apart than they are long, and planes in another order than on the host.
                let row = (count + 2) * width;
                let offsets: Vec<isize> = (0..planes).rev().map(|n| (n * rows * row) as isize).collect();
                let device: Vec<u8> = (0..planes * rows * row).map(|n| (n * 37 + n / 251) as u8).collect();
                let mut host = vec![0; rows * count * planes * width];
                let line = stride(rows, row, count * planes * width);
                let copy = |direction, pointers| {
                    let outer = [Loop::new(&line, direction)];
                    let planes = Planes { offsets: &offsets, width, count, outer: &outer, direction };
                    // SAFETY: both sides have all elements.
                    unsafe { planes.copy(pointers) }
                };
                if !Planes::fits(planes, width) {
                    continue;
                }
                copy(Direction::ToHost, Pointers { from: device.as_ptr(), to: host.as_mut_ptr() });
                let mut back = vec![0; device.len()];
                copy(Direction::ToDevice, Pointers { from: host.as_ptr(), to: back.as_mut_ptr() });
                for n in 0..rows * count * planes {
                    let (index, plane) = (n / planes, n % planes);
                    let at = offsets[plane] as usize + index / count * row + index % count * width;
                    assert_eq!(host[n * width..][..width], device[at..][..width], "{width}, {planes}: {n}");
                    assert_eq!(back[at..][..width], device[at..][..width], "{width}, {planes}: {n}");
                }
            }
        }
    }

    #[test]
    fn columns_that_lie_apart_come_together_as_one_copy() {
        for (width, planes, rows, columns, apart) in
            [(4, 3, 37, 53, 0), (4, 17, 9, 10, 0), (12, 2, 20, 31, 8), (8, 3, 70, 3, 16), (3, 3, 5, 7, 1)]
        {
            let plane = rows * columns * width + apart;
            // Rows are whole columns of the device's.
            let loops = vec![
                stride(rows, width, columns * planes * width),
                stride(columns, rows * width, planes * width),
            ];
            let one = |n| Strided { offset: n * plane, loops: loops.clone(), run: width };
            let copies: Vec<Strided> = (0..planes).map(one).collect();
            let joined = Strided::joined(copies.iter()).unwrap();
            let device: Vec<u8> = (0..planes * plane).map(|n| (n * 37 + n / 251) as u8).collect();
            let mut host = vec![0; planes * rows * columns * width];
            let mut back = vec![0; planes * plane];
            // SAFETY: both sides have all elements.
            unsafe {
                let there = Pointers { from: device.as_ptr(), to: host.as_mut_ptr() };
                copy(&joined, there, Direction::ToHost);
                copy(&joined, Pointers { from: host.as_ptr(), to: back.as_mut_ptr() }, Direction::ToDevice);
            }
            for n in 0..planes * rows * columns {
                let (row, column, entry) = (n / planes / columns, n / planes % columns, n % planes);
                let at = entry * plane + (column * rows + row) * width;
                assert_eq!(host[n * width..][..width], device[at..][..width], "{width}, {planes}: {n}");
            }
            for n in 0..planes * plane {
                // What lies between the planes is left alone.
                let is_between = n % plane >= plane - apart;
                assert_eq!(back[n], if is_between { 0 } else { device[n] }, "{width}, {planes}: {n}");
            }
            let unlike = [one(0), Strided { run: width + 1, ..one(1) }];
            let uneven = [one(0), one(1), one(1)];
            let backward = [one(1), one(0)];
            for refused in [&unlike[..], &uneven, &backward, &copies[..1]] {
                assert_eq!(Strided::joined(refused.iter()), None);
            }
        }
    }

    #[test]
    fn what_reaches_outside_is_refused() {
        let context = Context::new(Arc::new(NullDevice::new()));
        let memory = Memory::allocate(&context, 64).unwrap();
        let columns = |offset| Strided { offset, loops: vec![stride(3, 8, 16), stride(2, 24, 8)], run: 8 };
        assert_eq!(
            memory.read_strided(HostQueue::default(), &columns(0), &mut [0; 47]),
            Err(MemoryError::Range)
        );
        assert_eq!(
            memory.write_strided(HostQueue::default(), &columns(20), &[0; 48]),
            Err(MemoryError::Range)
        );
        let endless = Strided { offset: 8, loops: vec![stride(usize::MAX, usize::MAX, 0)], run: 8 };
        assert_eq!(memory.write_strided(HostQueue::default(), &endless, &[0; 48]), Err(MemoryError::Range));
        let none = Strided { offset: 0, loops: vec![stride(0, 8, 8)], run: 8 };
        assert_eq!(memory.write_strided(HostQueue::default(), &none, &[]), Ok(()));
    }
}
