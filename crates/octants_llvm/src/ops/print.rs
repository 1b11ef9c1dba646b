//! `print`: the operands, handed to the host.

use octants_ir::Op;

use crate::emitter::Emitter;

impl Emitter<'_> {
    pub(crate) fn print(&mut self, op: Op) {
        let operands: Vec<_> = self.kernel.ops[op].operands.iter().map(|&value| self.get(value)).collect();
        let (lowering, site) = (self.lowering, self.facts.sites.number(op));
        lowering.print(self, site, &operands);
    }
}
