//! The argument block and the launch's context: read in the entry block, once, before anything is written.

use octants_ir::plan::ArgKind;
use octants_ir::{Scalar, Value, ValueDef};

use crate::emitter::Emitter;
use crate::lowering::ContextField;
use crate::value::{ParamRegisters, Ptr, Ty, Val, in_memory};

impl Emitter<'_> {
    /// The value of a scalar parameter.
    pub(crate) fn load_param(&mut self, param: usize) -> Val {
        let slot = self.plan.args.slots[param];
        let ArgKind::Data(data) = slot.kind else { panic!("parameter {param} is a place, not a value") };
        let scalar = data.scalar().unwrap_or_else(|| panic!("parameter {param} is no scalar"));
        self.load_part(param, 0, scalar)
    }

    /// A scalar inside a parameter, by its distance in bytes from the beginning.
    pub(crate) fn load_part(&mut self, param: usize, offset: u32, scalar: Scalar) -> Val {
        let offset = self.plan.args.slots[param].offset + offset;
        let value = self.load_entry("%args", offset as usize, in_memory(scalar));
        if scalar != Scalar::U1 {
            return value.read_as(scalar);
        }
        self.f.in_entry(|f| f.value(Ty::new(Scalar::U1, 1), format_args!("icmp ne i8 {value}, 0")))
    }

    /// The base address of an array parameter.
    pub(crate) fn array_base(&mut self, param: usize) -> Ptr {
        if let Some(base) = self.params[param].base {
            return base;
        }
        let private = self.copied.iter().position(|&copied| copied == param);
        let base = match private {
            Some(position) if self.body == self.kernel.body => self.lowering.private_copy(self, position),
            _ => self.load_pointer("%args", self.plan.args.slots[param].offset as usize),
        };
        self.params[param].base = Some(base);
        base
    }

    /// From here on an array lies there.
    pub(crate) fn set_array_base(&mut self, param: usize, base: Ptr) {
        self.params[param].base = Some(base);
    }

    /// An extent of an array parameter, as `i32` and as `i64`.
    pub(crate) fn extent(&mut self, param: usize, axis: u8) -> (Val, Val) {
        let extents = &mut self.params[param].extents;
        if extents.len() <= axis.into() {
            extents.resize(usize::from(axis) + 1, None);
        }
        if let Some(extent) = extents[usize::from(axis)] {
            return extent;
        }
        let offset = self.plan.args.slots[param].extent_offset(axis) as usize;
        let narrow = self.load_entry("%args", offset, Scalar::I32);
        // An extent is never negative.
        let wide = self
            .f
            .in_entry(|f| f.value(Ty::new(Scalar::I64, 1), format_args!("zext nneg i32 {narrow} to i64")));
        self.params[param].extents[usize::from(axis)] = Some((narrow, wide));
        (narrow, wide)
    }

    /// The stride of an axis of an array parameter that is not dense, in scalars.
    pub(crate) fn axis_stride(&mut self, param: usize, axis: u8) -> Val {
        let strides = &mut self.params[param].strides;
        if strides.len() <= axis.into() {
            strides.resize(usize::from(axis) + 1, None);
        }
        if let Some(stride) = strides[usize::from(axis)] {
            return stride;
        }
        let offset = self.plan.args.slots[param].stride_offset(axis) as usize;
        let stride = self.load_entry("%args", offset, Scalar::I64);
        self.params[param].strides[usize::from(axis)] = Some(stride);
        stride
    }

    /// The parameter that an array value is.
    pub(crate) fn array_param(&self, array: Value) -> usize {
        match self.kernel.values[array].def {
            ValueDef::Param(region, index) if region == self.body => index as usize,
            _ => panic!("{array} is an array, but no parameter"),
        }
    }

    /// What is known of an array that a function is passed.
    pub(crate) fn known_array(&mut self, base: Ptr, extents: &[Val], strides: &[Val]) -> ParamRegisters {
        let extents = extents.iter().map(|&narrow| {
            let widen = format_args!("zext nneg i32 {narrow} to i64");
            let wide = self.f.in_entry(|f| f.value(Ty::new(Scalar::I64, 1), widen));
            Some((narrow, wide))
        });
        let strides = strides.iter().copied().map(Some).collect();
        ParamRegisters { base: Some(base), extents: extents.collect(), strides }
    }

    /// The launch's own number.
    pub(crate) fn launch_key(&mut self) -> Val {
        if let Some(key) = self.key {
            return key;
        }
        let key = self.load_entry("%frame", self.lowering.context_offset(ContextField::Key), Scalar::U64);
        *self.key.insert(key)
    }

    pub(crate) fn temps_block(&mut self) -> Ptr {
        if let Some(block) = self.temps {
            block
        } else {
            let block = self.load_pointer("%frame", self.lowering.context_offset(ContextField::Temps));
            *self.temps.insert(block)
        }
    }

    pub(crate) fn results_block(&mut self) -> Ptr {
        if let Some(block) = self.results {
            block
        } else {
            let block = self.load_pointer("%frame", self.lowering.context_offset(ContextField::Results));
            *self.results.insert(block)
        }
    }

    pub(crate) fn load_pointer(&mut self, base: &str, offset: usize) -> Ptr {
        let never_changes = self.module.empty_node();
        let address = self.entry_offset(base, offset);
        self.f.in_entry(|f| {
            f.pointer(format_args!(
                "load ptr, ptr {address}, align 8, !invariant.load {never_changes}, !noundef {never_changes}"
            ))
        })
    }

    pub(crate) fn load_entry(&mut self, base: &str, offset: usize, scalar: Scalar) -> Val {
        let never_changes = self.module.empty_node();
        let address = self.entry_offset(base, offset);
        let (ty, align) = (Ty::new(scalar, 1), scalar.bytes());
        self.f.in_entry(|f| {
            f.value(
                ty,
                format_args!(
                    "load {ty}, ptr {address}, align {align}, !invariant.load {never_changes}, !noundef {never_changes}"
                ),
            )
        })
    }

    fn entry_offset(&mut self, base: &str, bytes: usize) -> String {
        if bytes == 0 {
            return base.to_owned();
        }
        let instruction = format_args!("getelementptr inbounds i8, ptr {base}, i64 {bytes}");
        self.f.in_entry(|f| f.pointer(instruction)).to_string()
    }
}
