//! Values as text: what a `print` writes. One home for every device, so that all say the same.
//!
//! Formats mean what they mean in C's `printf`. Without a letter the type decides: integers as decimals, `f16` and `f32` as `%f`,
//! `f64` as `%.12f`.

use crate::constant::Const;
use crate::ops::{Conversion, Format, PrintPiece, PrintSpec};
use crate::types::{Data, Scalar, TensorShape};

/// Digits behind the point where a format does not say.
const DEFAULT_DIGITS: usize = 6;
/// The same for an `f64` without any format.
const DEFAULT_DIGITS_OF_F64: usize = 12;

/// What a `print` of scalars writes. `values` are its operands; `location` says where the op stands.
pub fn print_text(spec: &PrintSpec, values: &[Const], location: &dyn Fn() -> String) -> String {
    let mut text = String::new();
    let mut values = values.iter();
    for piece in &spec.pieces {
        match piece {
            PrintPiece::Text(piece) => text.push_str(piece),
            PrintPiece::Location => text.push_str(&location()),
            PrintPiece::Value(format) => {
                if let Some(&value) = values.next() {
                    text.push_str(&value_text(*format, value));
                }
            }
        }
    }
    text
}

/// The spec for the scalars of operands that are of these types.
pub fn with_tensors(spec: &PrintSpec, operands: &[Data]) -> PrintSpec {
    let mut flat = PrintSpec::default();
    let mut operands = operands.iter();
    for piece in &spec.pieces {
        match piece {
            PrintPiece::Text(text) => flat.push_text(text),
            PrintPiece::Location => flat.pieces.push(PrintPiece::Location),
            PrintPiece::Value(format) => match operands.next().copied().and_then(Data::tensor_shape) {
                Some(shape) => tensor_pieces(&mut flat, shape, *format),
                None => flat.push_value(*format),
            },
        }
    }
    flat
}

/// The pieces of a tensor: its entries in nested brackets, each in the format.
fn tensor_pieces(spec: &mut PrintSpec, shape: TensorShape, format: Format) {
    let row = |spec: &mut PrintSpec, entries: u16| {
        spec.push_text("[");
        for entry in 0..entries {
            spec.push_text(if entry == 0 { "" } else { ", " });
            spec.push_value(format);
        }
        spec.push_text("]");
    };
    match shape {
        TensorShape::Vector(n) => row(spec, n),
        TensorShape::Matrix(n, m) => {
            spec.push_text("[");
            for index in 0..n {
                spec.push_text(if index == 0 { "" } else { ", " });
                row(spec, m);
            }
            spec.push_text("]");
        }
    }
}

/// A part of the message of an assertion.
enum MessagePart<'a> {
    Text(&'a str),
    /// `{}` or `{:.2f}`, with its source.
    Blank(Format, &'a str),
}

/// The message of an assertion: each blank, `{}` or `{:.2f}`, stands for the next argument; one without an argument stays. `{{` and `}}`
/// are braces.
pub fn message_text(message: &str, arguments: &[Const]) -> String {
    let mut arguments = arguments.iter();
    let mut text = String::new();
    for part in message_parts(message) {
        match part {
            MessagePart::Text(part) => text.push_str(part),
            MessagePart::Blank(format, source) => match arguments.next() {
                None => text.push_str(source),
                Some(&argument) if format == Format::default() => text.push_str(&plain_text(argument)),
                Some(&argument) => text.push_str(&value_text(format, argument)),
            },
        }
    }
    text
}

/// How many blanks the message of an assertion has.
pub fn blanks(message: &str) -> usize {
    message_parts(message).iter().filter(|part| matches!(part, MessagePart::Blank(..))).count()
}

/// Text that has no blanks in a message, whatever it contains.
pub fn escaped_message(text: &str) -> String {
    text.replace('{', "{{").replace('}', "}}")
}

fn message_parts(message: &str) -> Vec<MessagePart<'_>> {
    let mut parts = Vec::new();
    let mut rest = message;
    while let Some(at) = rest.find(['{', '}']) {
        parts.push(MessagePart::Text(&rest[..at]));
        let (brace, after) = (&rest[at..=at], &rest[at + 1..]);
        rest = after;
        if let Some(behind) = after.strip_prefix(brace) {
            parts.push(MessagePart::Text(brace));
            rest = behind;
        } else if let Some((format, length)) = blank(after).filter(|_| brace == "{") {
            parts.push(MessagePart::Blank(format, &message[message.len() - after.len() - 1..][..=length]));
            rest = &after[length..];
        } else {
            parts.push(MessagePart::Text(brace));
        }
    }
    parts.push(MessagePart::Text(rest));
    parts
}

/// The format of a blank, behind its first brace, and its length there.
fn blank(after: &str) -> Option<(Format, usize)> {
    let end = after.find('}')?;
    let inside = &after[..end];
    let format =
        if inside.is_empty() { Format::default() } else { Format::from_text(inside.strip_prefix(':')?)? };
    Some((format, end + 1))
}

/// A scalar as Python shows it, with as many digits as its type has.
fn plain_text(value: Const) -> String {
    match value.ty() {
        Scalar::U1 => if value.is_zero() { "False" } else { "True" }.to_owned(),
        Scalar::F16 | Scalar::F32 => format!("{:?}", value.as_f64() as f32),
        Scalar::F64 => format!("{:?}", value.as_f64()),
        _ => value.as_i128().unwrap_or_default().to_string(),
    }
}

/// A scalar in a format that fits its type; one that does not is written as the type alone would be.
pub fn value_text(format: Format, value: Const) -> String {
    let format = if format.fits(value.ty()) { format } else { Format { conversion: None, ..format } };
    match value.as_i128() {
        Some(integer) => integer_text(format, value, integer),
        None => real_text(format, value),
    }
}

fn integer_text(format: Format, value: Const, integer: i128) -> String {
    let conversion = format.conversion.unwrap_or(Conversion::Decimal);
    let bits = u128::from(value.bits());
    let (negative, digits) = match conversion {
        Conversion::Decimal | Conversion::Integer => (integer < 0, integer.unsigned_abs().to_string()),
        Conversion::Octal => (false, format!("{bits:o}")),
        Conversion::Hex => (false, format!("{bits:x}")),
        Conversion::UpperHex => (false, format!("{bits:X}")),
        Conversion::Character => {
            let character = char::from_u32(bits as u32).unwrap_or(char::REPLACEMENT_CHARACTER);
            return pad(Format { zero: false, ..format }, "", &character.to_string());
        }
        _ => (false, bits.to_string()),
    };
    let mut digits = match format.precision {
        // Nothing at all for a zero with no digits.
        Some(0) if digits == "0" => String::new(),
        Some(least) => format!("{digits:0>width$}", width = least.into()),
        None => digits,
    };
    if format.alternate && conversion == Conversion::Octal && !digits.starts_with('0') {
        digits.insert(0, '0');
    }
    let signed = matches!(conversion, Conversion::Decimal | Conversion::Integer);
    let prefix = match conversion {
        Conversion::Hex if format.alternate && bits != 0 => "0x",
        Conversion::UpperHex if format.alternate && bits != 0 => "0X",
        _ if signed => sign(format, negative),
        _ => "",
    };
    // A precision says how many digits there are, so zeros do not fill.
    pad(Format { zero: format.zero && format.precision.is_none(), ..format }, prefix, &digits)
}

fn real_text(format: Format, value: Const) -> String {
    let conversion = format.conversion.unwrap_or(Conversion::Fixed);
    let digits = match (format.precision, format.conversion) {
        (Some(digits), _) => digits.into(),
        (None, None) if value.ty() == Scalar::F64 => DEFAULT_DIGITS_OF_F64,
        (None, _) => DEFAULT_DIGITS,
    };
    let number = value.as_f64();
    let negative = number.is_sign_negative() && !number.is_nan();
    let magnitude = number.abs();
    let mut prefix = sign(format, negative).to_owned();
    let mut filled = format;
    let mut text = if number.is_nan() {
        "nan".to_owned()
    } else if number.is_infinite() {
        "inf".to_owned()
    } else {
        match conversion {
            Conversion::Exponent | Conversion::UpperExponent => exponent_text(magnitude, digits, format),
            Conversion::General | Conversion::UpperGeneral => general_text(magnitude, digits, format),
            Conversion::HexReal | Conversion::UpperHexReal => {
                prefix.push_str("0x");
                hex_text(magnitude, format)
            }
            _ => fixed_text(magnitude, digits, format),
        }
    };
    if !number.is_finite() {
        filled.zero = false;
    }
    if conversion.letter().is_ascii_uppercase() {
        (prefix, text) = (prefix.to_ascii_uppercase(), text.to_ascii_uppercase());
    }
    pad(filled, &prefix, &text)
}

fn fixed_text(magnitude: f64, digits: usize, format: Format) -> String {
    let point = if format.alternate && digits == 0 { "." } else { "" };
    format!("{magnitude:.digits$}{point}")
}

/// `d.ddde±dd`
fn exponent_text(magnitude: f64, digits: usize, format: Format) -> String {
    let (mantissa, exponent) = split_exponent(magnitude, digits);
    let point = if format.alternate && digits == 0 { "." } else { "" };
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{mantissa}{point}e{sign}{:02}", exponent.unsigned_abs())
}

/// Rounded to one digit before the point and `digits` behind it: those, and the power of ten.
fn split_exponent(magnitude: f64, digits: usize) -> (String, i32) {
    let text = format!("{magnitude:.digits$e}");
    let (mantissa, exponent) = text.split_once('e').expect("an exponent is always written");
    (mantissa.to_owned(), exponent.parse().expect("an exponent is a number"))
}

fn general_text(magnitude: f64, digits: usize, format: Format) -> String {
    let digits = digits.max(1);
    let (_, exponent) = split_exponent(magnitude, digits - 1);
    let places = i64::try_from(digits).unwrap_or(i64::MAX);
    let trimmed = |text: String| {
        if format.alternate || !text.contains('.') {
            return text;
        }
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    };
    if i64::from(exponent) < -4 || i64::from(exponent) >= places {
        let text = exponent_text(magnitude, digits - 1, format);
        let (mantissa, power) = text.split_once('e').expect("an exponent is always written");
        return format!("{}e{power}", trimmed(mantissa.to_owned()));
    }
    let behind = (places - 1 - i64::from(exponent)) as usize;
    trimmed(fixed_text(magnitude, behind, format))
}

/// `h.hhhp±d` without `0x`.
fn hex_text(magnitude: f64, format: Format) -> String {
    const MANTISSA_BITS: u32 = 52;
    let bits = magnitude.to_bits();
    let (mut exponent, mut mantissa) =
        ((bits >> MANTISSA_BITS) as i32 - 1023, bits & ((1 << MANTISSA_BITS) - 1));
    let mut first = 1_u64;
    if exponent == -1023 {
        (first, exponent) = (0, if mantissa == 0 { 0 } else { -1022 });
    }
    let mut digits = 13_usize;
    match format.precision.map(usize::from) {
        Some(wanted) if wanted < digits => {
            // To the nearest, halves to the even one.
            let dropped = 4 * (digits - wanted) as u32;
            let whole = (first << MANTISSA_BITS) | mantissa;
            let (mut kept, rest, half) =
                (whole >> dropped, whole & ((1 << dropped) - 1), 1_u64 << (dropped - 1));
            if rest > half || (rest == half && kept & 1 == 1) {
                kept += 1;
            }
            let whole = kept << dropped;
            (first, mantissa) = (whole >> MANTISSA_BITS, whole & ((1 << MANTISSA_BITS) - 1));
            digits = wanted;
        }
        Some(wanted) => digits = wanted.max(13),
        None => {
            while digits > 0 && (mantissa >> (4 * (13 - digits))).trailing_zeros() >= 4 {
                digits -= 1;
            }
        }
    }
    let mut behind = format!("{mantissa:013x}");
    while behind.len() < digits {
        behind.push('0');
    }
    behind.truncate(digits);
    let point = if digits > 0 || format.alternate { "." } else { "" };
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{first:x}{point}{behind}p{sign}{}", exponent.unsigned_abs())
}

fn sign(format: Format, negative: bool) -> &'static str {
    match (negative, format.plus, format.space) {
        (true, ..) => "-",
        (false, true, _) => "+",
        (false, false, true) => " ",
        (false, false, false) => "",
    }
}

/// Filled up to the width: with blanks outside, or with zeros behind the prefix.
fn pad(format: Format, prefix: &str, text: &str) -> String {
    let length = prefix.chars().count() + text.chars().count();
    let missing = usize::from(format.width.unwrap_or(0)).saturating_sub(length);
    match (format.left, format.zero) {
        (true, _) => format!("{prefix}{text}{}", " ".repeat(missing)),
        (false, true) => format!("{prefix}{}{text}", "0".repeat(missing)),
        (false, false) => format!("{}{prefix}{text}", " ".repeat(missing)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blanks_of_a_message_stand_for_arguments() {
        let arguments = [Const::i32(-3), Const::f64(0.1)];
        assert_eq!(message_text("{:+d} of {:.3f}, {x} {} {", &arguments), "-3 of 0.100, {x} {} {");
        assert_eq!(message_text("plain {", &arguments), "plain {");
        assert_eq!(blanks("{:+d} of {:.3f}, {x} {} {"), 3);
    }

    /// What C's `printf` gives for the same.
    #[test]
    fn formats_mean_what_they_mean_in_c() {
        let f64 = |format: &str, value: f64| {
            value_text(Format::from_text(format).unwrap_or_default(), Const::f64(value))
        };
        let cases: &[(&str, f64, &str)] = &[
            ("", 1.0 / 3.0, "0.333333333333"),
            ("f", 2.5, "2.500000"),
            (".0f", 2.5, "2"),
            ("#.0f", 3.5, "4."),
            ("+08.2f", 2.71459, "+0002.71"),
            ("-8.2f", -2.71459, "-2.71   "),
            ("e", 12345.678, "1.234568e+04"),
            (".2E", 1e-100, "1.00E-100"),
            ("g", 0.0001, "0.0001"),
            ("g", 0.00001, "1e-05"),
            ("g", 100_000.0, "100000"),
            ("g", 1_000_000.0, "1e+06"),
            (".3g", 9.9999, "10"),
            ("#g", 1.0, "1.00000"),
            ("g", 0.0, "0"),
            ("a", 1.0, "0x1p+0"),
            ("a", 0.1, "0x1.999999999999ap-4"),
            (".2a", 0.1, "0x1.9ap-4"),
            ("A", -2.5, "-0X1.4P+1"),
            ("08f", f64::NEG_INFINITY, "    -inf"),
            ("F", f64::NAN, "NAN"),
            (" .1f", 1.0, " 1.0"),
        ];
        for &(format, value, expected) in cases {
            assert_eq!(f64(format, value), expected, "%{format} of {value}");
        }
        let int = |format: &str, ty: Scalar, value: i128| {
            value_text(Format::from_text(format).unwrap_or_default(), Const::from_i128(ty, value))
        };
        let cases: &[(&str, Scalar, i128, &str)] = &[
            ("", Scalar::I8, -3, "-3"),
            ("", Scalar::U64, u64::MAX.into(), "18446744073709551615"),
            ("", Scalar::U1, 1, "1"),
            ("5d", Scalar::I32, -42, "  -42"),
            ("05d", Scalar::I32, -42, "-0042"),
            (".5d", Scalar::I32, -42, "-00042"),
            ("+d", Scalar::I32, 7, "+7"),
            ("x", Scalar::I16, -1, "ffff"),
            ("#X", Scalar::I32, 255, "0XFF"),
            ("#o", Scalar::I32, 8, "010"),
            ("u", Scalar::I32, -1, "4294967295"),
            ("c", Scalar::I32, 65, "A"),
            (".0d", Scalar::I32, 0, ""),
        ];
        for &(format, ty, value, expected) in cases {
            assert_eq!(int(format, ty, value), expected, "%{format} of {value}");
        }
        assert_eq!(value_text(Format::default(), Const::f32(0.1)), "0.100000");
        let precise = Format::from_text(".2").unwrap_or_default();
        assert_eq!(value_text(precise, Const::f32(0.126)), "0.13");
        assert_eq!(value_text(precise, Const::i32(3)), "03");
    }
}
