//! Updates of two neighbouring reals of 32 bits as one exchange of 64.
//!
//! No processor adds reals in memory: each update is a loop around an exchange, and the exchange is what takes the time. A
//! vector that is added to a cell is updated component by component, each update right behind the other; where two components
//! fill an aligned word, one exchange does for both. Threads may then see both change at once, which they might have anyway.

use octants_ir::ops::AtomicOp;
use octants_ir::{Data, Op, OpKind, Scalar, Type, Value};

use crate::address::Address;
use crate::emitter::Emitter;
use crate::value::{Ptr, Ty, Typed, Val};

const PAIR: Ty = Ty { scalar: Scalar::F32, lanes: 2 };
const WORD: Ty = Ty { scalar: Scalar::I64, lanes: 1 };

impl Emitter<'_> {
    /// Emits two ops as one, if they are updates of the halves of one word. Otherwise nothing is emitted.
    pub(crate) fn atomic_pair(&mut self, first: Op, second: Op) -> bool {
        let Some(op) = self.updates_a_word(first, second) else { return false };
        let (first, second) = (&self.kernel.ops[first], &self.kernel.ops[second]);
        let (&low, path) = first.operands.split_last().expect("an update has a value");
        let high = *second.operands.last().expect("an update has a value");
        let (low, high) = (self.get(low), self.get(high));
        let address = self.address(path);
        let old = self.update_word(op, address, low, high);
        let halves = [self.lane(old, 0), self.lane(old, 1)];
        self.set(first.results[0], halves[0]);
        self.set(second.results[0], halves[1]);
        true
    }

    /// What both updates do, where they are alike, of the same element, and of neighbouring components from an even one.
    pub(crate) fn updates_a_word(&self, first: Op, second: Op) -> Option<AtomicOp> {
        let (a, b) = (&self.kernel.ops[first], &self.kernel.ops[second]);
        let (&OpKind::Atomic(op), &OpKind::Atomic(other)) = (&a.kind, &b.kind) else { return None };
        let Type::Array(array) = self.kernel.ty(a.operands[0]) else { return None };
        let Data::Tensor(tensor) = array.elem else { return None };
        let sums = op == other && matches!(op, AtomicOp::Add | AtomicOp::Sub);
        if !sums || self.lanes.count > 1 || tensor.elem != Scalar::F32 {
            return None;
        }
        // Where nobody else sees it, it does not matter where a word begins.
        let copied = self.kernel.as_param(a.operands[0]).is_some_and(|param| self.copied.contains(&param));
        if !copied && !self.is_exclusive(a.operands[0]) && tensor.shape.count() % 2 != 0 {
            return None;
        }
        let element = 1 + usize::from(array.rank);
        let same_element = a.operands[..element] == b.operands[..element];
        let independent = b.operands.last() != a.results.first();
        let dims = tensor.shape.dims();
        let low = self.constant_component(&dims, &a.operands[element..a.operands.len() - 1])?;
        let high = self.constant_component(&dims, &b.operands[element..b.operands.len() - 1])?;
        (same_element && independent && low % 2 == 0 && high == low + 1).then_some(op)
    }

    /// Which scalar of an element constant indices name, in the order of memory.
    fn constant_component(&self, dims: &[u32], indices: &[Value]) -> Option<u32> {
        dims.iter().zip(indices).try_fold(0, |before, (&dim, &index)| {
            let index = u32::try_from(self.kernel.as_const(index)?.as_i128()?).ok()?;
            (index < dim).then_some(before * dim + index)
        })
    }

    /// Gives the old pair. An array of the user's may begin in the middle of a word; then there are two updates, after all.
    fn update_word(&mut self, op: AtomicOp, address: Address, low: Val, high: Val) -> Val {
        let pointer = address.one_cell();
        if address.exclusive {
            return self.in_order(|e| {
                let suffix = e.scopes.suffix(&mut e.module, address.class);
                let old = e.f.value(PAIR, format_args!("load {PAIR}, ptr {pointer}, align 4{suffix}"));
                let value = e.pair_of(low, high);
                let new = e.combine(op, old, value);
                e.f.line(format_args!("store {}, ptr {pointer}, align 4{suffix}", Typed(new)));
                old
            });
        }
        let suffix = self.scopes.suffix(&mut self.module, address.class);
        let bits = self.f.value(WORD, format_args!("ptrtoint ptr {pointer} to i64"));
        let odd = self.binary("and", bits, Val::i64(7));
        let aligned = self.compare("eq", odd, Val::i64(0));
        let (whole, head, halves, done) =
            (self.f.new_label(), self.f.new_label(), self.f.new_label(), self.f.new_label());
        let likely = self.module.cold_node();
        self.f.terminate(format_args!("br i1 {aligned}, label %{whole}, label %{halves}, !prof {likely}"));

        self.f.begin(whole);
        let value = self.pair_of(low, high);
        let first =
            self.f.value(WORD, format_args!("load atomic i64, ptr {pointer} monotonic, align 8{suffix}"));
        self.f.jump(head);
        self.f.begin(head);
        let seen = self.f.phi(WORD);
        let old = self.f.value(PAIR, format_args!("bitcast {} to {PAIR}", Typed(seen.value)));
        let new = self.combine(op, old, value);
        let new = self.f.value(WORD, format_args!("bitcast {} to i64", Typed(new)));
        let (latest, exchanged) = self.compare_exchange(pointer, seen.value, new, 8, &suffix);
        self.f.fill(seen, &[(first, whole), (latest, head)]);
        self.f.branch(exchanged, done, head);

        self.f.begin(halves);
        let apart = self.update_halves(op, pointer, low, high);
        self.f.jump(done);
        self.f.begin(done);
        self.f.join(PAIR, &[(old, head), (apart, halves)])
    }

    fn pair_of(&mut self, low: Val, high: Val) -> Val {
        let first = self.f.value(PAIR, format_args!("insertelement {PAIR} poison, {}, i64 0", Typed(low)));
        self.f.value(PAIR, format_args!("insertelement {}, {}, i64 1", Typed(first), Typed(high)))
    }

    /// By a function, so that what hardly ever happens takes little code.
    fn update_halves(&mut self, op: AtomicOp, pointer: Ptr, low: Val, high: Val) -> Val {
        let instruction = if op == AtomicOp::Sub { "fsub" } else { "fadd" };
        let name = format!("{instruction}_halves");
        self.module.add_function_once(&name, || {
            format!(
                "define internal {PAIR} @{name}(ptr noundef %cell, float %low, float %high) cold noinline nounwind {{\n  \
                 %next = getelementptr inbounds i8, ptr %cell, i64 4\n  \
                 %a = atomicrmw {instruction} ptr %cell, float %low monotonic, align 4\n  \
                 %b = atomicrmw {instruction} ptr %next, float %high monotonic, align 4\n  \
                 %half = insertelement {PAIR} poison, float %a, i64 0\n  \
                 %pair = insertelement {PAIR} %half, float %b, i64 1\n  \
                 ret {PAIR} %pair\n}}\n"
            )
        });
        self.f
            .value(PAIR, format_args!("call {PAIR} @{name}(ptr {pointer}, {}, {})", Typed(low), Typed(high)))
    }
}
