//! Whether iterations of a parallel loop surely meet at a cell: the indices of both accesses are computed for some iterations.
//!
//! What the indices, the bounds and the conditions around the accesses take from outside of the loop is not known, unless a launch tells: a size (what the bounds
//! are made of, the extent of an array) is tried large enough for neighbours, another number is tried as 0, 1, 2 and 3, and as a large one of its own. Iterations meet surely if they do
//! in each trial. A condition that cannot be computed counts as met (of two assignments nothing is sure then), one that can decides: every other cell may read its neighbours.
//! Nothing is sure of an index that is read from memory inside of the loop.

use std::collections::HashMap;

use octants_ir::rewrite::{Parents, defining_region};
use octants_ir::{Const, Kernel, Op, OpKind, Region, Value};

use super::told::Numbers;
use crate::simplify::fold;

/// Iterations that are looked at, at most: a third of an axis from its begin, its middle and its end. Chosen: neighbours in three axes meet.
const MOST_ITERATIONS: u32 = 512;
/// Iterations of each inner loop that are looked at.
const MOST_INNER: i64 = 6;
/// What sizes are tried as, one even, one odd.
const SIZES: [i64; 2] = [24, 27];
/// How many trials there are.
const TRIALS: i64 = 6;
/// Trials in which all numbers are alike. In the others each is far from those before it.
const ALIKE: i64 = 4;
/// How far, up or down: farther than the largest size. No number is a multiple of another one, or near one: products with an index are not taken for sums.
const FAR: i64 = 1009;
const APART: i64 = 53;

type Cell = Vec<i64>;

/// A parallel loop, and what is around the ops of its body inside of it.
pub(super) struct CertainDependence<'k> {
    pub kernel: &'k Kernel,
    pub parents: &'k Parents,
    /// What is known of values from outside of the loop.
    pub numbers: &'k Numbers<'k>,
    pub task: Op,
}

impl CertainDependence<'_> {
    /// Whether an iteration surely reads what another one writes. With each access come the ops around it inside of the loop, and the region of
    /// each that it stands in, the outermost first.
    pub fn is_sure(&self, read: (Op, &[(Op, Region)]), write: (Op, &[(Op, Region)])) -> bool {
        // Of two assignments one may be chosen by what stands in memory.
        let takes_unknown = !matches!(self.kernel.ops[read.0].kind, OpKind::Store);
        for number in 0..TRIALS {
            let mut trial = Trial {
                crossing: self,
                takes_unknown,
                number,
                tried: HashMap::new(),
                known: HashMap::new(),
                is_bound: false,
            };
            if !trial.meets(read, write).unwrap_or(false) {
                return false;
            }
            if trial.tried.is_empty() {
                break;
            }
        }
        true
    }
}

struct Trial<'c, 'k> {
    crossing: &'c CertainDependence<'k>,
    /// Whether a condition that cannot be computed counts as met.
    takes_unknown: bool,
    number: i64,
    /// What comes from outside of the loop, and what it is tried as.
    tried: HashMap<Value, Const>,
    /// What was computed for this iteration.
    known: HashMap<Value, Option<Const>>,
    /// Whether bounds are computed.
    is_bound: bool,
}

impl Trial<'_, '_> {
    /// `None` if it cannot be computed.
    fn meets(&mut self, read: (Op, &[(Op, Region)]), write: (Op, &[(Op, Region)])) -> Option<bool> {
        let iterations = self.iterations()?;
        let mut written: HashMap<Cell, Vec<usize>> = HashMap::new();
        for (number, iteration) in iterations.iter().enumerate() {
            for cell in self.cells(iteration, write)? {
                let writers = written.entry(cell).or_default();
                if writers.len() < 2 && writers.last() != Some(&number) {
                    writers.push(number);
                }
            }
        }
        for (number, iteration) in iterations.iter().enumerate() {
            for cell in self.cells(iteration, read)? {
                if written.get(&cell).is_some_and(|writers| writers.iter().any(|&other| other != number)) {
                    return Some(true);
                }
            }
        }
        Some(false)
    }

    /// The indices of the iterations that are looked at.
    fn iterations(&mut self) -> Option<Vec<Vec<i64>>> {
        let task = self.crossing.kernel.parallel_loop(self.crossing.task)?;
        let each = f64::from(MOST_ITERATIONS).powf(1.0 / task.indices().len().max(1) as f64) as i64;
        let mut iterations: Vec<Vec<i64>> = vec![Vec::new()];
        self.is_bound = true;
        for (lo, hi) in task.bounds() {
            let (lo, hi) = (self.integer(lo)?, self.integer(hi)?);
            let third = each / 3;
            let middle = lo + (hi - lo) / 2;
            let indices: Vec<i64> = if hi - lo <= each {
                (lo..hi).collect()
            } else {
                (lo..lo + third).chain(middle..middle + third).chain(hi - third..hi).collect()
            };
            let longer = |first: &Vec<i64>, index: i64| {
                let mut longer = first.clone();
                longer.push(index);
                longer
            };
            iterations = iterations
                .iter()
                .flat_map(|first| indices.iter().map(move |&index| longer(first, index)))
                .collect();
        }
        self.is_bound = false;
        Some(iterations)
    }

    /// The cells that an iteration accesses.
    fn cells(&mut self, iteration: &[i64], (op, around): (Op, &[(Op, Region)])) -> Option<Vec<Cell>> {
        self.known.clear();
        let kernel = self.crossing.kernel;
        let task = kernel.parallel_loop(self.crossing.task)?;
        for (&index, &value) in task.indices().iter().zip(iteration) {
            self.set(index, value)?;
        }
        let mut cells = Vec::new();
        self.add_cells(op, around, &mut cells)?;
        Some(cells)
    }

    fn add_cells(&mut self, op: Op, around: &[(Op, Region)], cells: &mut Vec<Cell>) -> Option<()> {
        let kernel = self.crossing.kernel;
        let Some((&(outer, region), inner)) = around.split_first() else {
            let path = kernel.cell_access(op)?.place.path();
            let cell: Option<Cell> = path.iter().map(|&index| self.integer(index)).collect();
            cells.push(cell?);
            return Some(());
        };
        let data = &kernel.ops[outer];
        match data.kind {
            OpKind::If => {
                let taken = self.integer(data.operands[0]).map(|condition| usize::from(condition == 0));
                if taken.is_none() && !self.takes_unknown {
                    return None;
                }
                if taken.is_none_or(|taken| data.regions[taken] == region) {
                    self.add_cells(op, inner, cells)?;
                }
            }
            OpKind::For => {
                let (lo, hi) = (self.integer(data.operands[0])?, self.integer(data.operands[1])?);
                for index in lo..hi.min(lo + MOST_INNER) {
                    let before = self.known.clone();
                    self.set(kernel.regions[region].params[0], index)?;
                    self.add_cells(op, inner, cells)?;
                    self.known = before;
                }
            }
            _ => self.add_cells(op, inner, cells)?,
        }
        Some(())
    }

    fn set(&mut self, value: Value, number: i64) -> Option<()> {
        let scalar = self.crossing.kernel.ty(value).scalar()?;
        self.known.insert(value, Some(Const::from_i128(scalar, number.into())));
        Some(())
    }

    fn integer(&mut self, value: Value) -> Option<i64> {
        self.value(value)?.as_i128()?.try_into().ok()
    }

    fn value(&mut self, value: Value) -> Option<Const> {
        if let Some(&known) = self.known.get(&value) {
            return known;
        }
        let told = self.crossing.numbers.constant(self.crossing.kernel, value);
        let computed = told.or_else(|| self.computed(value)).or_else(|| self.tried(value));
        self.known.insert(value, computed);
        computed
    }

    fn computed(&mut self, value: Value) -> Option<Const> {
        let kernel = self.crossing.kernel;
        let data = kernel.def(value)?;
        let result = kernel.ty(value).scalar()?;
        match data.kind {
            OpKind::Const(constant) => Some(constant),
            OpKind::Select => {
                let first = self.integer(data.operands[0])? != 0;
                self.value(data.operands[if first { 1 } else { 2 }])
            }
            OpKind::If => {
                let position = data.results.iter().position(|&other| other == value)?;
                let taken = usize::from(self.integer(data.operands[0])? == 0);
                let yielded = *kernel.terminator(data.regions[taken])?.operands.get(position)?;
                self.value(yielded)
            }
            _ if !data.kind.is_pure() || !data.regions.is_empty() => None,
            _ => {
                let operands: Option<Vec<Const>> =
                    data.operands.iter().map(|&operand| self.value(operand)).collect();
                fold(&data.kind, &operands?, result)
            }
        }
    }

    /// What an integer from outside of the loop is tried as.
    fn tried(&mut self, value: Value) -> Option<Const> {
        if let Some(&tried) = self.tried.get(&value) {
            return Some(tried);
        }
        let CertainDependence { kernel, parents, task, .. } = *self.crossing;
        let scalar = kernel.ty(value).scalar()?;
        let around = parents.region(task)?;
        let is_outside =
            defining_region(kernel, parents, value).is_some_and(|region| parents.is_within(around, region));
        let is_extent = kernel.def(value).is_some_and(|data| matches!(data.kind, OpKind::Extent(_)));
        if scalar.is_real() || !(is_outside || is_extent) {
            return None;
        }
        let is_size = self.is_bound || is_extent;
        let number = match self.number {
            number if is_size => SIZES[number as usize % SIZES.len()],
            number if number < ALIKE => number,
            number => {
                let place = self.tried.len() as i64 + 1;
                (FAR + APART * place) * place * if number % 2 == 0 { 1 } else { -1 }
            }
        };
        let tried = Const::from_i128(scalar, number.into());
        self.tried.insert(value, tried);
        Some(tried)
    }
}
