//! Objects that were damaged on their way (a cache's files, say) are errors, or load as something; they never panic.

use octants_llvm_sys::{LoadError, Options, compile, load};

const TEXT: &str = "@table = internal constant [4 x i32] [i32 10, i32 20, i32 30, i32 40]
    @counter = global i64 5
    @pointers = internal constant [2 x ptr] [ptr @f, ptr @look_up]
    @zeros = internal global [100 x i64] zeroinitializer
    declare double @sin(double)
    define double @f(double %x) { %y = call double @sin(double %x) ret double %y }
    define i32 @look_up(i64 %i) {
      %p = getelementptr [4 x i32], ptr @table, i64 0, i64 %i
      %c = load i64, ptr @counter %d = add i64 %c, 1 store i64 %d, ptr @counter
      %q = getelementptr [2 x ptr], ptr @pointers, i64 0, i64 %i
      %g = load ptr, ptr %q store ptr %g, ptr @zeros
      %v = load i32, ptr %p ret i32 %v }";

/// A small generator; the same numbers every time.
struct Random(u64);

impl Random {
    fn next(&mut self, below: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % below as u64) as usize
    }
}

fn object() -> Vec<u8> {
    compile(TEXT, &Options::default()).unwrap_or_else(|error| panic!("{error}")).bytes
}

#[test]
fn every_prefix_of_an_object_is_an_error() {
    let object = object();
    assert!(load(&object, &[]).is_ok());
    for length in 0..object.len() {
        match load(&object[..length], &[]) {
            // The section headers stand at the end: without the last one's bytes there are none.
            Ok(_) => panic!("{length} of {} bytes are loaded", object.len()),
            Err(LoadError::Object(_) | LoadError::Undefined(_) | LoadError::Memory(_)) => {}
        }
    }
}

#[test]
fn flipped_bits_never_panic() {
    let object = object();
    let mut random = Random(0x9E37_79B9_7F4A_7C15);
    for bit in 0..8 * object.len() {
        let mut damaged = object.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        drop(load(&damaged, &[]));
    }
    for _ in 0..5000 {
        let mut damaged = object.clone();
        for _ in 0..=random.next(8) {
            let at = random.next(damaged.len());
            damaged[at] = random.next(256) as u8;
        }
        drop(load(&damaged, &[]));
    }
}

#[test]
fn objects_may_begin_at_any_address() {
    let object = object();
    for shift in 1..8 {
        let mut shifted = vec![0; shift];
        shifted.extend_from_slice(&object);
        assert!(load(&shifted[shift..], &[]).is_ok());
    }
}
