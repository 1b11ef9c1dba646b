//! Code on its way to a device.

use crate::shape::LaunchShape;

/// A module's code in the form that the device understands: native objects, assembly text of a virtual machine, IR text. Which
/// one is between the compiler and the device.
#[derive(Clone, Copy, Debug)]
pub struct Image<'a> {
    /// A name for messages and profiles.
    pub name: &'a str,
    /// Pieces that were compiled apart; their symbols are distinct.
    pub parts: &'a [ImagePart<'a>],
}

#[derive(Clone, Copy, Debug)]
pub struct ImagePart<'a> {
    /// The function that this part defines.
    pub symbol: &'a str,
    pub bytes: &'a [u8],
    /// How its points are dealt to threads.
    pub shape: LaunchShape,
}
