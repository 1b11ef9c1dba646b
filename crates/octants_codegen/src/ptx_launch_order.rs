//! Kernels that wait themselves for the launch before them.
//!
//! From compute capability 9.0 on the driver may be told that a kernel does so. It then says less to the device for a launch, which takes a
//! sixth of the host's time less, and the device begins a kernel while the last one ends. The wait stands before everything that the kernel does:
//!
//! ```text
//! .visible .entry k_t0(...)          .visible .entry k_t0(...)
//! {                                  {
//!     .reg .b64 %rd<29>;       ->        .reg .b64 %rd<29>;
//!                                        griddepcontrol.wait;
//!                                        { ... ld.param.u64 %points, [k_t0_param_1+40]; setp.lt.s64 %never, %points, 0; @%never ret; }
//!     ld.param.u64 %rd1, [...];          ld.param.u64 %rd1, [...];
//! ```
//!
//! **No load goes before the wait.** LLVM and the vendor's assembler move loads of memory that a kernel does not write anywhere, also before a
//! wait. So the wait is written into LLVM's text, behind all that it moves; and behind the wait a kernel may end, as far as the assembler
//! knows: it moves no load that might fault before that. No launch has as many points as that takes.
//!
//! **No kernel ends without having waited**: whoever waits for it takes all launches before it for ended.

use octants_abi::gpu::GpuFrame;

use crate::ptx_target::PtxTarget;

/// What such a kernel begins with.
fn wait(symbol: &str) -> String {
    let points = GpuFrame::POINTS;
    format!(
        "\tgriddepcontrol.wait;\n\t{{ .reg .pred %never; .reg .b64 %points; ld.param.u64 %points, [{symbol}_param_1+{points}]; \
         setp.lt.s64 %never, %points, 0; @%never ret; }}\n"
    )
}

/// Whether kernels for this target can wait: PTX ISA 7.8, on compute capability 9.0.
pub(crate) fn can_wait(target: PtxTarget) -> bool {
    target.capability >= 90 && target.version >= 78
}

/// The text, in which every kernel begins with a wait.
pub(crate) fn with_waits(ptx: &str) -> String {
    /// What the next line belongs to.
    enum At<'a> {
        /// A function, or a kernel behind its wait.
        Elsewhere,
        /// The parameters of this kernel.
        Parameters(&'a str),
        Declarations(&'a str),
    }
    let mut at = At::Elsewhere;
    let mut text = String::with_capacity(ptx.len() + 256);
    for line in ptx.split_inclusive('\n') {
        let code = line.trim();
        match at {
            At::Elsewhere => {
                if let Some((symbol, _)) =
                    code.strip_prefix(".visible .entry ").and_then(|head| head.split_once('('))
                {
                    at = At::Parameters(symbol);
                }
            }
            At::Parameters(symbol) if code.starts_with('{') => at = At::Declarations(symbol),
            At::Declarations(symbol)
                if !(code.is_empty() || code.starts_with('.') || code.starts_with("//")) =>
            {
                text.push_str(&wait(symbol));
                at = At::Elsewhere;
            }
            At::Parameters(_) | At::Declarations(_) => {}
        }
        text.push_str(line);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_wait_before_their_first_instruction_and_functions_do_not() {
        let ptx = "\
.version 8.5
.visible .entry k_t0(
\t.param .u64 k_t0_param_0
)
.maxntid 256, 1, 1
{
\t.local .align 8 .b8 \t__local_depot0[32];
\t.reg .b64 \t%rd<2>;

\tmov.u64 \t%rd1, __local_depot0;
\tret;
}
.func f()
{
\t.reg .b64 \t%rd<2>;
\tret;
}
.visible .entry k_t1()
{
$L__BB0_1:
\tbra.uni \t$L__BB0_1;
}
";
        let first = wait("k_t0");
        assert!(first.starts_with("\tgriddepcontrol.wait;\n") && first.contains("[k_t0_param_1+"), "{first}");
        let expected = ptx.replace("\tmov.u64", &format!("{first}\tmov.u64")).replacen(
            "$L__BB0_1:",
            &format!("{}$L__BB0_1:", wait("k_t1")),
            1,
        );
        assert_eq!(with_waits(ptx), expected);
    }

    #[test]
    fn older_devices_have_no_such_instruction() {
        assert!(can_wait(PtxTarget { capability: 90, version: 78 }));
        assert!(!can_wait(PtxTarget { capability: 89, version: 85 }));
    }
}
