//! Who touches which memory.

use octants_ir::ops::PrintPiece;
use octants_ir::rewrite::walk;
use octants_ir::{Access, Func, Kernel, Op, OpKind, Place, Region, SideTable, Type, Value};

use super::index::Affine;

/// One access of memory.
#[derive(Clone, Debug)]
pub struct ArrayUse {
    pub op: Op,
    pub base: Value,
    /// Indices, then components. Empty for a call, which may touch all of it.
    pub path: Vec<Value>,
    pub reads: bool,
    pub writes: bool,
}

impl ArrayUse {
    /// The forms of the indices (and components); `None` where one is no integer.
    pub fn forms(&self, kernel: &Kernel) -> Vec<Option<Affine>> {
        self.path.iter().map(|&index| Affine::of(kernel, index)).collect()
    }
}

/// All accesses in a region and inside it, of arrays, locals and temporaries, in order; reductions of a `parallel_for` count
/// as an access of their place by that op, and what a called function does with a place as an access by the call.
pub fn accesses_of(kernel: &Kernel, region: Region) -> Vec<ArrayUse> {
    uses_of(kernel, region, &function_access(kernel))
}

fn uses_of(kernel: &Kernel, region: Region, functions: &SideTable<Func, Vec<Access>>) -> Vec<ArrayUse> {
    let mut uses = Vec::new();
    walk(kernel, region, &mut |op| {
        let data = &kernel.ops[op];
        let mut push = |place: Place<'_>, reads, writes| {
            uses.push(ArrayUse { op, base: place.base(), path: place.path().to_vec(), reads, writes });
        };
        if let Some(access) = kernel.cell_access(op) {
            push(access.place, access.reads, access.writes);
        }
        if let Some(parallel) = kernel.parallel_loop(op) {
            for reduction in parallel.reductions() {
                push(reduction.place, true, true);
            }
        }
        if let OpKind::Call(function) = data.kind {
            for (&base, access) in data.operands.iter().zip(&functions[function]) {
                if kernel.ty(base).is_place() && (access.read || access.written) {
                    let (reads, writes) = (access.read, access.written);
                    uses.push(ArrayUse { op, base, path: Vec::new(), reads, writes });
                }
            }
        }
    });
    uses
}

/// Accesses of arrays alone.
pub fn array_uses(kernel: &Kernel, region: Region) -> Vec<ArrayUse> {
    let mut uses = accesses_of(kernel, region);
    uses.retain(|access| matches!(kernel.ty(access.base), Type::Array(_)));
    uses
}

/// What the kernel does with the memory of each parameter.
pub fn array_access(kernel: &Kernel) -> Vec<Access> {
    let mut access = access_of_params(kernel, kernel.body, &function_access(kernel));
    for (access, &param) in access.iter_mut().zip(&kernel.regions[kernel.body].params) {
        if !matches!(kernel.ty(param), Type::Array(_)) {
            *access = Access::default();
        }
    }
    access
}

/// What each function does with the places that it is passed, by parameter, its own calls included.
pub fn function_access(kernel: &Kernel) -> SideTable<Func, Vec<Access>> {
    let mut known = SideTable::new(Vec::new());
    for (id, function) in kernel.functions.iter() {
        known.set(id, vec![Access::default(); kernel.regions[function.body].params.len()]);
    }
    // Functions that call each other learn from each other until nothing is new.
    loop {
        let mut changed = false;
        for (id, function) in kernel.functions.iter() {
            let found = access_of_params(kernel, function.body, &known);
            changed |= found != known[id];
            known.set(id, found);
        }
        if !changed {
            return known;
        }
    }
}

fn access_of_params(kernel: &Kernel, body: Region, functions: &SideTable<Func, Vec<Access>>) -> Vec<Access> {
    let params = &kernel.regions[body].params;
    let mut access = vec![Access::default(); params.len()];
    for used in uses_of(kernel, body, functions) {
        if let Some(param) = params.iter().position(|&param| param == used.base) {
            access[param].read |= used.reads;
            access[param].written |= used.writes;
        }
    }
    access
}

/// The functions that do nothing that anybody sees, apart from [checks](is_check): two calls with equal arguments give equal results, as
/// long as what the function reads is not written.
pub fn computing_functions(kernel: &Kernel, access: &SideTable<Func, Vec<Access>>) -> SideTable<Func, bool> {
    let mut known = SideTable::new(true);
    loop {
        let mut changed = false;
        for (id, function) in kernel.functions.iter() {
            let mut computes = !access[id].iter().any(|access| access.written);
            walk(kernel, function.body, &mut |op| match kernel.ops[op].kind {
                OpKind::Call(called) => computes &= known[called],
                // What is no parameter is a variable of the function's own.
                OpKind::Store | OpKind::Atomic(_) | OpKind::AtomicCas => {}
                ref kind => computes &= !kind.stays() || is_check(kind),
            });
            changed |= computes != known[id];
            known.set(id, computes);
        }
        if !changed {
            return known;
        }
    }
}

/// Whether an op only tells of mistakes: an assertion, or a message of the compiler's own, such as of an overflow.
pub fn is_check(kind: &OpKind) -> bool {
    match kind {
        OpKind::Assert(..) => true,
        OpKind::Print(spec) => spec.pieces.iter().any(|piece| matches!(piece, PrintPiece::Location)),
        _ => false,
    }
}
