//! Pools of sparse trees that get memory while kernels run, on devices whose memory is not there by itself.
//!
//! A tree's memory is a range of addresses, of which each pool's first slots have memory: as many as its `CAPACITY` says. A kernel that
//! gives out slot number `WARNING` writes a word that the host sees, goes on, and waits once it has no slots left. Here a thread looks at these
//! words, maps more, and raises the numbers. So no launch is bounded by what was there when it began, and nobody waits but a kernel that is
//! faster than the mapping. When there is no memory left, `LIMIT` says so, and the kernel fails.
//!
//! Law: **what a running kernel may still ask for is served until it has ended**, also after its tree was destroyed and its session reset.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use octants_hal::{DeviceError, forked};
use octants_ir::sparse::{GROWTH_DIVISOR, GROWTH_STEP_BYTES, SparseTree, state, state_offset};
use octants_runtime::{Context, Memory, MemoryError, SharedWords};

/// How often the words are looked at: often after a launch, and seldom when the last one was long ago.
const PERIODS: (Duration, Duration) = (Duration::from_micros(50), Duration::from_millis(5));

/// The pools of one tree.
pub(crate) struct PoolGrowth {
    memory: Arc<Memory>,
    signals: SharedWords,
    pools: Mutex<Vec<GrowingPool>>,
    /// Nobody has the tree any more.
    retired: AtomicBool,
}

struct GrowingPool {
    /// How many slots have memory, slot 0 not counted, and how many there may be.
    capacity: u32,
    most: u32,
    /// Where arrays with an element for each slot begin, and bytes of an element.
    arrays: [(u64, u64); 3],
    step: u32,
}

impl PoolGrowth {
    /// Gives a tree's pools their first slots, and says where kernels write that they need more.
    pub fn new(
        context: &Arc<Context>,
        tree: &mut SparseTree,
        memory: &Arc<Memory>,
    ) -> Result<Self, MemoryError> {
        let signals = SharedWords::allocate(context, tree.pools.len())?;
        let base = memory.address()?.0;
        let root = &tree.pools[0];
        memory.back(0, (root.first + root.slot_bytes) as usize)?;
        let mut pools = Vec::new();
        for (number, pool) in tree.pools.iter_mut().enumerate() {
            pool.signal = signals.address(number).0.wrapping_sub(base);
            let free = (pool.free, pool.free_bytes());
            let arrays = [(pool.first, pool.slot_bytes), (pool.headers, pool.header_bytes), free];
            let step = (GROWTH_STEP_BYTES / pool.bytes_of_slot().max(1)).clamp(1, pool.slots.into()) as u32;
            pools.push(GrowingPool { capacity: 0, most: pool.slots - 1, arrays, step });
        }
        let growth = Self {
            memory: Arc::clone(memory),
            signals,
            pools: Mutex::new(pools),
            retired: AtomicBool::new(false),
        };
        let mut pools = growth.pools();
        for (number, pool) in pools.iter_mut().enumerate() {
            let target = pool.step.min(pool.most);
            growth.raise(number, pool, target)?;
        }
        drop(pools);
        Ok(growth)
    }

    fn pools(&self) -> MutexGuard<'_, Vec<GrowingPool>> {
        self.pools.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many slots of a pool have memory, and bytes of each.
    pub fn backed(&self, pool: usize) -> (u32, u64) {
        let pool = &self.pools()[pool];
        (pool.capacity, pool.arrays.iter().map(|&(_, bytes)| bytes).sum())
    }

    /// Gives memory to pools that asked for it.
    fn serve(&self) {
        let mut pools = self.pools();
        for (number, pool) in pools.iter_mut().enumerate() {
            if self.signals.take(number) != 0 && self.grow(number, pool).is_err() {
                // The device is lost: kernels end by that.
                self.retired.store(true, Ordering::Release);
            }
        }
    }

    /// Grows a pool until its kernels need not wait.
    fn grow(&self, number: usize, pool: &mut GrowingPool) -> Result<(), MemoryError> {
        loop {
            let mut used = [0; 4];
            self.memory.read_beside(state_offset(number, state::USED), &mut used)?;
            let used = u32::from_le_bytes(used).min(pool.most);
            if pool.capacity == pool.most || used < pool.warning() {
                return Ok(());
            }
            let spare = (used / GROWTH_DIVISOR).max(pool.step);
            let mut target = used.saturating_add(spare).min(pool.most).max(pool.capacity + 1);
            while let Err(error) = self.raise(number, pool, target) {
                if !matches!(error, MemoryError::Device(DeviceError::OutOfMemory { .. })) {
                    return Err(error);
                }
                if target == pool.capacity + 1 {
                    return self.tell(number, pool, pool.capacity);
                }
                target = pool.capacity + (target - pool.capacity).div_ceil(2);
            }
        }
    }

    /// Maps memory for so many slots, and tells kernels.
    fn raise(&self, number: usize, pool: &mut GrowingPool, target: u32) -> Result<(), MemoryError> {
        for (begin, bytes) in pool.arrays {
            self.memory.back(begin as usize, ((u64::from(target) + 1) * bytes) as usize)?;
        }
        pool.capacity = target;
        self.tell(number, pool, pool.most)
    }

    /// `CAPACITY`, `WARNING` and `LIMIT` lie side by side.
    fn tell(&self, number: usize, pool: &GrowingPool, limit: u32) -> Result<(), MemoryError> {
        let words = [pool.capacity, pool.warning(), limit].map(u32::to_le_bytes);
        self.memory.write_beside(state_offset(number, state::CAPACITY), words.as_flattened())
    }

    /// Whether nobody needs it any more: neither the host, whose session goes on, nor a kernel that is running.
    fn is_over(&self) -> bool {
        let is_left = self.memory.address().is_err() || self.retired.load(Ordering::Acquire);
        is_left && !self.memory.is_in_use()
    }
}

impl GrowingPool {
    /// The slot whose giving out is told.
    fn warning(&self) -> u32 {
        if self.capacity == self.most {
            return i32::MAX as u32;
        }
        self.capacity - (self.capacity / (2 * GROWTH_DIVISOR)).max(self.step / 4).min(self.capacity - 1)
    }
}

/// Looks after the trees of a session that grow, by a thread that runs while there are some.
pub(crate) struct GrowthKeeper {
    trees: Mutex<Trees>,
    /// A launch may have come since the thread last looked.
    touched: AtomicBool,
    /// The thread sleeps for long.
    rests: AtomicBool,
    /// Of the process that it belongs to: a forked child has no such thread.
    generation: u32,
    /// Whether there ever was a thread.
    started: AtomicBool,
}

impl Default for GrowthKeeper {
    fn default() -> Self {
        Self {
            trees: Mutex::default(),
            touched: AtomicBool::new(false),
            rests: AtomicBool::new(false),
            generation: forked::generation(),
            started: AtomicBool::new(false),
        }
    }
}

#[derive(Default)]
struct Trees {
    growing: Vec<Arc<PoolGrowth>>,
    thread: Option<Thread>,
}

impl GrowthKeeper {
    /// Serves a tree from now on, until the handle is dropped and no kernel uses it.
    pub fn keep(self: &Arc<Self>, growth: PoolGrowth) -> io::Result<GrowthHandle> {
        let growth = Arc::new(growth);
        let mut trees = self.trees();
        self.started.store(true, Ordering::Relaxed);
        if trees.thread.is_none() {
            let keeper = Arc::clone(self);
            let thread = thread::Builder::new().name("octants pools".to_owned());
            trees.thread = Some(thread.spawn(move || keeper.run())?.thread().clone());
        }
        trees.growing.push(Arc::clone(&growth));
        Ok(GrowthHandle { growth, keeper: Arc::clone(self) })
    }

    /// Whether a thread that this process, a forked child, does not have looks after trees.
    pub fn is_of_parent(&self) -> bool {
        self.started.load(Ordering::Relaxed) && self.generation != forked::generation()
    }

    fn trees(&self) -> MutexGuard<'_, Trees> {
        self.trees.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wake(&self) {
        if let Some(thread) = &self.trees().thread {
            thread.unpark();
        }
    }

    fn run(&self) {
        let mut since = Instant::now();
        loop {
            if self.touched.swap(false, Ordering::Relaxed) {
                since = Instant::now();
            }
            let under_way = forked::UnderWay::inside();
            let growing = self.trees().growing.clone();
            for growth in growing {
                growth.serve();
            }
            let mut trees = self.trees();
            let over: Vec<_> = trees.growing.extract_if(.., |growth| growth.is_over()).collect();
            if trees.growing.is_empty() {
                trees.thread = None;
                drop(trees);
                return;
            }
            drop((trees, under_way));
            if !over.is_empty() {
                // Giving memory back may wait for kernels that wait for this thread.
                thread::spawn(move || {
                    let _under_way = forked::UnderWay::inside();
                    drop(over);
                });
            }
            let period = (since.elapsed() / 20).clamp(PERIODS.0, PERIODS.1);
            self.rests.store(period > 10 * PERIODS.0, Ordering::Relaxed);
            thread::park_timeout(period);
        }
    }
}

/// Keeps a tree growing.
pub(crate) struct GrowthHandle {
    growth: Arc<PoolGrowth>,
    keeper: Arc<GrowthKeeper>,
}

impl GrowthHandle {
    /// A launch that may use the tree is about to be told.
    #[inline]
    pub fn touch(&self) {
        if !self.keeper.touched.load(Ordering::Relaxed) {
            self.keeper.touched.store(true, Ordering::Relaxed);
            if self.keeper.rests.load(Ordering::Relaxed) {
                self.keeper.wake();
            }
        }
    }

    pub fn growth(&self) -> &PoolGrowth {
        &self.growth
    }

    /// Nobody uses the tree in launches any more.
    pub fn retire(&self) {
        self.growth.retired.store(true, Ordering::Release);
        if self.keeper.generation == forked::generation() {
            self.keeper.wake();
        }
    }
}

impl Drop for GrowthHandle {
    fn drop(&mut self) {
        self.retire();
    }
}

impl std::fmt::Debug for GrowthHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GrowthHandle").finish_non_exhaustive()
    }
}
