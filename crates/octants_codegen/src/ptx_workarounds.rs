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
//!
//! **What is subtracted from the upper half of a product.** The assemblers of CUDA 13.0 to 13.4 make one instruction of a product's upper
//! half, widened to 64 bits, and of what is added: for a difference they add the negated lower word, and take for granted that it carries.
//! Zero does not: `i64(x // 31) - y` lacks 2^32 where the lower word of `y` is zero. The upper half of a whole product is no operand that
//! they fold:
//!
//! ```text
//! mul.hi.u32 %r1, %r2, 7;  ->  { .reg .b32 t; .reg .b64 w; mul.wide.u32 w, %r2, 7; mov.b64 {t, %r1}, w; }
//! ```

use std::collections::HashSet;
use std::fmt::Write as _;

/// The text with these instructions replaced.
pub(crate) fn mend(ptx: &str) -> String {
    let has_minima = ptx.contains("min.s32") || ptx.contains("max.s32");
    let widened = words_of_differences(ptx);
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
        } else if let Some((sign, to, factors)) = upper_half(line).filter(|(_, to, _)| widened.contains(to)) {
            writeln!(
                mended,
                "\t{{ .reg .b32 t; .reg .b64 w; mul.wide.{sign} w, {factors}; mov.b64 {{t, {to}}}, w; }}"
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

/// The type, the result and the factors of an instruction that gives the upper half of a product of 32 bits.
fn upper_half(line: &str) -> Option<(&str, &str, &str)> {
    let (ty, rest) = line.trim().strip_prefix("mul.hi.")?.split_once([' ', '\t'])?;
    let (to, factors) = rest.trim().strip_suffix(';')?.split_once(", ")?;
    matches!(ty, "u32" | "s32").then_some((ty, to.trim(), factors))
}

/// Registers of 32 bits that are words of wider values, in a module that has differences of such. Copies are seen through.
fn words_of_differences(ptx: &str) -> HashSet<&str> {
    let mut words = HashSet::new();
    if !ptx.contains("mul.hi.") || !["sub.s64", "neg.s64", "subc."].iter().any(|name| ptx.contains(name)) {
        return words;
    }
    let mut copies = Vec::new();
    for line in ptx.lines().map(str::trim) {
        if let Some((_, from)) = operands(line, "cvt.u64.u32") {
            words.insert(from);
        } else if line.starts_with("mov.b64") || line.contains(".cc.") {
            words.extend(
                line.split(|c: char| !c.is_ascii_alphanumeric() && c != '%')
                    .filter(|word| word.starts_with("%r")),
            );
        } else if let Some(copy) = operands(line, "mov.b32").or_else(|| operands(line, "mov.u32")) {
            copies.push(copy);
        }
    }
    loop {
        let before = words.len();
        words.extend(
            copies.iter().filter(|(to, _)| words.contains(to)).map(|(_, from)| *from).collect::<Vec<_>>(),
        );
        if words.len() == before {
            return words;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_from_the_upper_halves_of_products_are_of_whole_products() {
        let product = "\tmul.hi.u32 \t%r1, %r2, 138547333;\n";
        let whole = "\t{ .reg .b32 t; .reg .b64 w; mul.wide.u32 w, %r2, 138547333; mov.b64 {t, %r1}, w; }\n";
        let widened = "\tcvt.u64.u32 \t%rd1, %r1;\n";
        let difference = "\tsub.s64 \t%rd3, %rd1, %rd2;\n";
        assert_eq!(mend(&[product, widened, difference].concat()), [whole, widened, difference].concat());
        let copied = "\tmov.b32 \t%r5, %r1;\n\tmov.b64 \t%rd1, {%r5, %r6};\n";
        assert_eq!(mend(&[product, copied, difference].concat()), [whole, copied, difference].concat());
        for same in [[product, widened], [product, difference]] {
            assert_eq!(mend(&same.concat()), same.concat());
        }
    }

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
