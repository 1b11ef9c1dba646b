//! What the text tests cannot say: overlapping arrays, cancelling, arguments that do not fit, locations of traps.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use octants_interp::{AddressSpace, Arg, Buffers, Datum, Limits, Trap, TrapKind, run};
use octants_ir::text::parse;
use octants_ir::{Const, Data, Kernel, Scalar};

fn kernel(text: &str) -> Kernel {
    parse(text).unwrap_or_else(|e| panic!("{e}\n{text}"))
}

fn i32s(values: &[i32]) -> Vec<u8> {
    values.iter().flat_map(|v| v.to_le_bytes()).collect()
}

fn run_plainly(kernel: &Kernel, args: &[Arg], memory: &mut Buffers) -> Result<Vec<Datum>, Trap> {
    run(kernel, args, memory, &Limits::default())
}

#[test]
fn arrays_may_overlap() {
    let shift = kernel(
        "kernel @shift(%a \"a\": array<i32, 1>, %b \"b\": array<i32, 1>) {
           %zero: i32 = const 0
           %n: i32 = extent 0 %a
           parallel_for (%i: i32) in (%zero..%n) max_threads 1 {
             %v: i32 = load %a[%i]
             store %b[%i], %v
           }
           return
         }",
    );
    let mut memory = Buffers::new();
    let address = memory.add(i32s(&[1, 2, 3, 4]));
    let array = |offset| Arg::Array { address: address + offset, shape: vec![3] };
    run_plainly(&shift, &[array(0), array(4)], &mut memory).unwrap();
    assert_eq!(memory.bytes(address), i32s(&[1, 1, 1, 1]));
}

#[test]
fn another_thread_ends_an_endless_loop() {
    let endless = kernel("kernel @f() { while { %t: u1 = const true\nyield %t } do { }\nreturn }");
    let cancel = AtomicBool::new(false);
    let trap = std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(20));
            cancel.store(true, Ordering::Relaxed);
        });
        let limits = Limits { steps: None, cancel: Some(&|| cancel.load(Ordering::Relaxed)) };
        run(&endless, &[], &mut Buffers::new(), &limits).unwrap_err()
    });
    assert_eq!(trap.kind, TrapKind::Cancelled);
}

#[test]
fn arguments_that_do_not_fit_are_refused() {
    let k = kernel("kernel @f(%a \"a\": i32, %b \"b\": array<f32, 2>, %c \"c\": tensor<u8, 2>) { return }");
    let one = || Arg::Data(Datum::Scalar(Const::i32(1)));
    let array = |shape: &[i32]| Arg::Array { address: 0, shape: shape.to_vec() };
    let Some(Data::Tensor(ty)) = k.ty(k.regions[k.body].params[2]).data() else {
        panic!("the kernel says so")
    };
    let tensor = |entries| Arg::Data(Datum::Tensor(ty, vec![Const::from_bits(Scalar::U8, 7); entries]));
    let refused = |args: &[Arg]| match run_plainly(&k, args, &mut Buffers::new()) {
        Err(Trap { kind: TrapKind::Arguments(message), .. }) => message,
        other => panic!("{other:?}"),
    };
    assert!(run_plainly(&k, &[one(), array(&[0, 3]), tensor(2)], &mut Buffers::new()).is_ok());
    assert_eq!(refused(&[one()]), "1 arguments for 3 parameters");
    let real = Arg::Data(Datum::Scalar(Const::f32(1.0)));
    assert_eq!(refused(&[real, array(&[0, 3]), tensor(2)]), "argument 0 is no i32");
    assert_eq!(refused(&[one(), array(&[3]), tensor(2)]), "argument 1 is no array<f32, 2>");
    assert_eq!(refused(&[one(), array(&[3, -1]), tensor(2)]), "argument 1 is no array<f32, 2>");
    assert_eq!(refused(&[one(), one(), tensor(2)]), "argument 1 is no array<f32, 2>");
    assert_eq!(refused(&[one(), array(&[0, 3]), tensor(1)]), "argument 2 is no tensor<u8, 2>");
}

#[test]
fn a_trap_names_the_op_and_its_location() {
    let k = kernel(
        "loc0 = 3:10..20 in \"f\"\nkernel @f(%x \"x\": array<i32, 1>) -> (i32) {
           %i: i32 = const 2
           %v: i32 = load %x[%i] loc0
           return %v
         }",
    );
    let mut memory = Buffers::new();
    let x = Arg::Array { address: memory.add(i32s(&[1, 2])), shape: vec![2] };
    let trap = run_plainly(&k, &[x], &mut memory).unwrap_err();
    let loc = &k.locs[trap.loc.unwrap()];
    assert_eq!((loc.span.unwrap().start, loc.function.as_deref()), (10, Some("f")));
    assert_eq!(k.ops[trap.op.unwrap()].kind.name(), "load");
}

#[test]
fn a_shape_larger_than_the_memory_is_a_fault_and_writes_nothing() {
    let k = kernel(
        "kernel @f(%x \"x\": array<i32, 1>, %i \"i\": i32) { %v: i32 = const 9\nstore %x[%i], %v\nreturn }",
    );
    let mut memory = Buffers::new();
    let address = memory.add(i32s(&[1, 2]));
    let args = |i| [Arg::Array { address, shape: vec![1000] }, Arg::Data(Datum::Scalar(Const::i32(i)))];
    let trap = run_plainly(&k, &args(2), &mut memory).unwrap_err();
    assert!(matches!(trap.kind, TrapKind::Memory(fault) if fault.address == address + 8));
    assert_eq!(memory.bytes(address), i32s(&[1, 2]));
    run_plainly(&k, &args(1), &mut memory).unwrap();
    let mut second = [0; 4];
    memory.read(address + 4, &mut second).unwrap();
    assert_eq!(i32::from_le_bytes(second), 9);
}

#[test]
fn a_kernel_that_breaks_laws_is_not_run() {
    let k = kernel("kernel @f(%a \"a\": i32, %b \"b\": f32) -> (i32) { %c: i32 = add %a, %b\nreturn %c }");
    let trap = run_plainly(&k, &[], &mut Buffers::new()).unwrap_err();
    assert!(trap.to_string().contains("another operand is f32, not i32"), "{trap}");
}

/// How fast it is; run with `--ignored --nocapture` in release.
#[test]
#[ignore = "a measurement"]
fn speed() {
    let k = kernel(
        "kernel @f(%x \"x\": array<f32, 1>) {
           %zero: i32 = const 0
           %n: i32 = extent 0 %x
           parallel_for (%i: i32) in (%zero..%n) {
             %v: f32 = load %x[%i]
             %half: f32 = const 0.5
             %w: f32 = mul %v, %half
             %u: f32 = add %w, %v
             store %x[%i], %u
           }
           return
         }",
    );
    let mut memory = Buffers::new();
    let count = 1_000_000;
    let x = Arg::Array { address: memory.add(vec![0; 4 * count]), shape: vec![count as i32] };
    let begin = std::time::Instant::now();
    run_plainly(&k, &[x], &mut memory).unwrap();
    println!("{:.0} ns per op", begin.elapsed().as_secs_f64() * 1e9 / (6 * count) as f64);
}
