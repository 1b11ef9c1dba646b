//! Text from inside a kernel: what a `print` says. How values become text is in [`format`](mod@crate::format).

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::types::Scalar;

/// What a `print` writes, piece by piece; each value piece takes the op's next operand.
///
/// In text it is one string: `{}` or `{:.2f}` is a value, `{@}` the op's own place in the user's file, `{{` and `}}` are braces.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
pub struct PrintSpec {
    pub pieces: Vec<PrintPiece>,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum PrintPiece {
    Text(String),
    /// The next operand: a scalar, or a tensor with each entry in this format.
    Value(Format),
    /// Where the op stands in the user's file, as `file:line`.
    Location,
}

/// How a value is written, in the words of C's `printf`.
// The flags are what they are called there, each by itself.
#[allow(clippy::struct_excessive_bools)]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
pub struct Format {
    /// `-`: at the left of its width.
    pub left: bool,
    /// `+`: positive numbers have a sign.
    pub plus: bool,
    /// A space: positive numbers have a space where the sign would be.
    pub space: bool,
    /// `#`: the alternate form.
    pub alternate: bool,
    /// `0`: zeros fill the width.
    pub zero: bool,
    pub width: Option<u16>,
    /// Digits behind the point for reals (all that count for `g`), the least number of digits for integers.
    pub precision: Option<u16>,
    /// `None` leaves it to the value's type.
    pub conversion: Option<Conversion>,
}

macro_rules! conversions {
    ($($(#[$doc:meta])* $variant:ident $letter:literal $class:ident;)*) => {
        /// The letter that ends a format.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
        pub enum Conversion { $($(#[$doc])* $variant),* }

        impl Conversion {
            pub const ALL: &'static [Conversion] = &[$(Conversion::$variant),*];

            pub fn letter(self) -> char {
                match self { $(Self::$variant => $letter),* }
            }

            /// Whether it is for reals; the others are for integers.
            pub fn is_real(self) -> bool {
                match self { $(Self::$variant => conversions!(@$class)),* }
            }
        }
    };
    (@real) => { true };
    (@integer) => { false };
}

conversions! {
    /// As the type's sign says.
    Decimal 'd' integer;
    /// The same.
    Integer 'i' integer;
    /// The bits as an unsigned number.
    Unsigned 'u' integer;
    Octal 'o' integer;
    Hex 'x' integer;
    UpperHex 'X' integer;
    /// A number as the character that it stands for.
    Character 'c' integer;
    Fixed 'f' real;
    UpperFixed 'F' real;
    Exponent 'e' real;
    UpperExponent 'E' real;
    General 'g' real;
    UpperGeneral 'G' real;
    HexReal 'a' real;
    UpperHexReal 'A' real;
}

impl Conversion {
    pub fn from_letter(letter: char) -> Option<Self> {
        Self::ALL.iter().copied().find(|conversion| conversion.letter() == letter)
    }
}

impl Format {
    /// Reads flags, width, precision and letter, all of them optional: `-8.3f`.
    pub fn from_text(text: &str) -> Option<Self> {
        let mut format = Self::default();
        let mut rest = text;
        loop {
            let flag = match rest.chars().next() {
                Some('-') => &mut format.left,
                Some('+') => &mut format.plus,
                Some(' ') => &mut format.space,
                Some('#') => &mut format.alternate,
                Some('0') => &mut format.zero,
                _ => break,
            };
            *flag = true;
            rest = &rest[1..];
        }
        let number = |rest: &mut &str| {
            let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
            let (number, after) = rest.split_at(digits);
            *rest = after;
            if number.is_empty() { Some(None) } else { number.parse().ok().map(Some) }
        };
        format.width = number(&mut rest)?;
        if let Some(after) = rest.strip_prefix('.') {
            rest = after;
            format.precision = Some(number(&mut rest)?.unwrap_or(0));
        }
        let mut letters = rest.chars();
        if let Some(letter) = letters.next() {
            format.conversion = Some(Conversion::from_letter(letter)?);
        }
        letters.next().is_none().then_some(format)
    }

    /// Whether values of the type can be written like this.
    pub fn fits(self, scalar: Scalar) -> bool {
        self.conversion.is_none_or(|conversion| conversion.is_real() == scalar.is_real())
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let flags =
            [(self.left, "-"), (self.plus, "+"), (self.space, " "), (self.alternate, "#"), (self.zero, "0")];
        for (_, flag) in flags.into_iter().filter(|(set, _)| *set) {
            f.write_str(flag)?;
        }
        if let Some(width) = self.width {
            write!(f, "{width}")?;
        }
        if let Some(precision) = self.precision {
            write!(f, ".{precision}")?;
        }
        match self.conversion {
            Some(conversion) => write!(f, "{}", conversion.letter()),
            None => Ok(()),
        }
    }
}

impl PrintSpec {
    /// How many operands it takes.
    pub fn values(&self) -> usize {
        self.pieces.iter().filter(|piece| matches!(piece, PrintPiece::Value(_))).count()
    }

    /// Appends text, to the piece before if that is text too.
    pub fn push_text(&mut self, text: &str) {
        match self.pieces.last_mut() {
            Some(PrintPiece::Text(before)) => before.push_str(text),
            _ if text.is_empty() => {}
            _ => self.pieces.push(PrintPiece::Text(text.to_owned())),
        }
    }

    pub fn push_value(&mut self, format: Format) {
        self.pieces.push(PrintPiece::Value(format));
    }

    /// Reads the string that [`Display`](fmt::Display) writes.
    pub fn from_text(text: &str) -> Option<Self> {
        let mut spec = Self::default();
        let mut rest = text;
        while let Some(at) = rest.find(['{', '}']) {
            spec.push_text(&rest[..at]);
            let (brace, after) = (&rest[at..=at], &rest[at + 1..]);
            if let Some(after) = after.strip_prefix(brace) {
                spec.push_text(brace);
                rest = after;
                continue;
            }
            let inside = after.split_once('}').filter(|_| brace == "{");
            let (inside, after) = inside?;
            match inside {
                "@" => spec.pieces.push(PrintPiece::Location),
                "" => spec.push_value(Format::default()),
                _ => spec.push_value(Format::from_text(inside.strip_prefix(':')?)?),
            }
            rest = after;
        }
        spec.push_text(rest);
        Some(spec)
    }
}

impl fmt::Display for PrintSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for piece in &self.pieces {
            match piece {
                PrintPiece::Text(text) => f.write_str(&text.replace('{', "{{").replace('}', "}}"))?,
                PrintPiece::Value(format) if *format == Format::default() => f.write_str("{}")?,
                PrintPiece::Value(format) => write!(f, "{{:{format}}}")?,
                PrintPiece::Location => f.write_str("{@}")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_string_reads_back() {
        for text in ["", "x = {:-08.3f}, {{}} {}\n", "{@}: {:+ #012x}{}", "{:.3}{:.0e}"] {
            let spec = PrintSpec::from_text(text).unwrap_or_else(|| panic!("{text:?} is not read"));
            assert_eq!(spec.to_string(), text);
        }
        for wrong in ["{", "}", "{:q}", "{x}", "{:.2ff}", "{:f", "a } b"] {
            assert_eq!(PrintSpec::from_text(wrong), None, "{wrong:?}");
        }
    }
}
