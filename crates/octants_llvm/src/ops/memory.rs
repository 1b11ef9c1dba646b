//! Variables, loads and stores.

use octants_ir::ops::ConvertOp;
use octants_ir::{Const, Op, OpKind, Scalar, Type, Value};

use crate::address::{Address, Target, elem_of};
use crate::alias::Class;
use crate::emitter::Emitter;
use crate::value::{Ty, Typed, Val, in_memory};

/// More cells of a tape than any machine has memory for; as bytes of any scalar in any number of lanes they are still an `i64`.
const MOST_CELLS: i64 = 1 << 48;
/// Tapes that are taken together, so that their bytes are still an `i64`. A call for each of 40 took a quarter of the compile time of `benches/gradient_growth.py`.
const MOST_TAPES: usize = 32;
/// Bytes at whose multiples tapes begin, for any vector.
const TAPE_ALIGN: i64 = 64;

impl Emitter<'_> {
    /// A variable: room in the function's frame, zeroed here, each time that the op runs.
    pub(crate) fn local(&mut self, local: Value) {
        let Type::Local(data) = self.kernel.ty(local) else { panic!("{local} is no variable") };
        let scalar = in_memory(elem_of(data));
        let scalars = data.tensor_shape().map_or(1, octants_ir::TensorShape::count) * self.lanes.count;
        let ty = format!("[{scalars} x {}]", Ty::new(scalar, 1));
        // Wide enough for any vector register.
        let align = if self.lanes.count == 1 { scalar.bytes() } else { 64 };
        let pointer = self.f.in_entry(|f| f.pointer(format_args!("alloca {ty}, align {align}")));
        self.locals.set(local, Some(pointer));
        // All lanes: one that does not run here has no such variable.
        self.f.line(format_args!("store {ty} zeroinitializer, ptr {pointer}, align {align}"));
    }

    /// Memory for so many scalars, in each lane, those of neighbouring lanes side by side. `ops` are those of the region: its tapes of as many cells
    /// are taken together, by the first one's op.
    pub(crate) fn tape(&mut self, op: Op, ops: &[Op]) {
        let kernel = self.kernel;
        let shape_of = |op: Op| match (&kernel.ops[op].kind, kernel.ty(kernel.ops[op].results[0])) {
            (OpKind::Tape, Type::Tape(scalar)) => {
                Some((kernel.ops[op].operands[0], in_memory(scalar).bytes()))
            }
            _ => None,
        };
        let Some(alike @ (count, scalar_bytes)) = shape_of(op) else { panic!("{op} makes no tape") };
        let is_alike =
            |&&other: &&Op| kernel.ops[other].kind == OpKind::Tape && shape_of(other) == Some(alike);
        let together: Vec<Op> = ops.iter().filter(is_alike).copied().collect();
        let number = together.iter().position(|&other| other == op).expect("the region has the op");
        if number % MOST_TAPES != 0 {
            return;
        }
        let together = &together[number..together.len().min(number + MOST_TAPES)];
        let count = self.get(count);
        let count = self.conversion(ConvertOp::Cast, count, Scalar::I64);
        let count = self.most(count);
        let columns = self.tape_columns();
        let cells = self.binary("mul", count, columns);
        let mut bytes = self.binary("mul", cells, Val::i64(scalar_bytes.into()));
        let mut all = bytes;
        if together.len() > 1 {
            let more = self.binary("add", bytes, Val::i64(TAPE_ALIGN - 1));
            bytes = self.binary("and", more, Val::i64(-TAPE_ALIGN));
            all = self.binary("mul", bytes, Val::i64(together.len() as i64));
        }
        let lowering = self.lowering;
        let mut pointer = lowering.take_tape(self, all);
        let (there, fails) = (self.f.new_label(), self.f.new_label());
        let unlikely = self.module.cold_node();
        let found = self.f.define(format_args!("icmp ne ptr {pointer}, null"));
        self.f.terminate(format_args!("br i1 %v{found}, label %{there}, label %{fails}, !prof {unlikely}"));
        self.f.begin(fails);
        self.fail(op, &[all]);
        self.f.begin(there);
        for (number, &made) in together.iter().enumerate() {
            if number > 0 {
                pointer =
                    self.f.pointer(format_args!("getelementptr inbounds i8, ptr {pointer}, i64 {bytes}"));
            }
            self.locals.set(kernel.ops[made].results[0], Some(pointer));
        }
    }

    /// The greatest count of the lanes that run, from zero to what is surely more than there is memory for.
    fn most(&mut self, count: Val) -> Val {
        let count = match self.running_lanes().filter(|_| count.lanes > 1) {
            Some(running) => self.select(running, count, Val::i64(0)),
            None => count,
        };
        let count = if count.lanes > 1 {
            let ty = count.ty();
            let symbol = format!("llvm.vector.reduce.smax.{}", ty.mangled());
            self.module.declare(&symbol, || format!("declare i64 @{symbol}({ty})"));
            self.f.value(Ty::new(Scalar::I64, 1), format_args!("call i64 @{symbol}({})", Typed(count)))
        } else {
            count
        };
        let least = self.intrinsic("llvm.smax", &[count, Val::i64(0)], "");
        self.intrinsic("llvm.smin", &[least, Val::i64(MOST_CELLS)], "")
    }

    /// The tapes of a region live as long as it runs.
    pub(crate) fn release_tapes(&mut self, ops: &[Op]) {
        let tapes = ops.iter().find(|&&op| self.kernel.ops[op].kind == OpKind::Tape);
        if let Some(first) = tapes.and_then(|&op| self.locals[self.kernel.ops[op].results[0]]) {
            let lowering = self.lowering;
            lowering.release_tapes(self, first);
        }
    }

    pub(crate) fn load(&mut self, path: &[Value]) -> Val {
        let address = self.address(path);
        self.load_at(address)
    }

    pub(crate) fn load_at(&mut self, address: Address) -> Val {
        let scalar = in_memory(address.scalar);
        let address = self.loaded_cells(address);
        let align = address.align;
        let suffix = self.load_suffix(address.class);
        let lanes = self.lanes.count;
        let mask = if matches!(address.target, Target::One(_)) { None } else { self.running_lanes() };
        let loaded = match (address.target, mask) {
            (Target::One(p), _) => {
                let ty = Ty::new(scalar, 1);
                self.f.value(ty, format_args!("load {ty}, ptr {p}, align {align}{suffix}"))
            }
            (Target::Run(p), None) => {
                let ty = Ty::new(scalar, lanes);
                self.f.value(ty, format_args!("load {ty}, ptr {p}, align {align}{suffix}"))
            }
            (Target::Run(_), Some(_)) if !self.can_mask(scalar) => {
                return self.load_by_lane(address.scalar, |e, lane| {
                    let pointer = e.cell_of_lane(address, lane, lanes);
                    e.load_at(Address { target: Target::One(pointer), ..address })
                });
            }
            (Target::Run(p), Some(mask)) => {
                let ty = Ty::new(scalar, lanes);
                let symbol = format!("llvm.masked.load.{}.p0", ty.mangled());
                self.module.declare(&symbol, || {
                    format!("declare {ty} @{symbol}(ptr, i32 immarg, <{lanes} x i1>, {ty})")
                });
                self.f.value(
                    ty,
                    format_args!(
                        "call {ty} @{symbol}(ptr {p}, i32 {align}, {}, {ty} zeroinitializer){suffix}",
                        Typed(mask)
                    ),
                )
            }
            (Target::Offsets(first, table), _) => self.load_offsets((first, table), scalar, &suffix),
            (Target::Each(_), _) if !self.can_gather(scalar) => {
                return self.load_by_lane(address.scalar, |e, lane| {
                    let pointer = e.cell_of_lane(address, lane, lanes);
                    e.load_at(Address { target: Target::One(pointer), ..address })
                });
            }
            (Target::Each(p), mask) => {
                let ty = Ty::new(scalar, lanes);
                let symbol = format!("llvm.masked.gather.{}.v{lanes}p0", ty.mangled());
                self.module.declare(&symbol, || {
                    format!("declare {ty} @{symbol}(<{lanes} x ptr>, i32 immarg, <{lanes} x i1>, {ty})")
                });
                let mask = mask.unwrap_or_else(|| all_lanes(lanes));
                self.f.value(
                    ty,
                    format_args!(
                        "call {ty} @{symbol}(<{lanes} x ptr> {p}, i32 {align}, {}, {ty} zeroinitializer){suffix}",
                        Typed(mask)
                    ),
                )
            }
        };
        self.read_memory(loaded, address.scalar)
    }

    /// What is written behind a load of memory of a class.
    pub(crate) fn load_suffix(&mut self, class: Class) -> String {
        let suffix = self.scopes.suffix(&mut self.module, class);
        let never_written = match class {
            Class::ReadOnly => self.lowering.marks_read_only_loads(),
            Class::Array(param) => self.unwritten.contains(&param),
            _ => false,
        };
        if !never_written {
            return suffix;
        }
        let never_changes = self.module.empty_node();
        format!("{suffix}, !invariant.load {never_changes}")
    }

    /// A load that is never merged, moved or cached; other threads may be writing the cell.
    pub(crate) fn volatile_load(&mut self, path: &[Value]) -> Val {
        let address = self.address(path);
        let scalar = in_memory(address.scalar);
        let (ty, align) = (Ty::new(scalar, 1), scalar.bytes());
        let pointer = address.one_cell();
        let suffix = self.scopes.suffix(&mut self.module, address.class);
        let loaded = self.f.value(
            ty,
            format_args!("load atomic volatile {ty}, ptr {pointer} monotonic, align {align}{suffix}"),
        );
        self.read_memory(loaded, address.scalar)
    }

    pub(crate) fn store(&mut self, path: &[Value], value: Val) {
        let address = self.address(path);
        self.store_at(address, value);
    }

    /// Nothing is replaced by a store with components outside their shape.
    pub(crate) fn store_at(&mut self, address: Address, value: Val) {
        match address.inside {
            None => self.write_at(address, value),
            Some(inside) if inside.lanes == 1 => {
                let (write, done) = (self.f.new_label(), self.f.new_label());
                self.f.branch(inside, write, done);
                self.f.begin(write);
                self.write_at(address, value);
                self.f.jump(done);
                self.f.begin(done);
            }
            Some(inside) => {
                let lanes = self.narrowed(inside);
                self.under(lanes, |e| e.write_at(address, value));
            }
        }
    }

    fn write_at(&mut self, address: Address, value: Val) {
        let value = self.memory_form(value);
        if let Target::Offsets(first, table) = address.target
            && self.lanes.mask.is_none()
            && !self.can_scatter(value.ty)
        {
            return self.store_one_by_one((first, table), value, address);
        }
        let address = self.each_cell(address);
        let align = address.align;
        let suffix = self.scopes.suffix(&mut self.module, address.class);
        let lanes = self.lanes.count;
        let mask = if matches!(address.target, Target::One(_)) { None } else { self.running_lanes() };
        match (address.target, mask) {
            (Target::One(p), _) => {
                let value = self.last_lane(value);
                self.f.line(format_args!("store {}, ptr {p}, align {align}{suffix}", Typed(value)));
            }
            (Target::Run(p), None) => {
                let value = self.spread(value, lanes);
                self.f.line(format_args!("store {}, ptr {p}, align {align}{suffix}", Typed(value)));
            }
            (Target::Run(_), Some(_)) if !self.can_mask(value.ty) => self.each_running_lane(|e, lane| {
                let pointer = e.cell_of_lane(address, lane, lanes);
                let value = e.lane_at(value, lane);
                e.f.line(format_args!("store {}, ptr {pointer}, align {align}{suffix}", Typed(value)));
            }),
            (Target::Run(p), Some(mask)) => {
                let value = self.spread(value, lanes);
                let ty = value.ty();
                let symbol = format!("llvm.masked.store.{}.p0", ty.mangled());
                self.module.declare(&symbol, || {
                    format!("declare void @{symbol}({ty}, ptr, i32 immarg, <{lanes} x i1>)")
                });
                self.f.line(format_args!(
                    "call void @{symbol}({}, ptr {p}, i32 {align}, {}){suffix}",
                    Typed(value),
                    Typed(mask)
                ));
            }
            (Target::Offsets(..), _) => unreachable!("each cell has an address"),
            (Target::Each(_), _) if !self.can_scatter(value.ty) => self.each_running_lane(|e, lane| {
                let pointer = e.cell_of_lane(address, lane, lanes);
                let value = e.lane_at(value, lane);
                e.f.line(format_args!("store {}, ptr {pointer}, align {align}{suffix}", Typed(value)));
            }),
            (Target::Each(p), mask) => {
                let value = self.spread(value, lanes);
                let ty = value.ty();
                let symbol = format!("llvm.masked.scatter.{}.v{lanes}p0", ty.mangled());
                self.module.declare(&symbol, || {
                    format!("declare void @{symbol}({ty}, <{lanes} x ptr>, i32 immarg, <{lanes} x i1>)")
                });
                let mask = mask.unwrap_or_else(|| all_lanes(lanes));
                self.f.line(format_args!(
                    "call void @{symbol}({}, <{lanes} x ptr> {p}, i32 {align}, {}){suffix}",
                    Typed(value),
                    Typed(mask)
                ));
            }
        }
    }

    /// Whether the target has instructions for it; otherwise LLVM would write out something for each lane.
    fn can_mask(&self, scalar: Scalar) -> bool {
        self.lowering.vector_bits() >= 512 || self.lowering.vector_bits() >= 256 && scalar.bits() >= 32
    }

    fn can_gather(&self, scalar: Scalar) -> bool {
        scalar.bits() >= 32 && self.lowering.vector_bits() >= 256
    }

    fn can_scatter(&self, scalar: Scalar) -> bool {
        scalar.bits() >= 32 && self.lowering.vector_bits() >= 512
    }

    /// What the last lane that runs holds: of several stores to one cell the last one stays.
    fn last_lane(&mut self, v: Val) -> Val {
        match self.lanes.mask {
            _ if v.lanes == 1 => v,
            None => self.lane(v, v.lanes - 1),
            Some(mask) => {
                let bits = self.mask_bits(mask);
                let width = v.lanes;
                let symbol = format!("llvm.ctlz.i{width}");
                self.module.declare(&symbol, || format!("declare i{width} @{symbol}(i{width}, i1)"));
                let above =
                    self.f.define(format_args!("call i{width} @{symbol}(i{width} %v{bits}, i1 true)"));
                let last = self.f.define(format_args!("sub i{width} {}, %v{above}", width - 1));
                self.f.value(Ty::new(v.ty, 1), format_args!("extractelement {}, i{width} %v{last}", Typed(v)))
            }
        }
    }

    /// A `u1` is any byte but 0.
    pub(crate) fn read_memory(&mut self, v: Val, scalar: Scalar) -> Val {
        if scalar == Scalar::U1 { self.compare("ne", v, Val::int(v.ty, 0)) } else { v.read_as(scalar) }
    }

    /// A `u1` becomes the byte 0 or 1.
    pub(crate) fn memory_form(&mut self, v: Val) -> Val {
        if v.ty == Scalar::U1 { self.resize(v, Scalar::U8) } else { v }
    }
}

fn all_lanes(lanes: u32) -> Val {
    Val { lanes, ..Val::constant(Const::bool(true)) }
}
