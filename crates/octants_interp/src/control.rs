//! Branches, loops and assertions. Iterations of a parallel loop run in order, the last axis fastest; branches of a fork in the order
//! of the text.

use octants_ir::ops::Domain;
use octants_ir::{Const, Data, Layout, LayoutId, Op, Value};

use crate::arith;
use crate::datum::Datum;
use crate::machine::Machine;
use crate::random::Stream;
use crate::trap::{Trap, TrapKind};

impl Machine<'_> {
    pub fn set_results(&mut self, op: Op, values: Vec<Datum>) {
        let kernel = self.kernel;
        for (&result, datum) in kernel.ops[op].results.iter().zip(values) {
            self.set(result, datum);
        }
    }

    pub fn if_op(&mut self, op: Op) -> Result<(), Trap> {
        let regions = &self.kernel.ops[op].regions;
        let taken = if self.operand(op, 0).is_true() { regions[0] } else { regions[1] };
        let yielded = self.region(taken, [])?;
        self.set_results(op, yielded);
        Ok(())
    }

    /// `lo` and `hi`, as integers of the bounds' type.
    fn bounds(&self, lo: Value, hi: Value) -> (i128, i128) {
        (self.get(lo).integer(), self.get(hi).integer())
    }

    pub fn index(&self, bound: Value, index: i128) -> Datum {
        Datum::Scalar(Const::from_bits(self.get(bound).scalar().ty(), index as u64))
    }

    pub fn for_op(&mut self, op: Op) -> Result<(), Trap> {
        let data = &self.kernel.ops[op];
        let (lo, hi) = self.bounds(data.operands[0], data.operands[1]);
        let mut carried = self.operand_data(&data.operands[2..]);
        for index in lo..hi {
            let index = self.index(data.operands[0], index);
            carried = self.region(data.regions[0], [index].into_iter().chain(carried))?;
        }
        self.set_results(op, carried);
        Ok(())
    }

    pub fn for_cells(&mut self, op: Op, layout: LayoutId) -> Result<(), Trap> {
        let kernel = self.kernel;
        let (data, layout) = (&kernel.ops[op], &kernel.layouts[layout]);
        let ranges: Vec<_> = layout.digits().map(|digit| (0, digit.extent.into())).collect();
        let mut at = first_point(&ranges);
        while let Some(digits) = at {
            if data.operands.first().is_some_and(|&left| self.cell(left).is_true()) {
                break;
            }
            let index = cell_index(layout, &digits).into_iter().map(|index| Datum::Scalar(Const::i32(index)));
            self.region(data.regions[0], index)?;
            at = next_point(digits, &ranges);
        }
        Ok(())
    }

    pub fn while_op(&mut self, op: Op) -> Result<(), Trap> {
        let data = &self.kernel.ops[op];
        let (cond, body) = (data.regions[0], data.regions[1]);
        let mut carried = self.operand_data(&data.operands);
        loop {
            let mut yielded = self.region(cond, carried)?.into_iter();
            let holds = yielded.next().is_some_and(|condition| condition.is_true());
            if !holds {
                self.set_results(op, yielded.collect());
                return Ok(());
            }
            carried = self.region(body, yielded)?;
        }
    }

    pub fn parallel_for(&mut self, op: Op) -> Result<(), Trap> {
        let parallel = self.kernel.parallel_loop(op).expect("the caller saw a parallel loop");
        let layout = match parallel.attributes.domain {
            Domain::Ranges => None,
            Domain::Cells(layout) => Some(&self.kernel.layouts[layout]),
        };
        let ranges: Vec<_> = match layout {
            None => parallel.bounds().map(|(lo, hi)| self.bounds(lo, hi)).collect(),
            Some(layout) => layout.digits().map(|digit| (0, digit.extent.into())).collect(),
        };
        let identities: Vec<_> = parallel
            .reductions()
            .map(|reduction| {
                let data = self
                    .kernel
                    .ty(reduction.accumulator)
                    .data()
                    .unwrap_or(Data::Scalar(octants_ir::Scalar::I32));
                Datum::zero(self.kernel, data).map(|zero| arith::identity(reduction.op, zero.ty()))
            })
            .collect();
        let mut accumulated = identities.clone();
        let outer = self.stream;
        let number = self.loop_number(op);
        let is_serial = parallel.attributes.max_threads == Some(1);
        self.loops_begun += 1;
        if let Some(threads) = parallel.attributes.block_dim
            && self.kernel.cooperates(op)
        {
            return self.run_blocks(op, &ranges, threads);
        }
        let mut iteration = 0;
        let mut at = first_point(&ranges);
        while let Some(point) = at {
            for ((&index, (lo, _)), &param) in point.iter().zip(parallel.bounds()).zip(parallel.indices()) {
                self.set(param, self.index(lo, index));
            }
            if let Some(layout) = layout {
                for (&index, &param) in cell_index(layout, &point).iter().zip(parallel.indices()) {
                    self.set(param, Datum::Scalar(Const::i32(index)));
                }
            }
            for (&param, accumulator) in parallel.accumulators().iter().zip(accumulated) {
                self.set(param, accumulator);
            }
            self.stream = Stream::new(number, iteration);
            self.iteration = (!is_serial).then_some((self.loops_begun, iteration));
            iteration += 1;
            accumulated = self.region(parallel.body, [])?;
            at = next_point(point, &ranges);
        }
        (self.stream, self.iteration) = (outer, None);
        let totals = accumulated.into_iter().zip(identities);
        for (reduction, (total, identity)) in parallel.reductions().zip(totals) {
            if total != identity {
                self.combine(op, reduction.op, reduction.place, &total)?;
            }
        }
        Ok(())
    }

    pub fn fork(&mut self, op: Op) -> Result<(), Trap> {
        let outer = self.stream;
        for &branch in &self.kernel.ops[op].regions {
            self.stream = Stream::new(self.branch_number(branch), 0);
            self.region(branch, [])?;
        }
        self.stream = outer;
        Ok(())
    }

    pub fn assert_op(&mut self, op: Op, message: &str) -> Result<(), Trap> {
        if self.operand(op, 0).is_true() {
            return Ok(());
        }
        let arguments = self.kernel.ops[op].operands[1..].iter().map(|&v| self.get(v).scalar()).collect();
        self.trap(op, TrapKind::Assert { message: message.into(), arguments })
    }
}

/// The first point of ranges, if none of them is empty.
pub fn first_point(ranges: &[(i128, i128)]) -> Option<Vec<i128>> {
    ranges.iter().map(|&(lo, hi)| (lo < hi).then_some(lo)).collect()
}

/// The point after this one, the last axis fastest.
pub fn next_point(mut point: Vec<i128>, ranges: &[(i128, i128)]) -> Option<Vec<i128>> {
    for (index, &(lo, hi)) in point.iter_mut().zip(ranges).rev() {
        *index += 1;
        if *index < hi {
            return Some(point);
        }
        *index = lo;
    }
    None
}

/// The index of the cell that digits in storage order count to.
fn cell_index(layout: &Layout, digits: &[i128]) -> Vec<i32> {
    let mut index = layout.origin.clone();
    for (digit, &value) in layout.digits().zip(digits) {
        index[usize::from(digit.axis)] += digit.below as i32 * value as i32;
    }
    index
}
