//! Relocations of x86-64, as LLVM emits them for position-independent code of the small model.

use super::{Machine, STUB_BYTES, SymbolAccess, head, out_of_reach};

const R_64: u32 = 1;
const R_PC32: u32 = 2;
const R_PLT32: u32 = 4;
const R_GOTPCREL: u32 = 9;
const R_32: u32 = 10;
const R_32S: u32 = 11;
const R_PC64: u32 = 24;
const R_GOTPCRELX: u32 = 41;
const R_REX_GOTPCRELX: u32 = 42;

pub(crate) const X86_64: Machine = Machine { symbol_access, apply, stub };

fn symbol_access(kind: u32) -> Option<SymbolAccess> {
    match kind {
        R_64 | R_PC32 | R_32 | R_32S | R_PC64 => Some(SymbolAccess::Direct),
        R_PLT32 => Some(SymbolAccess::Stub),
        R_GOTPCREL | R_GOTPCRELX | R_REX_GOTPCRELX => Some(SymbolAccess::Slot),
        _ => None,
    }
}

fn apply(kind: u32, bytes: &mut [u8], place: u64, symbol: u64, addend: i64) -> Result<(), String> {
    let absolute = symbol.wrapping_add_signed(addend);
    let relative = absolute.wrapping_sub(place) as i64;
    let far = |_| out_of_reach(kind);
    match kind {
        R_64 => *head(bytes)? = absolute.to_le_bytes(),
        R_PC64 => *head(bytes)? = relative.to_le_bytes(),
        R_PC32 | R_PLT32 | R_GOTPCREL | R_GOTPCRELX | R_REX_GOTPCRELX => {
            *head(bytes)? = i32::try_from(relative).map_err(far)?.to_le_bytes();
        }
        R_32 => *head(bytes)? = u32::try_from(absolute).map_err(far)?.to_le_bytes(),
        R_32S => *head(bytes)? = i32::try_from(absolute as i64).map_err(far)?.to_le_bytes(),
        _ => return Err(format!("unknown relocation of kind {kind}")),
    }
    Ok(())
}

/// `jmp [rip]`, and the address behind it.
fn stub(address: u64) -> [u8; STUB_BYTES] {
    let mut code = [0xcc; STUB_BYTES];
    code[..6].copy_from_slice(&[0xff, 0x25, 0, 0, 0, 0]);
    code[6..14].copy_from_slice(&address.to_le_bytes());
    code
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relative_and_absolute_fields() {
        let mut field = [0; 8];
        apply(R_PC32, &mut field, 0x1000, 0x2000, -4).unwrap();
        assert_eq!(field, [0xfc, 0x0f, 0, 0, 0, 0, 0, 0]);
        apply(R_64, &mut field, 0x1000, 0x7f00_0000_2000, 8).unwrap();
        assert_eq!(u64::from_le_bytes(field), 0x7f00_0000_2008);
        assert!(
            apply(R_PLT32, &mut field, 0x1000, 0x7f00_0000_2000, -4).unwrap_err().contains("out of reach")
        );
        assert!(apply(R_64, &mut field[..7], 0, 0, 0).unwrap_err().contains("end of a section"));
    }
}
