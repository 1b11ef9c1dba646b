//! The state of a run: what each value holds, and what runs an op by handing it to its family.

use octants_ir::plan::{ArgKind, ArgSlot, size_and_align};
use octants_ir::{ArrayType, Const, Data, Id, Kernel, Op, OpKind, Region, Type, Value};

use crate::address_space::AddressSpace;
use crate::datum::Datum;
use crate::memory::Tape;
use crate::random::Stream;
use crate::shared::SharedMemory;
use crate::trap::{Trap, TrapKind};
use crate::{arith, bits, compare, convert, math, tensor};

/// An argument.
#[derive(Clone, PartialEq, Debug)]
pub enum Arg {
    Data(Datum),
    /// Elements from the address on, in the parameter's order.
    Array {
        address: u64,
        shape: Vec<i32>,
    },
    /// Elements whose distances along each axis are known at launch, in scalars. The first lies at the address.
    Strided {
        address: u64,
        shape: Vec<i32>,
        strides: Vec<i64>,
    },
    /// The first element lies at the address; the parameter's layout says where the others do.
    Field {
        address: u64,
    },
}

impl Arg {
    /// What a block of arguments holds for a parameter of the kernel.
    ///
    /// # Panics
    /// If the block is shorter than its layout says.
    pub fn in_block(kernel: &Kernel, slot: &ArgSlot, block: &[u8]) -> Self {
        let array = match slot.kind {
            ArgKind::Data(data) => {
                let (size, _) = size_and_align(kernel, data);
                let bytes = &block[slot.offset as usize..][..size as usize];
                return Self::Data(Datum::from_bytes(kernel, data, bytes));
            }
            ArgKind::Array(array) => array,
        };
        let address = u64::from_le_bytes(bytes_at(block, slot.offset));
        if array.layout.is_some() {
            return Self::Field { address };
        }
        let extent = |axis| i32::from_le_bytes(bytes_at(block, slot.extent_offset(axis)));
        let shape = (0..array.rank).map(extent).collect();
        if !array.has_strides() {
            return Self::Array { address, shape };
        }
        let stride = |axis| i64::from_le_bytes(bytes_at(block, slot.stride_offset(axis)));
        Self::Strided { address, shape, strides: (0..array.rank).map(stride).collect() }
    }
}

fn bytes_at<const N: usize>(block: &[u8], offset: u32) -> [u8; N] {
    let offset = offset as usize;
    block[offset..offset + N].try_into().expect("a slice of that length")
}

fn is_shape(shape: &[i32], array: ArrayType) -> bool {
    shape.len() == array.rank as usize && shape.iter().all(|&extent| extent >= 0)
}

/// What ends a run that would go on.
#[derive(Clone, Copy, Default)]
pub struct Limits<'a> {
    /// At most this many ops.
    pub steps: Option<u64>,
    /// Asked now and then: whether the run is to end.
    pub cancel: Option<&'a (dyn Fn() -> bool + Sync)>,
}

/// Called with the `print` that ran, and the scalars of its operands in order.
pub type PrintHandler<'a> = &'a mut dyn FnMut(Op, &[Const]);

/// An access of an array's memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MemoryAccess {
    pub op: Op,
    pub address: u64,
    pub writes: bool,
    /// Which iteration of a parallel loop makes it: the number of the loop's run, and that of the iteration.
    pub iteration: Option<(u64, u64)>,
}

/// Called with each access of memory.
pub type AccessHandler<'a> = &'a mut dyn FnMut(MemoryAccess);

/// What a run needs beside arguments and memory.
pub struct RunContext<'a> {
    /// What `launch_key` gives: random numbers follow from it.
    pub key: u64,
    /// Called for each `print`; [`octants_ir::format`] makes it text.
    pub on_print: Option<PrintHandler<'a>>,
    pub on_access: Option<AccessHandler<'a>>,
    /// Bytes of this thread's stack that calls may use. The default suits a thread with two megabytes.
    pub stack_bytes: usize,
}

impl Default for RunContext<'_> {
    fn default() -> Self {
        Self { key: 0, on_print: None, on_access: None, stack_bytes: 1 << 20 }
    }
}

pub(crate) struct Machine<'a> {
    pub kernel: &'a Kernel,
    args: &'a [Arg],
    pub memory: &'a mut dyn AddressSpace,
    limits: &'a Limits<'a>,
    steps: u64,
    /// By value: what it is.
    pub values: Vec<Datum>,
    /// By value: which cell a `local` or `temp` is, which tape, or which parameter of the kernel an array is.
    pub places: Vec<Option<usize>>,
    /// What variables hold. Those of a call come after those of its caller.
    pub cells: Vec<Datum>,
    pub tapes: Vec<Tape>,
    pub results: Vec<Datum>,
    pub context: RunContext<'a>,
    /// Where this run's stack begins.
    pub stack_base: usize,
    /// How many calls of functions are under way that run to their end, whoever asks them to stop.
    pub whole_calls: usize,
    pub stream: Stream,
    pub shared: SharedMemory,
    /// How many times a parallel loop has begun, and the iteration of one that runs now, unless its iterations run one after the other.
    pub loops_begun: u64,
    pub iteration: Option<(u64, u64)>,
}

impl<'a> Machine<'a> {
    pub fn new(
        kernel: &'a Kernel,
        args: &'a [Arg],
        memory: &'a mut dyn AddressSpace,
        limits: &'a Limits<'a>,
        context: RunContext<'a>,
    ) -> Result<Self, Trap> {
        let unset = Datum::Scalar(octants_ir::Const::bool(false));
        let mut values = vec![unset; kernel.values.len()];
        let mut places = vec![None; kernel.values.len()];
        let params = &kernel.regions[kernel.body].params;
        let refuse = |message: String| Err(Trap::nowhere(TrapKind::Arguments(message)));
        if params.len() != args.len() {
            return refuse(format!("{} arguments for {} parameters", args.len(), params.len()));
        }
        for (index, (&param, arg)) in params.iter().zip(args).enumerate() {
            match (kernel.ty(param), arg) {
                (Type::Data(data), Arg::Data(datum)) if datum.fits(kernel, data) => {
                    values[param.index()] = datum.clone();
                }
                (Type::Array(array), Arg::Array { shape, .. })
                    if array.layout.is_none() && !array.has_strides() && is_shape(shape, array) =>
                {
                    places[param.index()] = Some(index);
                }
                (Type::Array(array), Arg::Strided { shape, strides, .. })
                    if array.has_strides() && is_shape(shape, array) && strides.len() == shape.len() =>
                {
                    places[param.index()] = Some(index);
                }
                (Type::Array(ArrayType { layout: Some(_), .. }), Arg::Field { .. }) => {
                    places[param.index()] = Some(index);
                }
                (ty, _) => return refuse(format!("argument {index} is no {ty}")),
            }
        }
        let results = kernel.results.iter().map(|&data| Datum::zero(kernel, data)).collect();
        Ok(Self {
            kernel,
            args,
            memory,
            limits,
            steps: 0,
            values,
            places,
            cells: Vec::new(),
            tapes: Vec::new(),
            results,
            context,
            stack_base: crate::call::stack_position(),
            whole_calls: 0,
            stream: Stream::default(),
            shared: SharedMemory::default(),
            loops_begun: 0,
            iteration: None,
        })
    }

    pub fn run(mut self) -> Result<Vec<Datum>, Trap> {
        let returned = self.ops(self.kernel.body)?;
        // A kernel that is split into tasks stores its results and returns nothing.
        Ok(if returned.is_empty() { self.results } else { returned })
    }

    pub fn get(&self, value: Value) -> &Datum {
        &self.values[value.index()]
    }

    pub fn set(&mut self, value: Value, datum: Datum) {
        self.values[value.index()] = datum;
    }

    /// What a variable holds.
    pub fn cell(&mut self, place: Value) -> &mut Datum {
        let cell = self.places[place.index()].expect("a variable is declared before it is used");
        &mut self.cells[cell]
    }

    /// A variable comes to life, or begins again.
    fn declare(&mut self, place: Value, zero: Datum) {
        let cells = &mut self.cells;
        if let Some(cell) = self.places[place.index()] {
            cells[cell] = zero;
        } else {
            self.places[place.index()] = Some(cells.len());
            cells.push(zero);
        }
    }

    pub fn operand(&self, op: Op, index: usize) -> &Datum {
        self.get(self.kernel.ops[op].operands[index])
    }

    pub fn operand_data(&self, values: &[Value]) -> Vec<Datum> {
        values.iter().map(|&v| self.get(v).clone()).collect()
    }

    /// Which parameter an array or field is, its address, and the shape of an array.
    pub fn array(&self, base: Value) -> (usize, u64, &'a [i32]) {
        let param = self.places[base.index()].unwrap_or_default();
        let Some(arg) = self.args.get(param) else {
            return (param, self.shared.address(param - self.args.len()), &[]);
        };
        match arg {
            Arg::Array { address, shape } | Arg::Strided { address, shape, .. } => (param, *address, shape),
            Arg::Field { address } => (param, *address, &[]),
            Arg::Data(_) => (param, 0, &[]),
        }
    }

    /// Which parameter a field of the block's memory counts as: those behind the kernel's own.
    pub fn shared_array(&mut self, op: Op) -> usize {
        let Type::Array(array) = self.kernel.ty(self.kernel.ops[op].results[0]) else {
            unreachable!("the laws say that it gives a field")
        };
        let (element, _) = size_and_align(self.kernel, array.elem);
        let bytes = self.kernel.layout(array).map_or(0, |layout| layout.span(element));
        self.args.len() + self.shared.array(op, bytes as usize)
    }

    /// The strides of an array that is not dense, in scalars.
    pub fn strides(&self, param: usize) -> &'a [i64] {
        match &self.args[param] {
            Arg::Strided { strides, .. } => strides,
            Arg::Array { .. } | Arg::Field { .. } | Arg::Data(_) => &[],
        }
    }

    pub fn trap<T>(&self, op: Op, kind: TrapKind) -> Result<T, Trap> {
        Err(Trap::at(self.kernel, op, kind))
    }

    pub fn step(&mut self, op: Op) -> Result<(), Trap> {
        self.steps += 1;
        if self.limits.steps.is_some_and(|limit| self.steps > limit) {
            return self.trap(op, TrapKind::StepLimit);
        }
        // An atomic read per op would be most of an op's time.
        if self.steps.is_multiple_of(256) && self.whole_calls == 0 && self.is_to_stop() {
            return self.trap(op, TrapKind::Cancelled);
        }
        Ok(())
    }

    fn is_to_stop(&self) -> bool {
        self.limits.cancel.is_some_and(|is_wanted| is_wanted())
    }

    /// Runs a region with its parameters set; what its terminator hands on.
    pub fn region(
        &mut self,
        region: Region,
        params: impl IntoIterator<Item = Datum>,
    ) -> Result<Vec<Datum>, Trap> {
        let kernel = self.kernel;
        for (&param, datum) in kernel.regions[region].params.iter().zip(params) {
            self.set(param, datum);
        }
        self.ops(region)
    }

    fn ops(&mut self, region: Region) -> Result<Vec<Datum>, Trap> {
        let kernel = self.kernel;
        for &op in &kernel.regions[region].ops {
            self.step(op)?;
            if kernel.ops[op].kind.is_terminator() {
                return Ok(self.operand_data(&kernel.ops[op].operands));
            }
            self.op(op)?;
        }
        Ok(Vec::new())
    }

    pub fn op(&mut self, op: Op) -> Result<(), Trap> {
        let kernel = self.kernel;
        let data = &kernel.ops[op];
        let value = match &data.kind {
            OpKind::Const(c) => Datum::Scalar(*c),
            OpKind::Arith(arith) if arith.operands() == 1 => {
                self.operand(op, 0).map(|a| arith::unary(*arith, a))
            }
            OpKind::Arith(arith) => {
                self.operand(op, 0).zip(self.operand(op, 1), |a, b| arith::binary(*arith, a, b))
            }
            OpKind::Bit(bit) => self.operand(op, 0).zip(self.operand(op, 1), |a, b| bits::binary(*bit, a, b)),
            OpKind::BitUnary(bit) => self.operand(op, 0).map(|a| bits::unary(*bit, a)),
            OpKind::Compare(compare) => {
                self.operand(op, 0).zip(self.operand(op, 1), |a, b| compare::compare(*compare, a, b))
            }
            OpKind::Select => compare::select(self.operand(op, 0), self.operand(op, 1), self.operand(op, 2)),
            OpKind::Math(math) => {
                self.operand(op, 0).zip(self.operand(op, 1), |a, b| math::binary(*math, a, b))
            }
            OpKind::MathUnary(math) => self.operand(op, 0).map(|a| math::unary(*math, a)),
            OpKind::Convert(convert) => {
                let to = self.result_data(op).elem().unwrap_or(octants_ir::Scalar::I32);
                self.operand(op, 0).map(|a| convert::convert(*convert, a, to))
            }
            OpKind::Tensor(tensor) => {
                let operands = self.operand_data(&data.operands);
                tensor::tensor(*tensor, self.result_data(op), &operands)
            }
            OpKind::StructNew | OpKind::StructGet(_) | OpKind::StructSet(_) => {
                let operands = self.operand_data(&data.operands);
                tensor::structure(&data.kind, self.result_data(op), operands)
            }
            OpKind::Local | OpKind::Temp => {
                let zero = Datum::zero(kernel, self.result_data(op));
                self.declare(data.results[0], zero);
                return Ok(());
            }
            OpKind::Tape => {
                self.make_tape(op);
                return Ok(());
            }
            // Whoever owns the memory raises the count.
            OpKind::Load | OpKind::VolatileLoad => self.load(op)?,
            OpKind::GrowPool if self.is_to_stop() => Datum::Scalar(Const::i32(-1)),
            OpKind::GrowPool => self.load(op)?,
            OpKind::Store => return self.store(op),
            OpKind::Atomic(atomic) => self.atomic(op, *atomic)?,
            OpKind::AtomicCas => self.atomic_cas(op)?,
            OpKind::Extent(axis) => self.extent(op, *axis),
            OpKind::Address => self.address_of(op)?,
            OpKind::If => return self.if_op(op),
            OpKind::For | OpKind::ForLanes => return self.for_op(op),
            OpKind::ForCells(layout) => return self.for_cells(op, *layout),
            OpKind::While => return self.while_op(op),
            OpKind::ParallelFor(_) => return self.parallel_for(op),
            OpKind::Serial => return self.region(data.regions[0], []).map(drop),
            OpKind::Fork => return self.fork(op),
            OpKind::StoreResult(number) => {
                self.results[*number as usize] = self.operand(op, 0).clone();
                return Ok(());
            }
            OpKind::Assert(_, message) => return self.assert_op(op, message),
            OpKind::Print(_) => {
                self.print(op);
                return Ok(());
            }
            OpKind::Random => self.random(self.result_data(op).elem().unwrap_or(octants_ir::Scalar::I32)),
            OpKind::LaunchKey => Datum::Scalar(Const::from_bits(octants_ir::Scalar::U64, self.context.key)),
            OpKind::Clock => Datum::Scalar(Const::from_bits(octants_ir::Scalar::I64, clock())),
            OpKind::Call(function) => return self.call(op, *function),
            // One lane after another has done what came before.
            OpKind::Fence(_) => return Ok(()),
            // The iteration is a block of its own.
            OpKind::Shared => {
                let place = self.shared_array(op);
                self.shared.clear(place - self.args.len());
                self.places[data.results[0].index()] = Some(place);
                return Ok(());
            }
            OpKind::Barrier(_) | OpKind::BarrierCount | OpKind::Shuffle(_) | OpKind::Ballot => {
                unreachable!("lanes run `{}` together", data.kind.name())
            }
            // They end the region's loop before they come here.
            OpKind::Yield | OpKind::Return => return Ok(()),
        };
        self.set(data.results[0], value);
        Ok(())
    }

    /// What the only result is, or what the cell holds that it names.
    pub fn result_data(&self, op: Op) -> Data {
        match self.kernel.ty(self.kernel.ops[op].results[0]) {
            Type::Data(data) | Type::Local(data) | Type::Temp(data) => data,
            Type::Array(array) => array.elem,
            Type::Tape(scalar) => Data::Scalar(scalar),
        }
    }
}

/// Nanoseconds since the process first asked.
fn clock() -> u64 {
    static START: std::sync::OnceLock<std::time::Instant> = std::sync::OnceLock::new();
    START.get_or_init(std::time::Instant::now).elapsed().as_nanos() as u64 + 1
}
