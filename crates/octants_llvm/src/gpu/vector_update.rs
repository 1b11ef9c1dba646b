//! Sums of neighbouring reals of 32 bits by one instruction, which GPUs have from compute capability 9.0 on.
//!
//! A vector that is added to a cell is updated entry by entry, each update right behind the other. What such updates cost is how many of them
//! reach the cache, so two entries that fill an aligned word go together. Threads may then see both change at once, which they might have
//! anyway. An array may begin in the middle of a word; then there are two updates, after all.

use octants_ir::ops::AtomicOp;
use octants_ir::{Op, Scalar};

use super::runs::cell_of;
use crate::address::{Address, Target};
use crate::alias::Class;
use crate::emitter::Emitter;
use crate::value::{Ty, Val};

/// Bytes of a pair.
const PAIR: u64 = 8;

impl Emitter<'_> {
    /// Emits two ops as one, if they add to the halves of one word and nobody asks for the old values. Otherwise nothing is emitted.
    pub(super) fn vector_update(&mut self, first: Op, second: Op) -> bool {
        let Some(op) = self.updates_a_word(first, second) else { return false };
        let (first, second) = (&self.kernel.ops[first], &self.kernel.ops[second]);
        let used = |value| self.facts.used[value];
        if used(first.results[0]) || used(second.results[0]) {
            return false;
        }
        let (&low, path) = first.operands.split_last().expect("an update has a value");
        let (&high, next_path) = second.operands.split_last().expect("an update has a value");
        let Some(param) = self.kernel.as_param(path[0]) else { return false };
        let is_global = !matches!(self.array_class(param), Class::Shared(_) | Class::Unknown);
        if !is_global || cell_of(self.kernel, path).is_none_or(|cell| cell.alignment() < PAIR) {
            return false;
        }
        let (low, high) = (self.get(low), self.get(high));
        if self.group.as_ref().is_some_and(|group| group.aligned.contains(&param)) {
            let address = self.address(path);
            self.add_pair(op, address, low, high);
            return true;
        }
        let base = self.array_base(param);
        let bits = self.f.value(Ty::new(Scalar::I64, 1), format_args!("ptrtoint ptr {base} to i64"));
        let odd = self.binary("and", bits, Val::i64(PAIR as i64 - 1));
        let aligned = self.compare("eq", odd, Val::i64(0));
        let (address, next) = (self.address(path), self.address(next_path));
        let (whole, halves, done) = (self.f.new_label(), self.f.new_label(), self.f.new_label());
        let likely = self.module.cold_node();
        self.f.terminate(format_args!("br i1 {aligned}, label %{whole}, label %{halves}, !prof {likely}"));

        self.f.begin(whole);
        self.add_pair(op, address, low, high);
        self.f.jump(done);
        self.f.begin(halves);
        self.atomic_at(op, address, low);
        self.atomic_at(op, next, high);
        self.f.jump(done);
        self.f.begin(done);
        true
    }

    fn add_pair(&mut self, op: AtomicOp, address: Address, low: Val, high: Val) {
        let Target::One(pointer) = address.target else { panic!("an update of a GPU has one cell") };
        let ty = Ty::new(Scalar::F32, 1);
        let [low, high] = [low, high].map(|v| match op {
            AtomicOp::Sub => self.f.value(ty, format_args!("fneg float {v}")),
            _ => v,
        });
        let cell = self.f.pointer(format_args!("addrspacecast ptr {pointer} to ptr addrspace(1)"));
        self.f.line(format_args!(
            "call void asm sideeffect \"red.relaxed.gpu.global.add.v2.f32 [$0], {{$1, $2}};\", \
             \"l,f,f,~{{memory}}\"(ptr addrspace(1) {cell}, float {low}, float {high})"
        ));
    }
}
