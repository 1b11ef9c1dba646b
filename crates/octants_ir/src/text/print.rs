//! Writes a kernel as text. Total: a kernel that breaks laws is printed too, so that the verifier can show it.

use std::fmt::Write;

use octants_diag::FileId;

use crate::constant::Const;
use crate::ids::{Loc, Op, Region, SideTable, Value};
use crate::kernel::{Kernel, LocData, Param, Phase};
use crate::layout::Digit;
use crate::ops::{CellUse, Domain, OpKind, ParallelFor, TensorOp};
use crate::types::{Data, Scalar};

/// The canonical text, without locations.
pub fn print(kernel: &Kernel) -> String {
    Printer::new(kernel, false).kernel()
}

/// The text with a table of locations; it reads back to the same text too.
pub fn print_with_locations(kernel: &Kernel) -> String {
    Printer::new(kernel, true).kernel()
}

/// The text with a table of locations in which files are numbered as they appear, and the files in that order: the same in every process.
pub fn print_with_files(kernel: &Kernel) -> (String, Vec<FileId>) {
    let mut printer = Printer::new(kernel, true);
    printer.files = Some(Vec::new());
    let text = printer.kernel();
    (text, printer.files.unwrap_or_default())
}

/// The printed line of each op, for messages.
pub struct OpLines {
    lines: SideTable<Op, Option<String>>,
}

impl OpLines {
    pub fn new(kernel: &Kernel) -> Self {
        let mut printer = Printer::new(kernel, false);
        printer.lines = Some(SideTable::new(None));
        printer.kernel();
        Self { lines: printer.lines.expect("set above") }
    }

    /// The line, without the regions; what the op is called where it stands in no region of the kernel.
    pub fn line(&self, kernel: &Kernel, op: Op) -> String {
        self.lines[op].clone().unwrap_or_else(|| format!("{} (in no region)", kernel.ops[op].kind.name()))
    }
}

struct Printer<'k> {
    kernel: &'k Kernel,
    out: String,
    depth: usize,
    numbers: SideTable<Value, Option<u32>>,
    next_number: u32,
    /// Locations in order of appearance, if they are wanted.
    locs: Option<Vec<Loc>>,
    loc_numbers: SideTable<Loc, Option<u32>>,
    /// Files in order of appearance, if they are to be numbered so.
    files: Option<Vec<FileId>>,
    lines: Option<SideTable<Op, Option<String>>>,
}

impl<'k> Printer<'k> {
    fn new(kernel: &'k Kernel, locations: bool) -> Self {
        Self {
            kernel,
            out: String::new(),
            depth: 0,
            numbers: SideTable::new(None),
            next_number: 0,
            locs: locations.then(Vec::new),
            loc_numbers: SideTable::new(None),
            files: None,
            lines: None,
        }
    }

    fn kernel(&mut self) -> String {
        let kernel = self.kernel;
        for (id, function) in kernel.functions.iter() {
            self.show(id);
            self.push(" = function ");
            self.symbol(&function.name);
            self.head(function.body, &function.params, &function.results);
            let (cold, stable) = ((function.is_cold, " cold"), (function.is_stable, " stable"));
            for (holds, word) in [cold, stable, (function.is_whole, " whole")] {
                self.push(if holds { word } else { "" });
            }
            self.push(" ");
            self.block(function.body);
            self.push("\n\n");
        }
        self.push("kernel ");
        self.symbol(&kernel.name);
        self.head(kernel.body, &kernel.params, &kernel.results);
        if kernel.options.fast_math {
            self.push(" fast_math");
        }
        if kernel.options.exact_choices {
            self.push(" exact_choices");
        }
        if kernel.options.debug {
            self.push(" debug");
        }
        match kernel.phase {
            Phase::Structured => {}
            Phase::Tasks => self.push(" tasks"),
        }
        self.push(" ");
        self.block(kernel.body);
        self.push("\n");
        let body = std::mem::take(&mut self.out);
        self.structs();
        self.layouts();
        self.loc_table();
        let mut text = std::mem::take(&mut self.out);
        text.push_str(&body);
        text
    }

    /// Parameters and results of the kernel or a function.
    fn head(&mut self, body: Region, params: &[Param], results: &[Data]) {
        let kernel = self.kernel;
        self.push("(");
        for (index, &value) in kernel.regions[body].params.iter().enumerate() {
            self.comma(index);
            self.value(value);
            if let Some(param) = params.get(index) {
                self.push(" ");
                self.string(&param.name);
            }
            self.push(": ");
            self.show(kernel.ty(value));
        }
        self.push(")");
        if !results.is_empty() {
            self.push(" -> (");
            for (index, &data) in results.iter().enumerate() {
                self.comma(index);
                self.show(data);
            }
            self.push(")");
        }
    }

    fn structs(&mut self) {
        let kernel = self.kernel;
        for (id, ty) in kernel.structs.iter() {
            write!(self.out, "{id} = struct ").expect("a String takes all");
            self.string(&ty.name);
            self.push(" {");
            for (index, (name, data)) in ty.members.iter().enumerate() {
                self.push(if index == 0 { " " } else { ", " });
                self.string(name);
                self.push(": ");
                self.show(data);
            }
            self.push(" }\n");
        }
        if !kernel.structs.is_empty() {
            self.push("\n");
        }
    }

    fn layouts(&mut self) {
        let kernel = self.kernel;
        for (id, layout) in kernel.layouts.iter() {
            write!(self.out, "{id} = layout {:?}", layout.shape).expect("a String takes all");
            if layout.origin.len() != layout.rank() || layout.origin.iter().any(|&origin| origin != 0) {
                write!(self.out, " from {:?}", layout.origin).expect("a String takes all");
            }
            self.push(" {");
            for (index, level) in layout.levels.iter().enumerate() {
                self.push(if index == 0 { " " } else { ", " });
                self.push(level.kind.name());
                self.push(" (");
                for (index, &Digit { axis, below, extent, stride }) in level.digits.iter().enumerate() {
                    self.comma(index);
                    write!(self.out, "axis {axis} below {below} extent {extent} stride {stride}")
                        .expect("a String takes all");
                }
                self.push(")");
            }
            self.push(" }\n");
        }
        if !kernel.layouts.is_empty() {
            self.push("\n");
        }
    }

    fn loc_table(&mut self) {
        let Some(locs) = self.locs.take() else { return };
        for (number, &loc) in locs.iter().enumerate() {
            let LocData { span, function, caller } = &self.kernel.locs[loc];
            write!(self.out, "loc{number} =").expect("a String takes all");
            match span {
                Some(span) => {
                    let file = self.file_number(span.file);
                    write!(self.out, " {file}:{}..{}", span.start, span.end)
                }
                None => write!(self.out, " nowhere"),
            }
            .expect("a String takes all");
            if let Some(function) = function {
                self.push(" in ");
                self.string(function);
            }
            if let Some(caller) = caller {
                self.push(" from ");
                self.loc_name(*caller);
            }
            self.push("\n");
        }
        if !locs.is_empty() {
            self.push("\n");
        }
    }

    fn file_number(&mut self, file: FileId) -> u32 {
        let Some(files) = &mut self.files else { return file.0 };
        let known = files.iter().position(|&known| known == file);
        let number = known.unwrap_or_else(|| {
            files.push(file);
            files.len() - 1
        });
        number as u32
    }

    fn push(&mut self, text: &str) {
        self.out.push_str(text);
    }

    fn comma(&mut self, index: usize) {
        if index > 0 {
            self.push(", ");
        }
    }

    fn show(&mut self, item: impl std::fmt::Display) {
        write!(self.out, "{item}").expect("a String takes all");
    }

    fn symbol(&mut self, name: &str) {
        self.push("@");
        let plain = name
            .chars()
            .enumerate()
            .all(|(i, c)| c == '_' || c.is_ascii_alphabetic() || (i > 0 && (c.is_ascii_digit() || c == '.')));
        if plain && !name.is_empty() {
            self.push(name);
        } else {
            self.string(name);
        }
    }

    fn string(&mut self, text: &str) {
        self.push("\"");
        for c in text.chars() {
            match c {
                '"' => self.push("\\\""),
                '\\' => self.push("\\\\"),
                '\n' => self.push("\\n"),
                '\t' => self.push("\\t"),
                c if c.is_control() => {
                    write!(self.out, "\\u{{{:x}}}", c as u32).expect("a String takes all");
                }
                c => self.out.push(c),
            }
        }
        self.push("\"");
    }

    fn value(&mut self, value: Value) {
        let number = if let Some(number) = self.numbers[value] {
            number
        } else {
            let number = self.next_number;
            self.next_number += 1;
            self.numbers.set(value, Some(number));
            number
        };
        self.push("%");
        self.show(number);
    }

    fn values(&mut self, values: &[Value]) {
        for (index, &value) in values.iter().enumerate() {
            self.comma(index);
            self.value(value);
        }
    }

    fn typed(&mut self, value: Value) {
        self.value(value);
        self.push(": ");
        self.show(self.kernel.ty(value));
    }

    fn typed_list(&mut self, values: &[Value]) {
        for (index, &value) in values.iter().enumerate() {
            self.comma(index);
            self.typed(value);
        }
    }

    fn line_start(&mut self) {
        self.push("\n");
        for _ in 0..self.depth {
            self.push("  ");
        }
    }

    /// `{ ops }`, a closing `yield` of nothing left out.
    fn block(&mut self, region: Region) {
        self.push("{");
        self.depth += 1;
        let ops = &self.kernel.regions[region].ops;
        for (index, &op) in ops.iter().enumerate() {
            if index + 1 == ops.len() && !self.kernel.is_body(region) && self.is_implied(op) {
                break;
            }
            self.line_start();
            self.op(op);
        }
        self.depth -= 1;
        self.line_start();
        self.push("}");
    }

    /// A `yield` of nothing that comes from nowhere: text does not show it.
    fn is_implied(&self, op: Op) -> bool {
        let data = &self.kernel.ops[op];
        data.kind == OpKind::Yield
            && data.operands.is_empty()
            && data.results.is_empty()
            && (self.locs.is_none() || self.kernel.locs[data.loc] == LocData::NOWHERE)
    }

    fn is_empty_else(&self, region: Region) -> bool {
        let region = &self.kernel.regions[region];
        region.params.is_empty() && region.ops.len() == 1 && self.is_implied(region.ops[0])
    }

    /// The op's own line ends here: its location, and the text for messages.
    fn line_end(&mut self, op: Op, start: usize) {
        if let Some(lines) = &mut self.lines {
            lines.set(op, Some(self.out[start..].to_string()));
        }
        let loc = self.kernel.ops[op].loc;
        if self.locs.is_some() && self.kernel.locs[loc] != LocData::NOWHERE {
            self.push(" ");
            self.loc_name(loc);
        }
    }

    fn loc_name(&mut self, loc: Loc) {
        let number = self.loc_number(loc);
        self.push("loc");
        self.show(number);
    }

    /// Callers are numbered before what they called, so the table never refers forward.
    fn loc_number(&mut self, loc: Loc) -> u32 {
        if let Some(number) = self.loc_numbers[loc] {
            return number;
        }
        if let Some(caller) = self.kernel.locs[loc].caller {
            self.loc_number(caller);
        }
        let locs = self.locs.as_mut().expect("asked only when locations are printed");
        let number = locs.len() as u32;
        locs.push(loc);
        self.loc_numbers.set(loc, Some(number));
        number
    }

    fn op(&mut self, op: Op) {
        let kernel = self.kernel;
        let data = &kernel.ops[op];
        let start = self.out.len();
        let (operands, regions) = (&data.operands[..], &data.regions[..]);
        if !data.results.is_empty() {
            self.typed_list(&data.results);
            self.push(" = ");
        }
        match (&data.kind, regions) {
            (OpKind::If, &[then, otherwise])
                if operands.len() == 1
                    && kernel.regions[then].params.is_empty()
                    && kernel.regions[otherwise].params.is_empty() =>
            {
                self.push("if ");
                self.value(operands[0]);
                self.line_end(op, start);
                self.push(" ");
                self.block(then);
                if !self.is_empty_else(otherwise) {
                    self.push(" else ");
                    self.block(otherwise);
                }
            }
            (kind, &[body])
                if kind.is_counted_loop()
                    && operands.len() >= 2
                    && kernel.regions[body].params.len() + 1 == operands.len() =>
            {
                let params = &kernel.regions[body].params;
                self.push(data.kind.name());
                self.push(" ");
                self.typed(params[0]);
                self.push(" in ");
                self.range(operands[0], operands[1]);
                self.carried(&params[1..], &operands[2..]);
                self.line_end(op, start);
                self.push(" ");
                self.block(body);
            }
            (OpKind::ForCells(layout), &[body]) if operands.len() <= 1 => {
                self.push("for_cells (");
                self.typed_list(&kernel.regions[body].params);
                self.push(") over ");
                self.show(*layout);
                if let [left] = *operands {
                    self.push(" until ");
                    self.value(left);
                }
                self.line_end(op, start);
                self.push(" ");
                self.block(body);
            }
            (OpKind::While, &[cond, body]) if kernel.regions[cond].params.len() == operands.len() => {
                self.push("while");
                self.carried(&kernel.regions[cond].params, operands);
                self.line_end(op, start);
                self.push(" ");
                self.block(cond);
                self.push(" do ");
                if !kernel.regions[body].params.is_empty() {
                    self.push("(");
                    self.typed_list(&kernel.regions[body].params);
                    self.push(") ");
                }
                self.block(body);
            }
            (OpKind::ParallelFor(attributes), &[body]) if self.is_plain_parallel(op, attributes) => {
                self.parallel_for(op, attributes, start, body);
            }
            (OpKind::Serial, &[body]) if operands.is_empty() && kernel.regions[body].params.is_empty() => {
                self.push("serial");
                self.line_end(op, start);
                self.push(" ");
                self.block(body);
            }
            (OpKind::Fork, &[first, ref others @ ..])
                if operands.is_empty()
                    && regions.iter().all(|&branch| kernel.regions[branch].params.is_empty()) =>
            {
                self.push("fork");
                self.line_end(op, start);
                self.push(" ");
                self.block(first);
                for &branch in others {
                    self.push(" and ");
                    self.block(branch);
                }
            }
            (
                OpKind::If
                | OpKind::For
                | OpKind::ForLanes
                | OpKind::ForCells(_)
                | OpKind::While
                | OpKind::ParallelFor(_)
                | OpKind::Serial
                | OpKind::Fork,
                _,
            )
            | (_, [_, ..]) => self.malformed(op, start),
            (_, []) => {
                self.flat(op);
                self.line_end(op, start);
            }
        }
    }

    /// An op whose operands and regions do not fit its syntax. The `!` is not read back.
    fn malformed(&mut self, op: Op, start: usize) {
        let kernel = self.kernel;
        let data = &kernel.ops[op];
        self.push("!");
        self.push(data.kind.name());
        if !data.operands.is_empty() {
            self.push(" ");
            self.values(&data.operands);
        }
        self.line_end(op, start);
        for &region in &data.regions {
            self.push(" (");
            self.typed_list(&kernel.regions[region].params);
            self.push(") ");
            self.block(region);
        }
    }

    fn is_plain_parallel(&self, op: Op, attributes: &ParallelFor) -> bool {
        let data = &self.kernel.ops[op];
        let axes = attributes.axes as usize;
        data.operands.len() == attributes.operand_count()
            && attributes.reductions.iter().all(|r| r.operands > 0)
            && self.kernel.regions[data.regions[0]].params.len() == axes + attributes.reductions.len()
    }

    fn parallel_for(&mut self, op: Op, attributes: &ParallelFor, start: usize, body: Region) {
        let kernel = self.kernel;
        let parallel = kernel.parallel_loop(op).expect("the caller saw a parallel loop");
        self.push("parallel_for (");
        self.typed_list(parallel.indices());
        match attributes.domain {
            Domain::Ranges => {
                self.push(") in (");
                for (axis, (lo, hi)) in parallel.bounds().enumerate() {
                    self.comma(axis);
                    self.range(lo, hi);
                }
                self.push(")");
            }
            Domain::Cells(layout) => {
                self.push(") over ");
                self.show(layout);
            }
        }
        if !attributes.reductions.is_empty() {
            self.push(" reduce (");
            for (index, reduction) in parallel.reductions().enumerate() {
                self.comma(index);
                self.typed(reduction.accumulator);
                self.push(" = ");
                self.push(reduction.op.name());
                self.push(" ");
                self.place(reduction.place.operands());
            }
            self.push(")");
        }
        if let Some(n) = attributes.block_dim {
            self.push(" block_dim ");
            self.show(n);
        }
        if let Some(n) = attributes.max_threads {
            self.push(" max_threads ");
            self.show(n);
        }
        if attributes.in_order {
            self.push(" in_order");
        }
        if attributes.brief {
            self.push(" brief");
        }
        if !attributes.staged.is_empty() {
            self.push(" stage (");
            for (index, &number) in attributes.staged.iter().enumerate() {
                self.comma(index);
                self.value(self.kernel.regions[self.kernel.body].params[number as usize]);
            }
            self.push(")");
        }
        if let Some(name) = &attributes.name {
            self.push(" name ");
            self.string(name);
        }
        self.line_end(op, start);
        self.push(" ");
        self.block(body);
    }

    fn range(&mut self, lo: Value, hi: Value) {
        self.value(lo);
        self.push("..");
        self.value(hi);
    }

    fn carried(&mut self, params: &[Value], initial: &[Value]) {
        if params.is_empty() {
            return;
        }
        self.push(" carry (");
        for (index, (&param, &value)) in params.iter().zip(initial).enumerate() {
            self.comma(index);
            self.typed(param);
            self.push(" = ");
            self.value(value);
        }
        self.push(")");
    }

    /// `base`, or `base[path]`.
    fn place(&mut self, operands: &[Value]) {
        let Some((&base, path)) = operands.split_first() else { return };
        self.value(base);
        if !path.is_empty() {
            self.push("[");
            self.values(path);
            self.push("]");
        }
    }

    /// `base[path], value…` with this many values after the path.
    fn place_and(&mut self, operands: &[Value], values: usize) {
        if operands.len() <= values {
            self.values(operands);
            return;
        }
        let (place, values) = operands.split_at(operands.len() - values);
        self.place(place);
        for &value in values {
            self.push(", ");
            self.value(value);
        }
    }

    /// An op without regions, from its mnemonic on.
    fn flat(&mut self, op: Op) {
        let kernel = self.kernel;
        let data = &kernel.ops[op];
        let operands = &data.operands[..];
        self.push(data.kind.name());
        match &data.kind {
            OpKind::Const(c) => {
                let stated = data.results.first().and_then(|&r| kernel.ty(r).scalar());
                if stated != Some(c.ty()) {
                    self.push(" ");
                    self.push(c.ty().name());
                }
                self.push(" ");
                self.constant(*c);
            }
            OpKind::StructGet(n) | OpKind::StructSet(n) | OpKind::StoreResult(n) => {
                self.push(" ");
                self.show(n);
            }
            OpKind::Extent(axis) => {
                self.push(" ");
                self.show(axis);
            }
            OpKind::Barrier(scope) | OpKind::Fence(scope) => {
                self.push(" ");
                self.push(scope.name());
            }
            OpKind::Call(function) => {
                self.push(" ");
                self.show(function);
            }
            OpKind::Print(spec) => {
                self.push(" ");
                self.string(&spec.to_string());
                self.push(if operands.is_empty() { "" } else { "," });
            }
            _ => {}
        }
        if let OpKind::Assert(kind, message) = &data.kind {
            self.push(" ");
            if let Some(word) = kind.word() {
                self.push(word);
                self.push(" ");
            }
            self.values(&operands[..operands.len().min(1)]);
            if !operands.is_empty() {
                self.push(", ");
            }
            self.string(message);
            for &argument in operands.iter().skip(1) {
                self.push(", ");
                self.value(argument);
            }
            return;
        }
        if operands.is_empty() {
            return;
        }
        self.push(" ");
        match data.kind.info().cell {
            CellUse::Addresses | CellUse::Reads => self.place(operands),
            CellUse::Writes => self.place_and(operands, 1),
            CellUse::Updates(values) => self.place_and(operands, values),
            CellUse::Nothing => match data.kind {
                OpKind::Tensor(TensorOp::Get) => self.place(operands),
                OpKind::Tensor(TensorOp::Set) => self.place_and(operands, 1),
                _ => self.values(operands),
            },
        }
    }

    fn constant(&mut self, c: Const) {
        self.push(&constant(c));
    }
}

/// A constant as text says it, without its type.
pub(super) fn constant(c: Const) -> String {
    match c.ty() {
        Scalar::U1 => if c.bits() != 0 { "true" } else { "false" }.to_string(),
        Scalar::F16 | Scalar::F32 | Scalar::F64 if !c.as_f64().is_finite() => format!("{:#x}", c.bits()),
        // A half is written as the single of the same value, which reads back exactly.
        Scalar::F16 => format!("{:?}", c.as_f64() as f32),
        Scalar::F32 => format!("{:?}", f32::from_bits(c.bits() as u32)),
        Scalar::F64 => format!("{:?}", c.as_f64()),
        _ => c.as_i128().expect("an integral type").to_string(),
    }
}
