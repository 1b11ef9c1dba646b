//! Large tensors that are only moved between memory and a variable that stays whole: they are moved by a loop, so that the code does not grow
//! with their entries.
//!
//! Before:
//! ```text
//! %m: tensor<f32, 32, 32> = load %a[%i]
//! store %local, %m
//! ```
//! After:
//! ```text
//! for %j: i32 in 0..32 {
//!   for %k: i32 in 0..32 {
//!     %1: f32 = load %a[%i, %j, %k]
//!     store %local[%j, %k], %1
//!   }
//! }
//! ```

use octants_ir::rewrite::{regions_in, use_counts};
use octants_ir::{Builder, Kernel, Op, OpKind, Region, SideTable, Type, Value, ValueDef};

use super::locals::LocalUses;

/// A tensor of more entries than a 12×12 matrix is moved by a loop. The product of two matrices of 32 × 32 took 6.4 s to compile with each entry moved by itself
/// (`benches/compile_time.py`).
const MAX_UNROLLED_ENTRIES: u32 = 144;

pub(super) fn move_by_loops(kernel: &mut Kernel, uses: &LocalUses) {
    let counts = use_counts(kernel);
    for body in kernel.bodies() {
        for region in regions_in(kernel, body) {
            let moves = find_moves(kernel, region, uses, &counts);
            if moves.is_empty() {
                continue;
            }
            let mut loads = SideTable::new(false);
            let mut stores: SideTable<Op, Option<&Move>> = SideTable::new(None);
            for one in &moves {
                loads.set(one.load, true);
                stores.set(one.store, Some(one));
            }
            for op in std::mem::take(&mut kernel.regions[region].ops) {
                match stores[op] {
                    Some(one) => write_loop(kernel, region, one),
                    None if loads[op] => {}
                    None => kernel.regions[region].ops.push(op),
                }
            }
        }
    }
}

struct Move {
    load: Op,
    store: Op,
    dims: Vec<u32>,
}

fn find_moves(
    kernel: &Kernel,
    region: Region,
    uses: &LocalUses,
    counts: &SideTable<Value, u32>,
) -> Vec<Move> {
    let ops = &kernel.regions[region].ops;
    let mut moves = Vec::new();
    for (at, &store) in ops.iter().enumerate() {
        let (OpKind::Store, Some(access)) = (&kernel.ops[store].kind, kernel.cell_access(store)) else {
            continue;
        };
        let value = access.values[0];
        let ValueDef::Result(load, _) = kernel.values[value].def else { continue };
        let shape = kernel.ty(value).data().and_then(octants_ir::Data::tensor_shape);
        let Some(shape) = shape.filter(|shape| shape.count() > MAX_UNROLLED_ENTRIES) else { continue };
        if kernel.ops[load].kind != OpKind::Load || counts[value] != 1 {
            continue;
        }
        let source = kernel.cell_access(load).expect("a load accesses a cell").place.base();
        let ends = [source, access.place.base()];
        let in_memory = ends.iter().all(|&base| match kernel.ty(base) {
            Type::Array(_) => true,
            Type::Local(_) => uses.kept_whole[base],
            _ => false,
        });
        // Two cells of arrays may overlap in part.
        let one_local = ends.iter().any(|&base| matches!(kernel.ty(base), Type::Local(_)));
        let since = ops[..at].iter().rposition(|&op| op == load);
        let unchanged =
            since.is_some_and(|since| ops[since..at].iter().all(|&op| leaves(kernel, op, source)));
        if in_memory && one_local && unchanged {
            moves.push(Move { load, store, dims: shape.dims() });
        }
    }
    moves
}

/// Whether the op plainly does not write to the place: it writes nothing, or to another variable.
fn leaves(kernel: &Kernel, op: Op, source: Value) -> bool {
    let data = &kernel.ops[op];
    match data.kind {
        OpKind::Store => data.operands[0] != source && matches!(kernel.ty(data.operands[0]), Type::Local(_)),
        _ => !data.kind.has_regions() && !data.kind.stays(),
    }
}

fn write_loop(kernel: &mut Kernel, region: Region, one: &Move) {
    let loc = kernel.ops[one.store].loc;
    let place = |op: Op| kernel.cell_access(op).expect("a move accesses cells").place.operands().to_vec();
    let (from, to) = (place(one.load), place(one.store));
    let mut b = Builder::at(kernel, region, loc);
    nested(&mut b, &one.dims, (&from, &to), &mut Vec::new());
}

fn nested(b: &mut Builder<'_>, dims: &[u32], (from, to): (&[Value], &[Value]), components: &mut Vec<Value>) {
    let Some((&extent, inner)) = dims.split_first() else {
        let source: Vec<_> = from[1..].iter().chain(&*components).copied().collect();
        let value = b.load(from[0], &source);
        let target: Vec<_> = to[1..].iter().chain(&*components).copied().collect();
        b.store(to[0], &target, value);
        return;
    };
    let (lo, hi) = (b.i32(0), b.i32(extent as i32));
    b.for_range(lo, hi, &[], |b, index, _| {
        components.push(index);
        nested(b, inner, (from, to), components);
        components.pop();
        Vec::new()
    });
}
