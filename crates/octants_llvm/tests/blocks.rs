//! A block's arrays, where a thread runs its lanes one after the other.

mod harness;

use harness::plan_of;
use octants_llvm::{EmitOptions, emit};

/// The code of a loop whose body makes a tape of so many words for its arrays, of 40 bytes.
fn code(words: u32) -> String {
    let text = format!(
        r#"
layout0 = layout [10] {{ dense (axis 0 below 1 extent 10 stride 4) }}
kernel @k(%n "n": i32) {{
  %zero: i32 = const 0
  parallel_for (%i: i32) in (%zero..%n) {{
    %words: i64 = const {words}
    %memory: tape<u64> = tape %words
    %first: u64 = volatile_load %memory[%zero]
    %a: field<i32, layout0> = shared
    store %a[%zero], %i
    %back: i32 = volatile_load %a[%zero]
  }}
  return
}}"#
    );
    let kernel = octants_ir::text::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    emit(&kernel, &plan_of(&kernel), &EmitOptions::default()).remove(0).text
}

#[test]
fn arrays_lie_in_the_tape_that_is_there_for_them() {
    assert!(!code(5).contains("alloca [40 x i8]"));
}

#[test]
#[should_panic = "the arrays of a block take 40 bytes"]
fn a_tape_that_is_too_small_for_them_is_a_bug() {
    code(4);
}
