//! Reads one op: its results, mnemonic, attributes, operands and regions.

use half::f16;
use smallvec::SmallVec;

use super::lex::Token;
use super::parse::{Parsed, Parser};
use crate::constant::Const;
use crate::ids::{Loc, Op, Region, Value};
use crate::kernel::{OpData, ValueData, ValueDef};
use crate::ops::{
    ArithOp, AssertKind, AtomicOp, BitOp, BitUnary, CompareOp, ConvertOp, Domain, MathOp, MathUnary, OpKind,
    ParallelFor, PrintSpec, Reduction, Scope, ShuffleOp, TensorOp,
};
use crate::types::{Scalar, Type};

/// What stands behind an op's mnemonic.
#[derive(Default)]
struct Rest {
    operands: SmallVec<[Value; 4]>,
    regions: SmallVec<[Region; 2]>,
    loc: Option<Loc>,
}

impl Parser {
    pub(super) fn op(&mut self) -> Parsed<Op> {
        let mut results = Vec::new();
        if matches!(self.peek(), Token::Value(_)) {
            loop {
                let (line, column, name) = self.value_name()?;
                self.mark(":")?;
                results.push((line, column, name, self.ty()?));
                if !self.eat_mark(",") {
                    break;
                }
            }
            self.mark("=")?;
        }
        let stated = results.first().map(|(.., ty)| *ty);
        let Token::Word(mnemonic) = self.next() else { return self.unexpected("an op's name") };
        // Results are defined before regions are read, as they are printed.
        let loc = self.kernel.locs.ids().next().expect("a kernel has the location NOWHERE");
        let op = self.kernel.ops.push(OpData {
            kind: OpKind::Yield,
            operands: SmallVec::new(),
            results: SmallVec::new(),
            regions: SmallVec::new(),
            loc,
        });
        for (index, (line, column, name, ty)) in results.into_iter().enumerate() {
            let data = ValueData { ty, def: ValueDef::Result(op, index as u32) };
            let value = self.define(line, column, name, data)?;
            self.kernel.ops[op].results.push(value);
        }
        let mut rest = Rest::default();
        let kind = self.op_rest(&mnemonic, stated, &mut rest)?;
        let loc = match rest.loc {
            Some(loc) => loc,
            None => self.optional_loc()?,
        };
        let data = &mut self.kernel.ops[op];
        data.kind = kind;
        data.operands = rest.operands;
        data.regions = rest.regions;
        data.loc = loc;
        Ok(op)
    }

    fn op_rest(&mut self, mnemonic: &str, stated: Option<Type>, rest: &mut Rest) -> Parsed<OpKind> {
        let kind = match mnemonic {
            "const" => return self.constant(stated).map(OpKind::Const),
            "if" => return self.if_op(rest),
            "for" => return self.for_op(rest, OpKind::For),
            "for_lanes" => return self.for_op(rest, OpKind::ForLanes),
            "for_cells" => return self.for_cells(rest),
            "while" => return self.while_op(rest),
            "parallel_for" => return self.parallel_for(rest),
            "serial" => {
                rest.loc = Some(self.optional_loc()?);
                self.region(rest)?;
                return Ok(OpKind::Serial);
            }
            "fork" => {
                rest.loc = Some(self.optional_loc()?);
                self.region(rest)?;
                while self.eat_word("and") {
                    self.region(rest)?;
                }
                return Ok(OpKind::Fork);
            }
            "assert" => return self.assert_op(rest),
            "print" => return self.print_op(rest),
            "call" => OpKind::Call(self.called()?),
            "struct_get" => OpKind::StructGet(self.integer()?),
            "struct_set" => OpKind::StructSet(self.integer()?),
            "store_result" => OpKind::StoreResult(self.integer()?),
            "extent" => OpKind::Extent(self.integer()?),
            "barrier" => OpKind::Barrier(self.scope()?),
            "fence" => OpKind::Fence(self.scope()?),
            _ => match plain_op(mnemonic) {
                Some(kind) => kind,
                None => return self.error(format!("`{mnemonic}` is no op")),
            },
        };
        if matches!(self.peek(), Token::Value(_)) && !self.is_next_definition() {
            loop {
                self.place(&mut rest.operands)?;
                if !self.eat_mark(",") {
                    break;
                }
            }
        }
        Ok(kind)
    }

    /// `%a` or `%a[%b, …]`, as operands in a row.
    fn place(&mut self, operands: &mut SmallVec<[Value; 4]>) -> Parsed<()> {
        operands.push(self.value()?);
        if self.eat_mark("[") {
            operands.extend(self.list("]", Self::value)?);
        }
        Ok(())
    }

    fn scope(&mut self) -> Parsed<Scope> {
        let Token::Word(word) = self.next() else { return self.unexpected("a scope") };
        match Scope::from_name(&word) {
            Some(scope) => Ok(scope),
            None => self.error(format!("`{word}` is no scope")),
        }
    }

    fn region(&mut self, rest: &mut Rest) -> Parsed<Region> {
        let region = self.kernel.add_region();
        rest.regions.push(region);
        self.block(region)?;
        Ok(region)
    }

    fn constant(&mut self, stated: Option<Type>) -> Parsed<Const> {
        let mut scalar = stated.and_then(Type::scalar);
        if let Token::Word(word) = self.peek()
            && let Some(explicit) = Scalar::from_name(word)
        {
            self.next();
            scalar = Some(explicit);
        }
        let Some(ty) = scalar else { return self.error("a constant has one scalar result") };
        match self.next() {
            Token::Word(word) if ty == Scalar::U1 && word == "true" => Ok(Const::bool(true)),
            Token::Word(word) if ty == Scalar::U1 && word == "false" => Ok(Const::bool(false)),
            Token::Number(number) => match number_of(ty, &number) {
                Some(c) => Ok(c),
                None => self.error(format!("{number} is no constant of {}", ty.name())),
            },
            _ => self.unexpected(&format!("a constant of {}", ty.name())),
        }
    }

    fn assert_kind(&mut self) -> AssertKind {
        let kinds = AssertKind::ALL.iter().copied();
        let mut named = kinds.filter_map(|kind| Some((kind, kind.word()?)));
        named.find(|(_, word)| self.eat_word(word)).map_or_else(AssertKind::default, |(kind, _)| kind)
    }

    fn assert_op(&mut self, rest: &mut Rest) -> Parsed<OpKind> {
        let kind = self.assert_kind();
        if matches!(self.peek(), Token::Value(_)) {
            rest.operands.push(self.value()?);
            self.mark(",")?;
        }
        let message = self.text()?;
        while self.eat_mark(",") {
            rest.operands.push(self.value()?);
        }
        Ok(OpKind::Assert(kind, message.into()))
    }

    fn print_op(&mut self, rest: &mut Rest) -> Parsed<OpKind> {
        let text = self.text()?;
        let Some(spec) = PrintSpec::from_text(&text) else {
            return self.error("a print's string has `{}`, `{:format}` or `{@}` for what is put in");
        };
        while self.eat_mark(",") {
            rest.operands.push(self.value()?);
        }
        Ok(OpKind::Print(Box::new(spec)))
    }

    fn if_op(&mut self, rest: &mut Rest) -> Parsed<OpKind> {
        rest.operands.push(self.value()?);
        rest.loc = Some(self.optional_loc()?);
        self.region(rest)?;
        if self.eat_word("else") {
            self.region(rest)?;
        } else {
            let empty = self.kernel.add_region();
            let loc = self.kernel.locs.ids().next().expect("a kernel has the location NOWHERE");
            let end = self.kernel.make_op(OpKind::Yield, [], [], [], loc);
            self.kernel.regions[empty].ops.push(end);
            rest.regions.push(empty);
        }
        Ok(OpKind::If)
    }

    /// `%lo..%hi`
    fn range(&mut self, rest: &mut Rest) -> Parsed<()> {
        rest.operands.push(self.value()?);
        self.mark("..")?;
        rest.operands.push(self.value()?);
        Ok(())
    }

    /// `carry (%param: type = %initial, …)`, if it is there.
    fn carried(&mut self, region: Region, rest: &mut Rest) -> Parsed<()> {
        if self.eat_word("carry") {
            self.mark("(")?;
            self.list(")", |p| {
                p.typed_param(region)?;
                p.mark("=")?;
                rest.operands.push(p.value()?);
                Ok(())
            })?;
        }
        rest.loc = Some(self.optional_loc()?);
        Ok(())
    }

    fn for_op(&mut self, rest: &mut Rest, kind: OpKind) -> Parsed<OpKind> {
        let body = self.kernel.add_region();
        rest.regions.push(body);
        self.typed_param(body)?;
        self.word("in")?;
        self.range(rest)?;
        self.carried(body, rest)?;
        self.block(body)?;
        Ok(kind)
    }

    /// `for_cells (%i: i32, …) over layout0 until %left { … }`, where nothing may end it without `until`.
    fn for_cells(&mut self, rest: &mut Rest) -> Parsed<OpKind> {
        let body = self.kernel.add_region();
        rest.regions.push(body);
        self.mark("(")?;
        self.list(")", |p| p.typed_param(body))?;
        self.word("over")?;
        let layout = self.layout_name()?;
        if self.eat_word("until") {
            rest.operands.push(self.value()?);
        }
        rest.loc = Some(self.optional_loc()?);
        self.block(body)?;
        Ok(OpKind::ForCells(layout))
    }

    fn while_op(&mut self, rest: &mut Rest) -> Parsed<OpKind> {
        let cond = self.kernel.add_region();
        rest.regions.push(cond);
        self.carried(cond, rest)?;
        self.block(cond)?;
        self.word("do")?;
        let body = self.kernel.add_region();
        rest.regions.push(body);
        if self.eat_mark("(") {
            self.list(")", |p| p.typed_param(body))?;
        }
        self.block(body)?;
        Ok(OpKind::While)
    }

    fn parallel_for(&mut self, rest: &mut Rest) -> Parsed<OpKind> {
        let body = self.kernel.add_region();
        rest.regions.push(body);
        self.mark("(")?;
        let axes = self.list(")", |p| p.typed_param(body))?.len();
        let domain = if self.eat_word("over") {
            Domain::Cells(self.layout_name()?)
        } else {
            self.word("in")?;
            self.mark("(")?;
            let ranges = self.list(")", |p| p.range(rest))?.len();
            if axes != ranges {
                return self.error(format!("{axes} indices, but {ranges} ranges"));
            }
            Domain::Ranges
        };
        let Ok(axes) = u8::try_from(axes) else { return self.error("at most 255 axes") };
        let mut attributes = ParallelFor { domain, axes, ..ParallelFor::default() };
        if self.eat_word("reduce") {
            self.mark("(")?;
            attributes.reductions = self.list(")", |p| p.reduction(body, rest))?;
        }
        if self.eat_word("block_dim") {
            attributes.block_dim = Some(self.integer()?);
        }
        if self.eat_word("max_threads") {
            attributes.max_threads = Some(self.integer()?);
        }
        attributes.in_order = self.eat_word("in_order");
        attributes.brief = self.eat_word("brief");
        if self.eat_word("stage") {
            self.mark("(")?;
            attributes.staged = self.list(")", Self::staged_param)?;
        }
        if self.eat_word("name") {
            attributes.name = Some(self.text()?);
        }
        rest.loc = Some(self.optional_loc()?);
        self.block(body)?;
        Ok(OpKind::ParallelFor(Box::new(attributes)))
    }

    /// A parameter of the kernel, as its number.
    fn staged_param(&mut self) -> Parsed<u32> {
        let value = self.value()?;
        match self.kernel.as_param(value) {
            Some(number) => Ok(number as u32),
            None => self.error("only parameters of the kernel are staged"),
        }
    }

    /// `%accumulator: type = atomic_add %place[%i]`
    fn reduction(&mut self, body: Region, rest: &mut Rest) -> Parsed<Reduction> {
        self.typed_param(body)?;
        self.mark("=")?;
        let Token::Word(word) = self.next() else { return self.unexpected("an atomic op's name") };
        let Some(op) = AtomicOp::from_name(&word) else {
            return self.error(format!("`{word}` is no atomic op"));
        };
        let before = rest.operands.len();
        self.place(&mut rest.operands)?;
        match u8::try_from(rest.operands.len() - before) {
            Ok(operands) => Ok(Reduction { op, operands }),
            Err(_) => self.error("at most 255 operands address a place"),
        }
    }
}

/// An op that has nothing but operands behind its mnemonic.
fn plain_op(mnemonic: &str) -> Option<OpKind> {
    OpKind::without_attributes(mnemonic)
        .filter(|kind| !kind.has_regions())
        .or_else(|| ArithOp::from_name(mnemonic).map(OpKind::Arith))
        .or_else(|| BitOp::from_name(mnemonic).map(OpKind::Bit))
        .or_else(|| BitUnary::from_name(mnemonic).map(OpKind::BitUnary))
        .or_else(|| CompareOp::from_name(mnemonic).map(OpKind::Compare))
        .or_else(|| MathOp::from_name(mnemonic).map(OpKind::Math))
        .or_else(|| MathUnary::from_name(mnemonic).map(OpKind::MathUnary))
        .or_else(|| ConvertOp::from_name(mnemonic).map(OpKind::Convert))
        .or_else(|| TensorOp::from_name(mnemonic).map(OpKind::Tensor))
        .or_else(|| AtomicOp::from_name(mnemonic).map(OpKind::Atomic))
        .or_else(|| ShuffleOp::from_name(mnemonic).map(OpKind::Shuffle))
}

/// A number of the type: decimal, or the bits of a real in hex. `None` where the type cannot hold it exactly as written.
pub fn number_of(ty: Scalar, number: &str) -> Option<Const> {
    if ty.is_real() {
        if let Some(hex) = number.strip_prefix("0x") {
            let bits = u64::from_str_radix(hex, 16).ok()?;
            return Some(Const::from_bits(ty, bits)).filter(|c| c.bits() == bits);
        }
        return Some(match ty {
            Scalar::F16 => Const::from_bits(ty, f16::from_f32(number.parse().ok()?).to_bits().into()),
            Scalar::F32 => Const::f32(number.parse().ok()?),
            _ => Const::f64(number.parse().ok()?),
        });
    }
    let value: i128 = match number.strip_prefix("0x") {
        Some(hex) => i128::from_str_radix(hex, 16).ok()?,
        None => number.parse().ok()?,
    };
    Some(Const::from_i128(ty, value)).filter(|c| c.as_i128() == Some(value))
}
