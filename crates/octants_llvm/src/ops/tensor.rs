//! Tensors and structs where memory has them whole: inside parameters, in results, and structs in arrays. Everything else is
//! scalars by now.

use octants_ir::ops::TensorOp;
use octants_ir::plan::{leaves_of, part_of_param, size_and_align};
use octants_ir::{Data, Op, OpKind, Type, Value};

use crate::address::{Address, Target};
use crate::alias::Class;
use crate::counter::Index;
use crate::emitter::Emitter;
use crate::value::{Ptr, Typed, Val, in_memory};

impl Emitter<'_> {
    /// `tensor`, `tensor_get`, `struct_new`, `struct_get`.
    pub(crate) fn assembly(&mut self, op: Op) {
        let data = &self.kernel.ops[op];
        let result = data.results[0];
        if let Some((param, offset, part)) = part_of_param(self.kernel, result) {
            // What is no scalar is read when its scalars are.
            if let Data::Scalar(scalar) = part {
                let value = self.load_part(param, offset, scalar);
                self.set(result, value);
            }
            return;
        }
        let leaves = match &data.kind {
            OpKind::Tensor(TensorOp::New) | OpKind::StructNew => {
                data.operands.iter().flat_map(|&operand| self.leaves(operand)).collect()
            }
            OpKind::Tensor(TensorOp::Get) => {
                let tensor = self.leaves(data.operands[0]);
                let shape = self.kernel.ty(data.operands[0]).data().and_then(Data::tensor_shape);
                let dims = shape.unwrap_or_else(|| panic!("{op} takes an entry of no tensor")).dims();
                let mut position = 0;
                for (&component, extent) in data.operands[1..].iter().zip(dims) {
                    let component = self.get(component).as_int().and_then(|c| usize::try_from(c).ok());
                    position = position * extent as usize
                        + component.unwrap_or_else(|| panic!("{op} takes an entry that is not fixed"));
                }
                vec![tensor[position]]
            }
            OpKind::StructGet(member) => {
                let whole = data.operands[0];
                let Some(Data::Struct(id)) = self.kernel.ty(whole).data() else {
                    panic!("{op} takes a member of no struct")
                };
                let count = |data: Data| leaves_of(self.kernel, data).len();
                let members = &self.kernel.structs[id].members;
                let begin: usize = members[..*member as usize].iter().map(|&(_, data)| count(data)).sum();
                let end = begin + count(members[*member as usize].1);
                self.leaves(whole)[begin..end].to_vec()
            }
            other => panic!("{op} ({}) should have become scalars", other.name()),
        };
        self.set_leaves(result, leaves);
    }

    /// The scalars of a value, in the order of memory.
    fn leaves(&mut self, value: Value) -> Vec<Val> {
        if self.kernel.ty(value).scalar().is_some() {
            return vec![self.get(value)];
        }
        if let Some(leaves) = &self.aggregates[value] {
            return leaves.clone();
        }
        let part = part_of_param(self.kernel, value);
        let (param, offset, data) = part.unwrap_or_else(|| panic!("{value} is used before it was emitted"));
        let leaves = leaves_of(self.kernel, data);
        leaves.into_iter().map(|(at, scalar)| self.load_part(param, offset + at, scalar)).collect()
    }

    fn set_leaves(&mut self, value: Value, leaves: Vec<Val>) {
        if self.kernel.ty(value).scalar().is_some() {
            self.set(value, leaves[0]);
        } else {
            self.aggregates.set(value, Some(leaves));
        }
    }

    /// Whether a base addresses structs.
    pub(crate) fn holds_structs(&self, base: Value) -> bool {
        matches!(self.kernel.ty(base).place(), Some((Data::Struct(_), _)))
    }

    /// Loads a struct from an array, scalar by scalar.
    pub(crate) fn load_struct(&mut self, path: &[Value], result: Value) {
        let (address, class, data) = self.struct_address(path);
        let leaves = leaves_of(self.kernel, data)
            .into_iter()
            .map(|(offset, scalar)| {
                let target = self.leaf(address, offset);
                let align = in_memory(scalar).bytes();
                self.load_at(Address { target, scalar, class, align, inside: None, exclusive: false })
            })
            .collect();
        self.set_leaves(result, leaves);
    }

    /// Stores a struct into an array, scalar by scalar: what lies between them stays.
    pub(crate) fn store_struct(&mut self, path: &[Value], value: Value) {
        let (address, class, data) = self.struct_address(path);
        let values = self.leaves(value);
        for ((offset, scalar), value) in leaves_of(self.kernel, data).into_iter().zip(values) {
            let target = self.leaf(address, offset);
            let align = in_memory(scalar).bytes();
            self.store_at(Address { target, scalar, class, align, inside: None, exclusive: false }, value);
        }
    }

    fn leaf(&mut self, address: Ptr, offset: u32) -> Target {
        let instruction = format_args!("getelementptr inbounds i8, ptr {address}, i64 {offset}");
        Target::One(self.f.pointer(instruction))
    }

    fn struct_address(&mut self, path: &[Value]) -> (Ptr, Class, Data) {
        let (&base, indices) = path.split_first().expect("an address begins with a base");
        let Type::Array(array) = self.kernel.ty(base) else {
            panic!("{base} holds a struct, and is no array")
        };
        let param = self.array_param(base);
        let Index::Linear { base: element, stride: 0 } = self.array_offset(param, array, indices) else {
            panic!("a struct is addressed by one lane")
        };
        let (size, _) = size_and_align(self.kernel, array.elem);
        let bytes = self.binary("mul nsw", element, Val::i64(size.into()));
        let begin = self.array_base(param);
        let address =
            self.f.pointer(format_args!("getelementptr inbounds i8, ptr {begin}, {}", Typed(bytes)));
        (address, self.array_class(param), array.elem)
    }

    /// A result of the kernel, scalar by scalar.
    pub(crate) fn store_result(&mut self, index: u32, value: Value) {
        let slot = self.plan.results.slots[index as usize];
        let values = self.leaves(value);
        let block = self.results_block();
        for ((offset, scalar), value) in leaves_of(self.kernel, slot.data).into_iter().zip(values) {
            debug_assert_eq!(scalar, value.ty, "a result has the type of its slot");
            let target = Target::One(self.pointer_at(block, slot.offset + offset));
            let (class, align) = (Class::Results, in_memory(scalar).bytes());
            self.store_at(Address { target, scalar, class, align, inside: None, exclusive: false }, value);
        }
    }

    fn pointer_at(&mut self, block: Ptr, offset: u32) -> Ptr {
        if offset == 0 {
            return block;
        }
        self.f.pointer(format_args!("getelementptr inbounds i8, ptr {block}, i64 {offset}"))
    }
}
