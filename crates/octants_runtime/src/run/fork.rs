//! A fork: its branches on streams of their own, or in order where that is as quick.
//!
//! The first branch keeps the launching stream. Every other one takes a stream of the pool, which waits for an event of the launching
//! stream; in the end the launching stream waits for an event of each. The host waits for none of them, but for what it must read: a bound
//! that the device cannot read itself, or whether a check has failed. It tells each branch as much as it can before it waits for any, so that
//! all of them are under way meanwhile. An immediate launching stream runs its branch while the others are under way already.
//!
//! Each branch has a record of faults of its own. After a failure nothing more is begun, what was begun is joined, and the error of the
//! first branch that failed, in the order of the program, comes with those of the others.
//!
//! Branches whose work is small run in order on the launching stream. Whether that is so is decided at each launch: the plan says how many
//! instructions a branch runs in terms of arguments and extents, and the device says what a stream costs, in instructions, too. A branch of
//! which the plan says nothing is taken for a long one.

use std::ops::Range;

use octants_hal::{Address, DeviceError, Fault, FaultRecord, Stream};
use smallvec::SmallVec;

use super::RunError;
use super::interpreter::{Place, Run};
use crate::commands::{Command, Fork, Value};
use crate::stream_pool::{PooledEvent, PooledStream};

/// Forks of so many branches need no allocation.
const FEW: usize = 8;

/// A branch that is under way.
struct Lane<'a> {
    /// What is left of its part of the list.
    commands: Range<usize>,
    /// Whether the device was told of a task.
    has_begun: bool,
    stream: Stream,
    is_immediate: bool,
    /// Whether something of it may be under way that the host has not waited for.
    is_busy: bool,
    /// The stream, and the event that ends the branch; none for the branch on the launching stream.
    own: Option<(PooledStream<'a>, PooledEvent<'a>)>,
    /// Which record of faults is the branch's, and where the device sees it.
    record: usize,
    fault: Address,
}

impl Lane<'_> {
    fn is_done(&self) -> bool {
        self.commands.is_empty()
    }
}

impl<I> Run<'_, I> {
    /// Whether what overlapping can save takes longer than giving branches streams: all branches but the longest; less where loops use
    /// the whole device already.
    #[cold]
    pub fn overlap_pays(&self, fork: &Fork) -> bool {
        let (plan, args) = (self.version.plan(), self.context.args);
        let costs = self.version.context().device().fork_costs();
        let (mut longest, mut others, mut all) = (0_u64, 0_u64, 0_u64);
        for branch in &fork.branches {
            let mut length = 0_u64;
            match &branch.work {
                // Whoever says nothing is taken for one long thread.
                None => length = u64::MAX,
                Some(tasks) => {
                    for task in tasks {
                        let (busiest, together) = task.instructions(plan, args, costs.threads);
                        length = length.saturating_add(busiest);
                        all = all.saturating_add(together);
                    }
                }
            }
            others = others.saturating_add(length.min(longest));
            longest = length.max(longest);
        }
        let kept = if costs.loops_fill { (all / costs.threads.max(1)).saturating_sub(longest) } else { 0 };
        others.saturating_sub(kept)
            >= costs.branch_instructions.saturating_mul(fork.branches.len() as u64 - 1)
    }

    /// # Safety
    /// As for [`Run::commands`]; the device has streams.
    #[cold]
    pub unsafe fn overlap(&mut self, fork: &Fork) -> Result<(), RunError> {
        let version = self.version;
        let (owner, device) = (version.context(), version.context().device());
        let (before, branches) = (self.context, &fork.branches);
        let launching_is_immediate = device.is_immediate(before.stream);
        let records: SmallVec<[FaultRecord; FEW]> = branches.iter().map(|_| FaultRecord::new()).collect();
        // All that may be missing is taken before anything is begun.
        let mut lanes = SmallVec::<[Lane<'_>; FEW]>::new();
        for (number, branch) in branches.iter().enumerate() {
            let own = match number {
                0 => None,
                _ => Some((owner.streams().stream(before.stream)?, owner.streams().event()?)),
            };
            let stream = own.as_ref().map_or(before.stream, |(stream, _)| stream.stream());
            let fault = match &self.place {
                Place::Stack { .. } => Address::of(&raw const records[number]),
                Place::Device { checks: None, .. } => before.memory.fault,
                Place::Device { checks: Some(report), .. } => report.record_on_device(number),
            };
            lanes.push(Lane {
                commands: branch.commands.clone(),
                has_begun: false,
                stream,
                is_immediate: device.is_immediate(stream),
                is_busy: false,
                own,
                record: number,
                fault,
            });
        }
        if !launching_is_immediate {
            let begin = owner.streams().event()?;
            // SAFETY: the guards keep streams and events alive; the launching stream is the caller's.
            unsafe {
                device.record_event(before.stream, begin.event())?;
                for (stream, _) in lanes.iter().filter_map(|lane| lane.own.as_ref()) {
                    device.wait_event(stream.stream(), begin.event())?;
                }
            }
        }
        // SAFETY: the caller says so.
        let ran = unsafe { self.run_lanes(&mut lanes) };
        self.context = before;
        // Also after an error: the launch's memory must outlive what was begun.
        // SAFETY: as above.
        let joined = unsafe { self.join(&lanes, launching_is_immediate) };
        match (ran, joined) {
            (Ok(()) | Err(RunError::Fault(..)), Ok(())) => {}
            (Err(error), _) => return Err(error),
            (_, Err(error)) => return Err(error.into()),
        }
        let faults: Vec<Fault> = match &self.place {
            Place::Stack { .. } => records.iter().filter_map(FaultRecord::fault).collect(),
            Place::Device { checks: None, .. } => return Ok(()),
            Place::Device { checks: Some(report), .. } => {
                if !owner.wait(before.stream, self.cancel, &mut || report.take_prints())? {
                    return Err(RunError::Cancelled);
                }
                (0..branches.len()).filter_map(|number| report.fault(number)).collect()
            }
        };
        match &faults[..] {
            // Work that looked at the request has ended early.
            [] if self.cancel.is_wanted() => Err(RunError::Cancelled),
            [] => Ok(()),
            [first, others @ ..] => Err(RunError::Fault(*first, others.to_vec())),
        }
    }

    /// Tells the device of all tasks. Each round goes as far with every branch as it goes without waiting, or behind one wait.
    ///
    /// # Safety
    /// As for [`Run::commands`].
    unsafe fn run_lanes(&mut self, lanes: &mut [Lane<'_>]) -> Result<(), RunError> {
        let mut may_wait = false;
        while !lanes.iter().all(Lane::is_done) {
            // The launching stream comes last: if it is immediate, its branch runs here and now.
            for lane in lanes.iter_mut().rev() {
                // SAFETY: the caller says so.
                unsafe { self.advance(lane, may_wait)? };
            }
            may_wait = true;
        }
        Ok(())
    }

    /// Tells the device of tasks of one branch, until one must wait for those before it.
    ///
    /// # Safety
    /// As for [`Run::commands`].
    unsafe fn advance(&mut self, lane: &mut Lane<'_>, mut may_wait: bool) -> Result<(), RunError> {
        let version = self.version;
        self.context.stream = lane.stream;
        self.context.memory.fault = lane.fault;
        for command in &version.commands().commands[lane.commands.clone()] {
            if self.cancel.is_wanted() {
                return Err(RunError::Cancelled);
            }
            match command {
                Command::Launch(launch) => {
                    lane.has_begun = true;
                    // SAFETY: the caller vouches for the launch; what the branch wrote for its bounds was just waited for, and no other
                    // branch writes it.
                    let was_told = unsafe { self.tell(launch)? };
                    lane.is_busy |= was_told;
                    if was_told && lane.is_immediate {
                        lane.is_busy = false;
                        self.check(lane)?;
                    }
                }
                Command::Wait(Value::Faults) if matches!(self.place, Place::Device { checks: None, .. }) => {}
                Command::Wait(value) => {
                    if lane.is_busy {
                        if !may_wait {
                            return Ok(());
                        }
                        may_wait = false;
                        lane.is_busy = false;
                        // A copy from the device waits by itself.
                        if *value == Value::Faults || matches!(self.place, Place::Stack { .. }) {
                            self.wait_for(lane)?;
                        }
                    }
                    if *value == Value::Temps {
                        self.read_temps()?;
                    }
                }
                Command::FillScratch | Command::Fork(_) => unreachable!("stands in no branch"),
            }
            lane.commands.start += 1;
        }
        Ok(())
    }

    /// The host waits for a branch, and looks whether it has failed.
    fn wait_for(&self, lane: &Lane<'_>) -> Result<(), RunError> {
        let mut meanwhile = || {
            if let Place::Device { checks: Some(report), .. } = &self.place {
                report.take_prints();
            }
        };
        if !self.version.context().wait(lane.stream, self.cancel, &mut meanwhile)? {
            return Err(RunError::Cancelled);
        }
        self.check(lane)
    }

    /// Looks whether a branch has failed of which nothing is under way.
    fn check(&self, lane: &Lane<'_>) -> Result<(), RunError> {
        let fault = match &self.place {
            // SAFETY: the record is on the stack of who forks, and all of it is atomic.
            Place::Stack { .. } => unsafe { &*lane.fault.as_ptr::<FaultRecord>() }.fault(),
            Place::Device { checks: None, .. } => None,
            Place::Device { checks: Some(report), .. } => report.fault(lane.record),
        };
        fault.map_or(Ok(()), |fault| Err(RunError::Fault(fault, Vec::new())))
    }

    /// The launching stream waits for all branches that were begun; where that cannot be said, the host does. The first error is told.
    ///
    /// # Safety
    /// All are live.
    unsafe fn join(&self, lanes: &[Lane<'_>], launching_is_immediate: bool) -> Result<(), DeviceError> {
        let (owner, launching) = (self.version.context(), self.context.stream);
        let device = owner.device();
        if launching_is_immediate {
            // What no other thread has begun runs here: waking one takes longer than a short branch, and its tasks look at the caller's
            // request to end themselves. Others begin with the first branches.
            for lane in lanes.iter().rev().filter(|lane| lane.has_begun && lane.own.is_some()) {
                // SAFETY: the caller says so.
                while unsafe { device.assist(lane.stream) } {}
            }
        }
        let mut first = Ok(());
        for lane in lanes.iter().filter(|lane| lane.has_begun) {
            let Some((stream, end)) = &lane.own else { continue };
            // SAFETY: the caller says so.
            let joined = unsafe {
                if launching_is_immediate {
                    // Handlers of signals run meanwhile. If one wants the launch to end, the branch does.
                    let waited = owner.wait(stream.stream(), self.cancel, &mut || {});
                    waited.map(drop).and(device.synchronise(stream.stream()))
                } else {
                    let joined = device
                        .record_event(stream.stream(), end.event())
                        .and_then(|()| device.wait_event(launching, end.event()));
                    if joined.is_err() { device.synchronise(stream.stream()).and(joined) } else { joined }
                }
            };
            first = first.and(joined);
        }
        first
    }
}
