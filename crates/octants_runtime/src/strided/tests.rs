use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use octants_hal::host::HostMemory;
use octants_hal::null::NullDevice;
use octants_hal::{Address, Capabilities, DeviceError, Stream, forward_verbs};

use super::*;
use crate::context::Context;

/// A device in the host's memory, whose parts run on threads of their own.
struct ThreadedDevice {
    inner: NullDevice,
    memory: HostMemory,
    threads: usize,
    /// The host says that it does not see the memory.
    is_far: bool,
    /// Bytes that were copied from it.
    read: AtomicUsize,
}

impl ThreadedDevice {
    fn new(threads: usize) -> Self {
        let (inner, memory, read) = (NullDevice::new(), HostMemory::new(), AtomicUsize::new(0));
        Self { inner, memory, threads, is_far: false, read }
    }

    fn far() -> Self {
        Self { is_far: true, ..Self::new(1) }
    }
}

// SAFETY: allocations are the system's, and no code is run.
unsafe impl Device for ThreadedDevice {
    forward_verbs!(
        is_usable_in_child,
        is_at_rest,
        name,
        properties,
        clock_rate,
        default_stream,
        copies,
        begin_exclusive,
        end_exclusive,
        waits_for_exclusive,
        fork_costs,
        reserve,
        commit,
        reservable,
        reserve_range,
        back,
        write_beside,
        read_beside,
        allocate_shared,
        free_shared,
        fill,
        create_stream,
        destroy_stream,
        create_event,
        destroy_event,
        record_event,
        wait_event,
        event_passed,
        poll_event,
        synchronise_event,
        elapsed,
        synchronise,
        is_idle,
        poll,
        assist,
        assemble,
        load_module,
        unload_module,
        function,
        function_usage,
        launch,
    );

    fn capabilities(&self) -> Capabilities {
        if self.is_far { Capabilities::NONE } else { Capabilities::HOST_MEMORY }
    }

    unsafe fn copy_to_device(
        &self,
        _stream: Stream,
        to: Address,
        from: *const u8,
        bytes: usize,
    ) -> Result<(), DeviceError> {
        // SAFETY: the caller keeps the verb's contract.
        unsafe { octants_hal::host::copy(to.as_ptr(), from, bytes) };
        Ok(())
    }

    unsafe fn copy_to_host(
        &self,
        _stream: Stream,
        to: *mut u8,
        from: Address,
        bytes: usize,
    ) -> Result<(), DeviceError> {
        self.read.fetch_add(bytes, Ordering::Relaxed);
        // SAFETY: the caller keeps the verb's contract.
        unsafe { octants_hal::host::copy(to, from.as_ptr(), bytes) };
        Ok(())
    }

    fn is_immediate(&self, _stream: Stream) -> bool {
        true
    }

    unsafe fn allocate(&self, _stream: Stream, bytes: usize) -> Result<Address, DeviceError> {
        self.memory.allocate(bytes)
    }

    unsafe fn free(&self, _stream: Stream, address: Address, bytes: usize) {
        // SAFETY: allocated above.
        unsafe { self.memory.free(address, bytes) };
    }

    unsafe fn copy(
        &self,
        _stream: Stream,
        to: Address,
        from: Address,
        bytes: usize,
    ) -> Result<(), DeviceError> {
        // SAFETY: the caller keeps the verb's contract.
        unsafe { octants_hal::host::copy(to.as_ptr(), from.as_ptr(), bytes) };
        Ok(())
    }

    fn host_threads(&self) -> usize {
        self.threads
    }

    fn run_on_host(&self, parts: u64, work: &(dyn Fn(u64, u64) + Sync)) {
        thread::scope(|scope| {
            let begins = (0..parts).step_by(2);
            begins.for_each(|begin| drop(scope.spawn(move || work(begin, parts.min(begin + 2)))));
        });
    }
}

/// What a nest of loops copies, element by element.
fn copied(what: &Strided, from: &[u8], to: &mut [u8], direction: Direction) {
    let loops: Vec<Loop> = what.loops.iter().map(|one| Loop::new(one, direction)).collect();
    let points: usize = loops.iter().map(|one| one.count).product();
    for mut n in 0..points {
        let (mut source, mut target) = (0, 0);
        for one in loops.iter().rev() {
            source += n % one.count * one.from;
            target += n % one.count * one.to;
            n /= one.count;
        }
        to[target..target + what.run].copy_from_slice(&from[source..source + what.run]);
    }
}

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
        unsafe {
            copy(
                &NullDevice::new(),
                &what,
                Pointers { from: from.as_ptr(), to: to.as_mut_ptr() },
                Direction::ToHost,
            );
        };
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
            unsafe {
                copy(
                    &NullDevice::new(),
                    &what,
                    Pointers { from: from.as_ptr(), to: to.as_mut_ptr() },
                    direction,
                );
            };
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
                let loops =
                    [line, stride(count, width, planes * width)].map(|one| Loop::new(&one, direction));
                let planes = Planes { offsets: &offsets, width, direction };
                // SAFETY: both sides have all elements.
                unsafe { planes.copy(&loops, pointers) }
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
            copy(&NullDevice::new(), &joined, there, Direction::ToHost);
            copy(
                &NullDevice::new(),
                &joined,
                Pointers { from: host.as_ptr(), to: back.as_mut_ptr() },
                Direction::ToDevice,
            );
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
    assert_eq!(memory.read_strided(HostQueue::default(), &columns(0), &mut [0; 47]), Err(MemoryError::Range));
    assert_eq!(memory.write_strided(HostQueue::default(), &columns(20), &[0; 48]), Err(MemoryError::Range));
    let endless = Strided { offset: 8, loops: vec![stride(usize::MAX, usize::MAX, 0)], run: 8 };
    assert_eq!(memory.write_strided(HostQueue::default(), &endless, &[0; 48]), Err(MemoryError::Range));
    let none = Strided { offset: 0, loops: vec![stride(0, 8, 8)], run: 8 };
    assert_eq!(memory.write_strided(HostQueue::default(), &none, &[]), Ok(()));
}

#[test]
fn threads_copy_what_one_does() {
    let cases: [(usize, &[Stride]); 12] = [
        // Rows of every other element, of three of four, and with a rest that is no whole part.
        (4, &[stride(100_003, 8, 4)]),
        (12, &[stride(40_001, 16, 12)]),
        (1, &[stride(3, 2_000_000, 700_001), stride(700_001, 2, 1)]),
        // Transposes.
        (4, &[stride(521, 4, 4 * 613), stride(613, 4 * 521, 4)]),
        (1, &[stride(1111, 1, 1031), stride(1031, 1111, 1)]),
        (8, &[stride(257, 8, 8 * 301), stride(301, 8 * 257, 8)]),
        (12, &[stride(257, 12, 12 * 301), stride(301, 12 * 257, 12)]),
        // Axes reversed, the outer ones short.
        (4, &[stride(5, 4, 4 * 129 * 401), stride(129, 4 * 5, 4 * 401), stride(401, 4 * 5 * 129, 4)]),
        (4, &[stride(401, 4, 4 * 129 * 5), stride(129, 4 * 401, 4 * 5), stride(5, 4 * 401 * 129, 4)]),
        // Few planes, either way.
        (4, &[stride(100_001, 4, 12), stride(3, 400_004, 4)]),
        // Blocks, and runs of no usual length.
        (64, &[stride(37, 2048 * 16, 16 * 4096), stride(16, 64, 4096), stride(32, 1024, 64)]),
        (1100, &[stride(311, 1300, 1100 * 3), stride(3, 311 * 1300, 1100)]),
    ];
    for (run, loops) in cases {
        let what = Strided { offset: 0, loops: loops.to_vec(), run };
        let (device_span, host_span) = (what.device_span().unwrap(), what.host_span().unwrap());
        for direction in [Direction::ToHost, Direction::ToDevice] {
            let (read, written) = match direction {
                Direction::ToHost => (device_span, host_span),
                Direction::ToDevice => (host_span, device_span),
            };
            let from: Vec<u8> = (0..read).map(|n| (n * 37 + n / 251) as u8 | 1).collect();
            let mut expected = vec![0; written];
            copied(&what, &from, &mut expected, direction);
            for threads in [1, 2, 5] {
                let mut to = vec![0; written];
                let pointers = Pointers { from: from.as_ptr(), to: to.as_mut_ptr() };
                // SAFETY: both sides have their span.
                unsafe { copy(&ThreadedDevice::new(threads), &what, pointers, direction) };
                let differs = to.iter().zip(&expected).position(|(one, other)| one != other);
                assert_eq!(differs, None, "runs of {run}, {loops:?}, on {threads} threads");
            }
        }
    }
}

#[test]
fn entries_that_lie_apart_come_together_on_threads() {
    let (width, planes, count) = (4, 3, 150_001);
    let context = Context::new(Arc::new(ThreadedDevice::new(3)));
    let loops = vec![stride(count, width, planes * width)];
    let copies: Vec<(Arc<Memory>, Strided)> = (0..planes)
        .map(|n| {
            let memory = Arc::new(Memory::allocate(&context, count * width + n).unwrap());
            (memory, Strided { offset: n, loops: loops.clone(), run: width })
        })
        .collect();
    let from: Vec<u8> = (0..planes * count * width).map(|n| (n * 37 + n / 251) as u8).collect();
    copy_together(&copies, HostSide::Read(&from), HostQueue::default()).unwrap();
    let mut back = vec![0; from.len()];
    copy_together(&copies, HostSide::Written(&mut back), HostQueue::default()).unwrap();
    assert!(back == from);
    for (n, (memory, _)) in copies.iter().enumerate() {
        let base = memory.host_pointer().unwrap().unwrap();
        // SAFETY: the allocation's bytes, which nobody writes now.
        let plane = unsafe { std::slice::from_raw_parts(base, memory.bytes()) };
        assert!(plane[..n].iter().all(|&byte| byte == 0), "what lies before the plane is left alone");
        let elements = plane[n..].chunks_exact(width).zip(from.chunks_exact(planes * width));
        assert!(elements.into_iter().all(|(one, all)| one == &all[n * width..][..width]));
    }
}

/// Bytes of the elements, one side of a copy.
fn bytes_of(what: &Strided, offset: usize, of: impl Fn(&Stride) -> usize) -> Vec<usize> {
    let mut places = vec![offset];
    for one in &what.loops {
        places = places
            .iter()
            .flat_map(|at| (0..one.count).map(|n| at + n * of(one)).collect::<Vec<_>>())
            .collect();
    }
    places.into_iter().flat_map(|at| at..at + what.run).collect()
}

#[test]
fn sides_that_share_bytes_are_never_taken_for_others() {
    let nests: [&[Stride]; 7] = [
        &[],
        &[stride(5, 8, 8)],
        &[stride(3, 30, 30), stride(4, 6, 6)],
        &[stride(4, 6, 6), stride(3, 30, 30)],
        &[stride(2, 60, 60), stride(3, 14, 14), stride(2, 4, 4)],
        &[stride(3, 4, 12), stride(3, 12, 4)],
        &[stride(4, 5, 5), stride(3, 7, 7)],
    ];
    for loops in nests {
        // Iterations of the last nest lie between each other.
        let is_nested = loops != [stride(4, 5, 5), stride(3, 7, 7)];
        for (run, host) in (1..=4).flat_map(|run| (0..130).map(move |host| (run, host))) {
            let what = Strided { offset: 64, loops: loops.to_vec(), run };
            let written = bytes_of(&what, 64, |one| one.device);
            let read = bytes_of(&what, host, |one| one.host);
            let share = read.iter().any(|byte| written.contains(byte));
            let may = what.may_overlap(host);
            assert!(may || !share, "{what:?} from {host}");
            // Of sides that are alike and nested it is known for sure.
            assert!(share || !may || !what.is_alike() || !is_nested, "{what:?} from {host} shares nothing");
        }
    }
}

#[test]
fn memory_is_copied_to_memory_that_shares_nothing_with_it() {
    let context = Context::new(Arc::new(ThreadedDevice::new(2)));
    let queue = HostQueue::default;
    let content: Vec<u8> = (0..96).collect();
    let read = |memory: &Memory| {
        let mut all = vec![0; 96];
        // SAFETY: the allocation has so many bytes, which nobody writes now.
        unsafe { std::ptr::copy(memory.host_pointer().unwrap().unwrap(), all.as_mut_ptr(), 96) };
        all
    };
    let fresh = || {
        let memory = Memory::allocate(&context, 96).unwrap();
        // SAFETY: as above.
        unsafe { std::ptr::copy(content.as_ptr(), memory.host_pointer().unwrap().unwrap(), 96) };
        memory
    };
    let (one, other) = (fresh(), Memory::allocate(&context, 96).unwrap());
    let columns = Strided { offset: 8, loops: vec![stride(4, 4, 20), stride(5, 16, 4)], run: 4 };
    assert_eq!(other.copy_strided(queue(), &columns, &one, 3), Ok(true));
    let mut expected = vec![0; 96];
    copied(&columns, &content[3..], &mut expected[8..], Direction::ToDevice);
    assert_eq!(read(&other), expected);
    // One run, in the same memory and in another.
    let run = |offset| Strided { offset, loops: vec![], run: 40 };
    assert_eq!(one.copy_strided(queue(), &run(50), &one, 2), Ok(true));
    assert_eq!(read(&one)[50..90], content[2..42]);
    assert_eq!(one.copy_strided(queue(), &run(40), &one, 2), Ok(false), "it overlaps");
    assert_eq!(one.copy_strided(queue(), &run(2), &one, 2), Ok(true), "it is there already");
    // Elements in turn with those that they are copied from.
    let one = fresh();
    let turns = Strided { offset: 4, loops: vec![stride(12, 8, 8)], run: 4 };
    assert_eq!(one.copy_strided(queue(), &turns, &one, 0), Ok(true));
    assert!(read(&one).chunks_exact(8).all(|pair| pair[..4] == pair[4..]));
    assert_eq!(one.copy_strided(queue(), &turns, &one, 1), Ok(false));
    // What does not lie inside.
    assert_eq!(one.copy_strided(queue(), &run(57), &other, 0), Err(MemoryError::Range));
    assert_eq!(one.copy_strided(queue(), &run(0), &other, 57), Err(MemoryError::Range));
    assert_eq!(one.copy_strided(queue(), &run(0), &other, 97), Err(MemoryError::Range));
    let elsewhere = Memory::allocate(&Context::new(Arc::new(ThreadedDevice::new(1))), 96).unwrap();
    assert_eq!(one.copy_strided(queue(), &run(0), &elsewhere, 0), Err(MemoryError::Range));
}

/// What lies between the elements may be written by another thread meanwhile: it is not read, to be written back.
#[test]
fn elements_of_a_memory_that_the_host_does_not_see_are_written_and_nothing_else() {
    let cases = [
        // One member of two; with a gap at the end of each row; of one that is padded on two axes.
        (vec![stride(1000, 8, 4)], 4),
        (vec![stride(40, 1024, 120), stride(30, 32, 4)], 4),
        (vec![stride(7, 4096, 120), stride(6, 512, 20), stride(5, 16, 4)], 4),
        // The other way round, and blocks of 4 by 4.
        (vec![stride(40, 16, 120), stride(30, 1024, 4)], 4),
        (vec![stride(5, 640, 320), stride(5, 128, 16), stride(4, 32, 80), stride(4, 8, 4)], 4),
        // One value everywhere, bytes, a run of many, and axes that nothing says how to tell in two loops.
        (vec![stride(1000, 12, 0)], 4),
        (vec![stride(3, 1000, 333), stride(333, 3, 1)], 1),
        (vec![stride(9, 1000, 900)], 900),
        (vec![stride(4, 3000, 192), stride(4, 700, 48), stride(4, 150, 12), stride(3, 40, 4)], 4),
        // Side by side on the device, but not on the host.
        (vec![stride(20, 4, 80), stride(20, 80, 4)], 4),
        // Both write the same places: the last one is seen.
        (vec![stride(3, 0, 4), stride(10, 8, 12)], 4),
    ];
    for (loops, run) in cases {
        for offset in [0, 20] {
            let device = Arc::new(ThreadedDevice::far());
            let context = Context::new(Arc::clone(&device) as Arc<dyn Device>);
            let what = Strided { offset, loops: loops.clone(), run };
            let bytes = offset + what.device_span().unwrap() + 7;
            let memory = Memory::allocate(&context, bytes).unwrap();
            let before: Vec<u8> = (0..bytes).map(|n| (n * 7) as u8).collect();
            memory.write(HostQueue::default(), 0, &before).unwrap();
            let from: Vec<u8> = (0..what.host_span().unwrap()).map(|n| (n * 31 + n / 251) as u8).collect();
            memory.write_strided(HostQueue::default(), &what, &from).unwrap();
            assert_eq!(device.read.load(Ordering::Relaxed), 0, "{what:?}");
            let (mut wanted, mut found) = (before, vec![0; bytes]);
            copied(&what, &from, &mut wanted[offset..], Direction::ToDevice);
            memory.read(HostQueue::default(), 0, &mut found).unwrap();
            assert!(wanted == found, "{what:?}");
        }
    }
}

/// Two loops are one verb, and the longest ones are.
#[test]
fn few_verbs_say_where_elements_go() {
    let device = Arc::new(NullDevice::with_capabilities(Capabilities::NONE));
    let context = Context::new(Arc::clone(&device) as Arc<dyn Device>);
    let memory = Memory::allocate(&context, 1 << 20).unwrap();
    for (loops, verbs) in [
        (vec![stride(1000, 8, 4)], vec!["scatter 4 x 1000 by 8 x 1 by 0 on 0"]),
        // Rows that continue each other on the device.
        (vec![stride(10, 800, 400), stride(100, 8, 4)], vec!["scatter 4 x 1000 by 8 x 1 by 0 on 0"]),
        (vec![stride(10, 4, 400), stride(100, 1000, 4)], vec!["scatter 40 x 100 by 1000 x 1 by 0 on 0"]),
        (
            vec![stride(50, 10_000, 800), stride(2, 4000, 400), stride(100, 8, 4)],
            vec!["scatter 4 x 100 by 8 x 50 by 10000 on 0"; 2],
        ),
    ] {
        device.take_trace();
        let from = vec![0; 1 << 17];
        memory.write_strided(HostQueue::default(), &Strided { offset: 8, loops, run: 4 }, &from).unwrap();
        let trace = device.take_trace();
        let found: Vec<_> = trace.iter().filter(|line| line.starts_with("scatter")).collect();
        assert_eq!(found, verbs);
        assert_eq!(trace.iter().filter(|line| line.starts_with("copy_to_device")).count(), 1, "{trace:?}");
    }
}
