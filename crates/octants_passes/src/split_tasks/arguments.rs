//! Variables that are passed to functions, where they became temporaries.
//!
//! Before:
//! ```text
//! call func0 %temp
//! ```
//! After:
//! ```text
//! %0: local<f32> = local
//! %1: f32 = load %temp
//! store %0, %1
//! call func0 %0
//! %2: f32 = load %0
//! store %temp, %2
//! ```

use octants_ir::rewrite::regions_in;
use octants_ir::{Builder, Data, Kernel, Op, OpKind, Region, Type, Value};

/// Each call gets a variable of its own for each temporary; one that is passed twice is still one.
pub(super) fn pass_variables(kernel: &mut Kernel) {
    for region in regions_in(kernel, kernel.body) {
        let passes_temp = |&op: &Op| {
            matches!(kernel.ops[op].kind, OpKind::Call(_))
                && kernel.ops[op].operands.iter().any(|&v| matches!(kernel.ty(v), Type::Temp(_)))
        };
        if !kernel.regions[region].ops.iter().any(passes_temp) {
            continue;
        }
        for op in std::mem::take(&mut kernel.regions[region].ops) {
            if matches!(kernel.ops[op].kind, OpKind::Call(_)) {
                pass(kernel, region, op);
            } else {
                kernel.regions[region].ops.push(op);
            }
        }
    }
}

fn pass(kernel: &mut Kernel, region: Region, op: Op) {
    let loc = kernel.ops[op].loc;
    let mut passed: Vec<(Value, Value, Data)> = Vec::new();
    for index in 0..kernel.ops[op].operands.len() {
        let temp = kernel.ops[op].operands[index];
        let Type::Temp(data) = kernel.ty(temp) else { continue };
        let known = passed.iter().find(|(known, ..)| *known == temp).map(|&(_, local, _)| local);
        let local = known.unwrap_or_else(|| {
            let local = Builder::at(kernel, region, loc).local(data);
            copy(&mut Builder::at(kernel, region, loc), temp, local, data);
            passed.push((temp, local, data));
            local
        });
        kernel.ops[op].operands[index] = local;
    }
    kernel.regions[region].ops.push(op);
    for (temp, local, data) in passed {
        copy(&mut Builder::at(kernel, region, loc), local, temp, data);
    }
}

fn copy(b: &mut Builder<'_>, from: Value, to: Value, data: Data) {
    let paths: Vec<Vec<u32>> = match data.tensor_shape() {
        None => vec![Vec::new()],
        Some(shape) => match shape.dims()[..] {
            [n] => (0..n).map(|i| vec![i]).collect(),
            [n, m] => (0..n).flat_map(|i| (0..m).map(move |j| vec![i, j])).collect(),
            _ => unreachable!("a tensor is a vector or a matrix"),
        },
    };
    for path in paths {
        let path: Vec<_> = path.into_iter().map(|component| b.i32(component as i32)).collect();
        let value = b.load(from, &path);
        b.store(to, &path, value);
    }
}
