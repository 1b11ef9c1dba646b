//! Quotients by square roots that may be approximated are right at zero, infinity, and for subnormal numbers, in vectors of any width.

#![allow(unsafe_code)]

use octants_llvm_sys::{OptLevel, Options, Target, compile, load};

const X: [f32; 16] = [
    0.0,
    f32::INFINITY,
    4.0,
    1e-40,
    1e-45,
    f32::MIN_POSITIVE,
    f32::MAX,
    -1.0,
    f32::NAN,
    f32::NEG_INFINITY,
    -1e-40,
    2.0,
    1e-20,
    1e20,
    0.25,
    -0.0,
];

/// `body` from `%x` to `%r`, on vectors of so many lanes, from memory to memory.
fn text(lanes: usize, body: &str) -> String {
    let (ty, mangled) = match lanes {
        1 => ("float".to_owned(), "f32".to_owned()),
        _ => (format!("<{lanes} x float>"), format!("v{lanes}f32")),
    };
    let splat = |value: &str| match lanes {
        1 => value.to_owned(),
        _ => format!("splat (float {value})"),
    };
    let body = body
        .replace("SQRT", &format!("call fast {ty} @llvm.sqrt.{mangled}({ty} %x)").replace("fast", FLAGS))
        .replace("OP", FLAGS)
        .replace("TY", &ty)
        .replace("ONE", &splat("1.0"))
        .replace("THREE", &splat("3.0"));
    format!(
        "define void @f(ptr %from, ptr %to) {{\n  %x = load {ty}, ptr %from, align 4\n{body}\n  \
         store {ty} %r, ptr %to, align 4\n  ret void\n}}\ndeclare {ty} @llvm.sqrt.{mangled}({ty})"
    )
}

const FLAGS: &str = "nsz contract afn";

fn run(lanes: usize, body: &str, options: &Options) -> Vec<f32> {
    let object = compile(&text(lanes, body), options).unwrap_or_else(|error| panic!("{error}"));
    let code = load(&object.bytes, &[]).unwrap();
    // SAFETY: the text defines the function with this signature.
    let f: extern "C" fn(*const f32, *mut f32) =
        unsafe { std::mem::transmute(code.symbol("f").expect("the text defines it")) };
    let mut results = vec![0.0; lanes.max(X.len())];
    let xs: Vec<f32> = X.iter().copied().cycle().take(results.len()).collect();
    for begin in (0..xs.len()).step_by(lanes) {
        f(xs[begin..].as_ptr(), results[begin..].as_mut_ptr());
    }
    results
}

/// Roots and quotients are approximated, but zero, infinity and NaN are exact.
fn same(found: f32, exact: f32) -> bool {
    found == exact || found.is_nan() && exact.is_nan() || ((found - exact) / exact).abs() < 2e-5
}

fn check(body: &str, exact: impl Fn(f32) -> f32) {
    let host = Target::host();
    let narrow = Target { prefer_vector_width: None, ..host.clone() };
    for target in [host.clone(), narrow] {
        for opt in [OptLevel::Default, OptLevel::None] {
            let options = Options { target: target.clone(), opt, ..Options::default() };
            for lanes in [1, 2, 4, 8, 16, 32] {
                for (n, found) in run(lanes, body, &options).into_iter().enumerate() {
                    let x = X[n % X.len()];
                    let exact = exact(x);
                    let width = target.prefer_vector_width;
                    assert!(
                        same(found, exact),
                        "{body}\n{x:e} in {lanes} lanes of {width:?}: {found:e} for {exact:e}"
                    );
                }
            }
        }
    }
}

#[test]
fn reciprocals_of_roots() {
    check("%s = SQRT\n  %r = fdiv OP TY ONE, %s", |x| 1.0 / x.sqrt());
    check("%s = SQRT\n  %r = fdiv OP TY THREE, %s", |x| 3.0 / x.sqrt());
}

#[test]
fn quotients_of_several_by_one_root() {
    check("%s = SQRT\n  %a = fdiv OP TY ONE, %s\n  %b = fdiv OP TY THREE, %s\n  %r = fadd TY %a, %b", |x| {
        4.0 / x.sqrt()
    });
}

#[test]
fn products_with_a_root() {
    check("%s = SQRT\n  %p = fmul OP TY %s, %x\n  %r = fdiv OP TY ONE, %p", |x| match x {
        // The least normal number's product is subnormal, and its reciprocal is infinite.
        _ if x > 0.0 && x < 1e-30 => f32::INFINITY,
        _ => 1.0 / (x * x.sqrt()),
    });
}

#[test]
fn a_number_by_its_own_root_is_its_root() {
    check("%s = SQRT\n  %r = fdiv OP TY %x, %s", f32::sqrt);
}
