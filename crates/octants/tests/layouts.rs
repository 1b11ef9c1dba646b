//! Kernels over fields of many layouts as native code, against the interpreter: loops over the digits, over the axes and over
//! components, with neighbours, updates and sums.

#![allow(unsafe_code)]

use std::fmt::Write;
use std::time::Duration;

use octants::ir::{Digit, Kernel, Layout, Level, NodeKind, text};
use octants::{Arch, Arguments, Session, SessionOptions};

static NEVER: octants::Cancel = octants::Cancel::new();

/// Runs the kernel on fields that count up, and gives all of their memory, gaps and all.
fn run(kernel: &Kernel, arch: Arch, threads: usize) -> Vec<Vec<u32>> {
    let options = SessionOptions { arch, threads, ..SessionOptions::default() };
    let session = Session::new(options).unwrap();
    let compiled = session.compile(kernel.clone(), Duration::ZERO, &NEVER).unwrap();
    let mut args = vec![0; compiled.args().bytes as usize];
    let mut fields = Vec::new();
    for (number, slot) in compiled.args().slots.iter().enumerate() {
        let words = slot.span.div_ceil(4) as u32;
        let memory: Vec<u32> = (0..words).map(|word| word * 3 + number as u32).collect();
        let at = slot.offset as usize;
        args[at..at + 8].copy_from_slice(&(memory.as_ptr() as u64).to_le_bytes());
        fields.push(memory);
    }
    // SAFETY: each field has the memory that its layout spans, until the end of this function.
    let arguments = unsafe { Arguments::new(&args) };
    if let Err(error) = compiled.launch(arguments, &mut [], None, &NEVER) {
        panic!("{error}\n{}", text::print(kernel));
    }
    fields
}

fn agrees(kernel: &Kernel) {
    let expected = run(kernel, Arch::Reference, 1);
    for threads in [1, 3] {
        assert_eq!(run(kernel, Arch::Cpu, threads), expected, "{threads} threads\n{}", text::print(kernel));
    }
}

/// A layout of rank 2 from its digits `(axis, extent)`, outermost first, with so many words to spare in each innermost cell and
/// between the outermost ones.
fn layout(digits: &[(u8, u32)], spare: (u64, u64)) -> Layout {
    let mut shape = vec![1, 1];
    let mut cell = 4 + 4 * spare.0;
    let mut placed = Vec::new();
    for (place, &(axis, extent)) in digits.iter().enumerate().rev() {
        if place == 0 {
            cell += 4 * spare.1;
        }
        placed.push(Digit { axis, below: shape[usize::from(axis)], extent, stride: cell });
        shape[usize::from(axis)] *= extent;
        cell *= u64::from(extent);
    }
    placed.reverse();
    let levels = vec![Level { kind: NodeKind::Dense, digits: placed }];
    Layout { shape, origin: vec![-2, 3], levels }
}

/// `y[i, j] = x[i, j] + x[i, j + 1]` over the digits of `x` in storage order, `x[i, j] += 1` over the axes, and `s` sums up.
fn program(x: &Layout, y: &Layout) -> Kernel {
    let mut line = String::new();
    for (name, layout) in [("layout0", x), ("layout1", y)] {
        let digit =
            |d: &Digit| format!("axis {} below {} extent {} stride {}", d.axis, d.below, d.extent, d.stride);
        let digits: Vec<_> = layout.digits().map(digit).collect();
        let (shape, origin) = (&layout.shape, &layout.origin);
        writeln!(line, "{name} = layout {shape:?} from {origin:?} {{ dense ({}) }}", digits.join(", "))
            .unwrap();
    }
    let digits: Vec<_> = x.digits().collect();
    let indices: Vec<_> = (0..digits.len()).map(|n| format!("%d{n}: i32")).collect();
    let ranges: Vec<_> = digits.iter().map(|d| format!("%zero..%e{}", d.extent)).collect();
    let mut constants = String::new();
    let mut known: Vec<u32> =
        digits.iter().flat_map(|d| [d.extent, d.below]).chain(x.shape.clone()).collect();
    known.sort_unstable();
    known.dedup();
    for number in known {
        writeln!(constants, "  %e{number}: i32 = const {number}").unwrap();
    }
    let mut body = String::new();
    for axis in 0..2 {
        let mut sum = "%zero".to_string();
        for (n, digit) in digits.iter().enumerate().filter(|(_, d)| d.axis == axis) {
            writeln!(
                body,
                "    %p{n}: i32 = mul %d{n}, %e{}\n    %q{n}: i32 = add {sum}, %p{n}",
                digit.below
            )
            .unwrap();
            sum = format!("%q{n}");
        }
        writeln!(body, "    %i{axis}: i32 = add {sum}, %o{axis}").unwrap();
    }
    let (rows, columns) = (x.shape[0], x.shape[1]);
    let text = format!(
        r#"{line}layout2 = layout [] {{ }}
kernel @k(%x "x": field<i32, layout0>, %y "y": field<i32, layout1>, %s "s": field<i32, layout2>) {{
  %zero: i32 = const 0
  %one: i32 = const 1
  %o0: i32 = const -2
  %o1: i32 = const 3
  %last: i32 = const {last}
{constants}  parallel_for ({indices}) in ({ranges}) {{
{body}    %next: i32 = add %i1, %one
    %inside: i32 = min %next, %last
    %a: i32 = load %x[%i0, %i1]
    %b: i32 = load %x[%i0, %inside]
    %c: i32 = add %a, %b
    store %y[%i0, %i1], %c
  }}
  parallel_for (%u: i32, %v: i32) in (%zero..%e{rows}, %zero..%e{columns}) {{
    %ui: i32 = add %u, %o0
    %vi: i32 = add %v, %o1
    %old: i32 = atomic_add %x[%ui, %vi], %one
    %more: i32 = load %y[%ui, %vi]
    %sum: i32 = atomic_add %s, %more
  }}
  return
}}
"#,
        last = columns + 2,
        indices = indices.join(", "),
        ranges = ranges.join(", "),
    );
    text::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

#[test]
fn every_layout_holds_the_same_numbers() {
    let layouts: [&[(u8, u32)]; 8] = [
        &[(0, 16), (1, 12)],
        &[(1, 12), (0, 16)],
        &[(0, 4), (1, 3), (0, 4), (1, 4)],
        &[(1, 3), (0, 4), (1, 4), (0, 4)],
        &[(0, 2), (1, 2), (0, 2), (1, 3), (0, 4), (1, 2)],
        &[(0, 16), (1, 4), (1, 3)],
        &[(0, 8), (1, 12), (0, 2)],
        &[(1, 2), (1, 6), (0, 16)],
    ];
    for (number, digits) in layouts.iter().enumerate() {
        for spare in [(0, 0), (0, 5), (2, 1)] {
            let other = layouts[(number + 3) % layouts.len()];
            agrees(&program(&layout(digits, spare), &layout(other, spare)));
        }
    }
}

/// A short last axis of another extent than the field's: rows of one counter, of which only some lie side by side.
#[test]
fn loops_over_parts_of_a_field_touch_those() {
    for (rows, columns) in [(5, 3), (7, 4), (40, 2), (1, 4)] {
        let text = format!(
            r#"layout0 = layout [40, 4] {{ dense (axis 0 below 1 extent 40 stride 16, axis 1 below 1 extent 4 stride 4) }}
layout1 = layout [4, 40] {{ dense (axis 0 below 1 extent 4 stride 160, axis 1 below 1 extent 40 stride 4) }}
kernel @k(%x "x": field<i32, layout0>, %y "y": field<i32, layout1>) {{
  %zero: i32 = const 0
  %rows: i32 = const {rows}
  %columns: i32 = const {columns}
  parallel_for (%i: i32, %j: i32) in (%zero..%rows, %zero..%columns) {{
    %a: i32 = load %y[%j, %i]
    %b: i32 = mul %a, %i
    store %x[%i, %j], %b
  }}
  return
}}
"#
        );
        agrees(&text::parse(&text).unwrap());
    }
}

/// What one iteration writes and reads keeps its order, also where members of one cell are accessed together: through two parameters
/// that are one field, and by indices that may be equal.
#[test]
fn accesses_of_one_iteration_stay_in_order() {
    let texts = [
        r#"layout0 = layout [64] { dense (axis 0 below 1 extent 64 stride 8) }
kernel @part(%v "v": field<tensor<i32, 2>, layout0>, %y "y": field<tensor<i32, 2>, layout0>, %idx "idx": field<i32, layout0>) {
  %zero: i32 = const 0
  %one: i32 = const 1
  %n: i32 = const 64
  parallel_for (%i: i32) in (%zero..%n) {
    %a: i32 = add %i, %one
    %b: i32 = add %a, %n
    store %v[%i, %zero], %a
    store %v[%i, %one], %b
    store %y[%i, %zero], %i
    store %y[%i, %one], %i
    %c: i32 = load %v[%i, %one]
    store %v[%i, %zero], %c
  }
  return
}
"#,
        r#"layout0 = layout [64] { dense (axis 0 below 1 extent 64 stride 8) }
layout1 = layout [128] { dense (axis 0 below 1 extent 128 stride 4) }
kernel @indirect(%v "v": field<i32, layout1>, %y "y": field<i32, layout0>, %idx "idx": field<i32, layout0>) {
  %zero: i32 = const 0
  %one: i32 = const 1
  %two: i32 = const 2
  %n: i32 = const 64
  parallel_for (%i: i32) in (%zero..%n) {
    %even: i32 = mul %i, %two
    %odd: i32 = add %even, %one
    %at: i32 = load %idx[%i]
    %a: i32 = load %v[%even]
    store %v[%even], %i
    store %v[%at], %n
    %b: i32 = load %v[%odd]
    %c: i32 = add %a, %b
    store %v[%odd], %c
  }
  return
}
"#,
    ];
    for text in texts {
        let kernel = text::parse(text).unwrap_or_else(|error| panic!("{error}"));
        let run = |arch| {
            let session =
                Session::new(SessionOptions { arch, threads: 1, ..SessionOptions::default() }).unwrap();
            let compiled = session.compile(kernel.clone(), Duration::ZERO, &NEVER).unwrap();
            let memory: Vec<u32> = (0..128).collect();
            // An index of the iteration's own cells.
            let indices: Vec<u32> = (0..128).map(|word| word / 2 * 2 + u32::from(word % 6 == 0)).collect();
            let (start, indices) = (memory.as_ptr() as u64, indices.as_ptr() as u64);
            let args: Vec<u8> = [start, start, indices].iter().flat_map(|a| a.to_le_bytes()).collect();
            // SAFETY: the second field is the first one, or not used, and all live until the launch is over.
            let ended = compiled.launch(unsafe { Arguments::new(&args) }, &mut [], None, &NEVER);
            ended.unwrap_or_else(|error| panic!("{error}"));
            memory
        };
        assert_eq!(run(Arch::Cpu), run(Arch::Reference), "{text}");
    }
}
