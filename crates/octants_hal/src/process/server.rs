//! The side that has the device.

use std::collections::BTreeMap;
use std::io;
use std::os::unix::net::UnixStream;

use super::wire::{Reader, Verb, Writer, broken, receive, write_outcome};
use crate::cancel::Cancel;
use crate::device::{Address, Device, Event, Function, Module, Rows, SharedMemory, Stream, StreamPriority};
use crate::error::DeviceError;
use crate::image::{Image, ImagePart};
use crate::launch::{
    DeviceBound, DeviceRangeDomain, Domain, Launch, LaunchContext, LaunchMemory, RangeDomain,
};
use crate::shape::{Grid, LaunchShape, PointMapping};

/// A device, and what a compiler for it wants to know.
pub struct Opened {
    pub device: Box<dyn Device>,
    pub facts: Vec<u64>,
}

/// Tells whoever is at the other end of the device, or why there is none, and does what it asks for until it is gone.
///
/// # Safety
/// The other end is a [`ProcessDevice`](super::ProcessDevice), whose callers keep the verbs' contracts.
pub unsafe fn serve(opened: Result<Opened, String>, mut channel: UnixStream) -> io::Result<()> {
    let mut hello = Writer::default();
    let opened = match opened {
        Ok(opened) => opened,
        Err(message) => {
            hello.word(0).bytes(message.as_bytes());
            return hello.send(&mut channel);
        }
    };
    let device = &*opened.device;
    let costs = device.fork_costs();
    hello
        .word(1)
        .bytes(device.name().as_bytes())
        .words(&super::client::capability_words(device.capabilities()));
    hello.option(device.clock_rate()).word(device.default_stream().0);
    hello.word(costs.threads).word(costs.branch_instructions).word(costs.loops_fill.into());
    hello.words(&opened.facts);
    hello.send(&mut channel)?;
    let mut server = Server { device, shared: BTreeMap::new() };
    while let Some(message) = receive(&mut channel)? {
        let mut request = Reader(&message);
        let (mut answer, verb) = (Writer::default(), Verb::from_word(request.word()?)?);
        // SAFETY: the caller says so.
        unsafe { server.answer(verb, &mut request, &mut answer)? };
        answer.send(&mut channel)?;
    }
    Ok(())
}

struct Server<'a> {
    device: &'a dyn Device,
    /// By the device's address.
    shared: BTreeMap<u64, SharedMemory>,
}

/// Writes how a verb ended, and what it gave.
fn with<T>(answer: &mut Writer, result: Result<T, DeviceError>, write: impl FnOnce(&mut Writer, T)) {
    match result {
        Ok(value) => {
            write_outcome(answer, Ok(()));
            write(answer, value);
        }
        Err(error) => write_outcome(answer, Err(error)),
    }
}

impl Server<'_> {
    /// # Safety
    /// The request is as a client writes it, whose caller keeps the verb's contract.
    unsafe fn answer(&mut self, verb: Verb, request: &mut Reader<'_>, answer: &mut Writer) -> io::Result<()> {
        let device = self.device;
        // SAFETY: the caller says so.
        unsafe {
            match verb {
                Verb::Allocate => {
                    let (stream, bytes) = (Stream(request.word()?), request.word()? as usize);
                    with(answer, device.allocate(stream, bytes), |answer, at| {
                        answer.word(at.0);
                    });
                }
                Verb::Free => {
                    let stream = Stream(request.word()?);
                    device.free(stream, Address(request.word()?), request.word()? as usize);
                    write_outcome(answer, Ok(()));
                }
                Verb::AllocateScratch => {
                    let (stream, bytes) = (Stream(request.word()?), request.word()? as usize);
                    with(answer, device.allocate_scratch(stream, bytes), |answer, at| {
                        answer.word(at.0);
                    });
                }
                Verb::FreeScratch => {
                    let stream = Stream(request.word()?);
                    device.free_scratch(stream, Address(request.word()?), request.word()? as usize);
                    write_outcome(answer, Ok(()));
                }
                Verb::AllocateShared => {
                    let made = device.allocate_shared(request.word()? as usize);
                    if let Ok(memory) = &made {
                        memory.host.write_bytes(0, memory.bytes);
                        self.shared.insert(memory.device.0, *memory);
                    }
                    with(answer, made, |answer, memory| {
                        answer.word(memory.device.0).word(memory.bytes as u64);
                    });
                }
                Verb::FreeShared => {
                    if let Some(memory) = self.shared.remove(&request.word()?) {
                        device.free_shared(memory);
                    }
                    write_outcome(answer, Ok(()));
                }
                Verb::ReadShared => {
                    let (memory, bytes) = (self.block(request.word()?)?, request.word()? as usize);
                    write_outcome(answer, Ok(()));
                    answer.bytes(std::slice::from_raw_parts(memory.host, bytes.min(memory.bytes)));
                }
                Verb::CopyToDevice => {
                    let (stream, to, from) =
                        (Stream(request.word()?), Address(request.word()?), request.bytes()?);
                    write_outcome(answer, device.copy_to_device(stream, to, from.as_ptr(), from.len()));
                }
                Verb::CopyToHost => {
                    let (stream, from) = (Stream(request.word()?), Address(request.word()?));
                    let mut bytes = vec![0; request.word()? as usize];
                    let copied = device.copy_to_host(stream, bytes.as_mut_ptr(), from, bytes.len());
                    with(answer, copied, |answer, ()| {
                        answer.bytes(&bytes);
                    });
                }
                Verb::Copy => {
                    let (stream, to) = (Stream(request.word()?), Address(request.word()?));
                    let (from, bytes) = (Address(request.word()?), request.word()? as usize);
                    write_outcome(answer, device.copy(stream, to, from, bytes));
                }
                Verb::Scatter => {
                    let (stream, to) = (Stream(request.word()?), Address(request.word()?));
                    let from = Address(request.word()?);
                    let mut number = || request.word().map(|word| word as usize);
                    let (bytes, count, stride) = (number()?, number()?, number()?);
                    let (slices, slice_stride) = (number()?, number()?);
                    let rows = Rows { bytes, count, stride, slices, slice_stride };
                    write_outcome(answer, device.scatter(stream, to, from, &rows));
                }
                Verb::Fill => {
                    let (stream, to) = (Stream(request.word()?), Address(request.word()?));
                    let (pattern, bytes) = (request.bytes()?, request.word()? as usize);
                    write_outcome(answer, device.fill(stream, to, pattern, bytes));
                }
                Verb::LoadModule => {
                    let made = load(device, request)?;
                    with(answer, made, |answer, module| {
                        answer.word(module.0);
                    });
                }
                Verb::UnloadModule => {
                    device.unload_module(Module(request.word()?));
                    write_outcome(answer, Ok(()));
                }
                Verb::Function => {
                    let (module, symbol) = (Module(request.word()?), request.text()?);
                    write_outcome(answer, Ok(()));
                    answer.option(device.function(module, &symbol).map(|function| function.0));
                }
                Verb::FunctionUsage => {
                    with(answer, device.function_usage(Function(request.word()?)), |answer, usage| {
                        let words = usage.map(|usage| super::client::usage_words(&usage).to_vec());
                        answer.words(&words.unwrap_or_default());
                    });
                }
                Verb::Launch => {
                    self.take_changes(request)?;
                    write_outcome(answer, launch(device, request)?);
                }
                Verb::Properties => with(answer, device.properties(), |answer, properties| {
                    answer.bytes(properties.name.as_bytes()).words(&properties.numbers());
                }),
                Verb::CreateStream
                | Verb::DestroyStream
                | Verb::CreateEvent
                | Verb::DestroyEvent
                | Verb::RecordEvent
                | Verb::WaitEvent
                | Verb::EventPassed
                | Verb::PollEvent
                | Verb::SynchroniseEvent
                | Verb::Elapsed
                | Verb::Synchronise
                | Verb::IsIdle
                | Verb::Poll => answer_order(device, verb, request, answer)?,
            }
        }
        Ok(())
    }

    fn block(&self, device: u64) -> io::Result<SharedMemory> {
        self.shared.get(&device).copied().ok_or_else(|| broken("shared memory that is not there"))
    }

    /// Writes what the host has changed in shared memory.
    fn take_changes(&self, request: &mut Reader<'_>) -> io::Result<()> {
        for _ in 0..request.word()? {
            let memory = self.block(request.word()?)?;
            for _ in 0..request.word()? {
                let (offset, words) = (request.word()? as usize, request.words()?);
                if offset.checked_add(8 * words.len()).is_none_or(|end| end > memory.bytes) {
                    return Err(broken("a change outside of shared memory"));
                }
                // SAFETY: inside the block.
                unsafe {
                    let to = memory.host.add(offset);
                    std::ptr::copy_nonoverlapping(words.as_ptr().cast::<u8>(), to, 8 * words.len());
                }
            }
        }
        Ok(())
    }
}

/// Streams and events.
///
/// # Safety
/// As for [`Server::answer`].
unsafe fn answer_order(
    device: &dyn Device,
    verb: Verb,
    request: &mut Reader<'_>,
    answer: &mut Writer,
) -> io::Result<()> {
    // SAFETY: the caller says so.
    unsafe {
        match verb {
            Verb::CreateStream => {
                let priority = match request.word()? {
                    0 => StreamPriority::Low,
                    1 => StreamPriority::Normal,
                    _ => StreamPriority::High,
                };
                with(answer, device.create_stream(priority), |answer, stream| {
                    answer.word(stream.0);
                });
            }
            Verb::DestroyStream => {
                device.destroy_stream(Stream(request.word()?));
                write_outcome(answer, Ok(()));
            }
            Verb::CreateEvent => with(answer, device.create_event(request.word()? != 0), |answer, event| {
                answer.word(event.0);
            }),
            Verb::DestroyEvent => {
                device.destroy_event(Event(request.word()?));
                write_outcome(answer, Ok(()));
            }
            Verb::RecordEvent => {
                let (stream, event) = (Stream(request.word()?), Event(request.word()?));
                write_outcome(answer, device.record_event(stream, event));
            }
            Verb::WaitEvent => {
                let (stream, event) = (Stream(request.word()?), Event(request.word()?));
                write_outcome(answer, device.wait_event(stream, event));
            }
            Verb::EventPassed => {
                with(answer, Ok(device.event_passed(Event(request.word()?))), |answer, passed| {
                    answer.word(passed.into());
                });
            }
            Verb::PollEvent => {
                with(answer, device.poll_event(Event(request.word()?)), |answer, passed| {
                    answer.word(passed.into());
                });
            }
            Verb::SynchroniseEvent => {
                write_outcome(answer, device.synchronise_event(Event(request.word()?)));
            }
            Verb::Elapsed => {
                let (start, end) = (Event(request.word()?), Event(request.word()?));
                with(answer, device.elapsed(start, end), |answer, elapsed| {
                    answer.option(elapsed.map(f64::to_bits));
                });
            }
            Verb::Synchronise => write_outcome(answer, device.synchronise(Stream(request.word()?))),
            Verb::IsIdle => with(answer, Ok(device.is_idle(Stream(request.word()?))), |answer, idle| {
                answer.word(idle.into());
            }),
            Verb::Poll => with(answer, device.poll(Stream(request.word()?)), |answer, idle| {
                answer.word(idle.into());
            }),
            _ => return Err(broken("no verb of streams and events")),
        }
    }
    Ok(())
}

/// # Safety
/// As for the verb `load_module`.
unsafe fn load(device: &dyn Device, request: &mut Reader<'_>) -> io::Result<Result<Module, DeviceError>> {
    let (name, count) = (request.text()?, request.word()?);
    let mut parts = Vec::new();
    for _ in 0..count {
        let (symbol, bytes) = (request.text()?, request.bytes()?);
        let (block, shared_bytes) = (request.word()? as u32, request.word()? as u32);
        let (deep_stack, waits) = (request.word()? != 0, request.word()? != 0);
        let grid = match request.word()? {
            0 => Grid::Cover,
            1 => Grid::Several,
            _ => Grid::Resident,
        };
        let mapping = match request.words()?[..] {
            [across, points, rows] => {
                PointMapping::Tiles { across: across as u32, points: points as u32, rows: rows as u32 }
            }
            _ => PointMapping::Points,
        };
        parts.push((symbol, bytes, LaunchShape { block, mapping, grid, shared_bytes, deep_stack, waits }));
    }
    let parts: Vec<_> =
        parts.iter().map(|(symbol, bytes, shape)| ImagePart { symbol, bytes, shape: *shape }).collect();
    // SAFETY: the caller says so.
    Ok(unsafe { device.load_module(&Image { name: &name, parts: &parts }) })
}

/// # Safety
/// As for the verb `launch`.
unsafe fn launch(device: &dyn Device, request: &mut Reader<'_>) -> io::Result<Result<(), DeviceError>> {
    let (function, stream) = (Function(request.word()?), Stream(request.word()?));
    let args = request.bytes()?;
    let mut address = || request.word().map(Address);
    // What the client says while the launch runs is not seen here.
    let stop = Address::NULL;
    let memory =
        LaunchMemory { temps: address()?, results: address()?, fault: address()?, prints: address()?, stop };
    let (key, number) = (request.word()?, request.word()?);
    let kind = request.word()?;
    let mut limits = || request.option().map(|limit| limit.map(|limit| limit as u32));
    let (max_threads, block) = (limits()?, limits()?);
    let (cost, lanes, points) = (request.word()? as u32, request.word()? as u32, request.word()?);
    let words = request.words()?;
    let bounds: Vec<i64>;
    let device_bounds: Vec<DeviceBound>;
    let domain = match kind {
        0 => Domain::Once,
        1 => {
            bounds = words.iter().map(|&word| word as i64).collect();
            Domain::Range(RangeDomain {
                bounds: &bounds,
                points,
                max_threads,
                block,
                cost,
                lanes,
                copied: &[],
            })
        }
        _ => {
            device_bounds = words
                .chunks_exact(4)
                .map(|bound| match *bound {
                    [0, known, ..] => DeviceBound::Known(known as i64),
                    [_, at, bits, signed] => {
                        DeviceBound::InMemory { at: Address(at), bits: bits as u32, signed: signed != 0 }
                    }
                    _ => DeviceBound::Known(0),
                })
                .collect();
            let bounds = &device_bounds;
            Domain::DeviceRange(DeviceRangeDomain { bounds, max_threads, block, cost, lanes, copied: &[] })
        }
    };
    let cancel = Cancel::new();
    let context = LaunchContext {
        stream,
        args,
        memory,
        cancel: &cancel,
        caller: None,
        key,
        launch: number,
        prints: None,
    };
    // SAFETY: the caller says so. The flag is of no meaning to devices whose verbs are not over at once.
    Ok(unsafe { device.launch(&Launch { function, domain, context }) })
}
