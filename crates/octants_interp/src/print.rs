//! `print`: tells whoever listens which op it was, and the scalars of its operands.

use octants_ir::{Const, Op};

use crate::datum::Datum;
use crate::machine::Machine;

impl Machine<'_> {
    pub fn print(&mut self, op: Op) {
        let operands = self.operand_data(&self.kernel.ops[op].operands);
        let Some(on_print) = self.context.on_print.as_mut() else { return };
        let mut scalars: Vec<Const> = Vec::new();
        for operand in &operands {
            match operand {
                Datum::Scalar(scalar) => scalars.push(*scalar),
                Datum::Tensor(_, entries) => scalars.extend(entries),
                // The laws keep structs out.
                Datum::Struct(..) => {}
            }
        }
        on_print(op, &scalars);
    }
}
