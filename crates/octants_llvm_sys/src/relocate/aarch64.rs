//! Relocations of `AArch64`, as LLVM emits them for position-independent code of the small model.

use super::{Machine, STUB_BYTES, SymbolAccess, head, out_of_reach};

const ABS64: u32 = 257;
const PREL64: u32 = 260;
const PREL32: u32 = 261;
const ADR_PREL_LO21: u32 = 274;
const ADR_PREL_PG_HI21: u32 = 275;
const ADD_ABS_LO12_NC: u32 = 277;
const LDST8_ABS_LO12_NC: u32 = 278;
const JUMP26: u32 = 282;
const CALL26: u32 = 283;
const LDST16_ABS_LO12_NC: u32 = 284;
const LDST32_ABS_LO12_NC: u32 = 285;
const LDST64_ABS_LO12_NC: u32 = 286;
const LDST128_ABS_LO12_NC: u32 = 299;
const ADR_GOT_PAGE: u32 = 311;
const LD64_GOT_LO12_NC: u32 = 312;

pub(crate) const AARCH64: Machine = Machine { symbol_access, apply, stub };

fn symbol_access(kind: u32) -> Option<SymbolAccess> {
    match kind {
        ABS64 | PREL64 | PREL32 | ADR_PREL_LO21 | ADR_PREL_PG_HI21 | ADD_ABS_LO12_NC => {
            Some(SymbolAccess::Direct)
        }
        LDST8_ABS_LO12_NC | LDST16_ABS_LO12_NC | LDST32_ABS_LO12_NC | LDST64_ABS_LO12_NC
        | LDST128_ABS_LO12_NC => Some(SymbolAccess::Direct),
        JUMP26 | CALL26 => Some(SymbolAccess::Stub),
        ADR_GOT_PAGE | LD64_GOT_LO12_NC => Some(SymbolAccess::Slot),
        _ => None,
    }
}

fn apply(kind: u32, bytes: &mut [u8], place: u64, symbol: u64, addend: i64) -> Result<(), String> {
    let absolute = symbol.wrapping_add_signed(addend);
    let relative = absolute.wrapping_sub(place) as i64;
    match kind {
        ABS64 => *head(bytes)? = absolute.to_le_bytes(),
        PREL64 => *head(bytes)? = relative.to_le_bytes(),
        PREL32 => *head(bytes)? = i32::try_from(relative).map_err(|_| out_of_reach(kind))?.to_le_bytes(),
        ADR_PREL_LO21 => {
            within(kind, relative, 21)?;
            insert(bytes, split_address(relative))?;
        }
        ADR_PREL_PG_HI21 | ADR_GOT_PAGE => {
            let pages = ((absolute & !0xfff) as i64).wrapping_sub((place & !0xfff) as i64) >> 12;
            within(kind, pages, 21)?;
            insert(bytes, split_address(pages))?;
        }
        ADD_ABS_LO12_NC | LDST8_ABS_LO12_NC => low_bits(kind, bytes, absolute, 0)?,
        LDST16_ABS_LO12_NC => low_bits(kind, bytes, absolute, 1)?,
        LDST32_ABS_LO12_NC => low_bits(kind, bytes, absolute, 2)?,
        LDST64_ABS_LO12_NC | LD64_GOT_LO12_NC => low_bits(kind, bytes, absolute, 3)?,
        LDST128_ABS_LO12_NC => low_bits(kind, bytes, absolute, 4)?,
        JUMP26 | CALL26 => {
            if relative & 3 != 0 {
                return Err(format!("a branch to the unaligned address {absolute:#x}"));
            }
            within(kind, relative, 28)?;
            insert(bytes, Field { mask: 0x03ff_ffff, value: (relative >> 2) as u32 })?;
        }
        _ => return Err(format!("unknown relocation of kind {kind}")),
    }
    Ok(())
}

/// Bits of an instruction to replace.
#[derive(Clone, Copy)]
struct Field {
    mask: u32,
    value: u32,
}

fn insert(bytes: &mut [u8], field: Field) -> Result<(), String> {
    let word = head::<4>(bytes)?;
    let old = u32::from_le_bytes(*word) & !field.mask;
    *word = (old | (field.value & field.mask)).to_le_bytes();
    Ok(())
}

/// The 21-bit field of `adr` and `adrp`: its two low bits stand apart.
fn split_address(value: i64) -> Field {
    let value = value as u32;
    Field { mask: 0x60ff_ffe0, value: (value & 3) << 29 | (value >> 2 & 0x7_ffff) << 5 }
}

/// The offset within a page, in units of the access.
fn low_bits(kind: u32, bytes: &mut [u8], absolute: u64, scale: u32) -> Result<(), String> {
    let low = (absolute & 0xfff) as u32;
    if low & ((1 << scale) - 1) != 0 {
        return Err(format!("a relocation of kind {kind} to the unaligned address {absolute:#x}"));
    }
    insert(bytes, Field { mask: 0xfff << 10, value: (low >> scale) << 10 })
}

fn within(kind: u32, value: i64, bits: u32) -> Result<(), String> {
    let limit = 1 << (bits - 1);
    if (-limit..limit).contains(&value) { Ok(()) } else { Err(out_of_reach(kind)) }
}

/// `ldr x16, .+8; br x16`, and the address behind it.
fn stub(address: u64) -> [u8; STUB_BYTES] {
    let mut code = [0; STUB_BYTES];
    code[..4].copy_from_slice(&0x5800_0050_u32.to_le_bytes());
    code[4..8].copy_from_slice(&0xd61f_0200_u32.to_le_bytes());
    code[8..].copy_from_slice(&address.to_le_bytes());
    code
}

#[cfg(test)]
mod tests {
    use super::*;

    fn patched(kind: u32, instruction: u32, place: u64, symbol: u64) -> Result<u32, String> {
        let mut bytes = instruction.to_le_bytes();
        apply(kind, &mut bytes, place, symbol, 0)?;
        Ok(u32::from_le_bytes(bytes))
    }

    #[test]
    fn instructions_get_the_fields_that_an_assembler_writes() {
        // bl .+0x1000; bl .-4
        assert_eq!(patched(CALL26, 0x9400_0000, 0x4000, 0x5000), Ok(0x9400_0400));
        assert_eq!(patched(CALL26, 0x9400_0000, 0x4000, 0x3ffc), Ok(0x97ff_ffff));
        // adrp x0, three pages on; adrp x0, one page back
        assert_eq!(patched(ADR_PREL_PG_HI21, 0x9000_0000, 0x4ff0, 0x7010), Ok(0xf000_0000));
        assert_eq!(patched(ADR_PREL_PG_HI21, 0x9000_0000, 0x4000, 0x3fff), Ok(0xf0ff_ffe0));
        // add x0, x0, #0x123; ldr q0, [x0, #0x120]
        assert_eq!(patched(ADD_ABS_LO12_NC, 0x9100_0000, 0, 0x5123), Ok(0x9104_8c00));
        assert_eq!(patched(LDST128_ABS_LO12_NC, 0x3dc0_0000, 0, 0x5120), Ok(0x3dc0_4800));
    }

    #[test]
    fn refuses_what_does_not_fit() {
        assert!(patched(CALL26, 0x9400_0000, 0, 1 << 27).unwrap_err().contains("out of reach"));
        assert!(patched(LDST64_ABS_LO12_NC, 0xf940_0000, 0, 0x5124).unwrap_err().contains("unaligned"));
    }
}
