//! What LLVM refuses comes back as a value; what the loader is given may be anything.

use octants_llvm_sys::{CompileError, LoadError, Options, Stage, Target, compile, load};

fn refused(text: &str) -> CompileError {
    compile(text, &Options::default()).expect_err("not a valid module")
}

#[test]
fn syntax_errors_name_their_line() {
    let error = refused("define void @f() {\n  ret i32 7\n}");
    assert_eq!(error.stage, Stage::Parse);
    assert!(error.message.contains("2:"), "{error}");
    assert!(error.message.contains("value doesn't match function result type"), "{error}");
    assert_eq!(refused("no module at all").stage, Stage::Parse);
}

#[test]
fn ill_formed_modules_are_found_by_the_verifier() {
    let error = refused(
        "define i32 @f(i1 %c) {
           br i1 %c, label %a, label %b
         a:
           %x = add i32 1, 2
           br label %b
         b:
           ret i32 %x
         }",
    );
    assert_eq!(error.stage, Stage::Parse);
    assert!(error.message.contains("does not dominate"), "{error}");
}

#[test]
fn fatal_errors_of_the_code_generator_do_not_end_the_process() {
    for _ in 0..2 {
        let error = refused(
            "declare void @llvm.nvvm.barrier0()
             define void @f() { call void @llvm.nvvm.barrier0() ret void }",
        );
        assert_eq!(error.stage, Stage::Fatal);
        assert!(error.message.contains("Cannot select"), "{error}");
    }
    assert!(compile("define void @f() { ret void }", &Options::default()).is_ok());
}

#[test]
fn unknown_targets_and_passes() {
    let target = Target { triple: "pdp11-dec-unix".to_owned(), ..Target::host().clone() };
    let error = compile("", &Options { target, ..Options::default() }).unwrap_err();
    assert_eq!(error.stage, Stage::Target);
    let passes = Some("make-it-fast".to_owned());
    let error = compile("", &Options { passes, ..Options::default() }).unwrap_err();
    assert_eq!(error.stage, Stage::Optimise);
    assert!(error.message.contains("make-it-fast"), "{error}");
}

#[test]
fn undefined_symbols_are_named() {
    let text =
        "declare void @nobody_defines_this() define void @f() { call void @nobody_defines_this() ret void }";
    let object = compile(text, &Options::default()).unwrap();
    let error = load(&object.bytes, &[]).unwrap_err();
    assert_eq!(error, LoadError::Undefined("nobody_defines_this".to_owned()));
}

#[test]
fn damaged_objects_are_refused_or_loaded_but_never_crash() {
    let text = include_str!("kernels/stencil.ll");
    let object = compile(text, &Options::default()).unwrap().bytes;
    assert!(load(&object, &[]).is_ok());
    for length in 0..object.len() {
        // The section table is at the end: nothing shorter is whole.
        assert!(matches!(load(&object[..length], &[]), Err(LoadError::Object(_))), "{length}");
    }
    for position in 0..object.len() {
        for flip in [0x01, 0x80, 0xff] {
            let mut damaged = object.clone();
            damaged[position] ^= flip;
            drop(load(&damaged, &[]));
        }
    }
}
