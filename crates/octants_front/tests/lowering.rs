//! Kernels that people write, as IR text and as the interpreter runs them.

mod fake_host;

use std::sync::Arc;

use fake_host::{FakeHost, Object};
use octants_front::{ArgSpec, FieldKind, LowerOptions, Lowered, Origin, Role, Sources, lower_kernel};
use octants_interp::{Arg, Buffers, Datum, Limits, run};
use octants_ir::{
    ArrayType, Boundary, Const, Data, Digit, KernelOptions, Layout, Level, NodeKind, Scalar, TensorShape,
    text, verify,
};

fn array(elem: Scalar, rank: u8) -> ArgSpec<Object> {
    ArgSpec::Array(ArrayType::array(Data::Scalar(elem), rank, Boundary::Unsafe), None)
}

fn lower_with(
    host: &FakeHost,
    name: &str,
    args: &[ArgSpec<Object>],
    options: &LowerOptions,
) -> Lowered<Object> {
    let sources = Sources::new();
    let function = Object::Kernel(name.to_owned());
    let lowered = lower_kernel(host, &sources, &function, args, options, &[]).unwrap_or_else(|errors| {
        panic!("{}", octants_diag::render_all(&errors, sources.map(), octants_diag::Style::Plain))
    });
    if let Err(violations) = verify(&lowered.kernel) {
        panic!("{violations:?}\n{}", text::print(&lowered.kernel));
    }
    lowered
}

fn lower(source: &str, name: &str, args: &[ArgSpec<Object>]) -> Lowered<Object> {
    lower_with(&FakeHost::new(source), name, args, &LowerOptions::default())
}

fn scalar(value: Const) -> Arg {
    Arg::Data(Datum::Scalar(value))
}

/// Runs a kernel of scalars; its one result.
fn call(lowered: &Lowered<Object>, args: &[Arg]) -> Const {
    let results = run(&lowered.kernel, args, &mut Buffers::new(), &Limits::default()).unwrap();
    results[0].scalar()
}

const KERNELS: &str = include_str!("kernels.py");

#[test]
fn saxpy() {
    let lowered = lower(
        KERNELS,
        "saxpy",
        &[ArgSpec::Scalar(Scalar::F32), array(Scalar::F32, 1), array(Scalar::F32, 1)],
    );
    insta::assert_snapshot!(text::print(&lowered.kernel));
}

#[test]
fn sum() {
    let lowered = lower(KERNELS, "sum", &[array(Scalar::F32, 1)]);
    insta::assert_snapshot!(text::print(&lowered.kernel));
}

#[test]
fn stencil() {
    let lowered = lower(KERNELS, "stencil", &[array(Scalar::F32, 2), array(Scalar::F32, 2)]);
    insta::assert_snapshot!(text::print(&lowered.kernel));
}

#[test]
fn julia() {
    let lowered = lower(KERNELS, "julia", &[array(Scalar::F32, 2), ArgSpec::Scalar(Scalar::F32)]);
    insta::assert_snapshot!(text::print(&lowered.kernel));
}

fn leaf(layout: Layout) -> FieldKind {
    FieldKind::Leaf { elem: Scalar::F32.into(), layout: Arc::new(layout), sparse: None }
}

#[test]
fn fields_become_parameters_and_loops_run_in_storage_order() {
    let host = FakeHost::new(KERNELS);
    let turned = Layout { origin: vec![-1, 2], ..Layout::row_major(&[5, 4], 4) };
    let digit = |axis, below, extent, stride| Digit { axis, below, extent, stride };
    let digits = vec![digit(1, 2, 2, 40), digit(0, 1, 5, 8), digit(1, 1, 2, 4)];
    let blocked = Layout { levels: vec![Level { kind: NodeKind::Dense, digits }], ..turned.clone() };
    host.set("grid", Object::Field(leaf(blocked).into()));
    host.set("blurred", Object::Field(leaf(turned).into()));
    let options = LowerOptions { check_bounds: true, ..LowerOptions::default() };
    let lowered = lower_with(&host, "blur", &[], &options);
    insta::assert_snapshot!(text::print(&lowered.kernel));
    let roles: Vec<_> = lowered.dependencies.iter().map(|one| (&one.origin, one.role)).collect();
    assert!(matches!(
        roles[..],
        [(Origin::Captured, Role::Field { .. }), (Origin::Captured, Role::Field { .. })]
    ));
}

#[test]
fn a_serial_loop_over_a_field_stays_one_over_its_layout() {
    let host = FakeHost::new(KERNELS);
    host.set("grid", Object::Field(leaf(Layout::row_major(&[5, 4], 4)).into()));
    let lowered = lower_with(&host, "search", &[ArgSpec::Scalar(Scalar::I32)], &LowerOptions::default());
    insta::assert_snapshot!(text::print(&lowered.kernel));
}

#[test]
fn entries_of_a_field_may_lie_apart() {
    let entry = Arc::new(leaf(Layout::row_major(&[7], 4)));
    let entries = vec![entry.clone(), entry];
    let vectors = FieldKind::Entries { shape: TensorShape::Vector(2), entries };
    let lowered = lower(KERNELS, "swap_entries", &[ArgSpec::Template(Object::Field(vectors.into()))]);
    insta::assert_snapshot!(text::print(&lowered.kernel));
    assert_eq!(lowered.dependencies[0].role, Role::Field { pinned: false });
    assert_eq!(lowered.fields.iter().map(|one| (one.field, one.leaf)).collect::<Vec<_>>(), [(0, 0), (0, 1)]);
}

#[test]
fn nbody() {
    let lowered = lower(
        KERNELS,
        "nbody",
        &[array(Scalar::F32, 2), array(Scalar::F32, 2), ArgSpec::Scalar(Scalar::F32)],
    );
    assert!(lowered.warnings.is_empty(), "{:?}", lowered.warnings);
    insta::assert_snapshot!(text::print(&lowered.kernel));
}

#[test]
fn lcg() {
    let lowered = lower(KERNELS, "lcg", &[array(Scalar::U32, 1), ArgSpec::Scalar(Scalar::I32)]);
    let mut memory = Buffers::new();
    let seeds: Vec<u8> = (0..4_u32).flat_map(u32::to_le_bytes).collect();
    let address = memory.add(seeds);
    let args = [Arg::Array { address, shape: vec![4] }, scalar(Const::i32(10))];
    run(&lowered.kernel, &args, &mut memory, &Limits::default()).unwrap();
    for (seed, bytes) in (0..4_u32).zip(memory.bytes(address).chunks(4)) {
        let expected = (0..10).fold(seed, |x, _| x.wrapping_mul(1_664_525).wrapping_add(1_013_904_223));
        assert_eq!(u32::from_le_bytes(bytes.try_into().unwrap()), expected);
    }
}

#[test]
fn an_early_continue_needs_no_flag_and_a_deep_one_does() {
    let lowered = lower(KERNELS, "exits", &[ArgSpec::Scalar(Scalar::I32)]);
    insta::assert_snapshot!(text::print(&lowered.kernel));
    let mut expected = 0;
    for k in 0..100 {
        if k % 2 == 0 {
            continue;
        }
        if k > 33 {
            break;
        }
        if k % 3 == 0 {
            if k % 5 == 0 {
                continue;
            }
            expected += 100;
        }
        expected += 1;
    }
    assert_eq!(call(&lowered, &[scalar(Const::i32(33))]), Const::i32(expected));
}

#[test]
fn funcs_copy_numbers_and_write_through_templates() {
    let lowered = lower(KERNELS, "calls", &[ArgSpec::Scalar(Scalar::I32)]);
    assert_eq!(call(&lowered, &[scalar(Const::i32(5))]), Const::i32(5 * 1000 + 15 * 10 + 3));
}

#[test]
fn a_python_function_composes_expressions() {
    let host = FakeHost::new("@oc.kernel\ndef f(x: oc.f32) -> oc.f32:\n    return square(x) + 1.0\n");
    let square = |args: &[Object], tracer: &mut dyn octants_front::Tracer<Object>| {
        tracer
            .binary(octants_front::host::BinaryOp::Mul, &args[0], &args[0])
            .map_err(|error| octants_front::HostException::new("TypeError", error.message))
    };
    host.set("square", Object::Callable(std::rc::Rc::new(square)));
    let lowered = lower_with(&host, "f", &[ArgSpec::Scalar(Scalar::F32)], &LowerOptions::default());
    assert_eq!(call(&lowered, &[scalar(Const::f32(3.0))]), Const::f32(10.0));
    assert_eq!(lowered.warnings.len(), 1);
    assert_eq!(lowered.warnings[0].code, octants_diag::Code::PythonCall);
}

#[test]
fn static_loops_unroll_and_static_branches_choose() {
    let host = FakeHost::new(KERNELS);
    host.set("WEIGHTS", Object::List([1, 2, 3].map(Object::Int).to_vec()));
    let lowered = lower_with(
        &host,
        "statics",
        &[ArgSpec::Scalar(Scalar::I32), ArgSpec::Template(Object::None)],
        &LowerOptions::default(),
    );
    insta::assert_snapshot!(text::print(&lowered.kernel));
    assert_eq!(call(&lowered, &[scalar(Const::i32(7))]), Const::i32(7 + 14 + 21 + 100));
}

#[test]
fn debug_mode_checks_bounds_and_assertions() {
    let options = LowerOptions {
        kernel: KernelOptions { debug: true, ..LowerOptions::default().kernel },
        check_bounds: true,
        ..LowerOptions::default()
    };
    let lowered = lower_with(&FakeHost::new(KERNELS), "checked", &[array(Scalar::I32, 2)], &options);
    insta::assert_snapshot!(text::print(&lowered.kernel));
}

#[test]
fn lowering_is_quick() {
    let host = FakeHost::new(KERNELS);
    let sources = Sources::new();
    let args = [array(Scalar::F32, 2), array(Scalar::F32, 2), ArgSpec::Scalar(Scalar::F32)];
    let function = Object::Kernel("nbody".to_owned());
    let mut times: Vec<_> = (0..20)
        .map(|_| {
            let start = std::time::Instant::now();
            lower_kernel(&host, &sources, &function, &args, &LowerOptions::default(), &[]).unwrap();
            start.elapsed()
        })
        .collect();
    times.sort();
    // An unoptimised build on a busy machine; a release build takes some tens of microseconds.
    assert!(times[10].as_millis() < 20, "{times:?}");
    println!("{:?}", times[10]);
}

#[test]
fn blocks_are_the_branches_of_one_fork() {
    let lowered = lower(KERNELS, "branches", &[array(Scalar::F32, 1), array(Scalar::F32, 1)]);
    insta::assert_snapshot!(text::print(&lowered.kernel));
}
