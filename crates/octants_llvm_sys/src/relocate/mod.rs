//! Patching of code and data once its address is known, by machine.

pub(crate) mod aarch64;
pub(crate) mod x86_64;

/// How a relocation refers to its symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SymbolAccess {
    /// By the symbol's own address.
    Direct,
    /// By a branch that may go through a stub if the symbol is too far away.
    Stub,
    /// By a slot in memory that holds the symbol's address.
    Slot,
}

type Apply = fn(kind: u32, bytes: &mut [u8], place: u64, symbol: u64, addend: i64) -> Result<(), String>;

/// Everything that a machine must say of itself.
pub(crate) struct Machine {
    /// How a relocation of this kind reaches its symbol; `None` if the kind is unknown.
    pub(crate) symbol_access: fn(kind: u32) -> Option<SymbolAccess>,
    /// Patches `bytes`, which will be at address `place`, to refer to `symbol + addend`.
    pub(crate) apply: Apply,
    /// Code that jumps to the address.
    pub(crate) stub: fn(address: u64) -> [u8; STUB_BYTES],
}

/// The longest stub: a jump through an address of eight bytes beside it.
pub(crate) const STUB_BYTES: usize = 16;

/// The first bytes of what is patched, as an array.
fn head<const N: usize>(bytes: &mut [u8]) -> Result<&mut [u8; N], String> {
    bytes.first_chunk_mut().ok_or_else(|| "a relocation at the very end of a section".to_owned())
}

fn out_of_reach(kind: u32) -> String {
    format!("the target of a relocation of kind {kind} is out of reach")
}
