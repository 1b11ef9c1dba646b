//! `print`, and text that holds run-time values: f-strings, `str.format` and `%`.

use octants_diag::{Code, Span};
use octants_ir::ops::{Conversion, Format, PrintSpec};
use octants_ir::{Data, Scalar, Value};

use crate::ast::{Expr, Keyword, Name, TextPart};
use crate::host::Host;
use crate::lower::Lowerer;
use crate::lower::data::argument::{Argument, Passing};
use crate::lower::data::term::{Term, TextPiece};
use crate::lower::error::Fallible;

/// What is being put together for one `print`.
#[derive(Default)]
struct Output {
    spec: PrintSpec,
    values: Vec<Value>,
}

impl<H: Host> Lowerer<'_, H> {
    /// `print(*values, sep=" ", end="\n")`
    pub(crate) fn print_call(
        &mut self,
        arguments: &[Argument<H::Object>],
        span: Span,
    ) -> Fallible<Term<H::Object>> {
        let (mut separator, mut end) = (" ".to_owned(), "\n".to_owned());
        for argument in arguments {
            let Some(name) = argument.name.as_deref() else { continue };
            let text = match (name, &argument.term) {
                ("sep" | "end", Term::Str(text)) => text.to_string(),
                ("sep", Term::None) => " ".to_owned(),
                ("end", Term::None) => "\n".to_owned(),
                // What a kernel prints is written when it ends, whole.
                ("flush", Term::Bool(_) | Term::Int(_)) => continue,
                _ => {
                    return Err(self.error_with_help(
                        Code::IntrinsicArguments,
                        argument.span,
                        format!("`print` in a kernel cannot take `{name}`"),
                        "it takes values, and the strings `sep` and `end`",
                    ));
                }
            };
            if name == "sep" { separator = text } else { end = text }
        }
        let mut output = Output::default();
        for (index, argument) in arguments.iter().filter(|argument| argument.name.is_none()).enumerate() {
            if index > 0 {
                output.spec.push_text(&separator);
            }
            self.write(&mut output, argument.term.clone(), "", argument.span)?;
        }
        output.spec.push_text(&end);
        self.at(span).print(output.spec, &output.values);
        Ok(Term::None)
    }

    /// Appends a value as text.
    fn write(&mut self, output: &mut Output, term: Term<H::Object>, spec: &str, span: Span) -> Fallible<()> {
        let rvalue = self.rvalue(term, span)?;
        match rvalue {
            Term::Text(pieces) => {
                for piece in pieces {
                    match piece {
                        TextPiece::Literal(text) => output.spec.push_text(&text),
                        TextPiece::Value { term, spec, span } => {
                            if let Some(known) = self.known_text(&term, &spec, span)? {
                                output.spec.push_text(&known);
                            } else {
                                self.write(output, term, &spec, span)?;
                            }
                        }
                    }
                }
            }
            Term::Str(text) if spec.is_empty() => output.spec.push_text(&text),
            Term::None | Term::Nothing(_) => output.spec.push_text("None"),
            Term::Tuple(items) | Term::List(items) => {
                output.spec.push_text("[");
                for (index, item) in items.into_iter().enumerate() {
                    if index > 0 {
                        output.spec.push_text(", ");
                    }
                    self.write(output, item, spec, span)?;
                }
                output.spec.push_text("]");
            }
            Term::Struct(of) => {
                output.spec.push_text("{");
                for (index, (name, member)) in of.members.into_iter().enumerate() {
                    if index > 0 {
                        output.spec.push_text(", ");
                    }
                    output.spec.push_text(&format!("{name}: "));
                    self.write(output, member, spec, span)?;
                }
                output.spec.push_text("}");
            }
            Term::Shape(_) => {
                let items = self.items(&rvalue, span)?.unwrap_or_default();
                self.write(output, Term::Tuple(items), spec, span)?;
            }
            Term::Value(_) | Term::Index(_) | Term::Bool(_) | Term::Int(_) | Term::Float(_) => {
                let value = self.value(rvalue, span)?;
                let format = self.format_of(spec, value, span)?;
                output.spec.push_value(format);
                output.values.push(value);
            }
            other if other.is_static() => {
                let object = self.host_object(&other)?;
                let host = self.host;
                let text = host.format(&object, spec, self).map_err(|e| self.host_error(e, span))?;
                output.spec.push_text(&text);
            }
            other => {
                let what = self.describe(&other);
                return Err(self.error(Code::NotAValue, span, format!("{what} cannot be printed")));
            }
        }
        Ok(())
    }

    /// What is known while compiling, as Python formats it.
    fn formatted(&mut self, term: &Term<H::Object>, spec: &str, span: Span) -> Fallible<String> {
        // Python has one letter for all integers.
        let spec = match (term, spec.strip_suffix(['i', 'u'])) {
            (Term::Int(_), Some(width)) => &*format!("{width}d"),
            _ => spec,
        };
        let object = self.host_object(term)?;
        let host = self.host;
        host.format(&object, spec, self).map_err(|exception| self.host_error(exception, span))
    }

    /// What is known while compiling, as Python formats it. Vectors and matrices are written as those of a run.
    pub(crate) fn known_text(
        &mut self,
        term: &Term<H::Object>,
        spec: &str,
        span: Span,
    ) -> Fallible<Option<String>> {
        if !term.is_static() || self.tensor_operand(term, span)?.is_some() {
            return Ok(None);
        }
        self.formatted(term, spec, span).map(Some)
    }

    /// A format of Python's, in the words of C's.
    pub(crate) fn format_of(&mut self, spec: &str, value: Value, span: Span) -> Fallible<Format> {
        // `<8` and `>8` are Python's way to say on which side; C pads on the left by itself.
        let c_spec = match spec.strip_prefix('<') {
            Some(rest) => format!("-{rest}"),
            None => spec.strip_prefix('>').unwrap_or(spec).to_owned(),
        };
        let elem = match self.data(value) {
            Data::Scalar(elem) => elem,
            data => data.elem().unwrap_or(octants_ir::Scalar::I32),
        };
        match Format::from_text(&c_spec) {
            Some(format) if letter_fits(format, elem) => Ok(format),
            Some(_) => Err(self.error_with_help(
                Code::FormatSpec,
                span,
                format!("'{spec}' doesn't match '{}'.", elem.name()),
                if elem.is_real() {
                    "reals take the letters f, e, g, a"
                } else if elem.is_signed() {
                    "signed integers take the letters d, i, x, o"
                } else {
                    "unsigned integers take the letters u, x, o"
                },
            )),
            None => Err(self.error_with_help(
                Code::FormatSpec,
                span,
                format!("'{spec}' is not a format that a kernel can print"),
                "a format is flags, a width, a precision and a letter: `08.3f`, `<10d`",
            )),
        }
    }

    /// An f-string: text if all is known now, else text with holes.
    pub(crate) fn text_of(&mut self, parts: &[TextPart]) -> Fallible<Term<H::Object>> {
        let mut pieces = Vec::with_capacity(parts.len());
        for part in parts {
            pieces.push(match part {
                TextPart::Text(literal) => TextPiece::Literal(literal.clone()),
                TextPart::Field { value, is_repr, spec } => {
                    let mut term = self.operand(value)?;
                    if *is_repr && term.is_static() {
                        let object = self.host_object(&term)?;
                        term = Term::Str(self.host.repr(&object).into());
                    }
                    TextPiece::Value { term, spec: self.format_spec(spec, value.span)?, span: value.span }
                }
            });
        }
        self.joined(pieces)
    }

    /// The text of a format. Fields in it must be known now.
    fn format_spec(&mut self, parts: &[TextPart], span: Span) -> Fallible<Name> {
        match self.text_of(parts)? {
            Term::Str(text) => Ok(text),
            _ => Err(self.unknown_format(span)),
        }
    }

    fn unknown_format(&self, span: Span) -> Box<octants_diag::Diagnostic> {
        self.error_with_help(
            Code::FormatSpec,
            span,
            "the format of this value is known only when the kernel runs",
            "a width or precision inside of a format must be a compile-time value: `f\"{x:.{oc.static(n)}f}\"`",
        )
    }

    fn joined(&mut self, pieces: Vec<TextPiece<H::Object>>) -> Fallible<Term<H::Object>> {
        let is_known = |piece: &TextPiece<H::Object>| match piece {
            TextPiece::Literal(_) => true,
            TextPiece::Value { term, .. } => term.is_static(),
        };
        if !pieces.iter().all(is_known) {
            return Ok(Term::Text(pieces));
        }
        let mut text = String::new();
        for piece in pieces {
            match piece {
                TextPiece::Literal(literal) => text.push_str(&literal),
                TextPiece::Value { term, spec, span } => {
                    text.push_str(&self.formatted(&term, &spec, span)?);
                }
            }
        }
        Ok(Term::Str(text.into()))
    }

    /// `"…{}…".format(values)`
    pub(crate) fn format_call(
        &mut self,
        template: &str,
        args: &[Expr],
        keywords: &[Keyword],
        span: Span,
    ) -> Fallible<Term<H::Object>> {
        let arguments = self.arguments(args, keywords, Passing::ByValue)?;
        let mut used = vec![false; arguments.len()];
        let mut pieces = Vec::new();
        let (mut rest, mut next) = (template, 0);
        while let Some(at) = rest.find(['{', '}']) {
            pieces.push(TextPiece::Literal(rest[..at].into()));
            let (brace, after) = (&rest[at..=at], &rest[at + 1..]);
            if let Some(after) = after.strip_prefix(brace) {
                pieces.push(TextPiece::Literal(brace.into()));
                rest = after;
                continue;
            }
            let Some((inside, after)) = split_field(after).filter(|_| brace == "{") else {
                return Err(self.bad_format("a brace without its partner", span));
            };
            rest = after;
            let (field, spec) = inside.split_once(':').unwrap_or((inside, ""));
            let at = self.format_argument(field, &arguments, &mut next, span)?;
            used[at] = true;
            let mut text = String::new();
            let mut rest_of_spec = spec;
            while let Some((before, after)) = rest_of_spec.split_once('{') {
                let Some((field, after)) = after.split_once('}') else {
                    return Err(self.bad_format("a brace without its partner", span));
                };
                let of_spec = self.format_argument(field, &arguments, &mut next, span)?;
                used[of_spec] = true;
                let Some(known) = self.known_text(&arguments[of_spec].term, "", arguments[of_spec].span)?
                else {
                    return Err(self.unknown_format(arguments[of_spec].span));
                };
                text.push_str(before);
                text.push_str(&known);
                rest_of_spec = after;
            }
            text.push_str(rest_of_spec);
            let argument = &arguments[at];
            pieces.push(TextPiece::Value {
                term: argument.term.clone(),
                spec: text.into(),
                span: argument.span,
            });
        }
        pieces.push(TextPiece::Literal(rest.into()));
        if let Some(at) = used.iter().position(|used| !used) {
            return Err(self.bad_format("an argument that no field uses", arguments[at].span));
        }
        self.joined(pieces)
    }

    /// Which argument a field of `format` names: the next one, one by number, or one by keyword.
    fn format_argument(
        &self,
        field: &str,
        arguments: &[Argument<H::Object>],
        next: &mut usize,
        span: Span,
    ) -> Fallible<usize> {
        let number = field.parse::<usize>().ok();
        let position = if field.is_empty() {
            *next += 1;
            Some(*next - 1)
        } else {
            number.or_else(|| arguments.iter().position(|argument| argument.name.as_deref() == Some(field)))
        };
        let by_position = field.is_empty() || number.is_some();
        position
            .filter(|&at| arguments.get(at).is_some_and(|argument| argument.name.is_none() == by_position))
            .ok_or_else(|| self.bad_format(&format!("no argument for the field {{{field}}}"), span))
    }

    /// `"…%d…" % values`
    pub(crate) fn percent_format(
        &mut self,
        template: &str,
        values: Term<H::Object>,
        at: Span,
        span: Span,
    ) -> Fallible<Term<H::Object>> {
        let mut values = match values {
            Term::Tuple(items) => items,
            one => vec![one],
        }
        .into_iter();
        let mut pieces = Vec::new();
        let mut rest = template;
        while let Some((text, after)) = rest.split_once('%') {
            pieces.push(TextPiece::Literal(text.into()));
            if let Some(after) = after.strip_prefix('%') {
                pieces.push(TextPiece::Literal("%".into()));
                rest = after;
                continue;
            }
            let Some(end) = after.find(|c: char| c.is_ascii_alphabetic()) else {
                return Err(self.bad_format("a `%` without a letter", span));
            };
            let (flags, letter) = (&after[..end], &after[end..=end]);
            rest = &after[end + 1..];
            let side = flags.strip_prefix('-').map_or_else(|| flags.to_owned(), |width| format!("<{width}"));
            let Some(term) = values.next() else {
                return Err(self.bad_format(&format!("no value for `%{flags}{letter}`"), span));
            };
            // `%s` is whatever the value is, and `%d` any integer.
            let spec = match letter {
                "s" => side,
                "d" | "i" | "u" if self.is_unsigned(&term) => format!("{side}u"),
                "u" => format!("{side}d"),
                _ => format!("{side}{letter}"),
            };
            pieces.push(TextPiece::Value { term, spec: spec.into(), span: at });
        }
        pieces.push(TextPiece::Literal(rest.into()));
        if values.next().is_some() {
            return Err(self.bad_format("a value that no field uses", at));
        }
        self.joined(pieces)
    }

    fn is_unsigned(&self, term: &Term<H::Object>) -> bool {
        matches!(term, Term::Value(value) if !self.elem(*value).is_real() && !self.elem(*value).is_signed())
    }

    fn bad_format(&self, what: &str, span: Span) -> Box<octants_diag::Diagnostic> {
        self.error_with_help(
            Code::FormatFields,
            span,
            format!("the format has {what}"),
            "each field takes one value: `{}`, `{0}`, `{name}` of `format`, or `%d`, `%f` of `%`",
        )
    }
}

/// What stands before the brace that closes a field, and after it. A spec may have fields of its own.
fn split_field(text: &str) -> Option<(&str, &str)> {
    let mut depth = 0;
    for (at, letter) in text.char_indices() {
        match letter {
            '{' => depth += 1,
            '}' if depth == 0 => return Some((&text[..at], &text[at + 1..])),
            '}' => depth -= 1,
            _ => {}
        }
    }
    None
}

/// Whether values of a type can be written with a letter: `d` and `i` are for signed integers, `u` for unsigned ones.
fn letter_fits(format: Format, scalar: Scalar) -> bool {
    format.fits(scalar)
        && match format.conversion {
            Some(Conversion::Decimal | Conversion::Integer) => scalar.is_signed(),
            Some(Conversion::Unsigned) => !scalar.is_signed(),
            Some(Conversion::Character) => false,
            _ => true,
        }
}
