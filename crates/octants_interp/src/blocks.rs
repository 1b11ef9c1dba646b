//! Loops whose threads form blocks. The lanes of a block run in lockstep: code between the ops that they run together is run lane by lane, in an
//! order that changes from block to block.
//!
//! What the language leaves to luck is a [`Misuse`]: a barrier that some lanes never reach, a shuffle with lanes elsewhere, memory of the block that
//! two lanes touch without a barrier between them.

use octants_ir::ops::{Effects, SUBGROUP, Scope, ShuffleOp};
use octants_ir::{Const, Id, Op, OpKind, Region, Scalar, SideTable, Value};

use crate::control::{first_point, next_point};
use crate::datum::Datum;
use crate::machine::Machine;
use crate::random::Stream;
use crate::trap::{Misuse, Trap, TrapKind};

/// What a lane has for itself, while another one runs.
struct Lane {
    values: Vec<Datum>,
    places: Vec<Option<usize>>,
    stream: Stream,
    iteration: Option<(u64, u64)>,
}

/// A block that runs.
struct Block {
    lanes: Vec<Lane>,
    /// In which order they run.
    order: Vec<usize>,
    /// Ops that lanes run together, and ops that hold such.
    joint: SideTable<Op, bool>,
}

impl Block {
    /// The lanes of a subgroup.
    fn subgroup(&self, number: usize) -> std::ops::Range<usize> {
        let first = number * SUBGROUP as usize;
        first..self.lanes.len().min(first + SUBGROUP as usize)
    }
}

/// Which ops of a region, at any depth, lanes run together or hold such.
fn joint_ops(machine: &Machine<'_>, region: Region, joint: &mut SideTable<Op, bool>) -> bool {
    let kernel = machine.kernel;
    let mut any = false;
    for &op in &kernel.regions[region].ops {
        let mut here = kernel.ops[op].kind.effects().contains(Effects::CONVERGENT);
        for &inner in &kernel.ops[op].regions {
            here |= joint_ops(machine, inner, joint);
        }
        joint.set(op, here);
        any |= here;
    }
    any
}

impl Machine<'_> {
    /// The iterations of a loop whose lanes do something together.
    pub fn run_blocks(&mut self, op: Op, ranges: &[(i128, i128)], threads: u32) -> Result<(), Trap> {
        let parallel = self.kernel.parallel_loop(op).expect("the caller saw a parallel loop");
        let mut joint = SideTable::new(false);
        joint_ops(self, parallel.body, &mut joint);
        let (outer, number, height) = (self.stream, self.loop_number(op), self.cells.len());
        let first = self.lane(Stream::default(), None);
        let mut block = Block { lanes: Vec::new(), order: Vec::new(), joint };
        let mut iteration = 0;
        let mut at = first_point(ranges);
        while at.is_some() {
            let mut points = Vec::new();
            while let Some(point) = at.take_if(|_| points.len() < threads as usize) {
                at = next_point(point.clone(), ranges);
                points.push(point);
            }
            if let Some(threads) = self.kernel.whole_blocks(op)
                && !points.len().is_multiple_of(threads as usize)
            {
                let iterations = iteration + points.len() as u64;
                let meeting = first_meeting(self, parallel.body).unwrap_or(op);
                return self.misused(meeting, Misuse::Partial { iterations, threads });
            }
            block.lanes.resize_with(points.len(), || Lane {
                values: first.values.clone(),
                places: first.places.clone(),
                ..first
            });
            block.order = order_of(points.len(), iteration / u64::from(threads));
            for (lane, point) in block.lanes.iter_mut().zip(&points) {
                for ((&index, (lo, _)), &param) in point.iter().zip(parallel.bounds()).zip(parallel.indices())
                {
                    lane.values[param.index()] = self.index(lo, index);
                }
                lane.stream = Stream::new(number, iteration);
                lane.iteration = Some((self.loops_begun, iteration));
                iteration += 1;
            }
            self.shared.begin_block();
            let all: Vec<_> = (0..block.lanes.len()).collect();
            self.together(parallel.body, &mut block, &all)?;
        }
        self.cells.truncate(height);
        (self.stream, self.iteration) = (outer, None);
        Ok(())
    }

    fn lane(&self, stream: Stream, iteration: Option<(u64, u64)>) -> Lane {
        Lane { values: self.values.clone(), places: self.places.clone(), stream, iteration }
    }

    /// Does something as a lane.
    fn as_lane<R>(&mut self, block: &mut Block, lane: usize, run: impl FnOnce(&mut Self) -> R) -> R {
        let swap = |machine: &mut Self, lane: &mut Lane| {
            std::mem::swap(&mut machine.values, &mut lane.values);
            std::mem::swap(&mut machine.places, &mut lane.places);
            std::mem::swap(&mut machine.stream, &mut lane.stream);
            std::mem::swap(&mut machine.iteration, &mut lane.iteration);
        };
        swap(self, &mut block.lanes[lane]);
        self.shared.lane = Some(lane);
        let result = run(self);
        self.shared.lane = None;
        swap(self, &mut block.lanes[lane]);
        result
    }

    /// A region, as these lanes: what its terminator hands on is left in the lanes' values.
    fn together(&mut self, region: Region, block: &mut Block, active: &[usize]) -> Result<(), Trap> {
        let kernel = self.kernel;
        let ops = &kernel.regions[region].ops;
        let mut next = 0;
        while let Some(&op) = ops.get(next) {
            if kernel.ops[op].kind.is_terminator() {
                break;
            }
            if block.joint[op] {
                next += 1;
                self.step(op)?;
                self.joint_op(op, block, active)?;
                continue;
            }
            let length = ops[next..]
                .iter()
                .take_while(|&&op| !block.joint[op] && !kernel.ops[op].kind.is_terminator())
                .count();
            let own = &ops[next..next + length];
            for lane in block.order.clone() {
                if active.contains(&lane) {
                    self.as_lane(block, lane, |machine| {
                        own.iter().try_for_each(|&op| {
                            machine.step(op)?;
                            machine.op(op)
                        })
                    })?;
                }
            }
            next += length;
        }
        Ok(())
    }

    fn joint_op(&mut self, op: Op, block: &mut Block, active: &[usize]) -> Result<(), Trap> {
        let data = &self.kernel.ops[op];
        match &data.kind {
            OpKind::If => self.joint_if(op, block, active),
            OpKind::For => self.joint_for(op, block, active),
            OpKind::While => self.joint_while(op, block, active),
            OpKind::Shared => {
                let place = self.shared_array(op);
                for &lane in active {
                    block.lanes[lane].places[data.results[0].index()] = Some(place);
                }
                Ok(())
            }
            OpKind::Barrier(Scope::Subgroup) => {
                for number in self.whole_subgroups(op, block, active)? {
                    self.shared.pass_subgroup(number);
                }
                Ok(())
            }
            OpKind::Barrier(_) => self.meet(op, block, active),
            OpKind::BarrierCount => {
                self.meet(op, block, active)?;
                let holds = |&&lane: &&usize| block.lanes[lane].values[data.operands[0].index()].is_true();
                let count = active.iter().filter(holds).count();
                let count = Datum::Scalar(Const::i32(count as i32));
                for &lane in active {
                    block.lanes[lane].values[data.results[0].index()] = count.clone();
                }
                Ok(())
            }
            OpKind::Ballot => {
                for number in self.whole_subgroups(op, block, active)? {
                    let lanes = block.subgroup(number);
                    let bit = |lane: usize| {
                        u64::from(block.lanes[lane].values[data.operands[0].index()].is_true())
                            << (lane - lanes.start)
                    };
                    let bits = lanes.clone().fold(0, |bits, lane| bits | bit(lane));
                    for lane in lanes {
                        let bits = Const::from_bits(Scalar::U64, bits);
                        block.lanes[lane].values[data.results[0].index()] = Datum::Scalar(bits);
                    }
                }
                Ok(())
            }
            OpKind::Shuffle(shuffle) => {
                for number in self.whole_subgroups(op, block, active)? {
                    self.shuffle(op, *shuffle, block, number)?;
                }
                Ok(())
            }
            kind => unreachable!("lanes do not run `{}` together", kind.name()),
        }
    }

    /// All lanes of the block are here.
    fn meet(&mut self, op: Op, block: &Block, active: &[usize]) -> Result<(), Trap> {
        if active.len() != block.lanes.len() {
            let missing = (0..block.lanes.len()).find(|lane| !active.contains(lane)).unwrap_or_default();
            return self.misused(op, Misuse::Missing { lane: missing, scope: Scope::Block });
        }
        self.shared.pass_block();
        Ok(())
    }

    /// The subgroups that are here, of which all lanes are.
    fn whole_subgroups(&self, op: Op, block: &Block, active: &[usize]) -> Result<Vec<usize>, Trap> {
        let mut numbers: Vec<_> = active.iter().map(|lane| lane / SUBGROUP as usize).collect();
        numbers.sort_unstable();
        numbers.dedup();
        for &number in &numbers {
            if let Some(lane) = block.subgroup(number).find(|lane| !active.contains(lane)) {
                return self.misused(op, Misuse::Missing { lane, scope: Scope::Subgroup });
            }
        }
        Ok(numbers)
    }

    fn misused<T>(&self, op: Op, misuse: Misuse) -> Result<T, Trap> {
        self.trap(op, TrapKind::Misuse(misuse))
    }

    fn shuffle(&self, op: Op, shuffle: ShuffleOp, block: &mut Block, number: usize) -> Result<(), Trap> {
        let data = &self.kernel.ops[op];
        let lanes = block.subgroup(number);
        let width = i128::from(SUBGROUP);
        let mut results = Vec::new();
        for lane in lanes.clone() {
            let of = |operand: usize| &block.lanes[lane].values[data.operands[operand].index()];
            let (own, by) = ((lane - lanes.start) as i128, of(1).integer());
            let is_near = (0..width).contains(&by);
            let wanted = match shuffle {
                ShuffleOp::Lane => by.rem_euclid(width),
                ShuffleOp::Xor => (own ^ by).rem_euclid(width),
                ShuffleOp::Up if is_near => own - by,
                ShuffleOp::Down if is_near => own + by,
                ShuffleOp::Up | ShuffleOp::Down => own,
            };
            let from = if (0..width).contains(&wanted) { wanted } else { own } as usize;
            if from >= lanes.len() {
                return self.misused(op, Misuse::Absent { lane, wanted: from });
            }
            results.push(block.lanes[lanes.start + from].values[data.operands[0].index()].clone());
        }
        for (lane, result) in lanes.zip(results) {
            block.lanes[lane].values[data.results[0].index()] = result;
        }
        Ok(())
    }

    fn joint_if(&mut self, op: Op, block: &mut Block, active: &[usize]) -> Result<(), Trap> {
        let data = &self.kernel.ops[op];
        let holds = |lane: &usize| block.lanes[*lane].values[data.operands[0].index()].is_true();
        let (then, otherwise): (Vec<_>, Vec<_>) = active.iter().copied().partition(holds);
        for (&region, lanes) in data.regions.iter().zip([then, otherwise]) {
            if !lanes.is_empty() {
                self.together(region, block, &lanes)?;
                self.hand_on(region, 0, &data.results, block, &lanes);
            }
        }
        Ok(())
    }

    /// What the region's terminator names, from some operand on, becomes other values of the lanes.
    fn hand_on(&self, region: Region, from: usize, to: &[Value], block: &mut Block, lanes: &[usize]) {
        let Some(end) = self.kernel.terminator(region) else { return };
        self.copy(&end.operands[from..], to, block, lanes);
    }

    fn copy(&self, from: &[Value], to: &[Value], block: &mut Block, lanes: &[usize]) {
        for &lane in lanes {
            let lane = &mut block.lanes[lane];
            let values: Vec<_> = from.iter().map(|value| lane.values[value.index()].clone()).collect();
            for (&value, datum) in to.iter().zip(values) {
                lane.values[value.index()] = datum;
            }
        }
    }

    fn joint_for(&mut self, op: Op, block: &mut Block, active: &[usize]) -> Result<(), Trap> {
        let kernel = self.kernel;
        let data = &kernel.ops[op];
        let body = data.regions[0];
        let params = &kernel.regions[body].params;
        let bound = |block: &Block, lane: usize, operand: usize| {
            block.lanes[lane].values[data.operands[operand].index()].integer()
        };
        let mut left: Vec<_> =
            active.iter().map(|&lane| (lane, bound(block, lane, 0), bound(block, lane, 1))).collect();
        self.copy(&data.operands[2..], &params[1..], block, active);
        // For those that have no iteration.
        self.copy(&data.operands[2..], &data.results, block, active);
        let scalar = kernel.ty(data.operands[0]).scalar().unwrap_or(Scalar::I32);
        loop {
            left.retain(|&(_, index, hi)| index < hi);
            let lanes: Vec<_> = left.iter().map(|&(lane, ..)| lane).collect();
            if lanes.is_empty() {
                return Ok(());
            }
            for (lane, index, _) in &mut left {
                let now = Datum::Scalar(Const::from_bits(scalar, *index as u64));
                block.lanes[*lane].values[params[0].index()] = now;
                *index += 1;
            }
            self.together(body, block, &lanes)?;
            self.hand_on(body, 0, &data.results, block, &lanes);
            self.copy(&data.results, &params[1..], block, &lanes);
        }
    }

    fn joint_while(&mut self, op: Op, block: &mut Block, active: &[usize]) -> Result<(), Trap> {
        let kernel = self.kernel;
        let data = &kernel.ops[op];
        let (cond, body) = (data.regions[0], data.regions[1]);
        let mut lanes = active.to_vec();
        self.copy(&data.operands, &kernel.regions[cond].params, block, &lanes);
        while !lanes.is_empty() {
            self.together(cond, block, &lanes)?;
            let Some(continues) = kernel.terminator(cond).map(|end| end.operands[0]) else { return Ok(()) };
            self.hand_on(cond, 1, &data.results, block, &lanes);
            lanes.retain(|&lane| block.lanes[lane].values[continues.index()].is_true());
            self.copy(&data.results, &kernel.regions[body].params, block, &lanes);
            if lanes.is_empty() {
                break;
            }
            self.together(body, block, &lanes)?;
            self.hand_on(body, 0, &kernel.regions[cond].params, block, &lanes);
        }
        Ok(())
    }
}

/// An op that needs all lanes of a block, or of a subgroup where none of a block.
fn first_meeting(machine: &Machine<'_>, body: Region) -> Option<Op> {
    let kernel = machine.kernel;
    let all = octants_ir::rewrite::ops_in(kernel, body);
    let kind = |op: Op| &kernel.ops[op].kind;
    let of_block = |op: Op| kind(op).makes_shared() || kind(op).meets() == Some(Scope::Block);
    let converges = |op: Op| kind(op).effects().contains(Effects::CONVERGENT);
    all.iter().copied().find(|&op| of_block(op)).or_else(|| all.iter().copied().find(|&op| converges(op)))
}

/// Which lane runs when: another order in each block.
fn order_of(lanes: usize, block: u64) -> Vec<usize> {
    let mut order: Vec<_> = (0..lanes).collect();
    let mut state = block.wrapping_mul(0x9E37_79B9_7F4A_7C15).wrapping_add(1);
    for last in (1..lanes).rev() {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        order.swap(last, (state >> 33) as usize % (last + 1));
    }
    order
}
