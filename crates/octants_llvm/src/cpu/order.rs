//! Whether LLVM may be told that the iterations of a row do not depend on each other.
//!
//! They do not: the loop is parallel. But LLVM's vectoriser then asks no question about accesses of *one* iteration either, and where it
//! gathers accesses that lie side by side into one (a *group*: members of interleaved cells), it moves loads up to the first and
//! stores down to the last of them, past whatever stands between. So it is told only if that changes nothing: for memory that
//! the loop writes and that may be accessed in groups, whatever comes after a store is another cell for sure, and what comes
//! before one is another cell or a load.

use octants_ir::ops::{ArithOp, Effects};
use octants_ir::rewrite::{ops_in, regions_in};
use octants_ir::{Boundary, CellAccess, Const, Kernel, Op, OpKind, Region, SideTable, Type, Value};

use crate::cpu::widen::BodySummary;

struct Access<'k> {
    path: &'k [Value],
    reads: bool,
    writes: bool,
    /// Neighbouring iterations may access cells that lie apart, but close by.
    grouped: bool,
}

/// Whether two accesses of one iteration mean the same cell.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Cells {
    Same,
    Distinct,
    Unknown,
}

/// What an index is apart from a constant.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Root {
    Nothing,
    Value(Value),
}

/// `apart` says that arrays of two parameters never share memory; `rows` that a row runs along the last axis alone.
pub(crate) fn order_is_free(
    kernel: &Kernel,
    body: Region,
    summary: &BodySummary<'_>,
    apart: bool,
    rows: bool,
) -> bool {
    if kernel.has_effects(body, Effects::CONVERGENT) {
        return false;
    }
    let repeated = Repeated::find(kernel, body);
    let accesses: Vec<_> = ops_in(kernel, body)
        .into_iter()
        .filter_map(|op| Some((access(kernel, op, summary, rows)?, repeated.ops[op])))
        .collect();
    let meets = |a: &Access<'_>, b: &Access<'_>| {
        let array = |access: &Access<'_>| matches!(kernel.ty(access.path[0]), Type::Array(_));
        a.path[0] == b.path[0] || !apart && array(a) && array(b)
    };
    accesses.iter().enumerate().all(|(number, (second, again))| {
        // One that runs several times comes after itself.
        let before = &accesses[..number + usize::from(*again)];
        before.iter().filter(|(first, _)| meets(first, second)).all(|(first, _)| {
            let harmless = !first.writes && !second.writes || !first.grouped && !second.grouped;
            harmless
                || match cells(kernel, first.path, second.path, &repeated.values) {
                    Cells::Distinct => true,
                    Cells::Same => !first.writes && !second.reads,
                    Cells::Unknown => false,
                }
        })
    })
}

fn access<'k>(kernel: &'k Kernel, op: Op, summary: &BodySummary<'_>, rows: bool) -> Option<Access<'k>> {
    let CellAccess { place, reads, writes, .. } = kernel.cell_access(op)?;
    let path = place.operands();
    if !matches!(kernel.ty(path[0]), Type::Array(_) | Type::Temp(_)) {
        return None;
    }
    let grouped = !rows || !matches!(summary.stride(path), Some(-1..=1));
    Some(Access { path, reads, writes, grouped })
}

/// What runs several times in one iteration: what stands inside its loops.
struct Repeated {
    ops: SideTable<Op, bool>,
    values: SideTable<Value, bool>,
}

impl Repeated {
    fn find(kernel: &Kernel, body: Region) -> Self {
        let mut repeated = Self { ops: SideTable::new(false), values: SideTable::new(false) };
        for op in ops_in(kernel, body) {
            let data = &kernel.ops[op];
            if !data.kind.is_loop() {
                continue;
            }
            for region in data.regions.iter().flat_map(|&region| regions_in(kernel, region)) {
                for &param in &kernel.regions[region].params {
                    repeated.values.set(param, true);
                }
                for &op in &kernel.regions[region].ops {
                    repeated.ops.set(op, true);
                    kernel.ops[op].results.iter().for_each(|&result| repeated.values.set(result, true));
                }
            }
        }
        repeated
    }
}

fn cells(kernel: &Kernel, a: &[Value], b: &[Value], repeated: &SideTable<Value, bool>) -> Cells {
    let clamped = matches!(kernel.ty(a[0]), Type::Array(array) if array.boundary == Boundary::Clamp);
    if a[0] != b[0] || a.len() != b.len() {
        return Cells::Unknown;
    }
    let mut all = Cells::Same;
    for (&a, &b) in a[1..].iter().zip(&b[1..]) {
        let ((root, shift), (other, other_shift)) = (peeled(kernel, a), peeled(kernel, b));
        let varies = matches!(root, Root::Value(value) if repeated[value]);
        let bits = kernel.ty(a).scalar().map_or(0, octants_ir::Scalar::bits);
        let alike = root == other && !varies && kernel.ty(a) == kernel.ty(b);
        if alike && (shift - other_shift).rem_euclid(1 << bits) == 0 {
            continue;
        }
        if alike && !clamped {
            return Cells::Distinct;
        }
        all = Cells::Unknown;
    }
    all
}

/// An index as something and a constant.
fn peeled(kernel: &Kernel, index: Value) -> (Root, i128) {
    let constant = |value: Value| kernel.as_const(value).and_then(Const::as_i128);
    if let Some(constant) = constant(index) {
        return (Root::Nothing, constant);
    }
    if let Some(def) = kernel.def(index)
        && let (OpKind::Arith(op @ (ArithOp::Add | ArithOp::Sub)), &[a, b]) = (&def.kind, &def.operands[..])
        && let Some(shift) = constant(b)
    {
        let (root, inner) = peeled(kernel, a);
        return (root, if *op == ArithOp::Add { inner + shift } else { inner - shift });
    }
    (Root::Value(index), 0)
}
