//! Parameters for the arrays that a derivative's tapes lie in, which whoever launches it provides.
//!
//! How many iterations run at once, and so how many columns the arrays have, is a parameter of each loop ([`declare_tape_arrays`]), or is computed by
//! the kernel itself from what the sizing kernel has written and from how long the arrays are ([`declare_sized_tape_arrays`]). Then nobody need know
//! it when the kernel is launched:
//! ```text
//! %1: i64 = load %sizes[%first]                  iterations
//! %2: i64 = load %sizes[%second]                 cells that one of them needs
//! %3: i64 = raw_div %extent, %2                  so many have memory
//! assert tape_limit …
//! %slots: i32 = …                                the least of iterations, %most and %3
//! parallel_for (%i: i32) in (%lo..%hi) {
//!   %t: tape<f32> = tape %m, %tapes, %slots
//! ```
//! What they do with it is the pass [`place_tapes`](crate::place_tapes).

use octants_ir::ops::{ArithOp, AssertKind, BitOp, CompareOp};
use octants_ir::rewrite::ops_in;
use octants_ir::{ArrayType, Boundary, Builder, Const, Kernel, Op, OpKind, Scalar, Type, Value};

/// Parameters for the tapes of a kernel.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TapeParams {
    /// By the number of the loop among those with tapes.
    pub loops: Vec<TapedLoop>,
    /// Arrays of one axis, for loops that run one after the other.
    pub arrays: Vec<TapeArray>,
    /// How many loops may run at the same time.
    pub branches: usize,
    /// Where the kernel computes how many iterations run at once.
    pub sizes: Option<SizeParams>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TapedLoop {
    /// The parameter that says how many iterations run at once, an `i32`; none where the kernel computes that.
    pub slots: Option<usize>,
    /// The iterations run in order: there is one slot.
    pub in_order: bool,
    /// Which of the loops that run at the same time it is.
    pub branch: usize,
    /// Where its iterations may need different amounts.
    pub claims: Option<ClaimParams>,
}

/// Parameters of a loop whose iterations may take columns only when they need them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ClaimParams {
    /// How many columns there are for that, an `i32`; zero if each slot has its own. None where the kernel computes that.
    pub columns: Option<usize>,
    /// An array of one `i32`, zero at first: how many are taken.
    pub tickets: usize,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TapeArray {
    pub branch: usize,
    pub scalar: Scalar,
    pub param: usize,
}

/// Parameters that a kernel computes its slots from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SizeParams {
    /// An array of `i64`: what the sizing kernel has written.
    pub sizes: usize,
    /// How many iterations of a loop run at once at most, an `i32`.
    pub most: usize,
}

/// What the array of sizes holds, and what is said where it is too much.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SizesLayout<'a> {
    /// Of which scalars the cells are counted.
    pub scalars: &'a [Scalar],
    /// Whether each loop's iterations may need different amounts.
    pub varies: &'a [bool],
    /// Each real that is counted stands for two: itself and its dual.
    pub with_duals: bool,
    /// Bytes that all iterations may keep.
    pub limit: u64,
}

/// Gives the kernel parameters for the arrays that its tapes are to lie in, and for how many iterations run at once. `varies` says of each loop with tapes
/// whether its iterations may need different amounts. A tape that has an array keeps it.
pub fn declare_tape_arrays(kernel: &mut Kernel, varies: &[bool]) -> TapeParams {
    let (params, loops) = declare(kernel, varies, false);
    for (taped, found) in params.loops.iter().zip(&loops) {
        let mut values = vec![kernel.regions[kernel.body].params[taped.slots.expect("it was declared")]];
        if let Some(ClaimParams { columns: Some(columns), tickets }) = taped.claims {
            let own = &kernel.regions[kernel.body].params;
            values.extend([own[columns], own[tickets]]);
        }
        found.give(kernel, &values);
    }
    params
}

/// Likewise; but the kernel computes how many iterations run at once, from sizes in memory.
pub fn declare_sized_tape_arrays(kernel: &mut Kernel, layout: SizesLayout<'_>) -> TapeParams {
    let (mut params, loops) = declare(kernel, layout.varies, true);
    if loops.is_empty() {
        return params;
    }
    let sizes = SizeParams { sizes: kernel.params.len(), most: kernel.params.len() + 1 };
    let ty = Type::Array(ArrayType::array(Scalar::I64, 1, Boundary::Unsafe));
    let (array, most) = (kernel.add_param("sizes", ty), kernel.add_param("most", Type::I32));
    params.sizes = Some(sizes);
    let rest = std::mem::take(&mut kernel.regions[kernel.body].ops);
    for (number, found) in loops.iter().enumerate() {
        let taped = params.loops[number];
        let first = number * (2 + layout.scalars.len());
        let counts =
            Counts { sizes: array, most, first, limit: layout.limit / params.branches.max(1) as u64 };
        let (slots, columns) = counts.slots(kernel, &taped, found, &layout);
        let mut values = vec![slots];
        if let (Some(ClaimParams { tickets, .. }), Some(columns)) = (taped.claims, columns) {
            values.extend([columns, kernel.regions[kernel.body].params[tickets]]);
        }
        found.give(kernel, &values);
    }
    kernel.regions[kernel.body].ops.extend(rest);
    params
}

/// A loop with tapes.
struct Found {
    op: Op,
    /// Each with the array that it lies in.
    tapes: Vec<(Op, Value)>,
}

impl Found {
    /// Gives each tape its array and these operands.
    fn give(&self, kernel: &mut Kernel, values: &[Value]) {
        for &(tape, array) in &self.tapes {
            kernel.ops[tape].operands.push(array);
            kernel.ops[tape].operands.extend(values.iter().copied());
        }
    }
}

/// Adds the parameters of each loop; those for slots and columns only if the kernel does not compute them.
fn declare(kernel: &mut Kernel, varies: &[bool], computes: bool) -> (TapeParams, Vec<Found>) {
    let (mut params, mut loops) = (TapeParams::default(), Vec::new());
    let top = kernel.top_regions();
    for op in kernel.top_ops() {
        let Some(parallel) = kernel.parallel_loop(op) else { continue };
        let in_order = parallel.attributes.keeps_order();
        let tapes: Vec<_> = ops_in(kernel, parallel.body)
            .into_iter()
            .filter(|&op| kernel.ops[op].kind == OpKind::Tape && kernel.ops[op].operands.len() == 1)
            .collect();
        if tapes.is_empty() {
            continue;
        }
        // What stands beside a fork runs before or after it, so it may have what a branch has.
        let branch = top[1..].iter().position(|&region| kernel.regions[region].ops.contains(&op));
        let branch = branch.unwrap_or(0);
        let number = params.loops.len();
        let mut add = |name: &str, ty: Type| {
            kernel.add_param(format!("{name}{number}"), ty);
            kernel.params.len() - 1
        };
        let slots = (!computes).then(|| add("slots", Type::I32));
        let claims = (varies.get(number) == Some(&true) && !in_order).then(|| ClaimParams {
            columns: (!computes).then(|| add("columns", Type::I32)),
            tickets: add("tickets", Type::Array(ArrayType::array(Scalar::I32, 1, Boundary::Unsafe))),
        });
        params.loops.push(TapedLoop { slots, in_order, branch, claims });
        let mut found = Found { op, tapes: Vec::new() };
        for tape in tapes {
            let scalar = scalar_of(kernel, kernel.ops[tape].results[0]);
            let known = params.arrays.iter().find(|array| (array.branch, array.scalar) == (branch, scalar));
            let array = if let Some(array) = known {
                kernel.regions[kernel.body].params[array.param]
            } else {
                params.arrays.push(TapeArray { branch, scalar, param: kernel.params.len() });
                let ty = Type::Array(ArrayType::array(scalar, 1, Boundary::Unsafe));
                kernel.add_param(format!("tapes{branch}.{scalar}"), ty)
            };
            found.tapes.push((tape, array));
        }
        loops.push(found);
    }
    params.branches = params.loops.iter().map(|taped| taped.branch + 1).max().unwrap_or(0);
    (params, loops)
}

fn scalar_of(kernel: &Kernel, tape: Value) -> Scalar {
    match kernel.ty(tape) {
        Type::Tape(scalar) => scalar,
        ty => panic!("{tape} is {ty}, and no tape"),
    }
}

/// Where a loop's sizes are.
struct Counts {
    sizes: Value,
    most: Value,
    /// The entry that its sizes begin with.
    first: usize,
    limit: u64,
}

impl Counts {
    /// Computes at the end of the kernel's body how many iterations run at once, and how many columns those take that need any.
    fn slots(
        &self,
        kernel: &mut Kernel,
        taped: &TapedLoop,
        found: &Found,
        layout: &SizesLayout<'_>,
    ) -> (Value, Option<Value>) {
        let (body, loc) = (kernel.body, kernel.ops[found.op].loc);
        let mut arrays: Vec<_> = found.tapes.iter().map(|&(_, array)| array).collect();
        arrays.sort_unstable();
        arrays.dedup();
        let of_scalar = |kernel: &Kernel, scalar: Scalar| {
            let holds =
                |&&array: &&Value| matches!(kernel.ty(array), Type::Array(ty) if ty.elem == scalar.into());
            arrays.iter().find(holds).copied()
        };
        let arrays: Vec<_> = layout.scalars.iter().map(|&scalar| of_scalar(kernel, scalar)).collect();

        let b = &mut Builder::at(kernel, body, loc);
        let number =
            |b: &mut Builder<'_>, number: i64| b.constant(Const::from_i128(Scalar::I64, number.into()));
        let entry = |b: &mut Builder<'_>, entry: usize| {
            let at = b.i32((self.first + entry) as i32);
            b.load(self.sizes, &[at])
        };
        let (zero, one) = (number(b, 0), number(b, 1));
        let points = entry(b, 0);
        let most = if taped.in_order { one } else { b.cast(self.most, Scalar::I64) };
        let at_once = b.arith(ArithOp::Min, points, most);
        let mut fitting = number(b, i32::MAX.into());
        let mut bytes = zero;
        for (class, (&scalar, array)) in layout.scalars.iter().zip(arrays).enumerate() {
            let Some(array) = array else { continue };
            let mut cells = entry(b, 2 + class);
            if layout.with_duals && scalar.is_real() {
                cells = b.arith(ArithOp::Add, cells, cells);
            }
            let extent = b.extent(array, 0);
            let room = b.cast(extent, Scalar::I64);
            let divisor = b.arith(ArithOp::Max, cells, one);
            let columns = b.arith(ArithOp::RawDiv, room, divisor);
            let needs = b.compare(CompareOp::Gt, cells, zero);
            let columns = b.select(needs, columns, fitting);
            fitting = b.arith(ArithOp::Min, fitting, columns);
            let width = number(b, scalar.bytes().into());
            let own = b.arith(ArithOp::Mul, cells, width);
            bytes = b.arith(ArithOp::Add, bytes, own);
        }
        let (some, none) = (b.compare(CompareOp::Gt, fitting, zero), b.compare(CompareOp::Le, at_once, zero));
        let fits = b.bit(BitOp::Or, some, none);
        let limit = number(b, i64::try_from(self.limit).unwrap_or(i64::MAX));
        b.assert(AssertKind::TapeLimit, fits, OVER_THE_LIMIT, &[bytes, limit, bytes]);
        let own = b.arith(ArithOp::Min, at_once, fitting);
        if taped.claims.is_none() {
            return (b.cast(own, Scalar::I32), None);
        }
        // Each of those that keep anything has memory of its own, if that is less and there is as much.
        let keepers = entry(b, 1);
        let (fewer, fit) =
            (b.compare(CompareOp::Lt, keepers, at_once), b.compare(CompareOp::Le, keepers, fitting));
        let claims = b.bit(BitOp::And, fewer, fit);
        let (slots, columns) = (b.select(claims, at_once, own), b.select(claims, keepers, zero));
        (b.cast(slots, Scalar::I32), Some(b.cast(columns, Scalar::I32)))
    }
}

/// As the error of the host says it, which finds it out where it reads the sizes.
const OVER_THE_LIMIT: &str = "one iteration of the derivative keeps {} bytes of values, and the limit for all is {}: \
     oc.init(tape_memory_limit={}) is the least that it runs with";
