//! Reads relocatable ELF objects of 64-bit little-endian machines. Trusts nothing: every offset is checked.

/// What the loader needs to know of an object.
pub(crate) struct Object<'a> {
    pub(crate) machine: u16,
    pub(crate) sections: Vec<Section<'a>>,
    pub(crate) symbols: Vec<Symbol<'a>>,
    pub(crate) relocations: Vec<Relocation>,
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

pub(crate) const MACHINE_X86_64: u16 = 62;
pub(crate) const MACHINE_AARCH64: u16 = 183;

const TYPE_RELOCATABLE: u16 = 1;
const SHT_SYMTAB: u32 = 2;
const SHT_RELA: u32 = 4;
const SHT_NOBITS: u32 = 8;
const SHF_WRITE: u64 = 1;
const SHF_ALLOC: u64 = 2;
const SHF_EXECINSTR: u64 = 4;
const SHF_TLS: u64 = 0x400;
const SHN_UNDEF: u16 = 0;
const SHN_LORESERVE: u16 = 0xff00;
const SHN_ABS: u16 = 0xfff1;
const STT_FUNC: u8 = 2;
const STB_WEAK: u8 = 2;

/// Bounds-checked reading at any offset.
struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    fn slice(&self, start: u64, length: u64) -> Result<&'a [u8], String> {
        let end = start.checked_add(length);
        end.and_then(|end| self.0.get(usize::try_from(start).ok()?..usize::try_from(end).ok()?)).ok_or_else(
            || format!("{length} bytes at {start} lie outside of the object of {} bytes", self.0.len()),
        )
    }

    fn array<const N: usize>(&self, at: u64) -> Result<[u8; N], String> {
        let bytes = self.slice(at, N as u64)?;
        Ok(bytes.try_into().expect("the slice has the length asked for"))
    }

    fn u8(&self, at: u64) -> Result<u8, String> {
        Ok(self.array::<1>(at)?[0])
    }

    fn u16(&self, at: u64) -> Result<u16, String> {
        Ok(u16::from_le_bytes(self.array(at)?))
    }

    fn u32(&self, at: u64) -> Result<u32, String> {
        Ok(u32::from_le_bytes(self.array(at)?))
    }

    fn u64(&self, at: u64) -> Result<u64, String> {
        Ok(u64::from_le_bytes(self.array(at)?))
    }

    /// A string of a string table that starts at `at`.
    fn text(&self, at: u64) -> Result<&'a str, String> {
        let rest = usize::try_from(at).ok().and_then(|at| self.0.get(at..)).unwrap_or_default();
        let length = rest.iter().position(|&byte| byte == 0).ok_or("a name without an end")?;
        std::str::from_utf8(&rest[..length]).map_err(|_| "a name that is not UTF-8".to_owned())
    }
}

struct Header {
    name: u32,
    kind: u32,
    flags: u64,
    offset: u64,
    size: u64,
    link: u32,
    info: u32,
    align: u64,
}

impl Header {
    fn read(table: &Bytes<'_>, at: u64) -> Result<Header, String> {
        Ok(Header {
            name: table.u32(at)?,
            kind: table.u32(at + 4)?,
            flags: table.u64(at + 8)?,
            offset: table.u64(at + 24)?,
            size: table.u64(at + 32)?,
            link: table.u32(at + 40)?,
            info: table.u32(at + 44)?,
            align: table.u64(at + 48)?,
        })
    }
}

pub(crate) fn read(bytes: &[u8]) -> Result<Object<'_>, String> {
    let file = Bytes(bytes);
    if file.slice(0, 6)? != b"\x7fELF\x02\x01" {
        return Err("not a 64-bit little-endian ELF file".to_owned());
    }
    if file.u16(16)? != TYPE_RELOCATABLE {
        return Err("not a relocatable object".to_owned());
    }
    let machine = file.u16(18)?;
    let table = file.u64(40)?;
    let (count, names) = (file.u16(60)?, file.u16(62)?);
    let table = Bytes(file.slice(table, u64::from(count) * 64)?);
    let headers = (0..u64::from(count))
        .map(|index| Header::read(&table, index * 64))
        .collect::<Result<Vec<_>, String>>()?;

    let names = headers.get(usize::from(names)).ok_or("no section names")?;
    let names = Bytes(file.slice(names.offset, names.size)?);
    let sections = headers
        .iter()
        .map(|header| read_section(&file, &names, header))
        .collect::<Result<Vec<_>, String>>()?;

    let mut symbols = Vec::new();
    if let Some(header) = headers.iter().find(|header| header.kind == SHT_SYMTAB) {
        let strings = headers.get(header.link as usize).ok_or("no symbol names")?;
        let strings = Bytes(file.slice(strings.offset, strings.size)?);
        let entries = Bytes(file.slice(header.offset, header.size)?);
        for index in 0..header.size / 24 {
            symbols.push(read_symbol(&entries, index * 24, &strings, sections.len())?);
        }
    }

    let mut relocations = Vec::new();
    for header in headers.iter().filter(|header| header.kind == SHT_RELA) {
        let section = header.info as usize;
        let patched = sections.get(section).ok_or("relocations of no section")?;
        if !patched.loaded {
            continue;
        }
        let entries = Bytes(file.slice(header.offset, header.size)?);
        for index in 0..header.size / 24 {
            let info = entries.u64(index * 24 + 8)?;
            let symbol = (info >> 32) as usize;
            if symbol >= symbols.len() {
                return Err("a relocation against no symbol".to_owned());
            }
            relocations.push(Relocation {
                section,
                offset: entries.u64(index * 24)? as usize,
                kind: info as u32,
                symbol,
                addend: entries.u64(index * 24 + 16)? as i64,
            });
        }
    }
    Ok(Object { machine, sections, symbols, relocations })
}

fn read_section<'a>(file: &Bytes<'a>, names: &Bytes<'a>, header: &Header) -> Result<Section<'a>, String> {
    let name = names.text(u64::from(header.name))?;
    // Tables for unwinding are loaded by ordinary linkers; nothing unwinds through generated code.
    let loaded = header.flags & SHF_ALLOC != 0 && !name.starts_with(".eh_frame");
    if loaded && header.flags & SHF_TLS != 0 {
        return Err(format!("thread-local section {name}"));
    }
    let content =
        if header.kind == SHT_NOBITS || !loaded { &[][..] } else { file.slice(header.offset, header.size)? };
    let align = header.align.max(1);
    if !align.is_power_of_two() || align > 4096 || (loaded && header.size > 1 << 30) {
        return Err(format!("section {name} has size {} and alignment {align}", header.size));
    }
    Ok(Section {
        name,
        loaded,
        writable: header.flags & SHF_WRITE != 0 && !name.starts_with(".data.rel.ro"),
        executable: header.flags & SHF_EXECINSTR != 0,
        align: align as usize,
        size: header.size as usize,
        content,
    })
}

fn read_symbol<'a>(
    entries: &Bytes<'a>,
    at: u64,
    strings: &Bytes<'a>,
    sections: usize,
) -> Result<Symbol<'a>, String> {
    let info = entries.u8(at + 4)?;
    let place = match entries.u16(at + 6)? {
        SHN_UNDEF => Place::Undefined,
        SHN_ABS => Place::Absolute,
        index if index < SHN_LORESERVE && usize::from(index) < sections => Place::Section(usize::from(index)),
        index => return Err(format!("a symbol in section {index}")),
    };
    Ok(Symbol {
        name: strings.text(u64::from(entries.u32(at)?))?,
        place,
        value: entries.u64(at + 8)?,
        function: info & 15 == STT_FUNC,
        weak: info >> 4 == STB_WEAK,
    })
}
