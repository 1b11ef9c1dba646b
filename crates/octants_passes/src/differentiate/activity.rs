//! Which values depend on an input that has a derivative (they *vary*), and which of them a result depends on (they are *useful*).
//! Everything else is a constant for differentiation.

use octants_ir::ops::ConvertOp;
use octants_ir::rewrite::ops_in;
use octants_ir::{Kernel, Loc, Op, OpKind, Region, SideTable, Type, Value};

use super::dependence::Dependence;
use super::rules::{flows, stops};
use super::told::Numbers;
use crate::differentiate::primal::is_real;
use crate::differentiate::refusal::Refusal;
use crate::differentiate::refusal::RefusalKind;
use crate::differentiate::storage::Mode;
use crate::differentiate::storage::Storage;
use crate::edit::slots::yielded;

/// What arrays without a place for the derivative do to it.
#[derive(Default)]
pub(super) struct Losses {
    /// Stores that something is lost by.
    pub refused: Vec<Refusal>,
    /// Stores in fields that something is lost by.
    pub dropped: Vec<Refusal>,
    /// Parameters that get what varies, and of which nothing comes back in this kernel.
    pub sinks: Vec<usize>,
    /// Parameters that what is kept depends on.
    pub constants: Vec<usize>,
}

/// Which ops hand derivatives on.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Through {
    /// Those that have one.
    Derivatives,
    /// All that compute something from their operands, conversions to integers among them; not those that a program stops derivatives by.
    Everything,
}

pub(super) struct Activity {
    /// Values, and variables that hold such values.
    varied: SideTable<Value, bool>,
    useful: SideTable<Value, bool>,
}

impl Activity {
    pub fn find(kernel: &Kernel, companion_of: &SideTable<Value, Option<Value>>) -> Self {
        let ops = ops_in(kernel, kernel.body);
        let mut search = Search::new(kernel, companion_of, Through::Derivatives);
        search.vary_all(&ops);
        search.changed = true;
        while std::mem::take(&mut search.changed) {
            for &op in ops.iter().rev() {
                search.use_of(op);
            }
        }
        Self { varied: search.varied, useful: search.useful }
    }

    /// Stores of what depends on an input in memory of rounded numbers, through which no derivative goes.
    pub fn rounded(
        kernel: &Kernel,
        companion_of: &SideTable<Value, Option<Value>>,
        storage: &[Storage],
    ) -> Vec<Refusal> {
        if !storage.contains(&Storage::Rounded) {
            return Vec::new();
        }
        let ops = ops_in(kernel, kernel.body);
        let mut search = Search::new(kernel, companion_of, Through::Everything);
        search.vary_all(&ops);
        let mut refused = Vec::new();
        for op in ops {
            let Some(access) = kernel.cell_access(op).filter(|access| access.writes) else { continue };
            let param = kernel.as_param(access.place.base());
            let is_rounded = param.is_some_and(|param| storage.get(param) == Some(&Storage::Rounded));
            if is_rounded && access.values.iter().any(|&value| search.varied[value]) {
                refused.push(Refusal { param, ..Refusal::new(RefusalKind::Rounded, kernel.ops[op].loc) });
            }
        }
        refused.dedup();
        refused
    }

    /// Whether the value depends on an input; of a variable, whether something that it holds does.
    pub fn varies(&self, value: Value) -> bool {
        self.varied[value]
    }

    /// Whether an input reaches a result through the value.
    pub fn is_active(&self, value: Value) -> bool {
        self.varied[value] && self.useful[value]
    }

    /// What arrays without a place for the derivative do to it.
    pub fn losses(&self, kernel: &Kernel, mode: Mode, storage: &[Storage]) -> Losses {
        let missing = |base: Value| {
            let param = kernel.as_param(base);
            param.filter(|&param| matches!(storage.get(param), Some(Storage::Missing | Storage::Dropped)))
        };
        let (mut stores, mut reads) = (Vec::new(), Vec::new());
        let mut flows = false;
        for op in ops_in(kernel, kernel.body) {
            let Some(access) = kernel.cell_access(op) else { continue };
            let varies = access.writes && access.values.iter().any(|&value| self.varied[value]);
            let used = access.reads && kernel.ops[op].results.iter().any(|&result| self.useful[result]);
            match missing(access.place.base()) {
                Some(param) => {
                    stores.extend(varies.then_some((param, op)));
                    reads.extend((used && !access.writes).then_some((param, op)));
                }
                None => flows |= varies && access.values.iter().any(|&value| self.is_active(value)),
            }
        }
        let dependence = Dependence::new(kernel, Numbers::unknown());
        let mut losses = Losses::default();
        for &(param, store) in &stores {
            let comes_back =
                reads.iter().any(|&(other, read)| other == param && dependence.may_overwrite(store, read));
            let at = kernel.ops[store].loc;
            let lost = Refusal { param: Some(param), ..Refusal::new(RefusalKind::NoStorage, at) };
            // In forward mode nobody looks at what later kernels read.
            let is_lost = comes_back || mode == Mode::Forward;
            if !flows || is_lost && storage[param] == Storage::Missing {
                losses.refused.push(lost);
            } else if is_lost {
                losses.dropped.push(lost);
            }
        }
        losses.sinks = stores.iter().map(|&(param, _)| param).collect();
        losses.constants = reads.iter().map(|&(param, _)| param).collect();
        for params in [&mut losses.sinks, &mut losses.constants] {
            params.sort_unstable();
            params.dedup();
        }
        losses
    }

    /// Where a derivative ends that could have gone on.
    pub fn stops(&self, kernel: &Kernel) -> Vec<Loc> {
        let stopped = |op: &Op| {
            stops(kernel, *op) && kernel.ops[*op].operands.iter().any(|&operand| self.varied[operand])
        };
        let mut locs: Vec<_> =
            ops_in(kernel, kernel.body).into_iter().filter(stopped).map(|op| kernel.ops[op].loc).collect();
        locs.dedup();
        locs
    }
}

struct Search<'k> {
    kernel: &'k Kernel,
    companion_of: &'k SideTable<Value, Option<Value>>,
    varied: SideTable<Value, bool>,
    useful: SideTable<Value, bool>,
    changed: bool,
    through: Through,
}

impl<'k> Search<'k> {
    fn new(kernel: &'k Kernel, companion_of: &'k SideTable<Value, Option<Value>>, through: Through) -> Self {
        let (varied, useful) = (SideTable::new(false), SideTable::new(false));
        Self { kernel, companion_of, varied, useful, changed: true, through }
    }

    fn vary_all(&mut self, ops: &[Op]) {
        while std::mem::take(&mut self.changed) {
            for &op in ops {
                self.vary(op);
            }
        }
    }

    fn set_varied(&mut self, value: Value, varied: bool) {
        let place = matches!(self.kernel.ty(value), Type::Local(_) | Type::Tape(_));
        let hands_on = place || self.through == Through::Everything || is_real(self.kernel, value);
        if varied && !self.varied[value] && hands_on {
            self.varied.set(value, true);
            self.changed = true;
        }
    }

    fn set_useful(&mut self, value: Value, useful: bool) {
        if useful && !self.useful[value] {
            self.useful.set(value, true);
            self.changed = true;
        }
    }

    fn vary(&mut self, op: Op) {
        let kernel = self.kernel;
        let data = &kernel.ops[op];
        if let Some(access) = kernel.cell_access(op) {
            let base = access.place.base();
            let stored = access.values.iter().any(|&value| self.varied[value]);
            if !matches!(kernel.ty(base), Type::Array(_)) && access.writes {
                self.set_varied(base, stored);
            }
            let loaded = self.companion_of[base].is_some() || self.varied[base];
            for &result in &data.results {
                self.set_varied(result, loaded && access.reads);
            }
            return;
        }
        match data.kind {
            OpKind::If | OpKind::For | OpKind::While => {
                for slot in 0..data.results.len() {
                    let Slot { operand, params, yields, result } = Slot::of(kernel, op, slot);
                    let all = operand.into_iter().chain(yields).chain(params.iter().copied());
                    let varied = all.into_iter().any(|value| self.varied[value]);
                    params.into_iter().chain([result]).for_each(|value| self.set_varied(value, varied));
                }
            }
            _ => {
                let varied = data
                    .operands
                    .iter()
                    .enumerate()
                    .any(|(index, &operand)| self.varied[operand] && self.flows(&data.kind, index));
                for &result in &data.results {
                    self.set_varied(result, varied);
                }
            }
        }
    }

    fn flows(&self, kind: &OpKind, operand: usize) -> bool {
        let detaches = matches!(kind, OpKind::Convert(ConvertOp::Detach));
        self.through == Through::Everything && !detaches || flows(kind, operand)
    }

    fn use_of(&mut self, op: Op) {
        let kernel = self.kernel;
        let data = &kernel.ops[op];
        if let Some(access) = kernel.cell_access(op) {
            let base = access.place.base();
            let kept = self.companion_of[base].is_some() || self.useful[base];
            for &value in access.values {
                self.set_useful(value, kept && access.writes);
            }
            if !matches!(kernel.ty(base), Type::Array(_)) {
                let used = data.results.iter().any(|&result| self.useful[result]);
                self.set_useful(base, used);
            }
            return;
        }
        match data.kind {
            OpKind::If | OpKind::For | OpKind::While => {
                for slot in 0..data.results.len() {
                    let Slot { operand, params, yields, result } = Slot::of(kernel, op, slot);
                    let useful = self.useful[result] || params.iter().any(|&param| self.useful[param]);
                    let all = operand.into_iter().chain(yields).chain(params).chain([result]);
                    all.into_iter().for_each(|value| self.set_useful(value, useful));
                }
            }
            _ => {
                let useful = data.results.iter().any(|&result| self.useful[result]);
                for (index, &operand) in data.operands.iter().enumerate() {
                    self.set_useful(operand, useful && flows(&data.kind, index));
                }
            }
        }
    }
}

/// All that one result of an `if` or one carried value of a loop is.
pub(super) struct Slot {
    /// What a loop begins with.
    pub operand: Option<Value>,
    pub params: Vec<Value>,
    pub yields: Vec<Value>,
    pub result: Value,
}

impl Slot {
    pub fn of(kernel: &Kernel, op: Op, slot: usize) -> Self {
        let data = &kernel.ops[op];
        let result = data.results[slot];
        let params = |region: Region| &kernel.regions[region].params;
        match data.kind {
            OpKind::For => Self {
                operand: Some(data.operands[2 + slot]),
                params: vec![params(data.regions[0])[1 + slot]],
                yields: vec![yielded(kernel, data.regions[0])[slot]],
                result,
            },
            OpKind::While => Self {
                operand: Some(data.operands[slot]),
                params: data.regions.iter().map(|&region| params(region)[slot]).collect(),
                yields: vec![
                    yielded(kernel, data.regions[0])[1 + slot],
                    yielded(kernel, data.regions[1])[slot],
                ],
                result,
            },
            _ => Self {
                operand: None,
                params: Vec::new(),
                yields: data.regions.iter().map(|&region| yielded(kernel, region)[slot]).collect(),
                result,
            },
        }
    }
}
