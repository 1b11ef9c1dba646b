//! The reference device: the interpreter on the host's memory.
//!
//! A module is IR text in any phase, and its one function is the whole kernel: the interpreter runs what the front end made, so that
//! passes and backends can be held against it. Every index is checked, whatever the options.

// A boundary crate: it reads and writes memory by address.
#![allow(unsafe_code)]

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use octants_hal::{
    Address, Cancel, Capabilities, Device, DeviceError, FAULT_ARGUMENTS, Fault, FaultRecord, Function, Image,
    Launch, Module, SharedMemory, Stream,
};
use octants_interp::{
    AddressSpace, Arg, Datum, Limits, MemoryFault, Misuse, RunContext, Trap, TrapKind, run_in,
};
use octants_ir::plan::{ArgLayout, ResultLayout, size_and_align};
use octants_ir::{Const, Kernel, Op, SiteKind, SiteNumbers, SiteScope, text};

use octants_hal::host::{self, HostMemory};

/// The interpreter as a device.
pub struct ReferenceDevice {
    memory: HostMemory,
    /// What its addresses are larger by than the host's: zero, or [`REMOTE`].
    base: u64,
    /// Launches that threads are inside of.
    under_way: AtomicUsize,
}

/// An address with this bit is no pointer: who follows it on the host ends the process, and does not get by unnoticed.
const REMOTE: u64 = 1 << 62;

/// A kernel to interpret, and where its arguments and results lie.
struct Interpreted {
    symbol: String,
    kernel: Kernel,
    sites: SiteNumbers,
    args: ArgLayout,
    results: ResultLayout,
}

impl ReferenceDevice {
    pub fn new() -> Self {
        Self { memory: HostMemory::new(), base: 0, under_way: AtomicUsize::new(0) }
    }

    /// A device whose memory the host does not see, and whose verbs are waited for: as a GPU's, but on any machine.
    pub fn remote() -> Self {
        Self { base: REMOTE, ..Self::new() }
    }

    /// Where the host has what the device has at this address.
    fn local<T>(&self, address: Address) -> *mut T {
        Address(address.0 - self.base).as_ptr()
    }
}

impl Default for ReferenceDevice {
    fn default() -> Self {
        Self::new()
    }
}

// SAFETY: allocations are the system's, and every verb is over when it returns. The interpreter checks indices against extents.
unsafe impl Device for ReferenceDevice {
    fn name(&self) -> &'static str {
        "reference"
    }

    fn capabilities(&self) -> Capabilities {
        let own = if self.base == 0 { Capabilities::HOST_MEMORY } else { Capabilities::GROWING_RANGES };
        own | Capabilities::CANCEL | Capabilities::RUNS_IN_VERBS
    }

    fn is_usable_in_child(&self) -> bool {
        true
    }

    fn is_immediate(&self, _stream: Stream) -> bool {
        self.base == 0
    }

    unsafe fn allocate(&self, _stream: Stream, bytes: usize) -> Result<Address, DeviceError> {
        self.memory.allocate(bytes).map(|address| Address(address.0 + self.base))
    }

    unsafe fn reserve(&self, _stream: Stream, bytes: usize) -> Result<Address, DeviceError> {
        self.memory.reserve(bytes).map(|address| Address(address.0 + self.base))
    }

    fn reservable(&self) -> u64 {
        self.memory.reservable()
    }

    fn reserve_range(&self, bytes: usize) -> Result<Address, DeviceError> {
        self.memory.reserve_range(bytes).map(|address| Address(address.0 + self.base))
    }

    unsafe fn back(&self, range: Address, offset: usize, bytes: usize) -> Result<(), DeviceError> {
        // SAFETY: the caller keeps the verb's contract.
        unsafe { self.memory.back(Address::of(self.local::<u8>(range)), offset, bytes) }
    }

    unsafe fn write_beside(&self, to: Address, from: &[u8]) -> Result<(), DeviceError> {
        // SAFETY: the caller keeps the verb's contract.
        unsafe { host::copy(self.local(to), from.as_ptr(), from.len()) };
        Ok(())
    }

    unsafe fn read_beside(&self, from: Address, to: &mut [u8]) -> Result<(), DeviceError> {
        // SAFETY: the caller keeps the verb's contract.
        unsafe { host::copy(to.as_mut_ptr(), self.local(from), to.len()) };
        Ok(())
    }

    unsafe fn free(&self, _stream: Stream, address: Address, bytes: usize) {
        // SAFETY: the caller keeps the verb's contract.
        unsafe { self.memory.free(Address::of(self.local::<u8>(address)), bytes) };
    }

    fn allocate_shared(&self, bytes: usize) -> Result<SharedMemory, DeviceError> {
        // SAFETY: the default stream is always there.
        let device = unsafe { self.allocate(self.default_stream(), bytes)? };
        Ok(SharedMemory { host: self.local(device), device, bytes })
    }

    unsafe fn copy_to_device(
        &self,
        _stream: Stream,
        to: Address,
        from: *const u8,
        bytes: usize,
    ) -> Result<(), DeviceError> {
        // SAFETY: the caller keeps the verb's contract.
        unsafe { host::copy(self.local(to), from, bytes) };
        Ok(())
    }

    unsafe fn copy_to_host(
        &self,
        _stream: Stream,
        to: *mut u8,
        from: Address,
        bytes: usize,
    ) -> Result<(), DeviceError> {
        // SAFETY: the caller keeps the verb's contract.
        unsafe { host::copy(to, self.local(from), bytes) };
        Ok(())
    }

    unsafe fn copy(
        &self,
        _stream: Stream,
        to: Address,
        from: Address,
        bytes: usize,
    ) -> Result<(), DeviceError> {
        // SAFETY: the caller keeps the verb's contract.
        unsafe { host::copy(self.local(to), self.local(from), bytes) };
        Ok(())
    }

    unsafe fn fill(
        &self,
        _stream: Stream,
        to: Address,
        pattern: &[u8],
        bytes: usize,
    ) -> Result<(), DeviceError> {
        // SAFETY: the caller keeps the verb's contract.
        unsafe { host::fill(self.local(to), pattern, bytes) };
        Ok(())
    }

    unsafe fn synchronise(&self, _stream: Stream) -> Result<(), DeviceError> {
        Ok(())
    }

    unsafe fn is_idle(&self, _stream: Stream) -> bool {
        self.under_way.load(Ordering::SeqCst) == 0
    }

    unsafe fn load_module(&self, image: &Image<'_>) -> Result<Module, DeviceError> {
        let [part] = image.parts else {
            let message = format!("`{}` is not one kernel", image.name);
            return Err(DeviceError::BadImage { message });
        };
        let refuse = |message: String| DeviceError::BadImage { message };
        let source = str::from_utf8(part.bytes).map_err(|error| refuse(error.to_string()))?;
        let kernel = text::parse(source).map_err(|error| refuse(error.to_string()))?;
        let (args, results) = (ArgLayout::of(&kernel), ResultLayout::of(&kernel));
        let sites = SiteNumbers::of(&kernel, SiteScope::ReportsAndAccesses);
        let loaded = Box::new(Interpreted { symbol: part.symbol.to_owned(), kernel, sites, args, results });
        Ok(Module(Box::into_raw(loaded) as u64))
    }

    unsafe fn unload_module(&self, module: Module) {
        // SAFETY: made by `load_module`, and never used again.
        drop(unsafe { Box::from_raw(module.0 as *mut Interpreted) });
    }

    unsafe fn function(&self, module: Module, symbol: &str) -> Option<Function> {
        // SAFETY: made by `load_module`, and alive.
        let loaded = unsafe { &*(module.0 as *const Interpreted) };
        (loaded.symbol == symbol).then_some(Function(module.0))
    }

    unsafe fn launch(&self, launch: &Launch<'_>) -> Result<(), DeviceError> {
        // SAFETY: a function is its module, which is alive.
        let loaded = unsafe { &*(launch.function.0 as *const Interpreted) };
        let kernel = &loaded.kernel;
        let slots = loaded.args.slots.iter();
        let args: Vec<_> = slots.map(|slot| Arg::in_block(kernel, slot, launch.context.args)).collect();
        let under_way = Running::begin(&self.under_way);
        let ended = interpret(loaded, &args, launch, self.base);
        drop(under_way);
        match ended {
            Ok(values) => {
                for (value, slot) in values.iter().zip(&loaded.results.slots) {
                    let (size, _) = size_and_align(kernel, slot.data);
                    let at = self.local::<u8>(launch.context.memory.results.offset(slot.offset as usize));
                    // SAFETY: the results' block has the size of the layout, and is ours until the verb returns.
                    value.to_bytes(kernel, unsafe { std::slice::from_raw_parts_mut(at, size as usize) });
                }
                Ok(())
            }
            // SAFETY: the record is the launch's own.
            Err(trap) => {
                let record = unsafe { &*self.local::<FaultRecord>(launch.context.memory.fault) };
                report(&trap, &loaded.sites, record)
            }
        }
    }
}

/// A launch that is under way, also until a panic of the interpreter has ended it.
struct Running<'a>(&'a AtomicUsize);

impl<'a> Running<'a> {
    fn begin(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::SeqCst);
        Self(count)
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Stack of a run with calls. Chosen, not measured: recursion as deep as native code's on a stack of 16 MiB; untouched pages cost nothing.
const STACK_BYTES: usize = 256 << 20;
/// How often the launching thread looks whether such a run is over or to stop: it takes up to this much longer. Chosen, not measured.
const CANCEL_POLL_INTERVAL: Duration = Duration::from_millis(1);
/// What is left of it for what is no call. Chosen, not measured.
const RESERVED_STACK_BYTES: usize = 16 << 20;

fn interpret(loaded: &Interpreted, args: &[Arg], launch: &Launch<'_>, base: u64) -> Result<Vec<Datum>, Trap> {
    let Interpreted { kernel, sites, .. } = loaded;
    let context = &launch.context;
    let is_wanted = || context.cancel.is_wanted() || context.caller.is_some_and(Cancel::is_wanted);
    let limits = Limits { cancel: Some(&is_wanted), ..Limits::default() };
    let run = |stack_bytes: usize| {
        let mut on_print = |op: Op, values: &[Const]| {
            if let Some(prints) = launch.context.prints {
                let words: Vec<_> = values.iter().map(|&value| encode(value)).collect();
                prints.push(sites.number(op), &words);
            }
        };
        let (key, on_print) = (launch.context.key, Some(&mut on_print as _));
        let context = RunContext { key, on_print, stack_bytes, ..RunContext::default() };
        run_in(kernel, args, &mut WholeMemory { base }, &limits, context)
    };
    if kernel.functions.is_empty() {
        return run(RunContext::default().stack_bytes);
    }
    // The interpreter calls itself for each call of the kernel's, which takes far more of the stack than native code.
    std::thread::scope(|scope| {
        let deep = std::thread::Builder::new().stack_size(STACK_BYTES);
        match deep.spawn_scoped(scope, || run(STACK_BYTES - RESERVED_STACK_BYTES)) {
            Ok(thread) => {
                // A request to stop may be one that only the launching thread can confirm.
                while !thread.is_finished() && !is_wanted() {
                    std::thread::park_timeout(CANCEL_POLL_INTERVAL);
                }
                thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            }
            Err(_) => run(RunContext::default().stack_bytes),
        }
    })
}

/// Writes a trap of the program into the record, as native code does; others are errors of the verb.
fn report(trap: &Trap, sites: &SiteNumbers, record: &FaultRecord) -> Result<(), DeviceError> {
    let mut arguments = [0; FAULT_ARGUMENTS];
    let site = match (&trap.kind, trap.op) {
        // The caller knows.
        (TrapKind::Cancelled, _) => return Ok(()),
        (TrapKind::Assert { arguments: values, .. }, Some(op)) => {
            for (argument, &value) in arguments.iter_mut().zip(values) {
                *argument = encode(value);
            }
            sites.number(op)
        }
        (TrapKind::TooDeep, Some(op)) => sites.number(op),
        (&TrapKind::OutOfBounds { param, axis, index, origin, extent }, Some(op)) => {
            let words = [param as u64, axis.into(), index as u64, extent as u64, i64::from(origin) as u64];
            arguments[..words.len()].copy_from_slice(&words);
            sites.number(op)
        }
        (&TrapKind::Misuse(misuse), Some(op)) => {
            let words = match misuse {
                Misuse::Missing { lane, .. } => [lane as u64, 0, 0],
                Misuse::Partial { iterations, threads } => [iterations, threads.into(), SiteKind::PARTIAL],
                Misuse::Absent { lane, wanted } => [lane as u64, wanted as u64, 0],
                Misuse::Race { lane, other } => [SiteKind::RACE, lane as u64, other as u64],
            };
            arguments[..words.len()].copy_from_slice(&words);
            sites.number(op)
        }
        _ => return Err(DeviceError::Failed { verb: "launch", message: trap.to_string() }),
    };
    record.write(&Fault { site, arguments });
    Ok(())
}

/// Integers extended as their sign says, reals as the bits of an `f64`.
fn encode(value: Const) -> u64 {
    value.as_i128().map_or_else(|| value.as_f64().to_bits(), |integer| integer as u64)
}

/// The host's memory. The interpreter has checked indices against extents, and whoever launched vouches for these.
struct WholeMemory {
    /// What the device's addresses are larger by.
    base: u64,
}

impl AddressSpace for WholeMemory {
    fn read(&self, address: u64, bytes: &mut [u8]) -> Result<(), MemoryFault> {
        if address == 0 {
            return Err(MemoryFault { address, bytes: bytes.len() });
        }
        // SAFETY: inside an array that the launch's caller vouches for.
        unsafe {
            std::ptr::copy_nonoverlapping(
                (address - self.base) as *const u8,
                bytes.as_mut_ptr(),
                bytes.len(),
            );
        };
        Ok(())
    }

    fn write(&mut self, address: u64, bytes: &[u8]) -> Result<(), MemoryFault> {
        if address == 0 {
            return Err(MemoryFault { address, bytes: bytes.len() });
        }
        // SAFETY: inside an array that the launch's caller vouches for.
        unsafe {
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), (address - self.base) as *mut u8, bytes.len());
        };
        Ok(())
    }
}
