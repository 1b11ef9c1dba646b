//! Copies between a device's memory, where elements lie as a tree of nodes puts them, and the host, where they lie in rows.

mod elements;
mod interleave;
mod loops;
mod parts;
mod scatter;
mod transpose;

use std::sync::Arc;

use octants_hal::Device;

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

    /// Whether elements lie on both sides in the same way.
    fn is_alike(&self) -> bool {
        self.loops.iter().all(|one| one.device == one.host)
    }

    /// Whether both sides may have bytes in common where they lie in one memory, and the host's begins at this offset there.
    fn may_overlap(&self, host: usize) -> bool {
        let (Some(device_span), Some(host_span)) = (self.device_span(), self.host_span()) else {
            return true;
        };
        if self.offset + device_span <= host || host + host_span <= self.offset {
            return false;
        }
        if !self.is_alike() {
            return true;
        }
        let mut loops = self.loops.clone();
        loops.sort_by_key(|one| one.device);
        let apart = self.offset as i128 - host as i128;
        Self::meet(&loops, self.run as i128, apart)
    }

    /// Whether two elements of which one is moved so far have bytes in common. The loops are of one side, the outermost last.
    fn meet(loops: &[Stride], run: i128, apart: i128) -> bool {
        let Some((outer, inner)) = loops.split_last() else { return apart.abs() < run };
        let (stride, count) = (outer.device as i128, outer.count as i128);
        let inside = inner.iter().fold(run, |span, one| span + one.device as i128 * (one.count as i128 - 1));
        if inside > stride {
            // Iterations reach into each other.
            return true;
        }
        // Iterations that lie further from each other than the move do not meet.
        let nearest = apart.div_euclid(stride);
        let is_iteration = |n: &i128| n.abs() < count;
        [nearest, nearest + 1]
            .into_iter()
            .filter(is_iteration)
            .any(|n| Self::meet(inner, run, apart - n * stride))
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
        let device = self.context().device();
        if let Some(base) = self.host_pointer()? {
            self.wait(queue)?;
            // SAFETY: the whole span lies inside this allocation and the other inside the slice, which are distinct.
            unsafe {
                copy(
                    device,
                    what,
                    Pointers { from: base.add(what.offset), to: to.as_mut_ptr() },
                    Direction::ToHost,
                );
            }
            return Ok(());
        }
        let mut staging = vec![0; span];
        self.read(queue, what.offset, &mut staging)?;
        // SAFETY: as above; the staging holds the span.
        unsafe {
            copy(device, what, Pointers { from: staging.as_ptr(), to: to.as_mut_ptr() }, Direction::ToHost);
        }
        Ok(())
    }

    /// Copies elements from the host. Bytes between them are not touched.
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
        let device = self.context().device();
        if let Some(base) = self.host_pointer()? {
            self.wait(queue)?;
            // SAFETY: as in `read_strided`. Kernels and views that touch the same bytes race, as `Memory` says.
            unsafe {
                copy(
                    device,
                    what,
                    Pointers { from: from.as_ptr(), to: base.add(what.offset) },
                    Direction::ToDevice,
                );
            }
            return Ok(());
        }
        self.scatter(queue, what, from)
    }

    /// Copies elements of another memory of the same context, or of this one, which stands for the host's side from an offset on. Says whether it did: both
    /// must be in memory that the host sees, and share no bytes that could be written before they are read. Waits, unless it is one run.
    pub fn copy_strided(
        &self,
        queue: HostQueue<'_>,
        what: &Strided,
        other: &Self,
        other_offset: usize,
    ) -> Result<bool, MemoryError> {
        if !Arc::ptr_eq(self.context(), other.context()) {
            return Err(MemoryError::Range);
        }
        let host = other.bytes().checked_sub(other_offset).ok_or(MemoryError::Range)?;
        let span = self.checked(what, host)?;
        let (Some(to), Some(from)) = (self.host_pointer()?, other.host_pointer()?) else { return Ok(false) };
        let is_same = std::ptr::eq(to, from);
        if span == 0 || is_same && what.offset == other_offset && what.is_alike() {
            return Ok(true);
        }
        if is_same && what.may_overlap(other_offset) {
            return Ok(false);
        }
        if what.loops.is_empty() {
            return self.copy_range(queue, what.offset, other, other_offset, what.run).map(|()| true);
        }
        other.wait(queue)?;
        self.wait(queue)?;
        let device = self.context().device();
        // SAFETY: both spans lie inside their allocations, and share no bytes. Kernels and views that touch the same bytes race, as `Memory` says.
        unsafe {
            let pointers = Pointers { from: from.add(other_offset), to: to.add(what.offset) };
            copy(device, what, pointers, Direction::ToDevice);
        }
        Ok(true)
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

/// Several copies of one memory, as one.
fn as_one(copies: &[(Arc<Memory>, Strided)]) -> Option<(&Arc<Memory>, Strided)> {
    let (memory, _) = copies.first()?;
    if copies.iter().any(|(other, _)| !Arc::ptr_eq(memory, other)) {
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
    let Some(row) = joined.loops.last() else { return Ok(false) };
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
    let loops: Vec<Loop> = joined.loops.iter().map(|one| Loop::new(one, direction)).collect();
    let bytes = loops.iter().fold(planes * width, |bytes, one| bytes.saturating_mul(one.count));
    let planes = Planes { offsets: &offsets, width, direction };
    let device = first_memory.context().device();
    // SAFETY: each plane's span lies inside its allocation, and all elements inside the host's bytes, which are distinct from those.
    unsafe {
        let part = |loops: &[Loop], pointers: Pointers| planes.copy(loops, pointers);
        parts::in_parts(device, width, &loops, bytes, Pointers { from, to }, &part);
    }
    Ok(true)
}

/// # Safety
/// Both sides have their span of bytes, and do not overlap.
unsafe fn copy(device: &dyn Device, what: &Strided, pointers: Pointers, direction: Direction) {
    let loops: Vec<Loop> = what.loops.iter().map(|one| Loop::new(one, direction)).collect();
    let bytes = loops.iter().fold(what.run, |bytes, one| bytes.saturating_mul(one.count));
    // SAFETY: the caller's promise, for parts of what it promises.
    unsafe {
        parts::in_parts(device, what.run, &loops, bytes, pointers, &|loops, pointers| {
            elements::copy(what.run, loops, bytes, pointers);
        });
    }
}

#[cfg(test)]
mod tests;
