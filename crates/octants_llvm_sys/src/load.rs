//! Maps an object into memory as executable code.
//!
//! All of an object goes into one mapping: code and stubs, then constants and address slots, then variables, each on
//! pages of its own. It is filled while writable and sealed before anyone gets an address: no page is ever writable
//! and executable at once. (LLVM's own just-in-time linkers do the same with more machinery; for the one-object
//! programs that kernels are, this is a copy, a few patches and three system calls.)

use std::fmt;
use std::ptr;

use crate::elf::{self, MACHINE_AARCH64, MACHINE_X86_64, Object, Place};
use crate::jit_symbols::{NamedCode, PublishedSymbols, publish};
use crate::relocate::{Machine, STUB_BYTES, SymbolAccess, aarch64::AARCH64, x86_64::X86_64};
use crate::resolve;

/// Why an object cannot be loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LoadError {
    /// The bytes are damaged, for another machine, or use a feature that generated code never uses.
    Object(String),
    /// The code refers to something that nobody defines.
    Undefined(String),
    /// The system has no memory for it, or forbids executable memory.
    Memory(String),
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LoadError::Object(what) => write!(f, "cannot load the object: {what}"),
            LoadError::Undefined(symbol) => write!(f, "cannot load the object: {symbol} is not defined"),
            LoadError::Memory(what) => write!(f, "cannot map executable memory: {what}"),
        }
    }
}

impl std::error::Error for LoadError {}

/// Code in memory. The addresses that it gave are valid until it is dropped.
pub struct Loaded {
    /// Kept for its `Drop`: tools forget the code before its memory goes.
    _published: PublishedSymbols,
    /// Kept for its `Drop`.
    mapping: Mapping,
    /// Name and address, sorted by name.
    functions: Vec<(String, usize)>,
}

impl Loaded {
    /// The address of a function that the object defines.
    pub fn symbol(&self, name: &str) -> Option<*const ()> {
        let index = self.functions.binary_search_by(|(known, _)| known.as_str().cmp(name)).ok()?;
        Some(ptr::with_exposed_provenance(self.functions[index].1))
    }

    /// The names of all functions that the object defines, sorted.
    pub fn symbols(&self) -> impl Iterator<Item = &str> {
        self.functions.iter().map(|(name, _)| name.as_str())
    }

    /// How much memory the code takes, in bytes.
    pub fn size(&self) -> usize {
        self.mapping.length
    }
}

impl fmt::Debug for Loaded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Loaded")
            .field("size", &self.size())
            .field("functions", &self.functions)
            .finish_non_exhaustive()
    }
}

/// Loads an object. `symbols` are the addresses of what it may call beyond the C and math libraries; they take
/// precedence over those.
pub fn load(bytes: &[u8], symbols: &[(&str, *const ())]) -> Result<Loaded, LoadError> {
    let object = elf::read(bytes).map_err(LoadError::Object)?;
    let machine = match object.machine {
        MACHINE_X86_64 if cfg!(target_arch = "x86_64") => &X86_64,
        MACHINE_AARCH64 if cfg!(target_arch = "aarch64") => &AARCH64,
        other => return Err(LoadError::Object(format!("it is for another machine ({other})"))),
    };
    let externals = find_externals(&object, symbols)?;
    let plan = Plan::new(&object, machine)?;
    let mut mapping = Mapping::new(plan.total)?;
    let base = mapping.start.expose_provenance();
    link(&object, machine, &plan, &externals, base as u64, mapping.bytes()).map_err(LoadError::Object)?;
    mapping.seal(plan.code_end, plan.constants_end)?;

    let named: Vec<NamedCode<'_>> = object
        .symbols
        .iter()
        .filter(|symbol| symbol.function)
        .filter_map(|symbol| match symbol.place {
            Place::Section(section) => {
                let address = base + plan.sections[section]? + symbol.value as usize;
                Some(NamedCode { name: symbol.name, address, bytes: symbol.size as usize })
            }
            Place::Undefined | Place::Absolute => None,
        })
        .collect();
    let placed: Vec<_> = plan.sections.iter().map(|offset| offset.map(|offset| base + offset)).collect();
    let published = publish(bytes, &object, &placed, &named);
    let mut functions: Vec<_> = named.iter().map(|code| (code.name.to_owned(), code.address)).collect();
    functions.sort_unstable();
    Ok(Loaded { _published: published, mapping, functions })
}

/// The address of each undefined symbol that a relocation needs, by the symbol's index.
fn find_externals(object: &Object<'_>, given: &[(&str, *const ())]) -> Result<Vec<Option<u64>>, LoadError> {
    let mut externals = vec![None; object.symbols.len()];
    for relocation in &object.relocations {
        let symbol = &object.symbols[relocation.symbol];
        if symbol.place != Place::Undefined || externals[relocation.symbol].is_some() {
            continue;
        }
        let address = given.iter().find(|(name, _)| *name == symbol.name).map(|&(_, address)| address);
        let address = match address.or_else(|| resolve::system_symbol(symbol.name)) {
            Some(address) => address.expose_provenance() as u64,
            None if symbol.weak => 0,
            None => return Err(LoadError::Undefined(symbol.name.to_owned())),
        };
        externals[relocation.symbol] = Some(address);
    }
    Ok(externals)
}

/// Where everything goes, relative to the start of the mapping.
struct Plan {
    sections: Vec<Option<usize>>,
    stubs: Vec<Option<usize>>,
    slots: Vec<Option<usize>>,
    code_end: usize,
    constants_end: usize,
    total: usize,
}

impl Plan {
    fn new(object: &Object<'_>, machine: &Machine) -> Result<Plan, LoadError> {
        let none = || vec![None; object.symbols.len()];
        let (mut stubs, mut slots) = (none(), none());
        let mut sections = vec![None; object.sections.len()];
        let mut end = 0_usize;
        let mut place = |end: &mut usize, executable: bool, writable: bool| {
            for (section, at) in object.sections.iter().zip(&mut sections) {
                let wanted = if executable {
                    section.executable
                } else {
                    !section.executable && section.writable == writable
                };
                if section.loaded && wanted {
                    *at = Some(reserve(end, section.size, section.align));
                }
            }
        };

        place(&mut end, true, false);
        let mut needs_slot = Vec::new();
        for relocation in &object.relocations {
            let symbol_access = (machine.symbol_access)(relocation.kind).ok_or_else(|| {
                LoadError::Object(format!("it has a relocation of the unknown kind {}", relocation.kind))
            })?;
            let symbol = relocation.symbol;
            let undefined = object.symbols[symbol].place == Place::Undefined;
            if symbol_access == SymbolAccess::Stub && undefined && stubs[symbol].is_none() {
                stubs[symbol] = Some(reserve(&mut end, STUB_BYTES, STUB_BYTES));
            }
            if symbol_access == SymbolAccess::Slot {
                needs_slot.push(symbol);
            }
        }
        let page = page_size();
        let code_end = end.next_multiple_of(page);

        end = code_end;
        place(&mut end, false, false);
        for symbol in needs_slot {
            if slots[symbol].is_none() {
                slots[symbol] = Some(reserve(&mut end, 8, 8));
            }
        }
        let constants_end = end.next_multiple_of(page);

        end = constants_end;
        place(&mut end, false, true);
        let total = end.next_multiple_of(page).max(page);
        Ok(Plan { sections, stubs, slots, code_end, constants_end, total })
    }
}

/// Takes the next `size` bytes, suitably aligned, and returns where they begin.
fn reserve(end: &mut usize, size: usize, align: usize) -> usize {
    let start = end.next_multiple_of(align);
    *end = start + size;
    start
}

/// Copies the sections to their places and patches them. `memory` is zero, and will be executed at address `base`.
fn link(
    object: &Object<'_>,
    machine: &Machine,
    plan: &Plan,
    externals: &[Option<u64>],
    base: u64,
    memory: &mut [u8],
) -> Result<(), String> {
    for (section, at) in object.sections.iter().zip(&plan.sections) {
        if let Some(at) = *at {
            memory[at..at + section.content.len()].copy_from_slice(section.content);
        }
    }
    let address = |symbol: usize| -> Result<u64, String> {
        let symbol_info = &object.symbols[symbol];
        match symbol_info.place {
            Place::Undefined => Ok(externals[symbol].unwrap_or(0)),
            Place::Absolute => Ok(symbol_info.value),
            Place::Section(section) => match plan.sections[section] {
                Some(at) => Ok(base + at as u64 + symbol_info.value),
                None => Err(format!(
                    "it refers to section {}, which is not loaded",
                    object.sections[section].name
                )),
            },
        }
    };
    for (symbol, at) in plan.stubs.iter().enumerate() {
        if let Some(at) = *at {
            memory[at..at + STUB_BYTES].copy_from_slice(&(machine.stub)(address(symbol)?));
        }
    }
    for (symbol, at) in plan.slots.iter().enumerate() {
        if let Some(at) = *at {
            memory[at..at + 8].copy_from_slice(&address(symbol)?.to_le_bytes());
        }
    }
    for relocation in &object.relocations {
        let Some(start) = plan.sections[relocation.section] else { continue };
        let size = object.sections[relocation.section].size;
        let aim = match (machine.symbol_access)(relocation.kind) {
            Some(SymbolAccess::Stub) => plan.stubs[relocation.symbol].map(|at| base + at as u64),
            Some(SymbolAccess::Slot) => plan.slots[relocation.symbol].map(|at| base + at as u64),
            Some(SymbolAccess::Direct) | None => None,
        };
        let aim = match aim {
            Some(aim) => aim,
            None => address(relocation.symbol)?,
        };
        let at = start + relocation.offset;
        let field = &mut memory[at..start + size];
        (machine.apply)(relocation.kind, field, base + at as u64, aim, relocation.addend)?;
    }
    Ok(())
}

fn page_size() -> usize {
    // SAFETY: asks the system for a constant.
    usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096)
}

/// Pages of memory, released when dropped.
struct Mapping {
    start: *mut u8,
    length: usize,
}

// SAFETY: an address range. After `seal` nothing is written through it but by the code itself.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    fn new(length: usize) -> Result<Mapping, LoadError> {
        // SAFETY: a fresh private mapping disturbs nothing.
        let start = unsafe {
            let access = libc::PROT_READ | libc::PROT_WRITE;
            libc::mmap(ptr::null_mut(), length, access, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1, 0)
        };
        if start == libc::MAP_FAILED {
            return Err(LoadError::Memory(std::io::Error::last_os_error().to_string()));
        }
        Ok(Mapping { start: start.cast(), length })
    }

    fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: the mapping is ours, of this length, initialised with zeros, and writable until `seal`.
        unsafe { std::slice::from_raw_parts_mut(self.start, self.length) }
    }

    fn seal(&mut self, code_end: usize, constants_end: usize) -> Result<(), LoadError> {
        self.protect(0, code_end, libc::PROT_READ | libc::PROT_EXEC)?;
        self.protect(code_end, constants_end, libc::PROT_READ)?;
        #[cfg(target_arch = "aarch64")]
        {
            unsafe extern "C" {
                fn __clear_cache(start: *mut u8, end: *mut u8);
            }
            // SAFETY: a range of our own; the instruction cache forgets what it may have of it.
            unsafe { __clear_cache(self.start, self.start.add(code_end)) };
        }
        Ok(())
    }

    fn protect(&self, from: usize, to: usize, access: i32) -> Result<(), LoadError> {
        if from == to {
            return Ok(());
        }
        // SAFETY: whole pages of our own mapping.
        if unsafe { libc::mprotect(self.start.add(from).cast(), to - from, access) } != 0 {
            return Err(LoadError::Memory(std::io::Error::last_os_error().to_string()));
        }
        Ok(())
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: ours; whoever loaded the code promised not to use its addresses after this.
        unsafe { libc::munmap(self.start.cast(), self.length) };
    }
}
