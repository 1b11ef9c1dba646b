//! The text of one function while it is being written: an entry block, then code block by block.
//!
//! What every call needs once (arguments, allocas) can be written into the entry block at any time. Phis are written where
//! they stand before what flows into them is known, and filled in at the end.

use std::fmt::{self, Write};

use crate::value::{Label, Ptr, Ty, Val};

pub(crate) struct Function {
    entry: String,
    code: String,
    /// What is to be inserted into `code`, by position, in order of insertion.
    pending: Vec<(usize, String)>,
    registers: u32,
    labels: u32,
    /// The block being written; `None` behind a terminator.
    current: Option<Label>,
    in_entry: bool,
}

/// A phi whose incoming values are still to come.
#[derive(Clone, Copy)]
pub(crate) struct Phi {
    position: usize,
    pub value: Val,
}

impl Function {
    /// Writing begins in the first block behind the entry.
    pub fn new() -> Self {
        let mut function = Self {
            entry: String::new(),
            code: String::new(),
            pending: Vec::new(),
            registers: 0,
            labels: 0,
            current: None,
            in_entry: false,
        };
        let start = function.new_label();
        function.begin(start);
        function
    }

    fn text(&mut self) -> &mut String {
        if self.in_entry { &mut self.entry } else { &mut self.code }
    }

    pub fn new_register(&mut self) -> u32 {
        self.registers += 1;
        self.registers - 1
    }

    pub fn new_label(&mut self) -> Label {
        self.labels += 1;
        Label(self.labels - 1)
    }

    /// Starts a block. The one before must have ended.
    pub fn begin(&mut self, label: Label) {
        debug_assert!(self.current.is_none(), "{label} begins inside a block");
        self.current = Some(label);
        writeln!(self.code, "{label}:").expect("writing to a string");
    }

    /// The block being written.
    pub fn block(&self) -> Label {
        self.current.expect("an instruction stands in a block")
    }

    /// Writes into the entry block.
    pub fn in_entry<R>(&mut self, write: impl FnOnce(&mut Self) -> R) -> R {
        let outer = std::mem::replace(&mut self.in_entry, true);
        let result = write(self);
        self.in_entry = outer;
        result
    }

    /// An instruction without a result.
    pub fn line(&mut self, instruction: fmt::Arguments<'_>) {
        writeln!(self.text(), "  {instruction}").expect("writing to a string");
    }

    /// An instruction with a result.
    pub fn define(&mut self, instruction: fmt::Arguments<'_>) -> u32 {
        let reg = self.new_register();
        self.line(format_args!("%v{reg} = {instruction}"));
        reg
    }

    pub fn value(&mut self, ty: Ty, instruction: fmt::Arguments<'_>) -> Val {
        Val::reg(self.define(instruction), ty)
    }

    pub fn pointer(&mut self, instruction: fmt::Arguments<'_>) -> Ptr {
        Ptr { reg: self.define(instruction) }
    }

    /// An instruction that ends the block.
    pub fn terminate(&mut self, instruction: fmt::Arguments<'_>) {
        self.line(instruction);
        self.current = None;
    }

    pub fn jump(&mut self, to: Label) {
        self.terminate(format_args!("br label %{to}"));
    }

    pub fn branch(&mut self, condition: Val, yes: Label, no: Label) {
        self.terminate(format_args!("br i1 {condition}, label %{yes}, label %{no}"));
    }

    /// Where the next instruction will stand.
    pub fn position(&self) -> usize {
        self.code.len()
    }

    /// Puts whole lines where something stood before.
    pub fn insert(&mut self, position: usize, lines: String) {
        self.pending.push((position, lines));
    }

    /// A phi at the start of the block being written.
    pub fn phi(&mut self, ty: Ty) -> Phi {
        let value = Val::reg(self.new_register(), ty);
        Phi { position: self.code.len(), value }
    }

    /// Fills in what flows into a phi. Phis of one block are filled in their order.
    pub fn fill(&mut self, phi: Phi, incoming: &[(Val, Label)]) {
        let mut text = format!("  {} = phi {} ", phi.value, phi.value.ty());
        for (index, (value, label)) in incoming.iter().enumerate() {
            debug_assert_eq!(value.ty(), phi.value.ty(), "a phi's incoming values have its type");
            let comma = if index == 0 { "" } else { ", " };
            write!(text, "{comma}[ {value}, %{label} ]").expect("writing to a string");
        }
        text.push('\n');
        self.pending.push((phi.position, text));
    }

    /// A phi of values that are all known.
    pub fn join(&mut self, ty: Ty, incoming: &[(Val, Label)]) -> Val {
        if let [(first, _), rest @ ..] = incoming
            && rest.iter().all(|(value, _)| value == first)
            && first.as_const().is_some()
        {
            return *first;
        }
        let phi = self.phi(ty);
        self.fill(phi, incoming);
        phi.value
    }

    /// The blocks of the function.
    pub fn finish(mut self) -> String {
        debug_assert!(self.current.is_none(), "the last block has ended");
        self.pending.sort_by_key(|&(position, _)| position);
        let mut text =
            String::with_capacity(self.entry.len() + self.code.len() + 64 * self.pending.len() + 32);
        text.push_str("entry:\n");
        text.push_str(&self.entry);
        text.push_str("  br label %b0\n");
        let mut written = 0;
        for (position, phi) in &self.pending {
            text.push_str(&self.code[written..*position]);
            text.push_str(phi);
            written = *position;
        }
        text.push_str(&self.code[written..]);
        text
    }
}
