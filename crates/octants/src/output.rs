//! What a kernel prints.

use std::sync::{Mutex, PoisonError};

use octants_ir::format::print_op_text;
use octants_ir::{Const, Id, Kernel, LocData, Op, OpKind};

use crate::fault::decode;

/// Says where an op stands in the user's files, as `file:line`.
pub type Locate<'a> = &'a (dyn Fn(&LocData) -> String + Sync);

/// The text of one launch. Threads append whole prints.
pub(crate) struct Output<'a> {
    locate: Locate<'a>,
    text: Mutex<String>,
}

impl<'a> Output<'a> {
    pub fn new(locate: Locate<'a>) -> Self {
        Self { locate, text: Mutex::new(String::new()) }
    }

    /// Code made from `kernel` ran the print at `site` with operands in `words`.
    pub fn print(&self, kernel: &Kernel, site: u32, words: &[u64]) {
        let op = Op::from_index(site as usize);
        let OpKind::Print(_) = kernel.ops[op].kind else { return };
        let types = kernel.ops[op].operands.iter().filter_map(|&operand| kernel.ty(operand).data());
        let scalars = types.flat_map(|data| {
            let count = data.tensor_shape().map_or(1, octants_ir::TensorShape::count);
            std::iter::repeat_n(data.elem(), count as usize)
        });
        let values: Vec<Const> =
            scalars.flatten().zip(words).map(|(scalar, &word)| decode(scalar, word)).collect();
        let text = print_op_text(kernel, op, &values, &|loc| (self.locate)(loc));
        self.text.lock().unwrap_or_else(PoisonError::into_inner).push_str(&text);
    }

    pub fn into_text(self) -> String {
        self.text.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}
