//! How fast random numbers are drawn, and how long large matrices take to compile. With `OCTANTS_DUMP=folder` the LLVM text of each kernel
//! is put there.

#[path = "../tests/programs/mod.rs"]
mod programs;

use std::time::Instant;

use octants::ir::ops::{ArithOp, CompareOp, ParallelFor};
use octants::ir::{
    ArrayType, Boundary, Builder, Const, Data, Kernel, Scalar, TensorShape, TensorType, Type, Value, text,
};
use octants::{Arch, CompiledKernel, Dump, HostQueue, Invocation, NdArray, Session, SessionOptions};
use programs::{NEVER, array_of, compile};

fn main() {
    let session = Session::new(SessionOptions { arch: Arch::Cpu, ..SessionOptions::default() }).unwrap();
    for (ty, draws) in
        [(Scalar::F32, 1), (Scalar::F32, 4), (Scalar::F64, 1), (Scalar::F64, 2), (Scalar::U32, 1)]
    {
        let kernel = compile(&session, drawing(ty, draws));
        show(&kernel, &format!("{draws} random {ty}"));
        let n = 1 << 20;
        let x = NdArray::new(&session, ty.into(), &[n]).unwrap();
        let best = best_of(5, || drop(Invocation::new(&kernel).array(&x).unwrap().launch(&NEVER).unwrap()));
        println!("  {:.2} ns each", best * 1e9 / f64::from(n) / f64::from(draws));
    }
    let kernel = compile(&session, text::parse(PI).unwrap());
    show(&kernel, "pi, 1000 pairs in a loop of each iteration");
    let best =
        best_of(3, || drop(Invocation::new(&kernel).scalar(&[Const::i32(10_000)]).unwrap().launch(&NEVER)));
    println!("  {:.2} ns each", best * 1e9 / 2e7);

    for n in [4, 8, 12] {
        for (name, kernel) in [
            ("product, written out", product(n, false)),
            ("product, loops", product(n, true)),
            ("elimination, loops", elimination(n)),
        ] {
            let begin = Instant::now();
            let compiled = compile(&session, kernel);
            let total = begin.elapsed().as_secs_f64() * 1e3;
            show(&compiled, &format!("{n} by {n} {name}, {total:.1} ms in all"));
            let count = 20_000;
            let matrix = tensor(n);
            let x = NdArray::new(&session, matrix, &[count]).unwrap();
            x.fill(
                &(0..n * n)
                    .map(|k| Const::f32(f32::from(k % 7 + u16::from(k % (n + 1) == 0) * 9)))
                    .collect::<Vec<_>>(),
                HostQueue::default(),
            )
            .unwrap();
            let best =
                best_of(3, || drop(Invocation::new(&compiled).array(&x).unwrap().launch(&NEVER).unwrap()));
            println!("  {:.1} ns each", best * 1e9 / f64::from(count));
        }
    }
}

fn best_of(times: usize, mut run: impl FnMut()) -> f64 {
    (0..times)
        .map(|_| {
            let begin = Instant::now();
            run();
            begin.elapsed().as_secs_f64()
        })
        .fold(f64::INFINITY, f64::min)
}

fn show(kernel: &CompiledKernel, name: &str) {
    let s = kernel.statistics();
    let [passes, emit, llvm] = [s.passes, s.emit, s.llvm].map(|t| t.as_secs_f64() * 1e3);
    println!("{name}: passes {passes:.2}, emit {emit:.2}, llvm {llvm:.2} ms, {} bytes", s.code_bytes);
    if let Some(folder) = std::env::var_os("OCTANTS_DUMP") {
        let file = std::path::Path::new(&folder).join(format!("{}.ll", kernel.name()));
        std::fs::write(file, kernel.dump(Dump::Llvm).unwrap().unwrap_or_default()).unwrap();
    }
}

fn drawing(ty: Scalar, draws: u32) -> Kernel {
    let mut kernel = Kernel::new(format!("draw_{ty}_{draws}"));
    let x = kernel.add_param("x", array_of(ty, 1));
    let mut b = Builder::new(&mut kernel);
    let (zero, n) = (b.i32(0), b.extent(x, 0));
    b.parallel_for(&[(zero, n)], ParallelFor::default(), |b, i| {
        let mut sum = b.random(ty);
        for _ in 1..draws {
            let next = b.random(ty);
            sum = b.arith(ArithOp::Add, sum, next);
        }
        b.store(x, i, sum);
    });
    b.returns(&[]);
    kernel
}

const PI: &str = r#"kernel @pi(%0 "n": i32) -> (i32) {
  %1: local<i32> = local
  %2: i32 = const 0
  parallel_for (%3: i32) in (%2..%0) {
    %4: i32 = const 1000
    %5: i32 = for %6: i32 in %2..%4 carry (%7: i32 = %2) {
      %8: f32 = random
      %9: f32 = random
      %10: f32 = mul %8, %8
      %11: f32 = mul %9, %9
      %12: f32 = add %10, %11
      %13: f32 = const 1.0
      %14: u1 = lt %12, %13
      %15: i32 = cast %14
      %16: i32 = add %7, %15
      yield %16
    }
    %17: i32 = atomic_add %1, %5
  }
  %18: i32 = load %1
  return %18
}"#;

fn tensor(n: u16) -> Data {
    Data::Tensor(TensorType { elem: Scalar::F32, shape: TensorShape::Matrix(n, n) })
}

fn matrices(name: &str, n: u16, body: impl FnOnce(&mut Builder<'_>, Value, Value)) -> Kernel {
    let mut kernel = Kernel::new(format!("{name}{n}"));
    let ty = Type::Array(ArrayType::array(tensor(n), 1, Boundary::Unsafe));
    let x = kernel.add_param("x", ty);
    let mut b = Builder::new(&mut kernel);
    let (zero, count) = (b.i32(0), b.extent(x, 0));
    b.parallel_for(&[(zero, count)], ParallelFor::default(), |b, i| body(b, x, i[0]));
    b.returns(&[]);
    kernel
}

/// `x[i] = x[i] @ x[i]`
fn product(n: u16, loops: bool) -> Kernel {
    let name = if loops { "product_in_loops" } else { "product" };
    matrices(name, n, |b, x, i| {
        let m = b.load(x, &[i]);
        if !loops {
            let fixed: Vec<_> = (0..n).map(|k| b.i32(k.into())).collect();
            let mut entries = Vec::new();
            for &r in &fixed {
                for &c in &fixed {
                    let mut sum = b.f32(0.0);
                    for &k in &fixed {
                        let (p, q) = (b.tensor_get(m, &[r, k]), b.tensor_get(m, &[k, c]));
                        let product = b.arith(ArithOp::Mul, p, q);
                        sum = b.arith(ArithOp::Add, sum, product);
                    }
                    entries.push(sum);
                }
            }
            let result = b.tensor(tensor(n), entries);
            b.store(x, &[i], result);
            return;
        }
        let (from, to) = (b.local(tensor(n)), b.local(tensor(n)));
        b.store(from, &[], m);
        let (zero, end) = (b.i32(0), b.i32(n.into()));
        b.for_range(zero, end, &[], |b, r, _| {
            b.for_range(zero, end, &[], |b, c, _| {
                let none = b.f32(0.0);
                let sum = b.for_range(zero, end, &[none], |b, k, sum| {
                    let (p, q) = (b.load(from, &[r, k]), b.load(from, &[k, c]));
                    let product = b.arith(ArithOp::Mul, p, q);
                    vec![b.arith(ArithOp::Add, sum[0], product)]
                });
                b.store(to, &[r, c], sum[0]);
                Vec::new()
            });
            Vec::new()
        });
        let result = b.load(to, &[]);
        b.store(x, &[i], result);
    })
}

/// Gaussian elimination in place, without a choice of pivots.
fn elimination(n: u16) -> Kernel {
    matrices("elimination", n, |b, x, i| {
        let m = b.load(x, &[i]);
        let a = b.local(tensor(n));
        b.store(a, &[], m);
        let (zero, one, end) = (b.i32(0), b.i32(1), b.i32(n.into()));
        b.for_range(zero, end, &[], |b, k, _| {
            let pivot = b.load(a, &[k, k]);
            let next = b.arith(ArithOp::Add, k, one);
            b.for_range(next, end, &[], |b, r, _| {
                let below = b.load(a, &[r, k]);
                let factor = b.arith(ArithOp::Div, below, pivot);
                b.for_range(k, end, &[], |b, c, _| {
                    let (here, above) = (b.load(a, &[r, c]), b.load(a, &[k, c]));
                    let part = b.arith(ArithOp::Mul, factor, above);
                    let rest = b.arith(ArithOp::Sub, here, part);
                    b.store(a, &[r, c], rest);
                    Vec::new()
                });
                Vec::new()
            });
            Vec::new()
        });
        let zero = b.i32(0);
        let first = b.load(a, &[zero, zero]);
        let none = b.f32(0.0);
        let fine = b.compare(CompareOp::Ne, first, none);
        b.if_else(
            fine,
            |b| {
                let result = b.load(a, &[]);
                b.store(x, &[i], result);
                Vec::new()
            },
            |_| Vec::new(),
        );
    })
}
