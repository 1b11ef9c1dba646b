//! Copies between a device's memory, where elements lie as a tree of nodes puts them, and the host, where they lie in rows.

use std::ptr;

use crate::memory::{HostQueue, Memory, MemoryError};
use crate::transpose::{self, Tile};

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

    /// Parts of several copies of the same number of elements, such that a part of all of them stays in a cache: the copies take turns. Each
    /// comes with where its host's bytes begin. `None` if they are not alike.
    pub fn in_turns(copies: &[Self]) -> Option<Vec<Vec<(Self, usize)>>> {
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

/// Both sides of a copy as they lie in the host's memory.
#[derive(Clone, Copy)]
struct Pointers {
    from: *const u8,
    to: *mut u8,
}

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

/// Code of its own for each of these lengths of a run: of scalars, and of usual vectors and matrices.
macro_rules! by_width {
    ($what:ident, $pointers:ident, $direction:ident: $($width:literal)*) => {
        match $what.run {
            $($width => Elements::<$width>.copy($what, $pointers, $direction),)*
            _ => runs($what, $pointers, $direction),
        }
    };
}

/// # Safety
/// Both sides have their span of bytes, and do not overlap.
unsafe fn copy(what: &Strided, pointers: Pointers, direction: Direction) {
    // SAFETY: the caller's promise; the run is the one that the elements are copied by.
    unsafe { by_width!(what, pointers, direction: 1 2 3 4 6 8 9 12 16 18 24 32 36 48 64 72) }
}

/// Runs that are long, or of an odd length.
///
/// # Safety
/// See [`copy`].
unsafe fn runs(what: &Strided, pointers: Pointers, direction: Direction) {
    let loops: Vec<Loop> = what.loops.iter().map(|one| Loop::new(one, direction)).collect();
    // SAFETY: the caller's promise.
    unsafe { nest(&loops, pointers, &|Pointers { from, to }| ptr::copy_nonoverlapping(from, to, what.run)) };
}

#[derive(Clone, Copy)]
struct Loop {
    count: usize,
    from: usize,
    to: usize,
}

impl Loop {
    fn new(one: &Stride, direction: Direction) -> Self {
        match direction {
            Direction::ToHost => Self { count: one.count, from: one.device, to: one.host },
            Direction::ToDevice => Self { count: one.count, from: one.host, to: one.device },
        }
    }

    /// # Safety
    /// `times` is at most the count.
    unsafe fn advanced(self, pointers: Pointers, times: usize) -> Pointers {
        // SAFETY: both ends stay inside their span.
        unsafe {
            Pointers { from: pointers.from.add(self.from * times), to: pointers.to.add(self.to * times) }
        }
    }
}

/// # Safety
/// See [`copy`]; `inside` copies what the loops leave.
unsafe fn nest(loops: &[Loop], pointers: Pointers, inside: &dyn Fn(Pointers)) {
    let Some((&outer, inner)) = loops.split_first() else { return inside(pointers) };
    for n in 0..outer.count {
        // SAFETY: `n` is below the count.
        unsafe { nest(inner, outer.advanced(pointers, n), inside) };
    }
}

/// The longest side of a tile.
const TILE_SIDE: usize = 64;

/// Bytes of a tile: it stays in a first-level cache with what it is copied from and to.
const TILE_BYTES: usize = 8192;

/// Elements of a tile's side.
const fn tile_side(width: usize) -> usize {
    match width {
        1 | 2 => TILE_SIDE,
        0 | 3..=8 => 32,
        9..=32 => 16,
        _ => 8,
    }
}

/// Elements of `N` bytes.
struct Elements<const N: usize>;

impl<const N: usize> Elements<N> {
    /// # Safety
    /// See [`copy`]; the run is `N` bytes.
    unsafe fn copy(self, what: &Strided, pointers: Pointers, direction: Direction) {
        let mut loops: Vec<Loop> = what.loops.iter().map(|one| Loop::new(one, direction)).collect();
        let along = |stride: fn(&Loop) -> usize| (0..loops.len()).min_by_key(|&n| stride(&loops[n]));
        // SAFETY: the loops are the same in another order.
        unsafe {
            match (along(|one| one.from), along(|one| one.to)) {
                (Some(read), Some(written)) if read != written => {
                    let (reading, writing) = (loops[read], loops[written]);
                    loops.remove(read.max(written));
                    loops.remove(read.min(written));
                    nest(&loops, pointers, &|pointers| Self::tiles(reading, writing, pointers));
                }
                (Some(inner), _) => {
                    let inner = loops.remove(inner);
                    nest(&loops, pointers, &|pointers| Self::row(inner, pointers));
                }
                (None, _) => ptr::copy_nonoverlapping(pointers.from, pointers.to, N),
            }
        }
    }

    /// # Safety
    /// See [`copy`].
    unsafe fn row(one: Loop, pointers: Pointers) {
        for n in 0..one.count {
            // SAFETY: `n` is below the count; elements lie anywhere, which arrays of bytes may.
            unsafe {
                let Pointers { from, to } = one.advanced(pointers, n);
                *to.cast::<[u8; N]>() = *from.cast::<[u8; N]>();
            }
        }
    }

    /// Neighbours where it is read lie far apart where it is written. A tile goes through a buffer, so that on both sides whole
    /// lines are touched at once, however the strides fall into the cache's sets.
    ///
    /// # Safety
    /// See [`copy`].
    unsafe fn tiles(reading: Loop, writing: Loop, pointers: Pointers) {
        let side = tile_side(N);
        let mut tile = [0_u8; TILE_BYTES];
        let (elements, _) = tile.as_chunks_mut::<N>();
        for left in (0..writing.count).step_by(side) {
            let columns = side.min(writing.count - left);
            for top in (0..reading.count).step_by(side) {
                let rows = side.min(reading.count - top);
                // SAFETY: `top + rows` and `left + columns` are at most the counts.
                unsafe {
                    let corner = writing.advanced(reading.advanced(pointers, top), left);
                    let is_whole = rows == side && columns == side;
                    if transpose::is_quick(N) && is_whole && reading.from == N && writing.to == N {
                        let Pointers { from, to } = corner;
                        let lines = Tile { from, to, from_line: writing.from, to_line: reading.to };
                        transpose::transpose::<N>(lines, side, elements.as_flattened_mut());
                        continue;
                    }
                    for column in 0..columns {
                        let begin = writing.advanced(corner, column);
                        for row in 0..rows {
                            elements[row * side + column] =
                                *reading.advanced(begin, row).from.cast::<[u8; N]>();
                        }
                    }
                    for row in 0..rows {
                        let begin = reading.advanced(corner, row);
                        for (column, element) in elements[row * side..][..columns].iter().enumerate() {
                            *writing.advanced(begin, column).to.cast::<[u8; N]>() = *element;
                        }
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

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
        for width in [1, 2, 3, 4, 5, 8, 12, 24, 36, 72] {
            let (rows, columns) = (150, 131);
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
