//! Reads a kernel's text: structs, locations, the kernel's head, types, regions. Ops are in `parse_op`.
//!
//! It checks only what it needs to build the arenas: types and scopes are the verifier's. A value may be named before it is
//! defined, or outside its region, so that the verifier's laws can be tested in text.

use std::collections::HashMap;
use std::fmt;

use octants_diag::{FileId, Span};

use super::lex::{Placed, Token, lex};
use crate::ids::{Func, Id, LayoutId, Loc, Region, StructId, Value};
use crate::kernel::{Kernel, LocData, Param, Phase, ValueData, ValueDef};
use crate::layout::{Digit, Layout, Level, NodeKind};
use crate::ops::OpKind;
use crate::order::{Order, Spacing};
use crate::types::{ArrayType, Boundary, Data, Scalar, StructType, TensorShape, TensorType, Type};

/// What is wrong with a text, and where; line and column count from 1.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ParseError {
    pub line: u32,
    pub column: u32,
    pub message: String,
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.line, self.column, self.message)
    }
}

impl std::error::Error for ParseError {}

/// The kernel that the text says.
pub fn parse(text: &str) -> Result<Kernel, ParseError> {
    let tokens = lex(text)?;
    let mut parser = Parser {
        tokens,
        at: 0,
        last: 0,
        kernel: Kernel::new(""),
        names: HashMap::new(),
        locs: Vec::new(),
        called: Vec::new(),
    };
    parser.file()?;
    Ok(parser.kernel)
}

pub(super) type Parsed<T> = Result<T, ParseError>;

/// A value's name in the text.
struct Named {
    value: Value,
    /// Where it is first seen.
    line: u32,
    column: u32,
    defined: bool,
}

pub(super) struct Parser {
    tokens: Vec<Placed>,
    at: usize,
    /// The token read last.
    last: usize,
    pub(super) kernel: Kernel,
    names: HashMap<String, Named>,
    /// By number in the text.
    locs: Vec<Loc>,
    /// Functions that are called, and where.
    called: Vec<(Func, u32, u32)>,
}

impl Parser {
    fn file(&mut self) -> Parsed<()> {
        loop {
            match self.peek().clone() {
                Token::Word(word) if word.starts_with("struct") => self.struct_line(&word)?,
                Token::Word(word) if word.starts_with("layout") => self.layout_line(&word)?,
                Token::Word(word) if word.starts_with("loc") => self.loc_line(&word)?,
                Token::Word(word) if word.starts_with("func") => self.function(&word)?,
                _ => break,
            }
        }
        self.word("kernel")?;
        let Token::Symbol(name) = self.next() else { return self.unexpected("the kernel's name, `@name`") };
        self.kernel.name = name;
        let body = self.kernel.body;
        (self.kernel.params, self.kernel.results) = self.head(body)?;
        if self.eat_word("fast_math") {
            self.kernel.options.fast_math = true;
        }
        if self.eat_word("exact_choices") {
            self.kernel.options.exact_choices = true;
        }
        if self.eat_word("debug") {
            self.kernel.options.debug = true;
        }
        if self.eat_word("tasks") {
            self.kernel.phase = Phase::Tasks;
        }
        self.block(body)?;
        let functions = self.kernel.functions.len();
        if let Some(&(function, line, column)) =
            self.called.iter().find(|(function, ..)| function.index() >= functions)
        {
            return Err(ParseError { line, column, message: format!("{function} is never defined") });
        }
        if *self.peek() != Token::End {
            self.next();
            return self.unexpected("the end of the text after the kernel");
        }
        let undefined = self.names.iter().filter(|(_, n)| !n.defined).min_by_key(|(_, n)| (n.line, n.column));
        match undefined {
            Some((name, n)) => Err(ParseError {
                line: n.line,
                column: n.column,
                message: format!("%{name} is never defined"),
            }),
            None => Ok(()),
        }
    }

    /// `func0 = function @name(%a "a": i32) -> (i32) { … }`
    fn function(&mut self, word: &str) -> Parsed<()> {
        self.next();
        let expected = format!("func{}", self.kernel.functions.len());
        if word != expected {
            return self.error(format!("functions are numbered from 0: {expected} is expected here"));
        }
        self.mark("=")?;
        self.word("function")?;
        let Token::Symbol(name) = self.next() else { return self.unexpected("the function's name, `@name`") };
        let function = self.kernel.add_function(name, []);
        let body = self.kernel.functions[function].body;
        let (params, results) = self.head(body)?;
        self.kernel.functions[function].params = params;
        self.kernel.functions[function].results = results;
        self.kernel.functions[function].is_cold = self.eat_word("cold");
        self.kernel.functions[function].is_stable = self.eat_word("stable");
        self.kernel.functions[function].is_whole = self.eat_word("whole");
        self.block(body)
    }

    /// `func0`, which may be defined later.
    pub(super) fn called(&mut self) -> Parsed<Func> {
        let Placed { line, column, .. } = self.tokens[self.at];
        let Token::Word(word) = self.next() else { return self.unexpected("a function, `func0`") };
        let Some(number) = word.strip_prefix("func").and_then(|n| n.parse::<u32>().ok()) else {
            return self.unexpected("a function, `func0`");
        };
        let function = Func::from_index(number as usize);
        self.called.push((function, line, column));
        Ok(function)
    }

    /// Parameters and results of the kernel or a function.
    fn head(&mut self, body: Region) -> Parsed<(Vec<Param>, Vec<Data>)> {
        self.mark("(")?;
        let params = self.list(")", |p| p.named_param(body))?;
        let mut results = Vec::new();
        if self.eat_mark("->") {
            self.mark("(")?;
            results = self.list(")", Self::data)?;
        }
        Ok((params, results))
    }

    fn struct_line(&mut self, word: &str) -> Parsed<()> {
        self.next();
        let expected = format!("struct{}", self.kernel.structs.len());
        if word != expected {
            return self.error(format!("structs are numbered from 0: {expected} is expected here"));
        }
        self.mark("=")?;
        self.word("struct")?;
        let name = self.text()?;
        self.mark("{")?;
        let members = self.list("}", |p| {
            let name = p.text()?;
            p.mark(":")?;
            Ok((name, p.data()?))
        })?;
        self.kernel.structs.push(StructType { name, members });
        Ok(())
    }

    /// `layout0 = layout [6, 8] from [-1, 0] { dense (axis 0 below 2 extent 3 stride 64, …), … }`
    fn layout_line(&mut self, word: &str) -> Parsed<()> {
        self.next();
        let expected = format!("layout{}", self.kernel.layouts.len());
        if word != expected {
            return self.error(format!("layouts are numbered from 0: {expected} is expected here"));
        }
        self.mark("=")?;
        self.word("layout")?;
        self.mark("[")?;
        let shape = self.list("]", Self::integer)?;
        let origin = if self.eat_word("from") {
            self.mark("[")?;
            self.list("]", Self::integer)?
        } else {
            vec![0; shape.len()]
        };
        self.mark("{")?;
        let levels = self.list("}", Self::level)?;
        self.kernel.layouts.push(Layout { shape, origin, levels });
        Ok(())
    }

    fn level(&mut self) -> Parsed<Level> {
        let Token::Word(word) = self.next() else { return self.unexpected("a node's kind") };
        let Some(&kind) = NodeKind::ALL.iter().find(|kind| kind.name() == word) else {
            return self.error(format!("`{word}` is no kind of node"));
        };
        self.mark("(")?;
        let digits = self.list(")", |p| {
            p.word("axis")?;
            let axis = p.integer()?;
            p.word("below")?;
            let below = p.integer()?;
            p.word("extent")?;
            let extent = p.integer()?;
            p.word("stride")?;
            Ok(Digit { axis, below, extent, stride: p.integer()? })
        })?;
        Ok(Level { kind, digits })
    }

    fn loc_line(&mut self, word: &str) -> Parsed<()> {
        self.next();
        let expected = format!("loc{}", self.locs.len());
        if word != expected {
            return self.error(format!("locations are numbered from 0: {expected} is expected here"));
        }
        self.mark("=")?;
        let span = if self.eat_word("nowhere") {
            None
        } else {
            let file = FileId(self.integer()?);
            self.mark(":")?;
            let start = self.integer()?;
            self.mark("..")?;
            let end = self.integer()?;
            if end < start {
                return self.error("a span ends before it starts");
            }
            Some(Span { file, start, end })
        };
        let function = if self.eat_word("in") { Some(self.text()?.into()) } else { None };
        let caller = if self.eat_word("from") { Some(self.loc()?) } else { None };
        let loc = self.kernel.locs.push(LocData { span, function, caller });
        self.locs.push(loc);
        Ok(())
    }

    fn loc(&mut self) -> Parsed<Loc> {
        let Token::Word(word) = self.next() else { return self.unexpected("a location, `loc0`") };
        let known =
            word.strip_prefix("loc").and_then(|n| n.parse::<usize>().ok()).and_then(|n| self.locs.get(n));
        match known {
            Some(&loc) => Ok(loc),
            None => self.error(format!("{word} is no location of the table above")),
        }
    }

    /// The location at the end of an op's line; nowhere where none is named.
    pub(super) fn optional_loc(&mut self) -> Parsed<Loc> {
        match self.peek() {
            Token::Word(word) if word.starts_with("loc") && word[3..].parse::<usize>().is_ok() => self.loc(),
            _ => Ok(Loc::from_index(0)),
        }
    }

    /// `%a "a": type`
    fn named_param(&mut self, body: Region) -> Parsed<Param> {
        let (line, column, name) = self.value_name()?;
        let label = self.text()?;
        self.mark(":")?;
        let ty = self.ty()?;
        self.region_param(body, line, column, name, ty)?;
        Ok(Param { name: label })
    }

    /// `%name: type`, a parameter of the region.
    pub(super) fn typed_param(&mut self, region: Region) -> Parsed<()> {
        let (line, column, name) = self.value_name()?;
        self.mark(":")?;
        let ty = self.ty()?;
        self.region_param(region, line, column, name, ty)
    }

    fn region_param(&mut self, region: Region, line: u32, column: u32, name: String, ty: Type) -> Parsed<()> {
        let index = self.kernel.regions[region].params.len() as u32;
        let value = self.define(line, column, name, ValueData { ty, def: ValueDef::Param(region, index) })?;
        self.kernel.regions[region].params.push(value);
        Ok(())
    }

    pub(super) fn value_name(&mut self) -> Parsed<(u32, u32, String)> {
        let placed = &self.tokens[self.at];
        let (line, column) = (placed.line, placed.column);
        match self.next() {
            Token::Value(name) => Ok((line, column, name)),
            _ => self.unexpected("a value, `%name`"),
        }
    }

    /// A value that is used.
    pub(super) fn value(&mut self) -> Parsed<Value> {
        let (line, column, name) = self.value_name()?;
        if let Some(named) = self.names.get(&name) {
            return Ok(named.value);
        }
        let unknown = ValueData { ty: Type::U1, def: ValueDef::Param(self.kernel.body, u32::MAX) };
        let value = self.kernel.values.push(unknown);
        self.names.insert(name, Named { value, line, column, defined: false });
        Ok(value)
    }

    /// A value that is defined here: new, or used before.
    pub(super) fn define(&mut self, line: u32, column: u32, name: String, data: ValueData) -> Parsed<Value> {
        match self.names.get_mut(&name) {
            Some(named) if named.defined => {
                let message = format!("%{name} is defined before, at {}:{}", named.line, named.column);
                Err(ParseError { line, column, message })
            }
            Some(named) => {
                *named = Named { value: named.value, line, column, defined: true };
                self.kernel.values[named.value] = data;
                Ok(named.value)
            }
            None => {
                let value = self.kernel.values.push(data);
                self.names.insert(name, Named { value, line, column, defined: true });
                Ok(value)
            }
        }
    }

    /// `{ ops }` into a region; a `yield` of nothing is added where no terminator stands and it is no body of a kernel or function.
    pub(super) fn block(&mut self, region: Region) -> Parsed<()> {
        self.mark("{")?;
        while !self.eat_mark("}") {
            if *self.peek() == Token::End {
                self.next();
                return self.unexpected("an op or `}`");
            }
            let op = self.op()?;
            self.kernel.regions[region].ops.push(op);
        }
        if !self.kernel.is_body(region) && self.kernel.terminator(region).is_none() {
            let op = self.kernel.make_op(OpKind::Yield, [], [], [], Loc::from_index(0));
            self.kernel.regions[region].ops.push(op);
        }
        Ok(())
    }

    pub(super) fn ty(&mut self) -> Parsed<Type> {
        let place: fn(Data) -> Type = match self.peek() {
            Token::Word(word) if word == "array" => return self.array(),
            Token::Word(word) if word == "field" => return self.field(),
            Token::Word(word) if word == "local" => Type::Local,
            Token::Word(word) if word == "temp" => Type::Temp,
            Token::Word(word) if word == "tape" => return self.tape(),
            _ => return Ok(Type::Data(self.data()?)),
        };
        self.next();
        self.mark("<")?;
        let data = self.data()?;
        self.mark(">")?;
        Ok(place(data))
    }

    fn tape(&mut self) -> Parsed<Type> {
        self.next();
        self.mark("<")?;
        let Data::Scalar(scalar) = self.data()? else { return self.error("a tape holds scalars") };
        self.mark(">")?;
        Ok(Type::Tape(scalar))
    }

    fn array(&mut self) -> Parsed<Type> {
        self.next();
        self.mark("<")?;
        let elem = self.data()?;
        self.mark(",")?;
        let rank = self.integer()?;
        let mut array = ArrayType::array(elem, rank, Boundary::Unsafe);
        while self.eat_mark(",") {
            match self.next() {
                Token::Word(word) if word == "clamp" => array.boundary = Boundary::Clamp,
                Token::Word(word) if word == "order" => array.order = self.order()?,
                Token::Word(word) => match Spacing::from_name(&word) {
                    Some(spacing) => array.spacing = spacing,
                    None => return self.unexpected("`clamp`, `order`, `rows` or `strided`"),
                },
                _ => return self.unexpected("`clamp`, `order`, `rows` or `strided`"),
            }
        }
        self.mark(">")?;
        Ok(Type::Array(array))
    }

    /// The axes of an array that are permuted, from the slowest to the fastest: `1 0`
    fn order(&mut self) -> Parsed<Order> {
        let mut axes = Vec::new();
        while let Token::Number(_) = self.peek() {
            axes.push(self.integer()?);
        }
        match Order::new(&axes) {
            Some(order) => Ok(order),
            None => self.error("a permutation of at most 16 axes"),
        }
    }

    fn field(&mut self) -> Parsed<Type> {
        self.next();
        self.mark("<")?;
        let elem = self.data()?;
        self.mark(",")?;
        let layout = self.layout_name()?;
        self.mark(">")?;
        let Ok(rank) = u8::try_from(self.kernel.layouts[layout].rank()) else {
            return self.error("at most 255 axes");
        };
        Ok(Type::Array(ArrayType { layout: Some(layout), ..ArrayType::array(elem, rank, Boundary::Unsafe) }))
    }

    /// `layout0`
    pub(super) fn layout_name(&mut self) -> Parsed<LayoutId> {
        let Token::Word(word) = self.next() else { return self.unexpected("a layout, `layout0`") };
        let number = word.strip_prefix("layout").and_then(|n| n.parse::<usize>().ok());
        match number.filter(|&number| number < self.kernel.layouts.len()) {
            Some(number) => Ok(LayoutId::from_index(number)),
            None => self.error(format!("{word} is not declared above")),
        }
    }

    pub(super) fn data(&mut self) -> Parsed<Data> {
        let Token::Word(word) = self.next() else { return self.unexpected("a type") };
        if let Some(scalar) = Scalar::from_name(&word) {
            return Ok(Data::Scalar(scalar));
        }
        if word == "tensor" {
            self.mark("<")?;
            let Data::Scalar(elem) = self.data()? else {
                return self.error("a tensor's entries are scalars");
            };
            self.mark(",")?;
            let n = self.integer()?;
            let shape = if self.eat_mark(",") {
                TensorShape::Matrix(n, self.integer()?)
            } else {
                TensorShape::Vector(n)
            };
            self.mark(">")?;
            return Ok(Data::Tensor(TensorType { elem, shape }));
        }
        if let Some(number) = word.strip_prefix("struct").and_then(|n| n.parse::<usize>().ok()) {
            if number >= self.kernel.structs.len() {
                return self.error(format!("{word} is not declared above"));
            }
            return Ok(Data::Struct(StructId::from_index(number)));
        }
        self.error(format!("`{word}` is no type"))
    }

    /// Whether `%name:` comes next, which begins another op rather than being an operand.
    pub(super) fn is_next_definition(&self) -> bool {
        matches!(self.tokens.get(self.at + 1), Some(Placed { token: Token::Mark(":"), .. }))
    }

    pub(super) fn peek(&self) -> &Token {
        &self.tokens[self.at].token
    }

    pub(super) fn next(&mut self) -> Token {
        let token = self.peek().clone();
        self.last = self.at;
        if self.at + 1 < self.tokens.len() {
            self.at += 1;
        }
        token
    }

    /// An error at the token read last.
    pub(super) fn error<T>(&self, message: impl Into<String>) -> Parsed<T> {
        let placed = &self.tokens[self.last];
        Err(ParseError { line: placed.line, column: placed.column, message: message.into() })
    }

    /// The token read last is not what was expected.
    pub(super) fn unexpected<T>(&self, expected: &str) -> Parsed<T> {
        let found = &self.tokens[self.last];
        self.error(format!("expected {expected}, found {}", found.token.describe()))
    }

    pub(super) fn mark(&mut self, mark: &'static str) -> Parsed<()> {
        match self.next() {
            Token::Mark(found) if found == mark => Ok(()),
            _ => self.unexpected(&format!("`{mark}`")),
        }
    }

    pub(super) fn eat_mark(&mut self, mark: &str) -> bool {
        let found = matches!(self.peek(), Token::Mark(m) if *m == mark);
        if found {
            self.next();
        }
        found
    }

    pub(super) fn word(&mut self, word: &str) -> Parsed<()> {
        match self.next() {
            Token::Word(found) if found == word => Ok(()),
            _ => self.unexpected(&format!("`{word}`")),
        }
    }

    pub(super) fn eat_word(&mut self, word: &str) -> bool {
        let found = matches!(self.peek(), Token::Word(w) if w == word);
        if found {
            self.next();
        }
        found
    }

    pub(super) fn text(&mut self) -> Parsed<String> {
        match self.next() {
            Token::Text(text) => Ok(text),
            _ => self.unexpected("a string"),
        }
    }

    pub(super) fn integer<T: std::str::FromStr>(&mut self) -> Parsed<T> {
        let Token::Number(number) = self.next() else { return self.unexpected("a number") };
        match number.parse() {
            Ok(n) => Ok(n),
            Err(_) => self.error(format!("{number} is not in the range of this number")),
        }
    }

    /// Items with commas between, up to and with the closing mark.
    pub(super) fn list<T>(
        &mut self,
        close: &'static str,
        mut item: impl FnMut(&mut Self) -> Parsed<T>,
    ) -> Parsed<Vec<T>> {
        let mut items = Vec::new();
        if self.eat_mark(close) {
            return Ok(items);
        }
        loop {
            items.push(item(self)?);
            if !self.eat_mark(",") {
                self.mark(close)?;
                return Ok(items);
            }
        }
    }
}
