//! Which loops are widened, and how far.

mod harness;

use octants_llvm::{CpuOptions, EmitOptions, TaskText, VectorLibrary, emit};

/// How many iterations the first task runs at once with vectors of 512 bits.
fn lanes(body: &str) -> u32 {
    lanes_with(512, "", body)
}

fn lanes_with(vector_bits: u32, attributes: &str, body: &str) -> u32 {
    task_with(vector_bits, attributes, body).lanes
}

/// The code of the first task.
fn task_with(vector_bits: u32, attributes: &str, body: &str) -> TaskText {
    task_for(CpuOptions { vector_bits, ..CpuOptions::default() }, attributes, body)
}

fn task_for(options: CpuOptions, attributes: &str, body: &str) -> TaskText {
    let text = format!(
        r#"
kernel @k(%x "x": array<f32, 1>, %m "m": array<f32, 2>, %b "b": array<u8, 1>, %k "k": array<i32, 1>, %n "n": i32) fast_math {{
  %zero: i32 = const 0
  %end: i32 = extent 0 %x
  parallel_for (%i: i32) in (%zero..%end) {attributes} {{
    %none: i32 = const 0
    %two: f32 = const 2.0
    {body}
  }}
  return
}}"#
    );
    let kernel = octants_ir::text::parse(&text).unwrap_or_else(|error| panic!("{error:?}\n{text}"));
    let plan = harness::plan_of(&kernel);
    emit(&kernel, &plan, &EmitOptions::for_cpu(options)).swap_remove(0)
}

/// How often the body stands in the code for vectors: its products are counted.
fn copies_with(vector_bits: u32, body: &str) -> usize {
    products(&task_with(vector_bits, "", body).text).0
}

/// Products of vectors and of scalars.
fn products(text: &str) -> (usize, usize) {
    let (vectors, scalars): (Vec<_>, Vec<_>) =
        text.lines().filter(|line| line.contains(" = fmul ")).partition(|line| line.contains("float>"));
    (vectors.len(), scalars.len())
}

/// Of how many iterations at the end of a row vectors are worth it, if there is scalar code for fewer.
fn scalar_below(task: &TaskText) -> Option<u32> {
    let last = format!(", {}", task.lanes - 1);
    let rest = task.text.lines().find(|line| line.contains(" = and i64 ") && line.ends_with(&last))?;
    let rest = rest.split_once(" = ")?.0.trim();
    let compared = format!("icmp ult i64 {rest}, ");
    task.text.split_once(&compared)?.1.lines().next()?.parse().ok()
}

/// A loop over `%j` with a carried `%s`; the body sets `%t`.
fn inner(body: &str) -> String {
    format!(
        "%first: f32 = load %x[%i]
         %r: f32 = for %j: i32 in %none..%n carry (%s: f32 = %first) {{
           {body}
           yield %t
         }}
         store %x[%i], %r"
    )
}

#[test]
fn inner_loops_make_lanes_of_iterations() {
    // Pure arithmetic: several vectors at once, for their latencies to overlap.
    assert_eq!(lanes(&inner("%t: f32 = mul %s, %two")), 64);
    // The same for all lanes, and next to each other.
    assert_eq!(lanes(&inner("%a: f32 = load %x[%j]\n %t: f32 = add %s, %a")), 64);
    assert_eq!(lanes(&inner("%a: f32 = load %m[%j, %i]\n %t: f32 = add %s, %a")), 64);
    // Vectors of another width.
    assert_eq!(lanes_with(256, "", &inner("%t: f32 = mul %s, %two")), 32);
    // With fast math a call becomes one of a vector function.
    assert_eq!(lanes(&inner("%t: f32 = sin %s")), 64);
}

#[test]
fn what_is_the_same_in_all_iterations_needs_no_lanes() {
    let body = inner("%t: f32 = mul %s, %two").replace("load %x[%i]", "load %x[%none]");
    assert_eq!(lanes(&body), 1);
}

#[test]
fn lanes_that_lie_apart_need_work_around_them() {
    // A sum along rows: LLVM vectorises the inner loop.
    assert_eq!(lanes(&inner("%a: f32 = load %m[%i, %j]\n %t: f32 = add %s, %a")), 1);
    let work = "%a: f32 = load %m[%i, %j]\n %p: f32 = mul %a, %s\n %q: f32 = sqrt %p\n %t: f32 = add %q, %a";
    assert_eq!(lanes(&inner(work)), 64);
}

#[test]
fn a_loop_that_lanes_leave_one_by_one_has_fewer() {
    let body = "%r: f32 = while carry (%s: f32 = %two) {
        %f: f32 = cast %i
        %c: u1 = lt %s, %f
        yield %c, %s
      } do (%t: f32) {
        %u: f32 = mul %t, %two
        yield %u
      }
      store %x[%i], %r";
    assert_eq!(lanes(body), 32);
}

#[test]
fn loops_inside_of_loops_that_lanes_leave_choose_once() {
    let nest = |inner: &str| {
        format!(
            "%first: f32 = load %x[%i]
             %trips: i32 = load %k[%i]
             %r: f32 = for %p: i32 in %none..%trips carry (%s: f32 = %first) {{
               %t: f32 = for %q: i32 in {inner} carry (%u: f32 = %s) {{
                 %v: f32 = mul %u, %two
                 yield %v
               }}
               yield %t
             }}
             store %x[%i], %r"
        )
    };
    let (own, of_all) = (nest("%none..%trips"), nest("%none..%n"));
    let selects = |body: &str| {
        let text = task_with(512, "", body).text;
        text.lines().filter(|line| line.contains(" = select <") && line.contains("float>")).count()
    };
    assert_eq!(selects(&own), 1, "the inner loop leaves what lanes that do not run began with");
    assert_eq!(selects(&of_all), 1, "the outer loop chooses: all lanes run the inner one");
}

#[test]
fn a_body_without_loops_is_widened_if_it_is_plain() {
    assert_eq!(lanes("%a: f32 = load %x[%i]\n %t: f32 = mul %a, %two\n store %x[%i], %t"), 32);
    // LLVM knows better: fills, narrow types, and what lies apart.
    assert_eq!(lanes("store %x[%i], %two"), 1);
    assert_eq!(lanes("%a: u8 = load %b[%i]\n %t: u8 = add %a, %a\n store %b[%i], %t"), 1);
    assert_eq!(
        lanes("%a: i32 = load %k[%i]\n %t: f32 = load %x[%a]\n %u: f32 = add %t, %t\n store %x[%i], %u"),
        1
    );
}

#[test]
fn what_must_happen_in_order_is_not_widened() {
    let body = inner("%t: f32 = mul %s, %two");
    assert_eq!(lanes_with(512, "max_threads 1", &body), 1);
    // Somebody might wait for the old value.
    let old = "%old: f32 = atomic_exchange %x[%none], %r\n store %x[%i], %old";
    assert_eq!(lanes(&format!("{body}\n{old}")), 1);
    // Nobody does.
    assert_eq!(lanes(&format!("{body}\n%old: f32 = atomic_add %x[%none], %r")), 64);
}

#[test]
fn matrices_in_variables_and_long_bodies_have_fewer_lanes_or_none() {
    let with = |size: u32, before: &str| {
        let access = "%a: f32 = load %v[%j]\n %c: f32 = mul %a, %s\n store %v[%j], %c\n %t: f32 = add %s, %c";
        format!("%v: local<tensor<f32, {size}>> = local\n{before}\n{}", inner(access))
    };
    assert_eq!(lanes(&with(9, "")), 16);
    // Too much for the first cache.
    assert_eq!(lanes(&with(300, "")), 1);
    let long: Vec<_> = (0..4000).map(|n| format!("%l{n}: f32 = add %two, %two")).collect();
    assert_eq!(lanes(&with(9, &long.join("\n"))), 1);
}

#[test]
fn a_second_copy_of_the_body_is_for_accesses_that_would_not_be_masked_otherwise() {
    let plain = "%a: f32 = load %x[%i]\n %t: f32 = mul %a, %two\n store %x[%i], %t";
    assert_eq!(copies_with(512, plain), 2);
    let gated = format!("%c: u1 = lt %i, %n\n if %c {{ {plain} }}");
    assert_eq!(copies_with(512, &gated), 1);
    assert_eq!(copies_with(256, &gated), 2, "masks are vectors there");
    // What a derivative keeps of a loop.
    let kept =
        format!("%tape: tape<f32> = tape %n\n {}", inner("store %tape[%j], %s\n %t: f32 = mul %s, %two"));
    assert_eq!(copies_with(512, &kept), 1);
    assert_eq!(copies_with(256, &kept), 1);
    let read = inner("%a: f32 = load %m[%j, %i]\n %t: f32 = mul %s, %a");
    assert_eq!(copies_with(512, &read), 2);
}

#[test]
fn a_body_with_loops_has_a_scalar_copy_for_few_iterations() {
    // Lanes wait for one product as a scalar does.
    let task = task_with(512, "", &inner("%t: f32 = mul %s, %two"));
    assert_eq!((task.lanes, products(&task.text), scalar_below(&task)), (64, (1, 0), None));
    let rooted = inner("%root: f32 = sqrt %s\n %t: f32 = mul %root, %two");
    assert_eq!(products(&task_with(512, "", &rooted).text), (1, 1));
    // Each vector takes as long again: roots, and calls.
    let below = |body: &str| scalar_below(&task_with(512, "", &inner(body))).unwrap();
    let root = below("%t: f32 = sqrt %s");
    let call = below("%t: f32 = pow %s, %two");
    assert!(root > 2 && call > root && call <= 32, "{root} {call}");
    // A tape is no reason: it has room for those alone that run. A function of a short body is one.
    let kept = |work: &str| {
        let work =
            format!("%tape: tape<f32> = tape %n\n {}", inner(&format!("store %tape[%j], %s\n {work}")));
        scalar_below(&task_with(512, "", &work))
    };
    assert_eq!(kept("%t: f32 = mul %s, %two"), None);
    assert_eq!(kept("%t: f32 = exp %s"), Some(2));
    assert_eq!(scalar_below(&task_with(512, "", &inner("%t: f32 = exp %s"))), None);
    let mut long = String::from("%e0: f32 = exp %s\n");
    long.extend((0..48).map(|n| format!("%e{}: f32 = exp %e{n}\n", n + 1)));
    assert_eq!(kept(&format!("{long} %t: f32 = mul %s, %e48")), None);
    // Nothing to wait for, code that is not optimised, and what tests want to see.
    let plain = "%a: f32 = load %x[%i]\n %t: f32 = mul %a, %two\n store %x[%i], %t";
    assert_eq!(products(&task_with(512, "", plain).text), (2, 0));
    assert_eq!(products(&task_with(512, "brief", &rooted).text).1, 0);
    let forced = CpuOptions { force_lanes: Some(4), ..CpuOptions::default() };
    assert_eq!(products(&task_for(forced, "", &rooted).text).1, 0);
}

#[test]
fn loops_whose_accesses_lie_apart_are_not_vectorised() {
    let off = "llvm.loop.vectorize.enable";
    let apart = "%j: i32 = and %i, %n\n %a: f32 = load %x[%j]\n store %m[%j, %none], %a";
    let task = task_with(512, "", apart);
    assert!(task.straight && task.text.contains(off));
    // Beside others, or with much to compute, vectors may gain.
    let beside = format!("{apart}\n store %x[%i], %a");
    let beside = task_with(512, "", &beside);
    assert!(!beside.straight && !beside.text.contains(off));
    let products: Vec<_> = (0..9).map(|n| format!("%p{}: f32 = mul %p{n}, %two", n + 1)).collect();
    let products = products.join("\n");
    let worked = format!("%j: i32 = and %i, %n\n %p0: f32 = load %x[%j]\n {products}\n store %x[%j], %p9");
    assert!(!task_with(512, "", &worked).text.contains(off));
}

#[test]
fn functions_are_calls_on_whole_registers_where_a_library_has_them() {
    let sines = VectorLibrary(|f| (f.name == "sin").then(|| format!("sin_{}_of_{}", f.lanes, f.bits)));
    let options = CpuOptions { vector_bits: 512, vector_library: sines, ..CpuOptions::default() };
    let body = inner("%a: f32 = sin %s\n %t: f32 = cos %a");
    let text = task_for(options, "", &body).text;
    assert_eq!(text.matches("call nsz afn <16 x float> @sin_16_of_32").count(), 4);
    let scalar = "call nsz afn float @llvm.sin.f32(";
    assert_eq!(text.matches(scalar).count(), 1, "in the scalar copy");
    assert!(text.matches("@llvm.cos.f32(").count() > 1);
}

#[test]
fn functions_that_are_arithmetic_run_as_several_vectors_without_a_call() {
    let library = VectorLibrary(|f| Some(format!("{}_{}", f.name, f.bits)));
    let task = |fused: bool, scalar: &str, function: &str| {
        let options =
            CpuOptions { vector_bits: 512, vector_library: library, fused, ..CpuOptions::default() };
        let compute = match scalar {
            "f32" => format!("%t: f32 = {function} %a"),
            _ => format!("%wide: f64 = cast %a\n %value: f64 = {function} %wide\n %t: f32 = cast %value"),
        };
        let text = format!("%a: f32 = load %x[%i]\n {compute}\n store %x[%i], %t");
        task_for(options, "", &text)
    };
    for function in ["exp", "tanh", "erf", "asin", "acos"] {
        for (scalar, bits, lanes) in [("f32", 32, 32), ("f64", 64, 16)] {
            let written_out = task(false, scalar, function);
            assert_eq!((written_out.lanes, written_out.straight), (lanes, true), "{function} of {scalar}");
            assert!(!written_out.text.contains(&format!("@{function}_{bits}(")), "{}", written_out.text);
        }
    }
    // The library computes large angles, in a branch, and all where a product and a sum are not one instruction.
    for (function, partner) in [("sin", "cos"), ("cos", "sin"), ("tan", "sin")] {
        let angles = task(true, "f32", function);
        assert!(angles.text.contains("@llvm.fma.v32f32") && !angles.text.contains(&format!("@{partner}_32")));
        assert!(
            angles.text.contains(&format!("@{function}_32(<16 x float>")) && angles.text.contains("!prof")
        );
        assert!(!task(false, "f32", function).text.contains("llvm.fma"));
    }
}

#[test]
fn a_body_of_functions_is_straight_code_where_a_library_has_them_all() {
    let known = VectorLibrary(|f| {
        let has = matches!(f.name, "sin" | "pow") && f.lanes * f.bits == 512;
        has.then(|| format!("{}_{}", f.name, f.bits))
    });
    let options = CpuOptions { vector_bits: 512, vector_library: known, ..CpuOptions::default() };
    let task = |function: &str| {
        let body = format!("%a: f32 = load %x[%i]\n {function}\n store %x[%i], %t");
        task_for(options, "", &body)
    };
    let sine = task("%t: f32 = sin %a");
    assert_eq!((sine.lanes, sine.straight), (16, true), "no register keeps its value over a call");
    assert_eq!(sine.text.matches("@sin_32(<16 x float> %").count(), 2, "whole vectors, and the rest");
    assert!(task("%t: f32 = pow %a, %two").straight);
    // One function that lanes would be taken apart for, and LLVM does better.
    let cosine = task("%s: f32 = sin %a\n %t: f32 = cos %s");
    assert_eq!((cosine.lanes, cosine.straight), (1, false));
    // Powers of integers are products in a loop.
    assert!(!task("%e: i32 = load %k[%i]\n %t: f32 = pow %a, %e").straight);
    // Eight lanes, of which the library has no function in single precision.
    assert!(task("%d: f64 = cast %a\n %s: f64 = sin %d\n %t: f32 = cast %s").straight);
    assert!(!task("%d: f64 = cast %a\n %s: f32 = sin %a\n %u: f64 = cast %s\n %v: f64 = add %u, %d\n %t: f32 = cast %v").straight);
    let exact = {
        let text = r#"kernel @k(%x "x": array<f32, 1>) {
          %zero: i32 = const 0
          %end: i32 = extent 0 %x
          parallel_for (%i: i32) in (%zero..%end) {
            %a: f32 = load %x[%i]
            %t: f32 = sin %a
            store %x[%i], %t
          }
          return
        }"#;
        let kernel = octants_ir::text::parse(text).unwrap_or_else(|error| panic!("{error:?}"));
        emit(&kernel, &harness::plan_of(&kernel), &EmitOptions::for_cpu(options)).swap_remove(0)
    };
    assert!(!exact.straight && !exact.text.contains("@sin_32"), "functions may not be approximated");
}

#[test]
fn a_loop_of_few_iterations_is_compiled_in_little_time() {
    let plain = "%a: f32 = load %x[%i]\n %t: f32 = mul %a, %two\n store %x[%i], %t";
    let (usual, brief) = (task_with(512, "", plain), task_with(512, "brief", plain));
    assert!(!usual.brief && brief.brief && brief.lanes > 1);
    assert_eq!(usual.text, brief.text);
    // Lanes that lie apart: scalar code, which is not vectorised and has few passes.
    let apart = "%a: f32 = load %m[%i, %none]\n %t: f32 = mul %a, %two\n store %x[%i], %t";
    let (usual, scalar) = (task_with(512, "", apart), task_with(512, "brief", apart));
    assert_eq!((usual.lanes, usual.straight), (1, false));
    assert_eq!((scalar.lanes, scalar.straight, scalar.brief), (1, true, false));
    assert!(scalar.text.contains("llvm.loop.vectorize.enable"));
}

#[test]
fn what_no_trip_changes_is_gathered_before_the_loop() {
    let gathers = |text: &str| text.matches("call <64 x float> @llvm.masked.gather").count();
    let sums = "%a: f32 = load %m[%i, %none]\n %p: f32 = mul %s, %a\n %q: f32 = sqrt %p\n %t: f32 = sqrt %q
                %o: f32 = atomic_add %x[%j], %t";
    let text = task_with(512, "", &inner(sums)).text;
    let (gather, inside) =
        (text.find("call <64 x float> @llvm.masked.gather"), text.find("phi <64 x float>"));
    assert!(gather.is_some() && gather < inside, "{text}");
    assert_eq!((gathers(&text), products(&text).0), (1, 1), "no copy of the body gains by it");
    // Another trip may change it, and so it is loaded in each.
    let changed = sums.replace("%x[%j]", "%m[%j, %none]");
    let text = task_with(512, "", &inner(&changed)).text;
    assert!(text.find("call <64 x float> @llvm.masked.gather") > text.find("phi <64 x float>"), "{text}");
}
