//! What is a constant for derivatives alone is the value itself: a kernel that runs asks for no derivative.
//!
//! Before:
//! ```text
//! %1: f32 = load %x[%i]
//! %2: f32 = detach %1
//! store %y[%i], %2
//! ```
//! After:
//! ```text
//! %1: f32 = load %x[%i]
//! store %y[%i], %1
//! ```

use octants_ir::ops::ConvertOp;
use octants_ir::rewrite::{ValueMap, regions_in, replace_values};
use octants_ir::{Kernel, OpKind};

pub fn erase_detach(kernel: &mut Kernel) {
    let mut names = ValueMap::new();
    for body in kernel.bodies() {
        for region in regions_in(kernel, body) {
            let mut ops = std::mem::take(&mut kernel.regions[region].ops);
            ops.retain(|&op| {
                let data = &kernel.ops[op];
                let detaches = data.kind == OpKind::Convert(ConvertOp::Detach);
                if detaches {
                    names.insert(data.results[0], data.operands[0]);
                }
                !detaches
            });
            kernel.regions[region].ops = ops;
        }
    }
    for body in kernel.bodies() {
        replace_values(kernel, body, &names);
    }
}
