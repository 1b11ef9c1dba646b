//! The table in which callers publish jobs for workers, and how workers sleep: atomics only, no locks.
//!
//! A slot's `state` says who may use the job behind it. A worker that has *entered* may use the job until it has *left*; a caller that
//! has *closed* its slot waits until nobody is inside. That is all that keeps a job alive, so it is checked by a model
//! (`tests/job_table_model.rs`), for which this file is compiled over `loom`.
//!
//! This knows nothing of loops: a job is any type.

use super::sync::{AtomicPtr, AtomicU32, AtomicU64, Ordering, Thread, current, fence, park, spin_loop};

/// The slot has a caller.
const CLAIMED: u32 = 1 << 31;
/// Workers may enter.
const OPEN: u32 = 1 << 30;
/// The caller sleeps until the last worker has left.
const PARKED: u32 = 1 << 29;
/// How many more workers may enter: 14 bits.
const ONE_PERMIT: u32 = 1 << 15;
const PERMITS: u32 = 0x3FFF * ONE_PERMIT;
/// How many workers are inside: 15 bits.
const INSIDE: u32 = ONE_PERMIT - 1;

/// Most workers that one job can have.
pub(super) const MAX_WORKERS_PER_JOB: usize = (PERMITS / ONE_PERMIT) as usize;

/// One job that workers may enter, on cache lines of its own.
#[repr(align(128))]
struct Slot<J> {
    state: AtomicU32,
    /// Workers with smaller numbers are preferred.
    preferred: AtomicU32,
    /// Only workers with smaller numbers may enter.
    end: AtomicU32,
    job: AtomicPtr<J>,
}

/// The published jobs, and the workers that sleep.
pub(super) struct JobTable<J> {
    slots: Box<[Slot<J>]>,
    epoch: Epoch,
    /// A bit for each worker that sleeps, or is about to.
    asleep: Box<[AtomicU64]>,
}

/// A counter that rises whenever a job is published or the workers are to look for another reason. All idle workers watch it.
#[repr(align(128))]
struct Epoch(AtomicU32);

/// The slot of a job that its caller has published.
#[derive(Clone, Copy)]
pub(super) struct PublishedJob(usize);

/// A job that a worker has entered, and its slot.
pub(super) struct EnteredJob<J> {
    slot: usize,
    pub job: *const J,
}

impl<J> JobTable<J> {
    /// With room for `slots` jobs at a time, and for workers with numbers below `workers`.
    pub(super) fn new(slots: usize, workers: usize) -> Self {
        let slot = || Slot {
            state: AtomicU32::new(0),
            preferred: AtomicU32::new(0),
            end: AtomicU32::new(0),
            job: AtomicPtr::new(std::ptr::null_mut()),
        };
        Self {
            slots: (0..slots).map(|_| slot()).collect(),
            epoch: Epoch(AtomicU32::new(0)),
            asleep: (0..workers.div_ceil(64)).map(|_| AtomicU64::new(0)).collect(),
        }
    }

    /// Publishes a job for at most `workers` workers, with numbers below `end`. `None` if all slots are taken.
    ///
    /// The job must stay where it is until [`JobTable::close`] has returned.
    pub(super) fn publish(&self, job: *const J, workers: usize, end: u32) -> Option<PublishedJob> {
        let claim = |slot: &Slot<J>| {
            slot.state.load(Ordering::Relaxed) == 0
                && slot.state.compare_exchange(0, CLAIMED, Ordering::Acquire, Ordering::Relaxed).is_ok()
        };
        let index = self.slots.iter().position(claim)?;
        let slot = &self.slots[index];
        let permits = workers.min(MAX_WORKERS_PER_JOB) as u32;
        slot.job.store(job.cast_mut(), Ordering::Relaxed);
        slot.preferred.store(permits + 1, Ordering::Relaxed);
        slot.end.store(end, Ordering::Relaxed);
        // Releases the job's contents and the pointer to whoever enters.
        slot.state.store(CLAIMED | OPEN | (permits * ONE_PERMIT), Ordering::Release);
        self.announce();
        Some(PublishedJob(index))
    }

    /// Makes idle workers look for work.
    pub(super) fn announce(&self) {
        self.epoch.0.fetch_add(1, Ordering::Release);
        // Pairs with the fence in `sleep`: either this sees the sleeper's bit, or the sleeper sees the new epoch.
        fence(Ordering::SeqCst);
    }

    /// Lets a worker into the job with the fewest inside that has a permit left, so that loops which run at the same time share workers. An eager worker also takes permits that others are preferred for.
    pub(super) fn enter(&self, worker: usize, eager: bool) -> Option<EnteredJob<J>> {
        let accepts = |slot: &Slot<J>| {
            let end = if eager { &slot.end } else { &slot.preferred };
            (worker as u32) < end.load(Ordering::Relaxed)
        };
        let is_open = |state: u32| state & OPEN != 0 && state & PERMITS != 0;
        let enter = |slot: &Slot<J>| {
            let mut state = slot.state.load(Ordering::Relaxed);
            while is_open(state) && accepts(slot) {
                let entered = state - ONE_PERMIT + 1;
                match slot.state.compare_exchange_weak(state, entered, Ordering::Acquire, Ordering::Relaxed) {
                    Ok(_) => return true,
                    Err(now) => state = now,
                }
            }
            false
        };
        let mut best: Option<(u32, usize)> = None;
        for (index, slot) in self.slots.iter().enumerate() {
            let state = slot.state.load(Ordering::Relaxed);
            let inside = state & INSIDE;
            if is_open(state) && best.is_none_or(|(least, _)| inside < least) && accepts(slot) {
                best = Some((inside, index));
                if inside == 0 {
                    break;
                }
            }
        }
        let (_, first) = best?;
        let mut order = std::iter::once(first).chain(0..self.slots.len());
        let slot = order.find(|&slot| enter(&self.slots[slot]))?;
        Some(EnteredJob { slot, job: self.slots[slot].job.load(Ordering::Relaxed) })
    }

    /// The worker is done with the job, which may be gone when this returns. `caller` gives the job's caller, where it is asleep.
    pub(super) fn leave(&self, entered: EnteredJob<J>, caller: impl Fn(*const J) -> Option<Thread>) {
        let state_of = &self.slots[entered.slot].state;
        let mut state = state_of.load(Ordering::Relaxed);
        loop {
            let is_last = state & PARKED != 0 && state & INSIDE == 1;
            if is_last {
                // What the caller wrote before it set the bit.
                fence(Ordering::Acquire);
            }
            // Asked before leaving, while the job is still there.
            let parked = if is_last { caller(entered.job) } else { None };
            match state_of.compare_exchange_weak(state, state - 1, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => {
                    if let Some(caller) = parked {
                        caller.unpark();
                    }
                    return;
                }
                Err(now) => state = now,
            }
        }
    }

    /// Withdraws the job, and waits until nobody is inside: spins for a while, then says through `parking` that it sleeps now. `sleep`
    /// is over when the thread is unparked, or earlier.
    pub(super) fn close(
        &self,
        published: PublishedJob,
        mut keep_spinning: impl FnMut() -> bool,
        parking: impl FnOnce(Thread),
        mut sleep: impl FnMut(),
    ) {
        let state = &self.slots[published.0].state;
        let mut now = state.fetch_and(!(OPEN | PERMITS), Ordering::Acquire);
        while now & INSIDE != 0 && keep_spinning() {
            spin_loop();
            now = state.load(Ordering::Acquire);
        }
        if now & INSIDE != 0 {
            parking(current());
            now = state.fetch_or(PARKED, Ordering::AcqRel);
            while now & INSIDE != 0 {
                sleep();
                now = state.load(Ordering::Acquire);
            }
        }
        state.store(0, Ordering::Release);
    }

    /// What [`JobTable::sleep`] compares with.
    pub(super) fn epoch(&self) -> u32 {
        self.epoch.0.load(Ordering::Acquire)
    }

    /// The worker sleeps until it is woken, unless the epoch has changed since `seen`.
    pub(super) fn sleep(&self, worker: usize, seen: u32) {
        let (word, bit) = (&self.asleep[worker / 64], 1 << (worker % 64));
        word.fetch_or(bit, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        if self.epoch.0.load(Ordering::Relaxed) == seen {
            while word.load(Ordering::Acquire) & bit != 0 {
                park();
            }
        }
        word.fetch_and(!bit, Ordering::Relaxed);
    }

    /// Whether some worker with a number below `end` sleeps. After an [`JobTable::announce`].
    pub(super) fn any_asleep(&self, end: usize) -> bool {
        let words = self.asleep.iter().enumerate().take(end.div_ceil(64));
        words.into_iter().any(|(n, word)| word.load(Ordering::Relaxed) & below(end - 64 * n) != 0)
    }

    /// Takes the worker's bit away; whether it was there. Then whoever took it unparks the worker.
    pub(super) fn wake(&self, worker: usize) -> bool {
        let (word, bit) = (&self.asleep[worker / 64], 1 << (worker % 64));
        word.load(Ordering::Relaxed) & bit != 0 && word.fetch_and(!bit, Ordering::Release) & bit != 0
    }
}

/// The lowest bits, so many of them.
fn below(bits: usize) -> u64 {
    if bits >= 64 { u64::MAX } else { (1 << bits) - 1 }
}
