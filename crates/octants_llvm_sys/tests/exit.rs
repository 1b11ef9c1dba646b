//! A process may end while LLVM is at work on another thread.

use std::process::{Command, exit};

use octants_llvm_sys::{Options, start, wait_for_compilations};

const CHILD: &str = "OCTANTS_TEST_EXIT_WHILE_COMPILING";

#[test]
fn a_process_may_leave_while_compilations_that_nobody_waits_for_go_on() {
    if let Ok(delay) = std::env::var(CHILD) {
        for _ in 0..3 {
            drop(start(include_str!("kernels/nbody.ll").to_owned(), Options::default()));
        }
        std::thread::sleep(std::time::Duration::from_millis(delay.parse().unwrap()));
        wait_for_compilations();
        exit(7);
    }
    let this = std::env::current_exe().unwrap();
    for delay in [0, 1, 3, 6, 9, 12, 20] {
        let mut command = Command::new(&this);
        let output = command.env(CHILD, delay.to_string()).arg("--nocapture").output().unwrap();
        assert_eq!(output.status.code(), Some(7), "{output:?}");
    }
}
