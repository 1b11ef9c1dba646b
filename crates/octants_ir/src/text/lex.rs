//! Cuts text into tokens, each with its line and column.

use super::ParseError;

#[derive(Clone, PartialEq, Debug)]
pub enum Token {
    /// A keyword, a mnemonic, a type's name.
    Word(String),
    /// `%name`
    Value(String),
    /// `@name` or `@"name"`
    Symbol(String),
    Text(String),
    /// Digits with sign, point and exponent, or `0x` and hex digits; what it means is the type's to say.
    Number(String),
    /// `( ) { } [ ] < > , : =`, and `->` and `..`.
    Mark(&'static str),
    End,
}

impl Token {
    /// How a message names it.
    pub fn describe(&self) -> String {
        match self {
            Self::Word(w) => format!("`{w}`"),
            Self::Value(v) => format!("`%{v}`"),
            Self::Symbol(s) => format!("`@{s}`"),
            Self::Text(t) => format!("the string {t:?}"),
            Self::Number(n) => format!("`{n}`"),
            Self::Mark(m) => format!("`{m}`"),
            Self::End => "the end of the text".to_string(),
        }
    }
}

/// A token and where it begins; line and column count from 1, the column in characters.
#[derive(Clone, PartialEq, Debug)]
pub struct Placed {
    pub token: Token,
    pub line: u32,
    pub column: u32,
}

pub fn lex(text: &str) -> Result<Vec<Placed>, ParseError> {
    let mut lexer = Lexer { rest: text.chars().collect(), at: 0, line: 1, column: 1 };
    let mut tokens = Vec::new();
    loop {
        lexer.skip_blank();
        let (line, column) = (lexer.line, lexer.column);
        let token = lexer.token()?;
        let done = token == Token::End;
        tokens.push(Placed { token, line, column });
        if done {
            return Ok(tokens);
        }
    }
}

const MARKS: [&str; 13] = ["->", "..", "(", ")", "{", "}", "[", "]", "<", ">", ",", ":", "="];

struct Lexer {
    rest: Vec<char>,
    at: usize,
    line: u32,
    column: u32,
}

impl Lexer {
    fn peek(&self, ahead: usize) -> Option<char> {
        self.rest.get(self.at + ahead).copied()
    }

    fn next(&mut self) -> Option<char> {
        let c = self.peek(0)?;
        self.at += 1;
        if c == '\n' {
            self.line += 1;
            self.column = 1;
        } else {
            self.column += 1;
        }
        Some(c)
    }

    fn error<T>(&self, message: impl Into<String>) -> Result<T, ParseError> {
        Err(ParseError { line: self.line, column: self.column, message: message.into() })
    }

    fn skip_blank(&mut self) {
        while let Some(c) = self.peek(0) {
            if c == ';' {
                while self.peek(0).is_some_and(|c| c != '\n') {
                    self.next();
                }
            } else if c.is_whitespace() {
                self.next();
            } else {
                break;
            }
        }
    }

    fn take_while(&mut self, keep: impl Fn(char) -> bool) -> String {
        let mut taken = String::new();
        while let Some(c) = self.peek(0).filter(|&c| keep(c)) {
            taken.push(c);
            self.next();
        }
        taken
    }

    fn token(&mut self) -> Result<Token, ParseError> {
        let is_word = |c: char| c == '_' || c.is_ascii_alphanumeric();
        let Some(c) = self.peek(0) else { return Ok(Token::End) };
        if c == '%' {
            self.next();
            let name = self.take_while(is_word);
            if name.is_empty() {
                return self.error("a value's name is expected after `%`");
            }
            return Ok(Token::Value(name));
        }
        if c == '@' {
            self.next();
            if self.peek(0) == Some('"') {
                return Ok(Token::Symbol(self.string()?));
            }
            let name = self.take_while(|c| is_word(c) || c == '.');
            if name.is_empty() {
                return self.error("a name is expected after `@`");
            }
            return Ok(Token::Symbol(name));
        }
        if c == '"' {
            return Ok(Token::Text(self.string()?));
        }
        if c.is_ascii_digit() || (c == '-' && self.peek(1).is_some_and(|c| c.is_ascii_digit())) {
            return Ok(Token::Number(self.number()));
        }
        if c == '_' || c.is_ascii_alphabetic() {
            return Ok(Token::Word(self.take_while(is_word)));
        }
        for mark in MARKS {
            if mark.chars().enumerate().all(|(i, m)| self.peek(i) == Some(m)) {
                for _ in mark.chars() {
                    self.next();
                }
                return Ok(Token::Mark(mark));
            }
        }
        self.error(format!("the character {c:?} means nothing here"))
    }

    fn number(&mut self) -> String {
        let mut text = String::new();
        if self.peek(0) == Some('-') {
            text.extend(self.next());
        }
        if self.peek(0) == Some('0') && self.peek(1) == Some('x') {
            text.extend([self.next(), self.next()].into_iter().flatten());
            text += &self.take_while(|c| c.is_ascii_hexdigit());
            return text;
        }
        text += &self.take_while(|c| c.is_ascii_digit());
        // `1..2` is a range, not a real.
        if self.peek(0) == Some('.') && self.peek(1).is_some_and(|c| c.is_ascii_digit()) {
            text.extend(self.next());
            text += &self.take_while(|c| c.is_ascii_digit());
        }
        if matches!(self.peek(0), Some('e' | 'E')) {
            let signed = matches!(self.peek(1), Some('+' | '-'));
            if self.peek(1 + usize::from(signed)).is_some_and(|c| c.is_ascii_digit()) {
                text.extend(self.next());
                if signed {
                    text.extend(self.next());
                }
                text += &self.take_while(|c| c.is_ascii_digit());
            }
        }
        text
    }

    fn string(&mut self) -> Result<String, ParseError> {
        self.next();
        let mut text = String::new();
        loop {
            match self.next() {
                Some('"') => return Ok(text),
                Some('\\') => text.push(self.escape()?),
                Some('\n') | None => return self.error("the string does not end on its line"),
                Some(c) => text.push(c),
            }
        }
    }

    fn escape(&mut self) -> Result<char, ParseError> {
        match self.next() {
            Some('n') => Ok('\n'),
            Some('t') => Ok('\t'),
            Some(c @ ('"' | '\\')) => Ok(c),
            Some('u') if self.peek(0) == Some('{') => {
                self.next();
                let hex = self.take_while(|c| c.is_ascii_hexdigit());
                let char = u32::from_str_radix(&hex, 16).ok().and_then(char::from_u32);
                match (char, self.next()) {
                    (Some(c), Some('}')) => Ok(c),
                    _ => self.error("an escape is `\\u{hex}` with the number of a character"),
                }
            }
            _ => self.error("escapes are \\n, \\t, \\\", \\\\ and \\u{hex}"),
        }
    }
}
