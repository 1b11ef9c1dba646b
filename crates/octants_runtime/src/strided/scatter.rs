//! Copies of elements to a memory that the host does not see.
//!
//! **Bytes of the elements are written, and no others**: what lies between them may be another field's, which another thread or stream writes meanwhile.
//! So the elements go to the device side by side, and from there to their places, by as few verbs as say it: each takes two loops.

use octants_hal::{Device, Rows, Stream};

use super::loops::Pointers;
use super::{Direction, Strided, copy};
use crate::memory::{HostQueue, Memory, MemoryError};
use crate::stream_memory::StreamMemory;

/// Bytes that lie on the device side by side at once. Chosen: long enough for the bus, and little beside the arrays that are copied.
const MAX_BYTES: usize = 64 << 20;

/// Elements as they are sent: side by side in the order of `rows` first, then `slices`, then the others.
struct Packed {
    /// The loops in the order of the packed bytes, the outermost first; their host's strides are those of the packed bytes.
    what: Strided,
    /// The same loops, from the host's bytes to the packed ones.
    packing: Strided,
}

/// Rows to be written: where they lie in the packed bytes and in the memory.
struct Job {
    packed: usize,
    offset: usize,
    rows: Rows,
}

impl Packed {
    /// `None` if elements reach into each other.
    fn new(what: &Strided) -> Option<Self> {
        let mut loops: Vec<_> = what.loops.iter().filter(|one| one.count != 1).copied().collect();
        // The innermost first, as they lie on the device.
        loops.sort_by_key(|one| one.device);
        let mut span = what.run;
        for one in &loops {
            if one.device < span {
                return None;
            }
            span += one.device * (one.count - 1);
        }
        // Loops that continue each other on the device are one there; where they do not on the host, packing makes them so.
        let groups = loops.chunk_by(|inner, outer| outer.device == inner.device * inner.count);
        let mut groups: Vec<_> = groups.map(<[_]>::to_vec).collect();
        let count = |group: &Vec<super::Stride>| group.iter().map(|one| one.count).product::<usize>();
        // The two longest are the innermost: they are told by one verb.
        if groups.len() > 2 {
            let mut longest: Vec<usize> = (0..groups.len()).collect();
            longest.sort_by_key(|&n| std::cmp::Reverse(count(&groups[n])));
            let (first, second) = (longest[0].min(longest[1]), longest[0].max(longest[1]));
            let slices = groups.remove(second);
            let rows = groups.remove(first);
            groups.splice(0..0, [rows, slices]);
        }
        let (mut sent, mut packing, mut bytes) = (Vec::new(), Vec::new(), what.run);
        for one in groups.concat() {
            sent.push(super::Stride { host: bytes, ..one });
            packing.push(super::Stride { count: one.count, device: bytes, host: one.host });
            bytes *= one.count;
        }
        sent.reverse();
        packing.reverse();
        Some(Self {
            what: Strided { offset: what.offset, loops: sent, run: what.run }.merged(),
            packing: Strided { offset: 0, loops: packing, run: what.run },
        })
    }

    /// Whether the host's bytes lie as they are sent.
    fn is_as_on_host(&self) -> bool {
        self.packing.loops.iter().all(|one| one.device == one.host)
    }

    fn bytes(&self) -> usize {
        self.packing.loops.iter().fold(self.packing.run, |bytes, one| bytes * one.count)
    }

    /// What verbs are told, each of at most so many bytes.
    fn jobs(&self, max_bytes: usize) -> Vec<Job> {
        let Strided { offset, loops, run } = &self.what;
        let (others, inner) = loops.split_at(loops.len().saturating_sub(2));
        let (slices, rows) = match inner {
            [] => (None, None),
            [rows] => (None, Some(*rows)),
            [slices, rows, ..] => (Some(*slices), Some(*rows)),
        };
        let (count, stride) = rows.map_or((1, *run), |rows| (rows.count, rows.device));
        let (slice_count, slice_stride) = slices.map_or((1, 0), |slices| (slices.count, slices.device));
        let rows_at_once = (max_bytes / run).clamp(1, count);
        let slices_at_once =
            if rows_at_once < count { 1 } else { (max_bytes / (count * run)).clamp(1, slice_count) };
        let blocks: usize = others.iter().map(|one| one.count).product();
        let mut jobs = Vec::new();
        for block in 0..blocks {
            let (mut packed, mut to, mut n) = (0, *offset, block);
            for one in others.iter().rev() {
                packed += n % one.count * one.host;
                to += n % one.count * one.device;
                n /= one.count;
            }
            for slice in (0..slice_count).step_by(slices_at_once) {
                for row in (0..count).step_by(rows_at_once) {
                    let rows = Rows {
                        bytes: *run,
                        count: rows_at_once.min(count - row),
                        stride,
                        slices: slices_at_once.min(slice_count - slice),
                        slice_stride,
                    };
                    jobs.push(Job {
                        packed: packed + (slice * count + row) * run,
                        offset: to + slice * slice_stride + row * stride,
                        rows,
                    });
                }
            }
        }
        jobs
    }
}

impl Job {
    fn bytes(&self) -> usize {
        self.rows.bytes * self.rows.count * self.rows.slices
    }
}

impl Memory {
    /// Writes elements; the caller has compared both sides with what there is.
    pub(super) fn scatter(
        &self,
        queue: HostQueue<'_>,
        what: &Strided,
        from: &[u8],
    ) -> Result<(), MemoryError> {
        let Some(packed) = Packed::new(what) else { return self.write_one_by_one(queue, what, from) };
        let device = self.context().device();
        let mut own = Vec::new();
        let bytes = if packed.is_as_on_host() {
            &from[..packed.bytes()]
        } else {
            own = pack(device, &packed, from);
            &own
        };
        let stream = self.begin_access(queue)?.stream;
        let told = self.send(queue, stream, &packed.jobs(MAX_BYTES), bytes);
        drop(own);
        self.end_write(queue, told)
    }

    /// Tells the stream of an access to write packed bytes to where they belong.
    fn send(
        &self,
        queue: HostQueue<'_>,
        stream: Stream,
        jobs: &[Job],
        bytes: &[u8],
    ) -> Result<(), MemoryError> {
        let device = self.context().device();
        let mut rest = jobs;
        while let Some(first) = rest.first() {
            let begin = first.packed;
            let fits = |job: &&Job| job.packed + job.bytes() <= begin + MAX_BYTES;
            let count = rest.iter().take_while(fits).count().max(1);
            let (now, later) = rest.split_at(count);
            let end = now.last().map_or(begin, |last| last.packed + last.bytes());
            let sent = StreamMemory::allocate(self.context(), queue.stream, end - begin, queue.cancel)?;
            let to = self.noted_address()?;
            // SAFETY: the elements lie inside this allocation and do not overlap; as many bytes are sent as there is room for.
            unsafe {
                device.copy_to_device(stream, sent.address(), bytes[begin..].as_ptr(), end - begin)?;
                for job in now {
                    let from = sent.address().offset(job.packed - begin);
                    device.scatter(stream, to.offset(job.offset), from, &job.rows)?;
                }
            }
            rest = later;
        }
        Ok(())
    }

    /// Elements that reach into each other: the one that is written last is seen.
    #[cold]
    fn write_one_by_one(&self, queue: HostQueue<'_>, what: &Strided, from: &[u8]) -> Result<(), MemoryError> {
        let elements: usize = what.loops.iter().map(|one| one.count).product();
        for element in 0..elements {
            let (mut offset, mut host, mut n) = (what.offset, 0, element);
            for one in what.loops.iter().rev() {
                offset += n % one.count * one.device;
                host += n % one.count * one.host;
                n /= one.count;
            }
            self.write(queue, offset, &from[host..host + what.run])?;
        }
        Ok(())
    }
}

/// The host's bytes in the order in which they are sent.
fn pack(device: &dyn Device, packed: &Packed, from: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; packed.bytes()];
    let pointers = Pointers { from: from.as_ptr(), to: bytes.as_mut_ptr() };
    // SAFETY: the caller has compared the host's span with what there is; the packed bytes are as long as all elements.
    unsafe { copy(device, &packed.packing, pointers, Direction::ToDevice) };
    bytes
}
