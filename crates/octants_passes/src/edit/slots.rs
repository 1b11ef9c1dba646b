//! Adding and dropping results of ops and parameters of regions. Values know their position, so it is kept in one place.

use octants_ir::{Kernel, Op, Region, Type, Value, ValueData, ValueDef};

/// The op's results become these values, in this order.
pub(crate) fn set_results(kernel: &mut Kernel, op: Op, results: Vec<Value>) {
    for (index, &value) in results.iter().enumerate() {
        kernel.values[value].def = ValueDef::Result(op, index as u32);
    }
    kernel.ops[op].results = results.into();
}

/// The region's parameters become these values, in this order.
pub(crate) fn set_params(kernel: &mut Kernel, region: Region, params: Vec<Value>) {
    for (index, &value) in params.iter().enumerate() {
        kernel.values[value].def = ValueDef::Param(region, index as u32);
    }
    kernel.regions[region].params = params.into();
}

/// One more result.
pub(crate) fn add_result(kernel: &mut Kernel, op: Op, ty: Type) -> Value {
    let index = kernel.ops[op].results.len() as u32;
    let value = kernel.values.push(ValueData { ty, def: ValueDef::Result(op, index) });
    kernel.ops[op].results.push(value);
    value
}

/// One more operand of the region's terminator.
pub(crate) fn add_yielded(kernel: &mut Kernel, region: Region, value: Value) {
    let op = *kernel.regions[region].ops.last().expect("a region ends in a terminator");
    kernel.ops[op].operands.push(value);
}

/// The operands of the region's terminator.
pub(crate) fn yielded(kernel: &Kernel, region: Region) -> &[Value] {
    &kernel.terminator(region).expect("a region ends in a terminator").operands
}
