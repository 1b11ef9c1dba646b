//! The body of a loop for all elements of a word at once.
//!
//! Ops are visited in order, and each value gets a class. What has no class is no mistake, unless something that is seen from outside needs it.

use octants_ir::ops::{ArithOp, BitOp, BitUnary, CompareOp, ConvertOp};
use octants_ir::{
    Boundary, Builder, Const, Kernel, Loc, Op, OpData, OpKind, Region, Scalar, SideTable, Type, Value,
};

use super::planes::{Number, Plane};
use crate::analysis::Affine;
use crate::analysis::{Replacement, uncast};
use crate::edit::slots::yielded;
use crate::partition_by_words::end_of_word;

/// How the elements of a word lie, and which loop runs over them.
#[derive(Clone, Copy)]
pub(super) struct Words {
    /// The loop's index along the axis of which elements share a word, and its bounds.
    pub(super) lane: Value,
    pub(super) lo: Value,
    pub(super) hi: Value,
    /// The logarithm of how many elements a word has.
    pub(super) log: u32,
    /// What words are calculated with in.
    pub(super) register: Scalar,
}

impl Words {
    fn lanes(self) -> i32 {
        1 << self.log
    }
}

/// What a value of the body is in the iteration for a word. `i32`s are what is added to the loop's index.
#[derive(Clone, Debug)]
enum Class {
    /// The same in all lanes.
    Uniform(Value),
    /// An index: the lane's plus a constant.
    Lane(i32),
    /// Such an index without some of its high bits.
    Wrapped(i32),
    /// The same for all indices of a word.
    OfWord(i32),
    /// Which bit of its word an index is.
    Low(i32),
    /// A word of elements, lane by lane.
    Elements(i32, Plane),
    /// The element in the lowest bit, and others above it.
    Shifted(Plane),
    Number(Number),
}

/// Which element a place is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Target {
    /// One and the same for all lanes.
    Shared,
    /// The one at the lane's index plus a constant.
    Lane(i32),
}

pub(super) struct Slicer<'k> {
    pub(super) kernel: &'k mut Kernel,
    words: Words,
    uses: &'k SideTable<Value, u32>,
    /// Values of the loop's body.
    inside: &'k SideTable<Value, bool>,
    /// Arrays that the loop writes.
    written: &'k [Value],
    classes: SideTable<Value, Option<Class>>,
    region: Region,
    loc: Loc,
    /// The number of the word.
    number: Value,
    /// The lanes that run, and whether these are fewer than the loop has.
    running: Plane,
    is_conditional: bool,
}

/// Where the indices of a loop and the iteration of a word stand.
pub(super) struct Iteration {
    pub(super) region: Region,
    pub(super) number: Value,
    /// Indices of the loop, and what they are in the new one.
    pub(super) others: Vec<(Value, Value)>,
    pub(super) loc: Loc,
}

impl<'k> Slicer<'k> {
    pub(super) fn new(
        kernel: &'k mut Kernel,
        words: Words,
        iteration: &Iteration,
        uses: &'k SideTable<Value, u32>,
        inside: &'k SideTable<Value, bool>,
        written: &'k [Value],
    ) -> Self {
        let mut classes = SideTable::new(None);
        for &(index, new) in &iteration.others {
            classes.set(index, Some(Class::Uniform(new)));
        }
        classes.set(words.lane, Some(Class::Lane(0)));
        let &Iteration { region, number, loc, .. } = iteration;
        let mut slicer = Self {
            kernel,
            words,
            uses,
            inside,
            written,
            classes,
            region,
            loc,
            number,
            running: Plane::Ones,
            is_conditional: false,
        };
        let begin = slicer.lanes_below((words.lo, 0), 0);
        let end = slicer.lanes_below((words.hi, 0), 0);
        let begin = begin.not(&mut slicer.at());
        slicer.running = end.and(begin, &mut slicer.at());
        slicer
    }

    /// Builds what the body does; `None` if it cannot be done for words.
    pub(super) fn body(&mut self, body: Region) -> Option<()> {
        self.region(body)?;
        self.at().yields(&[]);
        Some(())
    }

    fn at(&mut self) -> Builder<'_> {
        Builder::at(self.kernel, self.region, self.loc)
    }

    fn class(&self, value: Value) -> Option<Class> {
        if self.inside[value] { self.classes[value].clone() } else { Some(Class::Uniform(value)) }
    }

    fn constant(&self, value: Value) -> Option<i128> {
        self.kernel.as_const(value)?.as_i128()
    }

    /// The ops of a region but for its terminator.
    fn region(&mut self, region: Region) -> Option<()> {
        let ops = self.kernel.regions[region].ops.clone();
        ops.into_iter().try_for_each(|op| self.visit(op))
    }

    fn visit(&mut self, op: Op) -> Option<()> {
        let data = self.kernel.ops[op].clone();
        self.loc = data.loc;
        match data.kind {
            OpKind::Yield => {}
            OpKind::If => return self.choice(op, &data),
            OpKind::While => {
                if let Some(assignment) = Replacement::of(self.kernel, op, self.uses) {
                    return self.assign(&assignment);
                }
                return self.only_calculates(op);
            }
            OpKind::Load => {
                let class = self.load(op);
                self.classes.set(data.results[0], class);
            }
            ref kind if kind.is_pure() => self.calculate(&data),
            _ => return self.only_calculates(op),
        }
        Some(())
    }

    /// That nothing outside sees an op, whose results have no class.
    fn only_calculates(&self, op: Op) -> Option<()> {
        let mut is_seen = self.kernel.ops[op].kind.stays();
        for &region in &self.kernel.ops[op].regions {
            octants_ir::rewrite::walk(self.kernel, region, &mut |op| {
                is_seen |= self.kernel.ops[op].kind.stays();
            });
        }
        (!is_seen).then_some(())
    }

    fn calculate(&mut self, data: &OpData) {
        let class = self.calculated(data);
        if let Some(&result) = data.results.first() {
            self.classes.set(result, class);
        }
    }

    fn calculated(&mut self, data: &OpData) -> Option<Class> {
        let classes: Option<Vec<_>> = data.operands.iter().map(|&operand| self.class(operand)).collect();
        let classes = classes?;
        let uniform = |class: &Class| matches!(class, Class::Uniform(_));
        if classes.iter().all(uniform) {
            return Some(Class::Uniform(self.copy(data, &classes)?));
        }
        self.index(data, &classes).or_else(|| self.element(data, &classes)).or_else(|| {
            let number = self.number(data)?;
            // Numbers stay in the range of their type, so that nothing wraps around.
            let ty = self.kernel.ty(data.results[0]).scalar()?;
            let greatest = u128::MAX >> (128 - ty.bits() + u32::from(ty.is_signed()));
            (u128::from(number.max) <= greatest).then_some(Class::Number(number))
        })
    }

    fn copy(&mut self, data: &OpData, operands: &[Class]) -> Option<Value> {
        let ty = self.kernel.ty(*data.results.first()?);
        let operands: Vec<_> = operands
            .iter()
            .filter_map(|class| if let Class::Uniform(v) = class { Some(*v) } else { None })
            .collect();
        let op = self.at().op(data.kind.clone(), operands, [ty], []);
        Some(self.kernel.ops[op].results[0])
    }

    // ---- indices --------------------------------------------------------------------------------------------------------------

    fn index(&self, data: &OpData, classes: &[Class]) -> Option<Class> {
        let result = *data.results.first()?;
        let ty = self.kernel.ty(result).scalar().filter(|ty| ty.is_integral() && *ty != Scalar::U1)?;
        if ty == Scalar::I32
            && let Some(form) = Affine::of(self.kernel, result)
            && form.terms == [(self.words.lane, 1)]
        {
            return i32::try_from(form.constant).ok().map(Class::Lane);
        }
        let within = i128::from(self.words.lanes() - 1);
        match (&data.kind, classes) {
            (OpKind::Bit(BitOp::And), &[Class::Lane(c) | Class::Wrapped(c), _]) => {
                let mask = self.constant(data.operands[1])?;
                (mask == within)
                    .then_some(Class::Low(c))
                    .or((mask & within == within).then_some(Class::Wrapped(c)))
            }
            (OpKind::Bit(BitOp::Shr), &[Class::Lane(c) | Class::Wrapped(c), _]) => {
                let amount = self.constant(data.operands[1])?;
                (i128::from(self.words.log)..32).contains(&amount).then_some(Class::OfWord(c))
            }
            (OpKind::Convert(ConvertOp::Cast), &[Class::Low(c)]) => Some(Class::Low(c)),
            _ => {
                let mut of_word = classes.iter().filter_map(|class| match class {
                    Class::Uniform(_) => None,
                    Class::OfWord(c) => Some(Some(*c)),
                    _ => Some(None),
                });
                let first = of_word.next()??;
                of_word.all(|other| other == Some(first)).then_some(Class::OfWord(first))
            }
        }
    }

    /// What a value is for the elements of a word, whose number is given.
    fn for_word(&mut self, value: Value, number: Value) -> Option<Value> {
        match self.class(value)? {
            Class::Uniform(value) => Some(value),
            Class::Lane(_) => Some(self.first_of(number)),
            Class::Wrapped(_) | Class::OfWord(_) => {
                let data = self.kernel.def(value)?.clone();
                let operands: Option<Vec<_>> =
                    data.operands.iter().map(|&operand| self.for_word(operand, number)).collect();
                self.copy(&data, &operands?.into_iter().map(Class::Uniform).collect::<Vec<_>>())
            }
            _ => None,
        }
    }

    /// The first index of a word.
    fn first_of(&mut self, number: Value) -> Value {
        let log = self.words.log as i32;
        let mut b = self.at();
        let log = b.i32(log);
        b.bit(BitOp::Shl, number, log)
    }

    /// The lanes whose index, plus a constant, is less than a bound plus another. The index wraps as an `i32` does; the sums here are of 64 bits.
    fn lanes_below(&mut self, (bound, up): (Value, i64), offset: i32) -> Plane {
        let number = self.number;
        let first = self.first_of(number);
        let wraps = offset != 0 && self.may_wrap(offset);
        let mut b = self.at();
        let moved = if wraps {
            let offset = b.i32(offset);
            b.arith(ArithOp::Add, first, offset)
        } else {
            first
        };
        let (bound, first) = (b.cast(bound, Scalar::I64), b.cast(moved, Scalar::I64));
        let distance = b.arith(ArithOp::Sub, bound, first);
        let further = if wraps { up } else { up - i64::from(offset) };
        let count = wide_sum(&mut b, distance, further);
        let below = self.first_lanes(count);
        if !wraps {
            return below;
        }
        // Lanes from the one on whose index is the least `i32` are less by 2³² than the lanes before say.
        let mut b = self.at();
        let (limit, round) = (wide(&mut b, 1 << 31), wide(&mut b, 1 << 32));
        let exact = b.arith(ArithOp::Sub, limit, first);
        let around = b.arith(ArithOp::Add, count, round);
        let (exact, around) = (self.first_lanes(exact), self.first_lanes(around));
        let b = &mut self.at();
        let behind = exact.not(b);
        let wrapped = around.and(behind, b);
        below.or(wrapped, b)
    }

    /// As many lanes as an `i64` says, from the first on; all if it is more.
    fn first_lanes(&mut self, count: Value) -> Plane {
        let (lanes, register) = (self.words.lanes(), self.words.register);
        let mut b = self.at();
        let (none, all) = (wide(&mut b, 0), wide(&mut b, lanes.into()));
        let most = b.arith(ArithOp::Min, count, all);
        let count = b.arith(ArithOp::Max, most, none);
        let bits = wide(&mut b, register.bits().into());
        let unused = b.arith(ArithOp::Sub, bits, count);
        let (zero, ones) = (Plane::Zero.word(register, &mut b), Plane::Ones.word(register, &mut b));
        let below = b.bit(BitOp::Shr, ones, unused);
        let is_none = b.compare(CompareOp::Eq, count, none);
        Plane::Word(b.select(is_none, zero, below))
    }

    /// Whether the index of a lane that runs, plus a constant, may be no `i32`.
    fn may_wrap(&self, offset: i32) -> bool {
        let (lo, hi) = (self.constant(self.words.lo), self.constant(self.words.hi));
        let limits = i128::from(i32::MIN)..=i128::from(i32::MAX);
        let is_exact = |index: i128| limits.contains(&(index + i128::from(offset)));
        !lo.zip(hi).is_some_and(|(lo, hi)| lo >= hi || is_exact(lo) && is_exact(hi - 1))
    }

    // ---- elements -------------------------------------------------------------------------------------------------------------

    fn element(&self, data: &OpData, classes: &[Class]) -> Option<Class> {
        let ty = self.kernel.ty(*data.results.first()?).scalar()?;
        match (&data.kind, classes) {
            (OpKind::Convert(ConvertOp::Cast), &[Class::Elements(c, plane)]) => {
                (ty == self.words.register).then_some(Class::Elements(c, plane))
            }
            (OpKind::Bit(BitOp::Shr), &[Class::Elements(c, plane), Class::Low(low)]) => {
                (c == low && ty == self.words.register).then_some(Class::Shifted(plane))
            }
            (OpKind::Bit(BitOp::And), &[Class::Shifted(plane), _]) => {
                (self.constant(data.operands[1])? == 1).then_some(Class::Number(Number::bit(plane)))
            }
            _ => None,
        }
    }

    /// A word of elements, or what is the same for all lanes.
    fn load(&mut self, op: Op) -> Option<Class> {
        let access = self.kernel.cell_access(op)?;
        let (base, path) = (access.place.base(), access.place.path().to_vec());
        let is_written = self.written.contains(&base);
        let offset = match self.target(&path)? {
            Target::Lane(offset) => offset,
            Target::Shared if is_written || self.is_conditional => return None,
            Target::Shared => {
                let data = self.kernel.ops[op].clone();
                let operands: Option<Vec<_>> =
                    data.operands.iter().map(|&operand| self.class(operand)).collect();
                return Some(Class::Uniform(self.copy(&data, &operands?)?));
            }
        };
        if !self.is_words(base) || (is_written && offset != 0) {
            return None;
        }
        let lanes = self.words.lanes();
        let (whole, rest) = (offset.div_euclid(lanes), offset.rem_euclid(lanes));
        let mut elements = self.elements(base, &path, offset, whole)?;
        if rest != 0 {
            let next = self.elements(base, &path, offset, whole + 1)?;
            let mut b = self.at();
            let (down, up) = (b.i32(rest), b.i32(lanes - rest));
            let (low, high) = (b.bit(BitOp::Shr, elements, down), b.bit(BitOp::Shl, next, up));
            elements = b.bit(BitOp::Or, low, high);
        }
        Some(Class::Elements(offset, Plane::Word(elements)))
    }

    /// Which element the indices of a place name.
    fn target(&self, path: &[Value]) -> Option<Target> {
        let mut target = Target::Shared;
        for &index in path {
            match self.class(index)? {
                Class::Uniform(_) => {}
                Class::OfWord(c) if [Target::Shared, Target::Lane(c)].contains(&target) => {
                    target = Target::Lane(c);
                }
                _ => return None,
            }
        }
        Some(target)
    }

    /// Whether it is an array of words that are calculated with in the register.
    fn is_words(&self, base: Value) -> bool {
        let Type::Array(ty) = self.kernel.ty(base) else { return false };
        let register = match ty.elem.scalar() {
            Some(Scalar::U8 | Scalar::U16 | Scalar::U32) => Scalar::U32,
            Some(Scalar::U64) => Scalar::U64,
            _ => return false,
        };
        let bits = ty.elem.scalar().map_or(0, Scalar::bits);
        register == self.words.register
            && ty.boundary == Boundary::Unsafe
            && self.words.lanes() as u32 <= bits
            && self.kernel.layout(ty).is_some_and(|layout| layout.origin.iter().all(|&origin| origin == 0))
    }

    /// The word so many behind this one, as the place of an index with an offset has it, in a register. Where no lane that runs needs it, it is
    /// another one that is there.
    fn elements(&mut self, base: Value, path: &[Value], offset: i32, behind: i32) -> Option<Value> {
        let words = self.words;
        let mut number = self.number;
        if offset != 0 {
            let first = self.first_of(number);
            let mut b = self.at();
            let (log, offset) = (b.i32(words.log as i32), b.i32(offset));
            // The last index that runs.
            let (lanes, one) = (b.i32(words.lanes()), b.i32(1));
            let end = end_of_word(&mut b, (number, first, lanes), words.hi);
            let last = b.arith(ArithOp::Sub, end, one);
            let first = b.arith(ArithOp::Max, first, words.lo);
            let [first, last] = [first, last].map(|index| {
                let moved = b.arith(ArithOp::Add, index, offset);
                b.bit(BitOp::Shr, moved, log)
            });
            let behind = b.i32(behind);
            let wanted = b.arith(ArithOp::Add, number, behind);
            let wanted = b.arith(ArithOp::Max, wanted, first);
            number = b.arith(ArithOp::Min, wanted, last);
        }
        let path: Option<Vec<_>> = path.iter().map(|&index| self.for_word(index, number)).collect();
        let mut path = path?;
        let Type::Array(ty) = self.kernel.ty(base) else { return None };
        if self.is_conditional {
            // The index may be one that no lane has.
            let shape = self.kernel.layout(ty)?.shape.clone();
            for (index, extent) in path.iter_mut().zip(shape) {
                let mut b = self.at();
                let (first, last) = (b.i32(0), b.i32(extent as i32 - 1));
                let least = b.arith(ArithOp::Max, *index, first);
                *index = b.arith(ArithOp::Min, least, last);
            }
        }
        let mut b = self.at();
        let word = b.load(base, &path);
        let mut word = b.cast(word, words.register);
        if (words.lanes() as u32) < ty.elem.scalar()?.bits() {
            // Bits above the elements are nobody's.
            let ones = b.constant(Const::from_i128(words.register, (1 << words.lanes()) - 1));
            word = b.bit(BitOp::And, word, ones);
        }
        Some(word)
    }

    fn assign(&mut self, assignment: &Replacement) -> Option<()> {
        // What it calculates of the old word has no class.
        for &op in &assignment.calculated {
            let data = self.kernel.ops[op].clone();
            self.calculate(&data);
        }
        let (base, register) = (assignment.base, self.words.register);
        let is_own = matches!(self.class(assignment.low)?, Class::Low(0));
        if !is_own || assignment.ones != 1 || !self.is_words(base) || !self.names_word(&assignment.path) {
            return None;
        }
        let bit = self.operand(assignment.bits)?;
        if bit.max > 1 {
            return None;
        }
        let number = self.number;
        let running = self.running;
        if running == Plane::Zero {
            return Some(());
        }
        let outer = self.region;
        let guarded = self.is_conditional.then(|| {
            let word = running.word(register, &mut self.at());
            let mut b = self.at();
            let zero = b.constant(Const::from_i128(register, 0));
            let runs = b.compare(CompareOp::Ne, word, zero);
            let regions = [self.kernel.add_region(), self.kernel.add_region()];
            self.region = regions[0];
            (runs, regions)
        });
        let path: Option<Vec<_>> =
            assignment.path.iter().map(|&index| self.for_word(index, number)).collect();
        let path = path?;
        let mut b = self.at();
        let old = b.load(base, &path);
        let ty = b.kernel.ty(old).scalar()?;
        let old = b.cast(old, register);
        let new = bit.plane(0).select(Plane::Word(old), running, &mut b);
        let new = new.word(register, &mut b);
        let new = b.cast(new, ty);
        b.store(base, &path, new);
        if let Some((runs, regions)) = guarded {
            for region in regions {
                self.region = region;
                self.at().yields(&[]);
            }
            self.region = outer;
            self.at().op(OpKind::If, [runs], [], regions);
        }
        Some(())
    }

    /// Whether the path of a place has all bits of the word's number, so that no two words are at one place.
    fn names_word(&self, path: &[Value]) -> bool {
        if self.target(path) != Some(Target::Lane(0)) {
            return false;
        }
        let mut ranges: Vec<_> = path.iter().filter_map(|&index| self.bits_of_lane(index)).collect();
        ranges.sort_unstable();
        let reached = ranges.into_iter().fold(self.words.log, |reached, (begin, end)| {
            if begin <= reached { reached.max(end) } else { reached }
        });
        reached >= 32
    }

    /// Which bits of the lane's index a value is: from which up to which.
    fn bits_of_lane(&self, value: Value) -> Option<(u32, u32)> {
        if value == self.words.lane {
            return Some((0, 32));
        }
        let data = self.kernel.def(value)?;
        let &[of, amount] = &data.operands[..] else { return None };
        let (begin, end) = self.bits_of_lane(of)?;
        let amount = u64::try_from(self.constant(amount)?).ok()?;
        match data.kind {
            OpKind::Bit(BitOp::Shr) if amount < 32 => Some(((begin + amount as u32).min(end), end)),
            OpKind::Bit(BitOp::And) if (amount + 1).is_power_of_two() => {
                Some((begin, end.min(begin + amount.count_ones())))
            }
            _ => None,
        }
    }

    // ---- numbers --------------------------------------------------------------------------------------------------------------

    /// A value as a number of each lane.
    fn operand(&mut self, value: Value) -> Option<Number> {
        if let Some(constant) = self.constant(value) {
            return Number::constant(u64::try_from(constant).ok()?);
        }
        match self.class(value)? {
            Class::Number(number) => Some(number),
            Class::Uniform(uniform) if self.is_bit(value) => {
                let register = self.words.register;
                let mut b = self.at();
                let holds = b.cast(uniform, Scalar::U1);
                let (ones, zero) = (Plane::Ones.word(register, &mut b), Plane::Zero.word(register, &mut b));
                Some(Number::bit(Plane::Word(b.select(holds, ones, zero))))
            }
            _ => None,
        }
    }

    /// Whether a value is 0 or 1 for certain.
    fn is_bit(&self, value: Value) -> bool {
        let masked = |of: &OpData| {
            of.kind == OpKind::Bit(BitOp::And)
                && of.operands.iter().any(|&operand| self.constant(operand) == Some(1))
        };
        self.kernel.ty(uncast(self.kernel, value)) == Type::U1 || self.kernel.def(value).is_some_and(masked)
    }

    fn number(&mut self, data: &OpData) -> Option<Number> {
        let ty = self.kernel.ty(*data.results.first()?).scalar().filter(|ty| ty.is_integral())?;
        let amount =
            |slicer: &Self| slicer.constant(data.operands[1]).and_then(|amount| usize::try_from(amount).ok());
        match (&data.kind, &data.operands[..]) {
            (OpKind::Compare(op), &[a, b]) => {
                if let Some(lanes) = self.compared_lane(*op, a, b) {
                    return Some(Number::bit(lanes));
                }
                let (a, b) = (self.operand(a)?, self.operand(b)?);
                Some(Number::bit(self.compared(*op, &a, &b)))
            }
            (OpKind::Select, &[condition, a, b]) => {
                let (lanes, a, b) = (self.operand(condition)?.plane(0), self.operand(a)?, self.operand(b)?);
                a.select(&b, lanes, &mut self.at())
            }
            (OpKind::Convert(op), &[a]) => {
                let from = self.kernel.ty(a).scalar().filter(|from| from.is_integral())?;
                let number = self.operand(a)?;
                match (op, ty) {
                    (ConvertOp::Cast, Scalar::U1) => {
                        let zero = Number::constant(0)?;
                        Some(Number::bit(number.ne(&zero, &mut self.at())))
                    }
                    (ConvertOp::Cast, _) => number.wrapped(ty.bits() as usize),
                    (ConvertOp::Detach, _) => None,
                    (ConvertOp::BitCast, _) => (from.bits() == ty.bits()).then_some(number),
                }
            }
            (OpKind::BitUnary(BitUnary::Not), &[a]) if ty == Scalar::U1 => {
                self.operand(a)?.below(1, &mut self.at())
            }
            (OpKind::Bit(op @ (BitOp::Shl | BitOp::Shr | BitOp::LShr)), &[a, _]) => {
                let amount = amount(self).filter(|&amount| amount < ty.bits() as usize)?;
                let number = self.operand(a)?;
                if *op == BitOp::Shl { number.shl(amount) } else { number.shr(amount) }
            }
            (OpKind::Bit(BitOp::And), &[a, b]) if self.constant(b).is_some() => {
                let x = self.operand(a)?;
                let mask = self.kernel.as_const(b)?.bits() & u64::from(u16::MAX);
                x.and(&Number::constant(mask)?, &mut self.at())
            }
            (OpKind::Bit(op), &[a, b]) => {
                let (x, y) = (self.operand(a)?, self.operand(b)?);
                let b = &mut self.at();
                match op {
                    BitOp::And => x.and(&y, b),
                    BitOp::Or => x.or(&y, b),
                    BitOp::Xor => x.xor(&y, b),
                    BitOp::Shl | BitOp::Shr | BitOp::LShr => None,
                }
            }
            (OpKind::Arith(op), &[a, b]) => self.arithmetic(*op, ty, a, b),
            _ => None,
        }
    }

    fn arithmetic(&mut self, op: ArithOp, ty: Scalar, a: Value, b: Value) -> Option<Number> {
        let (x, y) = (self.operand(a)?, self.operand(b)?);
        let minuend = self.constant(a).and_then(|a| u64::try_from(a).ok());
        let b = &mut self.at();
        match op {
            ArithOp::Add if ty == Scalar::U1 => x.xor(&y, b),
            ArithOp::Add => x.add(&y, b),
            ArithOp::Sub if ty == Scalar::U1 => None,
            ArithOp::Sub => y.below(minuend?, b),
            ArithOp::Mul => x.mul(&y, b),
            ArithOp::Min | ArithOp::Max => {
                let less = x.lt(&y, b);
                if op == ArithOp::Min { x.select(&y, less, b) } else { y.select(&x, less, b) }
            }
            ArithOp::Div
            | ArithOp::FloorDiv
            | ArithOp::Mod
            | ArithOp::RawDiv
            | ArithOp::RawMod
            | ArithOp::Neg
            | ArithOp::Abs => None,
        }
    }

    fn compared(&mut self, op: CompareOp, x: &Number, y: &Number) -> Plane {
        let b = &mut self.at();
        match op {
            CompareOp::Lt => x.lt(y, b),
            CompareOp::Gt => y.lt(x, b),
            CompareOp::Le => y.lt(x, b).not(b),
            CompareOp::Ge => x.lt(y, b).not(b),
            CompareOp::Ne => x.ne(y, b),
            CompareOp::Eq => x.ne(y, b).not(b),
        }
    }

    /// The lanes where an index is as compared with what is the same for all.
    fn compared_lane(&mut self, op: CompareOp, a: Value, b: Value) -> Option<Plane> {
        let (offset, bound, op) = match (self.class(a)?, self.class(b)?) {
            (Class::Lane(offset), Class::Uniform(bound)) => (offset, bound, op),
            (Class::Uniform(bound), Class::Lane(offset)) => {
                let mirrored = match op {
                    CompareOp::Lt => CompareOp::Gt,
                    CompareOp::Gt => CompareOp::Lt,
                    CompareOp::Le => CompareOp::Ge,
                    CompareOp::Ge => CompareOp::Le,
                    CompareOp::Eq | CompareOp::Ne => op,
                };
                (offset, bound, mirrored)
            }
            _ => return None,
        };
        let below = self.lanes_below((bound, 0), offset);
        // Not above it is below the next integer.
        let up_to = self.lanes_below((bound, 1), offset);
        let b = &mut self.at();
        Some(match op {
            CompareOp::Lt => below,
            CompareOp::Ge => below.not(b),
            CompareOp::Le => up_to,
            CompareOp::Gt => up_to.not(b),
            CompareOp::Eq => up_to.xor(below, b),
            CompareOp::Ne => up_to.xor(below, b).not(b),
        })
    }

    // ---- choices --------------------------------------------------------------------------------------------------------------

    /// Both branches, each for its lanes.
    fn choice(&mut self, op: Op, data: &OpData) -> Option<()> {
        let Some(condition) = self.operand(data.operands[0]) else { return self.only_calculates(op) };
        let lanes = condition.plane(0);
        let (running, was_conditional) = (self.running, self.is_conditional);
        self.is_conditional = true;
        self.running = running.and(lanes, &mut self.at());
        self.region(data.regions[0])?;
        let others = lanes.not(&mut self.at());
        self.running = running.and(others, &mut self.at());
        self.region(data.regions[1])?;
        (self.running, self.is_conditional) = (running, was_conditional);
        let [then, otherwise] = [0, 1].map(|branch| yielded(self.kernel, data.regions[branch]).to_vec());
        for ((&result, then), otherwise) in data.results.iter().zip(then).zip(otherwise) {
            let is_integral = self.kernel.ty(result).scalar().is_some_and(Scalar::is_integral);
            let pair = is_integral.then(|| Some((self.operand(then)?, self.operand(otherwise)?))).flatten();
            let chosen = pair.and_then(|(a, b)| a.select(&b, lanes, &mut self.at()));
            self.classes.set(result, chosen.map(Class::Number));
        }
        Some(())
    }
}

fn wide(b: &mut Builder<'_>, value: i64) -> Value {
    b.constant(Const::from_i128(Scalar::I64, value.into()))
}

/// A wide number plus a constant.
fn wide_sum(b: &mut Builder<'_>, number: Value, constant: i64) -> Value {
    let constant = wide(b, constant);
    b.arith(ArithOp::Add, number, constant)
}

/// How many elements words have and along which index they lie, as an assignment of the loop's says: the index, and the logarithm of the count.
pub(super) fn lane_of(kernel: &Kernel, assignment: &Replacement, axes: &[Value]) -> Option<(Value, u32)> {
    let data =
        kernel.def(uncast(kernel, assignment.low)).filter(|data| data.kind == OpKind::Bit(BitOp::And))?;
    let &[lane, mask] = &data.operands[..] else { return None };
    let lanes = u32::try_from(kernel.as_const(mask)?.as_i128()? + 1).ok()?;
    (axes.contains(&lane) && lanes.is_power_of_two() && (2..=64).contains(&lanes))
        .then_some((lane, lanes.ilog2()))
}
