//! How much a run that is recorded keeps, as a kernel that runs before it: the kernel itself, without what counting does not need.
//!
//! Behind a condition that follows from random numbers or the time it counts what is kept at most ([`unforeseen`](super::unforeseen)).
//! Where a loop's end depends on memory that the kernel writes, the writes stay, too, but go to copies. Before:
//! ```text
//! parallel_for (%i: i32) in (%zero..%n) {
//!   while carry () {
//!     %1: f32 = load %x[%i]
//!     %2: u1 = lt %1, %three
//!     yield %2
//!   } do () {
//!     %3: f32 = load %x[%i]
//!     %4: f32 = mul %3, %3
//!     store %x[%i], %4
//!   }
//! }
//! ```
//! After (`%copy` and `%sizes` are new parameters):
//! ```text
//! parallel_for (%i: i32) in (%zero..%n) {
//!   %0: f32 = load %x[%i]
//!   store %copy[%i], %0
//! }
//! parallel_for (%i: i32) in (%zero..%n) {
//!   %5: i64 = while carry (%6: i64 = %none) { … as before, of %copy, and counts … }
//!   atomic_max %sizes[%zero], %5
//! }
//! ```

use octants_ir::ops::{AssertKind, ParallelFor};
use octants_ir::rewrite::{ops_in, retain_ops, use_counts};
use octants_ir::{
    ArrayType, Boundary, Builder, Kernel, Op, OpKind, Scalar, SideTable, TensorShape, Type, Value,
};

use super::dependence::Dependence;
use super::record::{Log, Purpose, insert};
use super::size_once::size_once;
use super::told::Numbers;
use crate::differentiate::refusal::Refusal;
use crate::differentiate::refusal::RefusalKind;
use crate::eliminate_dead_code::eliminate_dead_code_again;

/// A kernel that computes how much a run keeps.
#[derive(Clone, Debug)]
pub struct RecordSizes {
    /// Its parameters are those of the kernel that is recorded, then an array of 64-bit integers, zero at first, with two of them for each of
    /// [`Recording::arrays`](super::Recording::arrays), rows and columns; then [`RecordSizes::copies`].
    pub kernel: Kernel,
    pub copies: Vec<ArrayCopy>,
}

/// Memory in which the kernel that counts computes what the recorded one will leave in one of its arrays: dense, with an axis for each
/// index of an element and for each index of a scalar inside. Anything may be in it at first.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ArrayCopy {
    /// The parameter that it stands for.
    pub of: usize,
    /// Its own parameter.
    pub param: usize,
    pub scalar: Scalar,
    /// The extents of a field; an array's come with a launch.
    pub shape: Option<Vec<u32>>,
    /// The extents inside of an element.
    pub components: Vec<u32>,
}

/// Refused if what counting needs is known to nobody before the kernel runs.
pub(super) fn record_sizes(kernel: &Kernel, logs: &[Log]) -> Result<RecordSizes, Vec<Refusal>> {
    let dependence = Dependence::new(kernel, Numbers::unknown());
    let mut copied = Vec::new();
    loop {
        let counting = Counting::new(kernel, logs, &copied);
        let wanted = counting.check(&dependence, &copied)?;
        if wanted.is_empty() {
            let mut sizes = counting.on_copies(&copied);
            if copied.is_empty() {
                size_once(&mut sizes.kernel, &|_, _| false);
            }
            return Ok(sizes);
        }
        copied.extend(wanted);
    }
}

struct Counting {
    kernel: Kernel,
    sizes: Value,
    /// Loads that stand for atomic updates whose result is used: nobody knows what these will give.
    updates: SideTable<Op, bool>,
}

impl Counting {
    /// The kernel that counts, with its writes to some of the arrays.
    fn new(kernel: &Kernel, logs: &[Log], copied: &[Value]) -> Self {
        let mut counting = kernel.clone();
        counting.name = format!("{}_recorded_sizes", kernel.name);
        let sizes = Type::Array(ArrayType::array(Scalar::I64, 1, Boundary::Unsafe));
        let sizes = counting.add_param("sizes", sizes);
        let uses = use_counts(&counting);
        let mut updates = SideTable::new(false);
        for op in ops_in(&counting, counting.body) {
            let data = &counting.ops[op];
            let is_update = matches!(data.kind, OpKind::Atomic(_) | OpKind::AtomicCas);
            let used = data.results.iter().any(|&result| uses[result] > 0);
            let is_read_only =
                |base: Value| matches!(counting.ty(base), Type::Array(_)) && !copied.contains(&base);
            if is_update && used && is_read_only(data.operands[0]) {
                let place = counting.addressed(op).map(|place| place.operands().to_vec()).unwrap_or_default();
                counting.ops[op].kind = OpKind::Load;
                counting.ops[op].operands = place.into();
                updates.set(op, true);
            }
        }
        let body = counting.body;
        retain_ops(&mut counting, body, &mut |kernel, op| match kernel.ops[op].kind {
            // Copies are as large as what they stand for.
            OpKind::Assert(AssertKind::Bounds, _) => !copied.is_empty(),
            OpKind::Assert(..) | OpKind::Print(_) => false,
            _ => {
                let access = kernel.cell_access(op).filter(|access| access.writes);
                !access.is_some_and(|access| {
                    let base = access.place.base();
                    matches!(kernel.ty(base), Type::Array(_)) && !copied.contains(&base)
                })
            }
        });
        insert(&mut counting, logs, Purpose::Count(sizes));
        let end = counting.regions[body].ops.pop().expect("a region has a terminator");
        let loc = counting.ops[end].loc;
        Builder::at(&mut counting, body, loc).returns(&[]);
        counting.results.clear();
        eliminate_dead_code_again(&mut counting);
        Self { kernel: counting, sizes, updates }
    }

    /// Arrays of which counting needs what the kernel writes, beside those that are copied.
    fn check(&self, dependence: &Dependence<'_>, copied: &[Value]) -> Result<Vec<Value>, Vec<Refusal>> {
        let kernel = &self.kernel;
        let uses = use_counts(kernel);
        let (mut refusals, mut wanted) = (Vec::new(), Vec::new());
        for op in ops_in(kernel, kernel.body) {
            let data = &kernel.ops[op];
            refusals.extend(RefusalKind::of_repeating(&data.kind).map(|kind| Refusal::new(kind, data.loc)));
            match data.kind {
                _ if self.updates[op] => refusals.push(Refusal::new(RefusalKind::AtomicResult, data.loc)),
                OpKind::Atomic(_) | OpKind::AtomicCas
                    if copied.contains(&data.operands[0]) && uses[data.results[0]] > 0 =>
                {
                    refusals.push(Refusal::new(RefusalKind::AtomicResult, data.loc));
                }
                OpKind::Load | OpKind::VolatileLoad if data.operands[0] != self.sizes => {
                    let base = data.operands[0];
                    if !matches!(kernel.ty(base), Type::Array(_)) {
                        continue;
                    }
                    let is_copied = copied.contains(&base);
                    let found = dependence.writes.iter().find(|&&write| {
                        if is_copied {
                            // Which of the iterations comes first is another question each time.
                            dependence.may_race(op, write) && !dependence.is_own_cell(op, write)
                        } else {
                            dependence.may_overwrite(write, op)
                        }
                    });
                    let Some(&write) = found else { continue };
                    if !is_copied && can_be_copied(kernel, base) {
                        wanted.push(base);
                        continue;
                    }
                    refusals.push(Refusal {
                        kind: RefusalKind::Uncounted,
                        at: data.loc,
                        other: Some(kernel.ops[write].loc),
                        param: kernel.as_param(base),
                    });
                }
                _ => {}
            }
        }
        wanted.sort_unstable();
        wanted.dedup();
        if refusals.is_empty() { Ok(wanted) } else { Err(refusals) }
    }

    /// Its accesses of some arrays become those of copies, which it fills first.
    fn on_copies(self, copied: &[Value]) -> RecordSizes {
        let mut kernel = self.kernel;
        let accesses = ops_in(&kernel, kernel.body);
        let ops = std::mem::take(&mut kernel.regions[kernel.body].ops);
        let mut copies = Vec::new();
        for &array in copied {
            let copy = ArrayCopy::declare(&mut kernel, array);
            let param = kernel.regions[kernel.body].params[copy.param];
            copy.fill(&mut kernel, array, param);
            for &op in &accesses {
                if kernel.cell_access(op).is_some_and(|access| access.place.base() == array) {
                    kernel.ops[op].operands[0] = param;
                }
            }
            copies.push(copy);
        }
        kernel.regions[kernel.body].ops.extend(ops);
        RecordSizes { kernel, copies }
    }
}

/// Whether an array of its own can hold what this one does: its elements are all there, from index zero on, and nothing but their scalars is asked for.
fn can_be_copied(kernel: &Kernel, array: Value) -> bool {
    let Type::Array(ty) = kernel.ty(array) else { return false };
    let layout = ty.layout.map(|layout| &kernel.layouts[layout]);
    let plain =
        layout.is_none_or(|layout| !layout.is_sparse() && layout.origin.iter().all(|&first| first == 0));
    let path = usize::from(ty.rank) + ty.elem.component_rank();
    let is_access = |op: Op| match kernel.ops[op].kind {
        OpKind::Extent(_) => true,
        _ => kernel.cell_access(op).is_some_and(|access| {
            access.place.path().len() == path && access.values.iter().all(|&value| value != array)
        }),
    };
    let uses = |op: &Op| kernel.ops[*op].operands.contains(&array);
    plain
        && kernel.as_param(array).is_some()
        && ty.elem.elem().is_some()
        && ops_in(kernel, kernel.body).into_iter().filter(uses).all(is_access)
}

impl ArrayCopy {
    fn declare(kernel: &mut Kernel, array: Value) -> Self {
        let Type::Array(ty) = kernel.ty(array) else { unreachable!("it is an array") };
        let scalar = ty.elem.elem().expect("it has scalars");
        let components = ty.elem.tensor_shape().map(TensorShape::dims).unwrap_or_default();
        let shape = ty.layout.map(|layout| kernel.layouts[layout].shape.clone());
        let of = kernel.as_param(array).expect("it is a parameter");
        let param = kernel.params.len();
        let copy = ArrayType::array(scalar, ty.rank + components.len() as u8, ty.boundary);
        kernel.add_param(format!("{}.copy", kernel.params[of].name), Type::Array(copy));
        Self { of, param, scalar, shape, components }
    }

    /// Copies the array, at the end of the kernel's body.
    fn fill(&self, kernel: &mut Kernel, array: Value, copy: Value) {
        let Type::Array(ty) = kernel.ty(array) else { unreachable!("it is an array") };
        let mut b = Builder::new(kernel);
        let (zero, one) = (b.i32(0), b.i32(1));
        let extents: Vec<Value> = match &self.shape {
            Some(shape) => shape.iter().map(|&extent| b.i32(extent as i32)).collect(),
            None => (0..ty.rank).map(|axis| b.extent(array, axis)).collect(),
        };
        let mut bounds: Vec<_> = extents.into_iter().map(|extent| (zero, extent)).collect();
        if bounds.is_empty() {
            bounds.push((zero, one));
        }
        b.parallel_for(&bounds, ParallelFor::default(), |b, indices| {
            let element = &indices[..ty.rank.into()];
            for at in 0..self.components.iter().product() {
                let mut left: u32 = at;
                let mut inside: Vec<u32> = Vec::new();
                for &extent in self.components.iter().rev() {
                    inside.push(left % extent);
                    left /= extent;
                }
                let inside = inside.into_iter().rev().map(|index| b.i32(index as i32));
                let inside: Vec<Value> = inside.collect();
                let path = [element, &inside].concat();
                let value = b.load(array, &path);
                b.store(copy, &path, value);
            }
        });
    }
}
