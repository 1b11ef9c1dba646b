//! For each law a kernel that breaks it, and only kernels that break it in the list beside it.

use std::collections::BTreeSet;

use super::{Law, verify};
use crate::Builder;
use crate::ids::{Id, LayoutId, StructId};
use crate::kernel::{Kernel, Param, Phase};
use crate::layout::Digit;
use crate::ops::OpKind;
use crate::order::Order;
use crate::text::parse;
use crate::types::{ArrayType, Boundary, Data, Scalar, StructType, Type};

/// What stands around the ops of the cases: structs, parameters of many types, some constants.
fn around(ops: &str) -> String {
    let is_split = ["serial", "= temp", "store_result"].iter().any(|word| ops.contains(word));
    let phase = if is_split { " tasks" } else { "" };
    format!(
        "struct0 = struct \"S\" {{ \"a\": f32, \"b\": i32 }}\n\
         layout0 = layout [4, 6] from [-2, 0] {{ dense (axis 0 below 1 extent 4 stride 24, axis 1 below 1 extent 6 stride 4) }}\n\
         layout1 = layout [] {{ }}\n\
         func0 = function @f(%fa \"a\": i32, %fp \"p\": local<f32>, %fx \"x\": array<f32, 1>) -> (i32) {{\n\
         %fv: f32 = load %fx[%fa]\nstore %fp, %fv\nreturn %fa\n}}\n\
         kernel @k(%x \"x\": array<f32, 1>, %v \"v\": array<tensor<f32, 3>, 1>, %u \"u\": array<i32, 1>, \
         %f \"f\": f32, %d \"d\": f64, %i \"i\": i32, %l \"l\": i64, %c \"c\": u1, %t \"t\": tensor<f32, 3>, \
         %s \"s\": struct0, %y \"y\": field<f32, layout0>, %w \"w\": field<tensor<f32, 3>, layout1>){phase} {{\n{ops}\n}}\n"
    )
}

/// Kernels that keep all laws; ops to be put into [`around`].
const GOOD: &[&str] = &[
    "return",
    "%a: i32 = shl %i, %l\n%b: f32 = pow %f, %l\n%e: f32 = pow %f, %f\nreturn",
    "%a: tensor<u1, 3> = lt %t, %t\n%b: tensor<f32, 3> = select %a, %t, %t\n%e: struct0 = select %c, %s, %s\nreturn",
    "parallel_for (%j: i32, %m: i32) over layout0 reduce (%r: f32 = atomic_add %x[%i]) { yield %r }\nreturn",
    "%a: u64 = address %y[%i, %l]\n%b: u64 = address %w\n%e: u64 = address %v[%i, %i]\nreturn",
    "%a: f32 = load %y[%i, %l]\n%b: tensor<f32, 3> = load %w\nstore %w[%l], %a\nreturn",
    "%a: f32 = load %v[%i, %l]\n%b: tensor<f32, 3> = load %v[%i]\nreturn",
    "%a: tensor<f32, 3> = atomic_add %v[%i], %t\n%b: i32 = atomic_cas %u[%i], %i, %i\nreturn",
    "%n: i32 = extent 0 %x\n%p: temp<f32> = temp\nparallel_for (%j: i32) in (%i..%n) reduce (%r: f32 = atomic_add %p) {\n\
     yield %r\n}\nserial {\n%o: f32 = load %p\nstore %x[%i], %o\n}\nreturn",
    "%p: local<f32> = local\n%a: i32 = call func0 %i, %p, %x\nreturn",
    "print \"{:.2f} {} {@} {}\\n\", %f, %i, %t\n%a: f64 = random\n%b: u64 = launch_key\nreturn",
    "fork { parallel_for (%j: i32) in (%i..%i) { } } and { store %x[%i], %f }\nreturn",
    "%p: temp<i32> = temp\nfork { serial { store %p, %i } } and { %h: i32 = load %p\nparallel_for (%j: i32) in (%i..%h) { } }\nreturn",
    "%p: temp<i32> = temp\nserial { store %p, %i }\n%h: i32 = load %p\nparallel_for (%j: i32) in (%i..%h) { }\nreturn",
    "parallel_for (%j: i32) in (%i..%i) block_dim 64 {\n%sh: field<f32, layout1> = shared\nstore %sh, %f\nbarrier block\nbarrier subgroup\n\
     fence block\nfence device\n%a: i32 = barrier_count %c\n%b: u64 = ballot %c\n%e: f32 = shuffle %f, %i\n%g: i64 = shuffle_up %l, %a\n}\nreturn",
];

/// Ops to be put into [`around`], and the law that they break.
const BAD: &[(Law, &str)] = &[
    (Law::Block, "barrier block\nreturn"),
    (Law::Block, "parallel_for (%j: i32) in (%i..%i) { barrier block }\nreturn"),
    (Law::Block, "parallel_for (%j: i32, %m: i32) over layout0 block_dim 32 { barrier block }\nreturn"),
    (
        Law::Block,
        "parallel_for (%j: i32) in (%i..%i) block_dim 32 max_threads 1 { %a: u64 = ballot %c }\nreturn",
    ),
    (
        Law::Block,
        "parallel_for (%j: i32) in (%i..%i) reduce (%r: f32 = atomic_add %x[%i]) block_dim 32 {\nbarrier block\nyield %r\n}\nreturn",
    ),
    (Law::Shared, "parallel_for (%j: i32) in (%i..%i) block_dim 32 { %a: array<f32, 1> = shared }\nreturn"),
    (Law::Exchange, "parallel_for (%j: i32) in (%i..%i) block_dim 32 { barrier device }\nreturn"),
    (Law::Exchange, "fence subgroup\nreturn"),
    (Law::Exchange, "parallel_for (%j: i32) in (%i..%i) block_dim 32 { %a: u64 = ballot %i }\nreturn"),
    (Law::Exchange, "parallel_for (%j: i32) in (%i..%i) block_dim 32 { %a: u1 = shuffle %c, %i }\nreturn"),
    (Law::Exchange, "parallel_for (%j: i32) in (%i..%i) block_dim 32 { %a: f32 = shuffle %f, %l }\nreturn"),
    (Law::Terminator, ""),
    (Law::Terminator, "if %c { return }\nreturn"),
    (Law::Terminator, "return\nreturn"),
    (Law::Terminator, "store %x[%i], %f"),
    (Law::Visible, "if %c { %a: f32 = neg %f }\nstore %x[%i], %a\nreturn"),
    (Law::Visible, "%b: f32 = neg %a\n%a: f32 = neg %f\nreturn"),
    (Law::Visible, "%a: i32 = for %j: i32 in %i..%i carry (%b: i32 = %a) { yield %b }\nreturn"),
    (
        Law::Params,
        "while carry (%a: local<f32> = %f) { yield %c, %a } do (%b: local<f32>) { yield %b }\nreturn",
    ),
    (Law::OperandCount, "%a: f32 = add %f\nreturn"),
    (Law::OperandCount, "store %f\nreturn"),
    (Law::ResultCount, "add %f, %f\nreturn"),
    (Law::ResultCount, "%a: f32 = store %x[%i], %f\nreturn"),
    (Law::Takes, "%a: i32 = sin %i\nreturn"),
    (Law::Takes, "%a: f32 = xor %f, %f\nreturn"),
    (Law::Takes, "%a: u1 = neg %c\nreturn"),
    (Law::Takes, "%a: struct0 = add %s, %s\nreturn"),
    (Law::OneType, "%a: f32 = add %f, %d\nreturn"),
    (Law::OneType, "%a: tensor<f32, 3> = mul %t, %f\nreturn"),
    (Law::ResultType, "%a: f64 = add %f, %f\nreturn"),
    (Law::ResultType, "%a: f32 = lt %f, %f\nreturn"),
    (Law::ResultType, "%a: i64 = popcnt %l\nreturn"),
    (Law::ResultType, "%a: f32 = const f64 1.0\nreturn"),
    (Law::Shift, "%a: i32 = shl %i, %f\nreturn"),
    (Law::Power, "%a: i32 = pow %i, %f\nreturn"),
    (Law::Power, "%a: f32 = pow %f, %d\nreturn"),
    (Law::Select, "%a: f32 = select %i, %f, %f\nreturn"),
    (Law::Convert, "%a: tensor<f32, 3> = cast %i\nreturn"),
    (Law::Convert, "%a: f32 = bit_cast %l\nreturn"),
    (Law::Tensor, "%a: tensor<f32, 3> = tensor %f, %f\nreturn"),
    (Law::Tensor, "%a: tensor<f32, 3> = splat %d\nreturn"),
    (Law::Tensor, "%a: f32 = tensor_get %t[%i, %i]\nreturn"),
    (Law::Tensor, "%a: f32 = tensor_get %t[%f]\nreturn"),
    (Law::Struct, "%a: f32 = struct_get 2 %s\nreturn"),
    (Law::Struct, "%a: struct0 = struct_new %i, %i\nreturn"),
    (Law::Struct, "%a: f32 = struct_get 0 %f\nreturn"),
    (Law::PlaceUse, "%a: local<f32> = local\n%b: local<f32> = select %c, %a, %a\nreturn"),
    (Law::PlaceUse, "if %c { yield %x }\nreturn"),
    (Law::Path, "%a: f32 = load %x\nreturn"),
    (Law::Path, "%a: f32 = load %x[%f]\nreturn"),
    (Law::Path, "%a: f32 = load %f\nreturn"),
    (Law::Path, "%a: f32 = load %x[%i, %i]\nreturn"),
    (Law::Cell, "store %x[%i], %d\nreturn"),
    (Law::Cell, "%a: f32 = load %v[%i]\nreturn"),
    (Law::Atomic, "%a: f32 = atomic_xor %x[%i], %f\nreturn"),
    (Law::Atomic, "%a: f32 = atomic_cas %x[%i], %f, %f\nreturn"),
    (Law::Extent, "%a: i32 = extent 1 %x\nreturn"),
    (Law::Extent, "%a: i64 = extent 0 %x\nreturn"),
    (Law::Extent, "%a: i32 = extent 0 %y\nreturn"),
    (Law::Path, "%a: f32 = load %y[%i]\nreturn"),
    (Law::Path, "%a: u64 = address %y[%i]\nreturn"),
    (Law::Address, "%a: i64 = address %x[%i]\nreturn"),
    (Law::Address, "%p: local<f32> = local\n%a: u64 = address %p\nreturn"),
    (Law::Condition, "if %i { }\nreturn"),
    (Law::Condition, "while { yield %i } do { }\nreturn"),
    (Law::Condition, "assert %f, \"m\"\nreturn"),
    (Law::Bounds, "for %j: i32 in %f..%f { }\nreturn"),
    (Law::Bounds, "for %j: i32 in %i..%l { }\nreturn"),
    (Law::Bounds, "parallel_for () in () { }\nreturn"),
    (Law::Carried, "%a: f32 = if %c { yield %f } else { yield %d }\nreturn"),
    (Law::Carried, "%a: f32 = for %j: i32 in %i..%i carry (%b: f32 = %f) { yield %i }\nreturn"),
    (Law::Carried, "%a: f32 = while carry (%b: f32 = %f) { yield %c, %i } do (%e: f32) { yield %e }\nreturn"),
    (Law::Carried, "parallel_for (%j: i32) in (%i..%i) { yield %j }\nreturn"),
    (
        Law::Reduction,
        "parallel_for (%j: i32) in (%i..%i) reduce (%r: f32 = atomic_sub %x[%i]) { yield %r }\nreturn",
    ),
    (
        Law::Reduction,
        "parallel_for (%j: i32) in (%i..%i) reduce (%r: f32 = atomic_or %x[%i]) { yield %r }\nreturn",
    ),
    (
        Law::Reduction,
        "parallel_for (%j: i32) in (%i..%i) reduce (%r: i32 = atomic_add %x[%i]) { yield %f }\nreturn",
    ),
    (Law::Bounds, "parallel_for (%j: i32) over layout0 { }\nreturn"),
    (Law::Bounds, "parallel_for (%j: i32, %m: i64) over layout0 { }\nreturn"),
    (Law::Bounds, "parallel_for () over layout1 { }\nreturn"),
    (Law::Bounds, "for_cells (%j: i32) over layout0 { }\nreturn"),
    (Law::Bounds, "for_cells (%j: i32, %m: i64) over layout0 { }\nreturn"),
    (
        Law::Condition,
        "%b: local<i32> = local\nfor_cells (%j: i32, %m: i32) over layout0 until %b { }\nreturn",
    ),
    (Law::Carried, "for_cells (%j: i32, %m: i32) over layout0 { yield %j }\nreturn"),
    (Law::Digits, "serial { }\nparallel_for (%j: i32, %m: i32) over layout0 { }\nreturn"),
    (Law::Attributes, "parallel_for (%j: i32) in (%i..%i) max_threads 0 { }\nreturn"),
    (Law::Attributes, "parallel_for (%j: i32) in (%i..%i) stage (%x, %x) { }\nreturn"),
    (Law::Top, "if %c { parallel_for (%j: i32) in (%i..%i) { } }\nreturn"),
    (Law::Top, "for %j: i32 in %i..%i { %a: temp<f32> = temp }\nreturn"),
    (Law::Top, "if %c { fork { } }\nreturn"),
    (Law::Top, "fork { fork { } }\nreturn"),
    (Law::Top, "fork { %p: temp<f32> = temp }\nreturn"),
    (Law::Fork, "fork { yield %f }\nreturn"),
    (Law::Visible, "fork { %a: f32 = neg %f } and { store %x[%i], %a }\nreturn"),
    (Law::Split, "fork { serial { } } and { store %x[%i], %f }\nreturn"),
    (Law::Returned, "return %f"),
    (Law::Returned, "serial { }\nreturn %f"),
    (Law::Message, "assert %c, \"{} and {}\", %f\nreturn"),
    (Law::Message, "assert %c, \"{}\", %t\nreturn"),
    (Law::StoreResult, "serial { store_result 0 %f }\nreturn"),
    (Law::StoreResult, "store_result 0 %f\nreturn"),
    (Law::Split, "serial { }\nstore %x[%i], %f\nreturn"),
    (Law::Split, "%p: temp<f32> = temp\n%a: f32 = load %x[%i]\nreturn"),
    (Law::TaskValues, "%a: f32 = neg %f\nserial { store %x[%i], %a }\nreturn"),
    (Law::Scalars, "serial { %a: tensor<f32, 3> = load %v[%i] }\nreturn"),
    (Law::Scalars, "serial { store %v[%i], %t }\nreturn"),
    (Law::Call, "%p: local<f32> = local\n%a: f32 = call func0 %i, %p, %x\nreturn"),
    (Law::Call, "%p: local<i32> = local\n%a: i32 = call func0 %i, %p, %x\nreturn"),
    (Law::Call, "%a: i32 = call func0 %i\nreturn"),
    (Law::Print, "print \"{}\"\nreturn"),
    (Law::Print, "print \"{:d}\", %f\nreturn"),
    (Law::Print, "print \"{}\", %s\nreturn"),
    (Law::Nullary, "%a: i32 = clock\nreturn"),
    (Law::Tape, "if %c { %a: tape<f32> = tape %i }\nreturn"),
    (Law::Tape, "parallel_for (%j: i32) in (%i..%i) { %a: tape<f32> = tape %f }\nreturn"),
    (
        Law::Tape,
        "parallel_for (%j: i32) in (%i..%i) {\n%a: tape<f32> = tape %i\n%b: f32 = atomic_add %a[%i], %f }\nreturn",
    ),
    (Law::Tape, "parallel_for (%j: i32) in (%i..%i) {\n%a: tape<i32> = tape %i, %x, %i }\nreturn"),
    (Law::Random, "%a: u1 = random\nreturn"),
    (Law::Nullary, "%a: i64 = launch_key\nreturn"),
];

fn broken(kernel: &Kernel) -> BTreeSet<Law> {
    verify(kernel).err().unwrap_or_default().into_iter().map(|v| v.law).collect()
}

/// Kernels that text cannot say, and the law that each breaks.
fn unsayable() -> Vec<(Law, Kernel)> {
    let plain = || parse(&around("if %c { }\nreturn")).unwrap();
    let branch = |k: &Kernel| k.regions[k.body].ops[0];

    let mut op_twice = plain();
    let op = branch(&op_twice);
    let body = op_twice.body;
    op_twice.regions[body].ops.insert(0, op);

    let mut region_twice = plain();
    let op = branch(&region_twice);
    region_twice.ops[op].regions[1] = region_twice.ops[op].regions[0];

    let mut missing_region = plain();
    let op = branch(&missing_region);
    missing_region.ops[op].regions.pop();

    let mut shared_result = Kernel::new("k");
    let mut b = Builder::new(&mut shared_result);
    let (a, c) = (b.i32(1), b.i32(2));
    b.returns(&[]);
    let op = shared_result.regions[shared_result.body].ops[1];
    shared_result.ops[op].results[0] = a;
    assert_ne!(a, c);

    let mut nameless = plain();
    nameless.params.pop();
    let mut local_param = plain();
    local_param.params.push(Param { name: "p".into() });
    local_param.add_region_param(local_param.body, Type::Local(Scalar::F32.into()));

    let unknown = Data::Struct(StructId::from_index(7));
    let mut unknown_struct = plain();
    unknown_struct.results.push(unknown);
    let mut recursive = plain();
    recursive.structs.push(StructType { name: "R".into(), members: vec![("r".into(), unknown)] });

    let mut unstored = parse(&around("serial { }\nreturn")).unwrap();
    unstored.results.push(Scalar::F32.into());

    let mut temp_param = plain();
    let function = temp_param.functions.ids().next().unwrap();
    temp_param.add_function_param(function, "t", Type::Temp(Scalar::F32.into()));
    let mut shared_body = plain();
    let function = shared_body.functions.ids().next().unwrap();
    shared_body.functions[function].body = shared_body.body;
    let mut unended = plain();
    unended.add_function("g", []);
    let mut looping = parse(&around("parallel_for (%j: i32) in (%i..%i) { }\nreturn")).unwrap();
    let (function, task) =
        (looping.functions.ids().next().unwrap(), looping.regions[looping.body].ops.remove(0));
    let body = looping.functions[function].body;
    looping.regions[body].ops.insert(0, task);

    let mut empty_region = plain();
    let op = branch(&empty_region);
    let region = empty_region.ops[op].regions[0];
    empty_region.regions[region].ops.clear();

    let mut extra_region = parse(&around("%a: f32 = neg %f\nreturn")).unwrap();
    let op = branch(&extra_region);
    let region = extra_region.add_region();
    let end = extra_region.make_op(OpKind::Yield, [], [], [], extra_region.ops[op].loc);
    extra_region.regions[region].ops.push(end);
    extra_region.ops[op].regions.push(region);

    let field = |change: &dyn Fn(&mut ArrayType)| {
        let mut kernel = plain();
        let value = kernel.regions[kernel.body]
            .params
            .iter()
            .copied()
            .find(|&value| matches!(kernel.ty(value), Type::Array(array) if array.layout.is_some()));
        let value = value.unwrap();
        let Type::Array(array) = &mut kernel.values[value].ty else { unreachable!() };
        change(array);
        kernel
    };
    let mut uncovered = plain();
    let layout = uncovered.layouts.ids().next().unwrap();
    uncovered.layouts[layout].shape[0] = 5;
    let mut crowded = plain();
    crowded.layouts[layout].levels[0].digits[1].stride = 2;

    let mut blocked = parse(&around("serial { }\nreturn")).unwrap();
    let digits = &mut blocked.layouts[layout].levels[0].digits;
    digits[0] = Digit { axis: 0, below: 2, extent: 2, stride: 48 };
    digits.push(Digit { axis: 0, below: 1, extent: 2, stride: 4 });
    digits[1].stride = 8;

    let mut unsplit = parse(&around("serial { }\nreturn")).unwrap();
    unsplit.phase = Phase::Structured;

    vec![
        (Law::Split, unsplit),
        (Law::Digits, blocked),
        (Law::KnownTypes, field(&|array| array.layout = Some(LayoutId::from_index(9)))),
        (Law::Field, field(&|array| array.rank = 1)),
        (Law::Order, field(&|array| array.order = Order::new(&[1, 0]).unwrap())),
        (Law::Field, field(&|array| array.boundary = Boundary::Clamp)),
        (Law::Field, field(&|array| array.elem = Data::Struct(StructId::from_index(0)))),
        (Law::Layout, uncovered),
        (Law::Layout, crowded),
        (Law::Tree, op_twice),
        (Law::Tree, region_twice),
        (Law::Regions, missing_region),
        (Law::Regions, extra_region),
        (Law::Definition, shared_result),
        (Law::Params, nameless),
        (Law::Params, local_param),
        (Law::Params, temp_param),
        (Law::Tree, shared_body),
        (Law::Terminator, unended),
        (Law::Top, looping),
        (Law::KnownTypes, unknown_struct),
        (Law::KnownTypes, recursive),
        (Law::AllResults, unstored),
        (Law::Terminator, empty_region),
    ]
}

#[test]
fn kernels_that_keep_the_laws_pass() {
    for ops in GOOD {
        let text = around(ops);
        let kernel = parse(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
        if let Err(violations) = verify(&kernel) {
            panic!("{}\n{text}", violations[0]);
        }
    }
}

#[test]
fn each_law_is_broken_by_its_kernels_and_named() {
    let mut tested = BTreeSet::new();
    let said = BAD.iter().map(|&(law, ops)| {
        let text = around(ops);
        (law, parse(&text).unwrap_or_else(|e| panic!("{e}\n{text}")))
    });
    for (law, kernel) in said.chain(unsayable()) {
        let broken = broken(&kernel);
        assert!(broken.contains(&law), "{law:?} is not among {broken:?}:\n{}", crate::text::print(&kernel));
        tested.insert(law);
    }
    let untested: Vec<_> = Law::ALL.iter().filter(|law| !tested.contains(law)).collect();
    assert!(untested.is_empty(), "no test breaks {untested:?}");
}

#[test]
fn a_violation_shows_the_line_and_the_law() {
    let kernel =
        parse("kernel @k(%f \"f\": f32) {\n%a: f32 = neg %f\n%b: i32 = add %a, %a\nreturn\n}").unwrap();
    let violations = verify(&kernel).unwrap_err();
    assert_eq!(
        violations[0].to_string(),
        "`%2: i32 = add %1, %1`: the result is i32, not f32 (law 12, ResultType: A result has the type that follows \
         from the operands.)"
    );
    assert_eq!(violations.len(), 1);
}
