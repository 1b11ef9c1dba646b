//! Programs that are refused: `refused.txt` holds them, the snapshot holds what each user is told.
//!
//! The kernel is called `f`. A parameter's name says what is passed: `n` an i32, `x` an f32, `a` an f32 array of rank 1, `b` one of rank 2,
//! `u` an i32 array of rank 1, `z` an f32 array of rank 0, `t` the template argument None.

mod fake_host;

use std::fmt::Write;
use std::rc::Rc;

use fake_host::{FakeHost, Object};
use octants_diag::{Code, Severity, Style, render_all};
use octants_front::{
    ArgSpec, FunctionKind, HostException, LowerOptions, Sources, check_signature, lower_kernel,
};
use octants_ir::{ArrayType, Boundary, Data, KernelOptions, Scalar};

fn array(elem: Scalar, rank: u8) -> ArgSpec<Object> {
    ArgSpec::Array(ArrayType::array(Data::Scalar(elem), rank, Boundary::Unsafe), None)
}

fn argument(name: &str) -> ArgSpec<Object> {
    match name {
        "n" => ArgSpec::Scalar(Scalar::I32),
        "x" => ArgSpec::Scalar(Scalar::F32),
        "a" => array(Scalar::F32, 1),
        "b" => array(Scalar::F32, 2),
        "u" => array(Scalar::I32, 1),
        "z" => array(Scalar::F32, 0),
        "t" => ArgSpec::Template(Object::None),
        other => panic!("no argument for a parameter `{other}`"),
    }
}

fn refusal(program: &str) -> (Vec<Code>, String) {
    let host = FakeHost::new(program);
    host.set("LIMIT", Object::Int(5));
    host.set("HUGE", Object::Int(1 << 40));
    host.set("WORDS", Object::List(vec![Object::Str("one".to_owned()), Object::Str("two".to_owned())]));
    host.set("ARRAY", Object::Ndarray);
    let fails = |_: &[Object], _: &mut dyn octants_front::Tracer<Object>| {
        let mut exception = HostException::new("ValueError", "no such table");
        "  File \"tables.py\", line 3, in table\n    raise ValueError(...)"
            .clone_into(&mut exception.traceback);
        Err(exception)
    };
    host.set("fails", Object::Callable(Rc::new(fails)));
    host.set("kernel", Object::Kernel("f".to_owned()));
    let sources = Sources::new();
    let function = Object::Kernel("f".to_owned());
    let options = LowerOptions {
        kernel: KernelOptions { debug: true, ..LowerOptions::default().kernel },
        check_bounds: true,
        ..LowerOptions::default()
    };
    let result = check_signature(&host, &sources, &function, FunctionKind::Kernel).and_then(|signature| {
        let args: Vec<_> = signature.params.iter().map(|param| argument(&param.name)).collect();
        lower_kernel(&host, &sources, &function, &args, &options, &[])
    });
    match result {
        Ok(lowered) => {
            let text = render_all(&lowered.warnings, sources.map(), Style::Plain);
            (lowered.warnings.iter().map(|w| w.code).collect(), text)
        }
        Err(errors) => {
            assert!(errors.iter().all(|error| error.severity() == Severity::Error));
            (errors.iter().map(|e| e.code).collect(), render_all(&errors, sources.map(), Style::Plain))
        }
    }
}

#[test]
fn every_refusal_says_what_where_and_why() {
    let mut shown = String::new();
    let mut wrong = String::new();
    let mut count = 0;
    for case in include_str!("refused.txt").split("### ").skip(1) {
        let (head, program) = case.split_once('\n').expect("a program follows its head");
        let (code, title) = head.split_once(' ').expect("a head is a code and a title");
        let (codes, text) = refusal(program);
        let names: Vec<_> = codes.iter().map(|code| code.name()).collect();
        if !names.contains(&code) {
            writeln!(wrong, "{head}: got {names:?}\n{program}\n{text}").unwrap();
            continue;
        }
        writeln!(shown, "### {title} ({:?})\n{text}\n", codes[0].class()).unwrap();
        count += 1;
    }
    assert!(wrong.is_empty(), "{wrong}");
    assert!(count >= 60);
    insta::assert_snapshot!(shown);
}
