//! What travels between the two sides; whole sessions are tested over the interpreter and GPUs.

use std::ffi::c_void;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicU64, Ordering};

use super::mirror::Blocks;
use super::*;
use crate::device::{Address, Device, Rows, Stream, StreamPriority};
use crate::error::DeviceError;
use crate::null::NullDevice;

/// A device of the null device's kind, which a thread serves.
fn connected(opened: Result<Opened, String>) -> Result<(ProcessDevice, Vec<u64>), String> {
    let (here, there) = UnixStream::pair().unwrap();
    // SAFETY: the tests keep the verbs' contracts.
    std::thread::spawn(move || unsafe { serve(opened, there) });
    ProcessDevice::connect(here, None)
}

#[test]
fn a_device_that_cannot_be_opened_says_why() {
    let refused = connected(Err("there is none".to_owned())).err();
    assert_eq!(refused.as_deref(), Some("there is none"));
    let (here, there) = UnixStream::pair().unwrap();
    drop(there);
    assert!(ProcessDevice::connect(here, None).err().unwrap().contains("does not answer"));
}

#[test]
fn verbs_and_errors_come_back() {
    let opened = Opened { device: Box::new(NullDevice::new()), facts: vec![3, 4] };
    let (device, facts) = connected(Ok(opened)).unwrap();
    assert_eq!((device.name(), facts), (NullDevice::new().name(), vec![3, 4]));
    let properties = device.properties().unwrap();
    assert_eq!((properties.cores, properties.name), (1, NullDevice::new().name().to_owned()));
    let stream = device.default_stream();
    // SAFETY: the default stream is always there.
    let allocate = |bytes| unsafe { device.allocate(stream, bytes) };
    let memory = allocate(64).unwrap();
    let (from, mut to) = ((0..64).collect::<Vec<u8>>(), vec![0; 64]);
    // SAFETY: as many bytes are there.
    unsafe {
        device.copy_to_device(stream, memory, from.as_ptr(), 64).unwrap();
        device.copy_to_host(stream, to.as_mut_ptr(), memory, 64).unwrap();
        device.synchronise(stream).unwrap();
        let rows = Rows { bytes: 4, count: 3, stride: 8, slices: 2, slice_stride: 32 };
        device.scatter(stream, memory, memory, &rows).unwrap();
        device.free(stream, memory, 64);
    }
    let streams = device.create_stream(StreamPriority::High);
    assert_eq!(streams.is_ok(), NullDevice::new().create_stream(StreamPriority::High).is_ok());
    let huge = allocate(usize::MAX / 2);
    assert!(!matches!(huge, Err(DeviceError::Lost { .. })), "{huge:?}");
}

#[test]
fn a_side_that_is_gone_is_a_device_that_is_lost() {
    let (here, there) = UnixStream::pair().unwrap();
    let (_, closing) = (there.try_clone().unwrap(), there.try_clone().unwrap());
    let opened = Opened { device: Box::new(NullDevice::new()), facts: Vec::new() };
    // SAFETY: the test keeps the verbs' contracts.
    std::thread::spawn(move || unsafe { serve(Ok(opened), there) });
    let (device, _) = ProcessDevice::connect(here, None).unwrap();
    closing.shutdown(std::net::Shutdown::Both).unwrap();
    // SAFETY: the default stream is always there.
    let lost = unsafe { device.allocate(device.default_stream(), 64).unwrap_err() };
    assert!(matches!(&lost, DeviceError::Lost { message } if message.contains("is gone")), "{lost:?}");
}

#[test]
fn shared_memory_is_merged_word_by_word() {
    let (mut blocks, stream, at) = (Blocks::default(), Stream(0), Address(0x1000));
    let memory = blocks.add(at, 64);
    let word = |index: usize| {
        // SAFETY: inside the block, which is aligned to 64 and lives as long as the test.
        unsafe { &*memory.host.cast::<c_void>().cast::<AtomicU64>().add(index) }
    };
    assert!((memory.host as usize).is_multiple_of(64));
    word(1).store(5, Ordering::Relaxed);
    word(7).store(9, Ordering::Relaxed);
    let (block, changes) = blocks.give(at.offset(8), stream).unwrap();
    let told: Vec<_> = changes.into_iter().map(|change| (change.offset, change.words)).collect();
    assert_eq!((block, told), (at, vec![(8, vec![5]), (56, vec![9])]));
    assert!(blocks.give(at, stream).unwrap().1.is_empty(), "told once");
    assert!(blocks.give(at.offset(64), stream).is_none());
    assert_eq!(blocks.under_way(), [(at, 64)]);
    // The other side has written word 1 and word 2; the host has changed word 2 meanwhile.
    word(2).store(1, Ordering::Relaxed);
    let theirs: Vec<u8> = [0, 6, 7, 0, 0, 0, 0, 9_u64].iter().flat_map(|word| word.to_le_bytes()).collect();
    blocks.update(at, &theirs, None);
    assert_eq!([1, 2, 7].map(|index| word(index).load(Ordering::Relaxed)), [6, 1, 9]);
    assert_eq!(blocks.under_way(), [(at, 64)], "launches behind an event may write more");
    let end = blocks.end_of(stream);
    blocks.update(at, &theirs, Some(blocks.end_of(Stream(1))));
    assert_eq!(blocks.under_way(), [(at, 64)], "another stream is past everything");
    blocks.update(at, &theirs, Some(end));
    assert!(blocks.under_way().is_empty());
    // Another thread launches after the look at the stream, and before what follows from that.
    let end = blocks.end_of(stream);
    blocks.give(at, stream);
    blocks.update(at, &theirs, Some(end));
    assert_eq!(blocks.under_way(), [(at, 64)], "that launch has yet to report");
    word(2).store(2, Ordering::Relaxed);
    let (_, changes) = blocks.give(at, stream).unwrap();
    assert_eq!(changes[0].words, [2]);
}
