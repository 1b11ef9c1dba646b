//! What the vendor's own assembler gets wrong, written otherwise in the PTX that LLVM gives.
//!
//! **Negated operands of three-way minima.** The assemblers of CUDA 12.9 to 13.1, in the drivers too, make one instruction of
//! `min(min(a, -b), -c)` on Hopper and forget the sign of `b`. A negation that is written as a complement and an addition is no operand
//! that they fold:
//!
//! ```text
//! neg.s32 %r1, %r2;    ->    { .reg .b32 t; not.b32 t, %r2; add.s32 %r1, t, 1; }
//! ```
//!
//! **The negation of -32768.** The assemblers of CUDA 12.4 to 13.0 take what `neg` and `abs` of 16 bits give for 32 bits, which it is not
//! if it wraps. The complement and an addition are cut to 16 bits, as they should be:
//!
//! ```text
//! neg.s16 %rs1, %rs2;  ->    { .reg .b16 t; not.b16 t, %rs2; add.s16 %rs1, t, 1; }
//! abs.s16 %rs1, %rs2;  ->    { .reg .b16 t; not.b16 t, %rs2; add.s16 t, t, 1; max.s16 %rs1, %rs2, t; }
//! ```

use std::fmt::Write as _;

/// The text with these instructions replaced.
pub(crate) fn mend(ptx: &str) -> String {
    let has_minima = ptx.contains("min.s32") || ptx.contains("max.s32");
    let mut mended = String::with_capacity(ptx.len() + ptx.len() / 64);
    for line in ptx.split_inclusive('\n') {
        let written = if let Some((to, from)) = operands(line, "neg.s32").filter(|_| has_minima) {
            writeln!(mended, "\t{{ .reg .b32 t; not.b32 t, {from}; add.s32 {to}, t, 1; }}")
        } else if let Some((to, from)) = operands(line, "neg.s16") {
            writeln!(mended, "\t{{ .reg .b16 t; not.b16 t, {from}; add.s16 {to}, t, 1; }}")
        } else if let Some((to, from)) = operands(line, "abs.s16") {
            writeln!(
                mended,
                "\t{{ .reg .b16 t; not.b16 t, {from}; add.s16 t, t, 1; max.s16 {to}, {from}, t; }}"
            )
        } else {
            mended.write_str(line)
        };
        written.expect("writing to a string");
    }
    mended
}

/// The result and the operand of an instruction with one operand, if the line is one of this name.
fn operands<'a>(line: &'a str, name: &str) -> Option<(&'a str, &'a str)> {
    let (to, from) = line.trim().strip_prefix(name)?.trim().strip_suffix(';')?.split_once(", ")?;
    Some((to.trim(), from.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn negations_beside_minima_are_no_operands_that_the_assembler_folds() {
        let ptx = "\tneg.s32 \t%r1, %r2;\n\tmin.s32 \t%r3, %r1, %r4;\n";
        assert_eq!(
            mend(ptx),
            "\t{ .reg .b32 t; not.b32 t, %r2; add.s32 %r1, t, 1; }\n\tmin.s32 \t%r3, %r1, %r4;\n"
        );
        let alone = "\tneg.s32 \t%r1, %r2;\n\tneg.f32 \t%f1, %f2;\n";
        assert_eq!(mend(alone), alone);
    }

    #[test]
    fn negations_of_16_bits_wrap() {
        assert_eq!(
            mend("\tabs.s16 \t%rs1, %rs1;\n\tabs.s32 \t%r1, %r2;\n\tneg.s16 \t%rs3, %rs4;\n"),
            "\t{ .reg .b16 t; not.b16 t, %rs1; add.s16 t, t, 1; max.s16 %rs1, %rs1, t; }\n\tabs.s32 \t%r1, %r2;\n\
             \t{ .reg .b16 t; not.b16 t, %rs4; add.s16 %rs3, t, 1; }\n"
        );
    }
}
