//! perf and gdb know generated functions by their names. Each tool looks at a process of its own, which is this very program.

#![allow(unsafe_code)]

use std::process::{Command, Stdio};

use octants_llvm_sys::{Options, compile, load};

const TEXT: &str = "define i32 @a_named_kernel(i32 %x) noinline { %y = mul i32 %x, 3 ret i32 %y }";

/// What the other processes do; nothing in a usual run.
#[test]
fn child() {
    if std::env::var_os("OCTANTS_TEST_CHILD").is_none() {
        return;
    }
    let object = compile(TEXT, &Options::default()).unwrap_or_else(|error| panic!("{error}"));
    let code = load(&object.bytes, &[]).unwrap();
    let function = code.symbol("a_named_kernel").expect("the text defines it");
    println!("address {:x}, process {}", function.expose_provenance(), std::process::id());
    // SAFETY: the text defines the function with this signature.
    let function: extern "C" fn(i32) -> i32 = unsafe { std::mem::transmute(function) };
    assert_eq!(function(5), 15);
}

fn this_program() -> std::path::PathBuf {
    std::env::current_exe().expect("the test's own program")
}

const CHILD: [&str; 4] = ["child", "--exact", "--nocapture", "--test-threads=1"];

#[test]
fn perf_finds_a_map_of_names() {
    let output = Command::new(this_program())
        .args(CHILD)
        .env("OCTANTS_TEST_CHILD", "1")
        .env("OCTANTS_PERF_MAP", "1")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}");
    let (_, rest) = text.split_once("address ").expect("the child tells its address");
    let (address, rest) = rest.split_once(", process ").expect("and its number");
    let process = rest.lines().next().unwrap_or_default();
    let path = format!("/tmp/perf-{process}.map");
    let map = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    std::fs::remove_file(&path).unwrap();
    let line = map.lines().find(|line| line.ends_with("octants:a_named_kernel")).expect("the function");
    let mut words = line.split(' ');
    assert_eq!(words.next(), Some(address));
    let bytes = u64::from_str_radix(words.next().unwrap_or_default(), 16).unwrap();
    assert!((1..256).contains(&bytes), "{line}");
}

#[test]
fn nothing_is_written_unless_asked_for() {
    let output = Command::new(this_program()).args(CHILD).env("OCTANTS_TEST_CHILD", "1").output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let (_, process) = text.split_once(", process ").expect("the child tells its number");
    let path = format!("/tmp/perf-{}.map", process.lines().next().unwrap_or_default());
    assert!(!std::path::Path::new(&path).exists());
}

#[test]
fn gdb_stops_in_a_function_by_its_name() {
    let gdb = Command::new("gdb").arg("--version").stdout(Stdio::null()).status();
    if !gdb.is_ok_and(|status| status.success()) {
        return;
    }
    let output = Command::new("gdb")
        .args(["-nx", "-batch", "-ex", "set breakpoint pending on", "-ex", "break a_named_kernel"])
        .args(["-ex", "run", "-ex", "bt 2", "--args"])
        .arg(this_program())
        .args(CHILD)
        .env("OCTANTS_TEST_CHILD", "1")
        .env("OCTANTS_GDB", "1")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    // A sandbox may forbid debuggers altogether.
    if text.contains("a_named_kernel ()") || !text.contains("Operation not permitted") {
        assert!(text.contains("#0") && text.contains("in a_named_kernel ()"), "{text}");
    }
}
