//! Kernels that the tests launch, built by hand, and how to launch them.

#![allow(dead_code)]

use std::sync::Arc;
use std::time::Duration;

use octants::ir::ops::{ArithOp, AtomicOp, CompareOp, ParallelFor};
use octants::ir::{ArrayType, Boundary, Builder, Const, Kernel, KernelOptions, OpKind, Scalar, Type, Value};
use octants::{Arch, CompiledKernel, HostQueue, NdArray, Session, SessionOptions};

pub static NEVER: octants::Cancel = octants::Cancel::new();

pub fn array_of(elem: Scalar, rank: u8) -> Type {
    Type::Array(ArrayType::array(elem, rank, Boundary::Unsafe))
}

pub fn session(arch: Arch) -> Session {
    Session::new(SessionOptions {
        arch,
        threads: 2,
        kernel: KernelOptions::default(),
        ..SessionOptions::default()
    })
    .unwrap()
}

pub fn compile(session: &Session, kernel: Kernel) -> Arc<CompiledKernel> {
    session.compile(kernel, Duration::ZERO, &NEVER).unwrap()
}

/// `y[i] = a * x[i] + y[i]`
pub fn saxpy() -> Kernel {
    let mut kernel = Kernel::new("saxpy");
    let a = kernel.add_param("a", Type::F32);
    let x = kernel.add_param("x", array_of(Scalar::F32, 1));
    let y = kernel.add_param("y", array_of(Scalar::F32, 1));
    let mut b = Builder::new(&mut kernel);
    let (zero, n) = (b.i32(0), b.extent(x, 0));
    b.parallel_for(&[(zero, n)], ParallelFor::default(), |b, i| {
        let (xi, yi) = (b.load(x, &[i[0]]), b.load(y, &[i[0]]));
        let product = b.arith(ArithOp::Mul, a, xi);
        let sum = b.arith(ArithOp::Add, product, yi);
        b.store(y, &[i[0]], sum);
    });
    b.returns(&[]);
    kernel
}

/// `y[i + 1] = x[i]`: what it gives where the arrays overlap depends on the order of iterations, so it runs in order.
pub fn shift() -> Kernel {
    let mut kernel = Kernel::new("shift");
    let x = kernel.add_param("x", array_of(Scalar::I32, 1));
    let y = kernel.add_param("y", array_of(Scalar::I32, 1));
    let mut b = Builder::new(&mut kernel);
    let (zero, one, n) = (b.i32(0), b.i32(1), b.extent(x, 0));
    let end = b.arith(ArithOp::Sub, n, one);
    let in_order = ParallelFor { max_threads: Some(1), ..ParallelFor::default() };
    b.parallel_for(&[(zero, end)], in_order, |b, i| {
        let v = b.load(x, &[i[0]]);
        let next = b.arith(ArithOp::Add, i[0], one);
        b.store(y, &[next], v);
    });
    b.returns(&[]);
    kernel
}

/// The sum of all elements, and their number.
pub fn sum() -> Kernel {
    let mut kernel = Kernel::new("sum");
    let x = kernel.add_param("x", array_of(Scalar::I64, 1));
    kernel.results = vec![Scalar::I64.into(), Scalar::I32.into()];
    let mut b = Builder::new(&mut kernel);
    let (zero, n) = (b.i32(0), b.extent(x, 0));
    let total = b.local(Scalar::I64.into());
    b.parallel_for(&[(zero, n)], ParallelFor::default(), |b, i| {
        let v = b.load(x, &[i[0]]);
        b.atomic(AtomicOp::Add, total, &[], v);
    });
    let total = b.load(total, &[]);
    b.returns(&[total, n]);
    kernel
}

/// `out[i, j] = (a[i-1, j] + a[i+1, j] + a[i, j-1] + a[i, j+1]) / 4` inside.
pub fn stencil() -> Kernel {
    let mut kernel = Kernel::new("stencil");
    let a = kernel.add_param("a", array_of(Scalar::F64, 2));
    let out = kernel.add_param("out", array_of(Scalar::F64, 2));
    let mut b = Builder::new(&mut kernel);
    let one = b.i32(1);
    let bounds: Vec<_> = (0..2)
        .map(|axis| {
            let n = b.extent(a, axis);
            (one, b.arith(ArithOp::Sub, n, one))
        })
        .collect();
    b.parallel_for(&bounds, ParallelFor::default(), |b, at| {
        let one = b.i32(1);
        let (i, j) = (at[0], at[1]);
        let near = |b: &mut Builder<'_>, op, v| b.arith(op, v, one);
        let around: Vec<[Value; 2]> = vec![
            [near(b, ArithOp::Sub, i), j],
            [near(b, ArithOp::Add, i), j],
            [i, near(b, ArithOp::Sub, j)],
            [i, near(b, ArithOp::Add, j)],
        ];
        let mut sum = b.load(a, &around[0]);
        for place in &around[1..] {
            let v = b.load(a, place);
            sum = b.arith(ArithOp::Add, sum, v);
        }
        let quarter = b.constant(Const::f64(0.25));
        let mean = b.arith(ArithOp::Mul, sum, quarter);
        b.store(out, &[i, j], mean);
    });
    b.returns(&[]);
    kernel
}

/// Fails where an element is negative, and says which; adds 1 to the others.
pub fn check_positive() -> Kernel {
    let mut kernel = Kernel::new("check_positive");
    let x = kernel.add_param("x", array_of(Scalar::F32, 1));
    let mut b = Builder::new(&mut kernel);
    let (zero, n) = (b.i32(0), b.extent(x, 0));
    b.parallel_for(&[(zero, n)], ParallelFor::default(), |b, i| {
        let v = b.load(x, &[i[0]]);
        let nothing = b.f32(0.0);
        let good = b.compare(CompareOp::Ge, v, nothing);
        b.op(
            OpKind::Assert(octants::ir::ops::AssertKind::Condition, "x[{}] is {}".into()),
            [good, i[0], v],
            [],
            [],
        );
        let one = b.f32(1.0);
        let next = b.arith(ArithOp::Add, v, one);
        b.store(x, &[i[0]], next);
    });
    b.returns(&[]);
    kernel
}

/// Never ends, but where the flag is raised.
pub fn endless() -> Kernel {
    let mut kernel = Kernel::new("endless");
    let x = kernel.add_param("x", array_of(Scalar::I32, 1));
    let mut b = Builder::new(&mut kernel);
    let zero = b.i32(0);
    b.while_loop(
        &[],
        |b, _| {
            let v = b.load(x, &[zero]);
            (b.compare(CompareOp::Eq, v, zero), vec![])
        },
        |_, _| vec![],
    );
    b.returns(&[]);
    kernel
}

pub fn filled(session: &Session, elem: Scalar, shape: &[i32], value: f64) -> NdArray {
    let array = NdArray::new(session, elem.into(), shape).unwrap();
    array.fill(&[Const::from_f64(elem, value)], HostQueue::default()).unwrap();
    array
}

/// An array of rank one with these values.
pub fn listed(session: &Session, elem: Scalar, values: &[f64]) -> NdArray {
    let array = NdArray::new(session, elem.into(), &[values.len() as i32]).unwrap();
    let width = elem.bytes() as usize;
    let bits = values.iter().map(|&value| Const::from_f64(elem, value).bits().to_le_bytes());
    array
        .write(&bits.flat_map(|word| word.into_iter().take(width)).collect::<Vec<_>>(), HostQueue::default())
        .unwrap();
    array
}

/// All entries of an array of scalars.
pub fn values(array: &NdArray) -> Vec<f64> {
    let mut bytes = vec![0; array.bytes()];
    array.read(&mut bytes, HostQueue::default()).unwrap();
    let width = array.scalar().bytes() as usize;
    let value = |one: &[u8]| {
        let mut word = [0; 8];
        word[..width].copy_from_slice(one);
        Const::from_bits(array.scalar(), u64::from_le_bytes(word)).as_f64()
    };
    bytes.chunks_exact(width).map(value).collect()
}
