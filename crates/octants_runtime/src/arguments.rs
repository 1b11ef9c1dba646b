//! The block of arguments of one launch.

/// A kernel's arguments as bytes, in the layout of its plan. Whoever makes one vouches for the addresses in it.
#[derive(Clone, Copy)]
pub struct Arguments<'a>(&'a [u8]);

impl<'a> Arguments<'a> {
    /// # Safety
    /// For each array parameter of the kernel that the block is launched with, the block holds the address of memory that lives
    /// until the launch is over, and extents such that all elements lie inside that memory; the memory may be written if the kernel
    /// writes the parameter. An array with an extent of zero may have any address. For each field it holds the address of the first
    /// element of a field that is laid out as the parameter's layout says.
    pub unsafe fn new(block: &'a [u8]) -> Self {
        Self(block)
    }

    pub fn bytes(self) -> &'a [u8] {
        self.0
    }
}
