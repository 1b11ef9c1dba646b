//! What the loader needs to know of a relocatable ELF object of a 64-bit little-endian machine.
//!
//! The `object` crate reads the format and checks every offset. What it gives is checked here against what the loader relies on: symbols
//! and relocations lie inside their sections, functions in executable ones. **Bytes that are damaged give an error**, never a panic.

use object::elf::{
    EM_AARCH64, EM_X86_64, ET_REL, FileHeader64, SHF_ALLOC, SHF_EXECINSTR, SHF_TLS, SHF_WRITE, SHN_ABS,
    SHN_UNDEF, SHT_NOBITS, SHT_RELA, SHT_SYMTAB, STB_WEAK, STT_FUNC, STT_SECTION, SectionHeader64, Sym64,
};
use object::read::elf::{FileHeader, Rela, SectionHeader, SectionTable, Sym, SymbolTable};
use object::{LittleEndian, SymbolIndex};

const ENDIAN: LittleEndian = LittleEndian;

type Header = FileHeader64<LittleEndian>;

/// What the loader needs to know of an object.
pub(crate) struct Object<'a> {
    pub(crate) machine: u16,
    pub(crate) sections: Vec<Section<'a>>,
    pub(crate) symbols: Vec<Symbol<'a>>,
    pub(crate) relocations: Vec<Relocation>,
    /// Where the table of section headers begins.
    pub(crate) headers_at: usize,
}

pub(crate) struct Section<'a> {
    pub(crate) name: &'a str,
    /// Part of the program in memory, as opposed to notes and tables for tools.
    pub(crate) loaded: bool,
    pub(crate) writable: bool,
    pub(crate) executable: bool,
    pub(crate) align: usize,
    pub(crate) size: usize,
    /// Empty, though `size` may not be, if the section starts as zeros.
    pub(crate) content: &'a [u8],
}

#[derive(Clone, Copy)]
pub(crate) struct Symbol<'a> {
    pub(crate) name: &'a str,
    pub(crate) place: Place,
    pub(crate) value: u64,
    /// In bytes, of a function.
    pub(crate) size: u64,
    pub(crate) function: bool,
    pub(crate) weak: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    Undefined,
    Absolute,
    Section(usize),
}

pub(crate) struct Relocation {
    /// The section whose content is to be patched.
    pub(crate) section: usize,
    pub(crate) offset: usize,
    pub(crate) kind: u32,
    pub(crate) symbol: usize,
    pub(crate) addend: i64,
}

pub(crate) const MACHINE_X86_64: u16 = EM_X86_64;
pub(crate) const MACHINE_AARCH64: u16 = EM_AARCH64;

/// Bytes of a section header.
pub(crate) const SECTION_HEADER: usize = size_of::<SectionHeader64<LittleEndian>>();
/// Where the address stands in a section header.
pub(crate) const SECTION_ADDRESS: usize = 16;

/// The largest alignment that a section may ask for: a page.
const MAX_SECTION_ALIGN: u64 = 4096;
/// The largest section. Kernels are megabytes at most.
const MAX_SECTION_BYTES: u64 = 1 << 30;

/// The `object` crate's words for what is wrong.
fn words(error: object::read::Error) -> String {
    error.to_string()
}

fn text(name: &[u8]) -> Result<&str, String> {
    std::str::from_utf8(name).map_err(|_| "a name that is not UTF-8".to_owned())
}

pub(crate) fn read(bytes: &[u8]) -> Result<Object<'_>, String> {
    let header = Header::parse(bytes).map_err(words)?;
    if !header.is_little_endian() {
        return Err("not a 64-bit little-endian ELF file".to_owned());
    }
    if header.e_type(ENDIAN) != ET_REL {
        return Err("not a relocatable object".to_owned());
    }
    let table = header.sections(ENDIAN, bytes).map_err(words)?;
    let sections = table
        .iter()
        .map(|section| read_section(bytes, &table, section))
        .collect::<Result<Vec<_>, String>>()?;
    let symbol_table = table.symbols(ENDIAN, bytes, SHT_SYMTAB).map_err(words)?;
    // The table leaves out the first symbol, which stands for none; numbers of relocations count it.
    let symbols = (0..symbol_table.len())
        .map(|index| read_symbol(&symbol_table, SymbolIndex(index), &sections))
        .collect::<Result<Vec<_>, String>>()?;

    let mut relocations = Vec::new();
    for section in table.iter().filter(|section| section.sh_type(ENDIAN) == SHT_RELA) {
        let patched = section.sh_info(ENDIAN) as usize;
        let (loaded, size) = sections
            .get(patched)
            .map(|patched| (patched.loaded, patched.size))
            .ok_or("relocations of no section")?;
        let Some((entries, _)) = section.rela(ENDIAN, bytes).map_err(words)?.filter(|_| loaded) else {
            continue;
        };
        for entry in entries {
            let symbol = entry.r_sym(ENDIAN, false) as usize;
            if symbol >= symbols.len() {
                return Err("a relocation against no symbol".to_owned());
            }
            let offset = usize::try_from(entry.r_offset(ENDIAN)).unwrap_or(usize::MAX);
            if offset >= size {
                return Err("a relocation outside of its section".to_owned());
            }
            let (kind, addend) = (entry.r_type(ENDIAN, false), entry.r_addend(ENDIAN));
            relocations.push(Relocation { section: patched, offset, kind, symbol, addend });
        }
    }
    let headers_at = usize::try_from(header.e_shoff(ENDIAN)).map_err(|_| "no section headers")?;
    Ok(Object { machine: header.e_machine(ENDIAN), sections, symbols, relocations, headers_at })
}

fn read_section<'a>(
    bytes: &'a [u8],
    table: &SectionTable<'a, Header>,
    section: &'a SectionHeader64<LittleEndian>,
) -> Result<Section<'a>, String> {
    let name = text(table.section_name(ENDIAN, section).map_err(words)?)?;
    let flags = section.sh_flags(ENDIAN);
    let has = |flag: u32| flags & u64::from(flag) != 0;
    // Tables for unwinding are loaded by ordinary linkers; nothing unwinds through generated code.
    let loaded = has(SHF_ALLOC) && !name.starts_with(".eh_frame");
    if loaded && has(SHF_TLS) {
        return Err(format!("thread-local section {name}"));
    }
    let (align, size) = (section.sh_addralign(ENDIAN).max(1), section.sh_size(ENDIAN));
    if loaded && (!align.is_power_of_two() || align > MAX_SECTION_ALIGN || size > MAX_SECTION_BYTES) {
        return Err(format!("section {name} has size {size} and alignment {align}"));
    }
    let has_content = loaded && section.sh_type(ENDIAN) != SHT_NOBITS;
    let content = if has_content { section.data(ENDIAN, bytes).map_err(words)? } else { &[][..] };
    Ok(Section {
        name,
        loaded,
        writable: has(SHF_WRITE) && !name.starts_with(".data.rel.ro"),
        executable: has(SHF_EXECINSTR),
        align: align as usize,
        size: if loaded { size as usize } else { 0 },
        content,
    })
}

fn read_symbol<'a>(
    table: &SymbolTable<'a, Header>,
    index: SymbolIndex,
    sections: &[Section<'_>],
) -> Result<Symbol<'a>, String> {
    if index.0 == 0 {
        let nothing =
            Symbol { name: "", place: Place::Undefined, value: 0, size: 0, function: false, weak: true };
        return Ok(nothing);
    }
    let symbol: &Sym64<LittleEndian> = table.symbol(index).map_err(words)?;
    let place = match symbol.st_shndx(ENDIAN) {
        SHN_UNDEF => Place::Undefined,
        SHN_ABS => Place::Absolute,
        _ => match table.symbol_section(ENDIAN, symbol, index).map_err(words)? {
            Some(section) if section.0 < sections.len() => Place::Section(section.0),
            _ => return Err("a symbol in no section".to_owned()),
        },
    };
    let function = symbol.st_type() == STT_FUNC;
    let (value, size) = (symbol.st_value(ENDIAN), symbol.st_size(ENDIAN));
    let name = if symbol.st_type() == STT_SECTION {
        &[][..]
    } else {
        table.symbol_name(ENDIAN, symbol).map_err(words)?
    };
    let name = text(name)?;
    if let Place::Section(section) = place {
        let section = &sections[section];
        let end = value.checked_add(size);
        let inside = end.is_some_and(|end| end <= section.size as u64);
        if section.loaded && (!inside || function && !section.executable) {
            return Err(format!("symbol {name} lies outside of section {}", section.name));
        }
    }
    Ok(Symbol { name, place, value, size, function, weak: symbol.st_bind() == STB_WEAK })
}
