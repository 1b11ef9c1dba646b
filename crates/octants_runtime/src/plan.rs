//! A kernel ready to be launched: its code in the versions that exist so far, and the guard that chooses between them.

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use octants_hal::{Cancel, DeviceError, Fault, PrintQueue, Stream};
use octants_ir::plan::{Access, ArgLayout, LaunchUses, Plan, ResultLayout};

use crate::arguments::Arguments;
use crate::context::Context;
use crate::copies::copies_pay;
use crate::guard::OverlapGuard;
use crate::run::{RunError, run};
use crate::version::{Assumptions, MakeVersion, Version};

/// A kernel's code and how to launch it. The version for arrays that do not overlap, of which copies pay, and for launches as the thread's
/// would be now, is there from the start; the others are made when a launch first needs them.
pub struct LaunchPlan<M: MakeVersion> {
    context: Arc<Context>,
    maker: M,
    guard: OverlapGuard,
    first: Version<M::Info>,
    first_assumes: Assumptions,
    /// By what they assume.
    others: [OnceLock<Version<M::Info>>; Assumptions::COUNT],
    /// How many copies of an array a launch may need.
    copies: usize,
    /// Whether it has branches, which the device may run at the same time: such launches are never exclusive, and there is one version for both.
    has_branches: bool,
}

/// An exclusive launch that has begun.
struct ExclusiveLaunch<'a>(&'a Context);

impl<'a> ExclusiveLaunch<'a> {
    #[inline]
    fn begin(context: &'a Context, stream: Stream) -> Option<Self> {
        context.device().begin_exclusive(stream).then_some(Self(context))
    }
}

impl Drop for ExclusiveLaunch<'_> {
    #[inline]
    fn drop(&mut self) {
        self.0.device().end_exclusive();
    }
}

/// Why a launch did not finish.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LaunchFailure<E> {
    /// The session was reset.
    Stale,
    /// The caller's flag was raised.
    Cancelled,
    /// A block has another size than its layout.
    BlockSize {
        expected: usize,
        found: usize,
    },
    /// A parallel loop over more points than 63 bits can count.
    TooManyPoints,
    /// A loop whose threads wait for each other has so many points, no multiple of that.
    PartialBlock(u64, u32),
    /// A check failed.
    Fault(FaultReport),
    Device(DeviceError),
    /// The version that the launch needs could not be made.
    Version(E),
}

/// The checks that failed; sites are in the numbering of the version that ran.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FaultReport {
    /// Which version ran.
    pub assume: Assumptions,
    pub first: Fault,
    /// One for each other branch of a fork that failed, too.
    pub others: Vec<Fault>,
}

/// What a launch gets beside its arguments.
pub struct LaunchEnv<'a> {
    /// The queue that its tasks join.
    pub stream: Stream,
    /// Raised by someone else to make the launch end early.
    pub cancel: &'a Cancel,
    /// A number of this launch's own, for kernels that use one.
    pub key: u64,
    /// Gets what the kernel prints, when the launch is over.
    pub prints: Option<PrintSink<'a>>,
    /// Nobody waits for the sake of checks that may be told late, [`SiteTable::may_be_late`](octants_ir::SiteTable::may_be_late):
    /// [`Context::take_deferred_fault`] gives what failed.
    pub reports_late: bool,
}

impl<'a> LaunchEnv<'a> {
    /// Of a kernel that neither prints nor has random numbers.
    pub fn plain(stream: Stream, cancel: &'a Cancel) -> Self {
        Self { stream, cancel, key: 0, prints: None, reports_late: false }
    }
}

/// Gets prints in order, with the plan of the version that ran.
pub type PrintSink<'a> = &'a mut dyn FnMut(&Plan, Printed<'_>);

/// What a launch printed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Printed<'a> {
    /// One print: which, and its operands.
    Record { site: u32, operands: &'a [u64] },
    /// So many more prints found no room.
    Dropped(u64),
}

impl<M: MakeVersion> LaunchPlan<M> {
    /// Makes the first version.
    pub fn new(context: &Arc<Context>, maker: M, cancel: &Cancel) -> Result<Self, M::Error> {
        let copies = context.device().copies();
        let exclusive = ExclusiveLaunch::begin(context, context.default_stream()).is_some();
        let first_assumes = Assumptions { noalias: true, copies: copies > 0, exclusive };
        let first = make(context, &maker, first_assumes, cancel)?;
        let guard = OverlapGuard::new(&first.plan().args, &first.plan().access);
        Ok(Self {
            context: Arc::clone(context),
            maker,
            guard,
            has_branches: first.plan().schedule.width() > 1,
            first,
            first_assumes,
            others: Default::default(),
            copies,
        })
    }

    pub fn context(&self) -> &Arc<Context> {
        &self.context
    }

    pub fn maker(&self) -> &M {
        &self.maker
    }

    /// The layout of arguments: the same in every version.
    pub fn args(&self) -> &ArgLayout {
        &self.first.plan().args
    }

    /// The layout of results: the same in every version.
    pub fn results(&self) -> &ResultLayout {
        &self.first.plan().results
    }

    /// What the kernel does with the memory of each parameter.
    pub fn access(&self) -> &[Access] {
        &self.first.plan().access
    }

    /// The version that is there from the start.
    pub fn first(&self) -> &Version<M::Info> {
        &self.first
    }

    /// A version that was made already.
    pub fn version(&self, assume: Assumptions) -> Option<&Version<M::Info>> {
        if assume == self.first_assumes { Some(&self.first) } else { self.others[assume.number()].get() }
    }

    /// Whether there is a version for arrays that overlap.
    pub fn has_overlapping_version(&self) -> bool {
        [false, true].iter().any(|&exclusive| {
            self.version(Assumptions { noalias: false, copies: false, exclusive }).is_some()
        })
    }

    /// What the kernel wants of a launch, apart from memory.
    pub fn uses(&self) -> LaunchUses {
        self.first.plan().uses
    }

    /// Runs the kernel's tasks. Waits for them if they report something, or if the stream is an immediate one.
    pub fn launch(
        &self,
        args: Arguments<'_>,
        results: &mut [u8],
        mut env: LaunchEnv<'_>,
    ) -> Result<(), LaunchFailure<M::Error>> {
        if self.context.check().is_err() {
            return Err(LaunchFailure::Stale);
        }
        let args = args.bytes();
        check_size(args.len(), self.args().bytes)?;
        check_size(results.len(), self.results().bytes)?;
        let noalias = !self.guard.is_needed() || !self.guard.overlaps(args);
        let alone = if self.has_branches { None } else { ExclusiveLaunch::begin(&self.context, env.stream) };
        let exclusive = if self.has_branches { self.first_assumes.exclusive } else { alone.is_some() };
        let mut assume = Assumptions { noalias, copies: noalias && self.copies > 0, exclusive };
        let mut version = self.version_for(assume, env.cancel)?;
        if assume.copies && version.has_copies() && !copies_pay(version.plan(), args, self.copies) {
            assume.copies = false;
            version = self.version_for(assume, env.cancel)?;
        }
        // SAFETY: whoever made `Arguments` vouches for the addresses; the sizes were checked, and the code was made for them.
        let ran = unsafe {
            match env.prints.take() {
                None => run(version, args, results, &env, None),
                Some(sink) => {
                    let queue = Box::new(PrintQueue::new());
                    let ran = run(version, args, results, &env, Some(&queue));
                    hand_over(version.plan(), &queue, sink);
                    if let Err(
                        RunError::Cancelled
                        | RunError::TooManyPoints
                        | RunError::PartialBlock(..)
                        | RunError::Device(_),
                    ) = ran
                        && !self.context.device().is_idle(env.stream)
                    {
                        // What was begun may still print.
                        Box::leak(queue);
                    }
                    ran
                }
            }
        };
        drop(alone);
        ran.map_err(|error| match error {
            RunError::Cancelled if self.context.check().is_err() => LaunchFailure::Stale,
            RunError::Cancelled => LaunchFailure::Cancelled,
            RunError::TooManyPoints => LaunchFailure::TooManyPoints,
            RunError::PartialBlock(points, multiple) => LaunchFailure::PartialBlock(points, multiple),
            RunError::Device(error) => LaunchFailure::Device(error),
            RunError::Fault(first, others) => LaunchFailure::Fault(FaultReport { assume, first, others }),
        })
    }

    #[inline]
    fn version_for(
        &self,
        assume: Assumptions,
        cancel: &Cancel,
    ) -> Result<&Version<M::Info>, LaunchFailure<M::Error>> {
        if assume == self.first_assumes { Ok(&self.first) } else { self.other_version(assume, cancel) }
    }

    #[cold]
    fn other_version(
        &self,
        assume: Assumptions,
        cancel: &Cancel,
    ) -> Result<&Version<M::Info>, LaunchFailure<M::Error>> {
        let place = &self.others[assume.number()];
        if let Some(version) = place.get() {
            return Ok(version);
        }
        // Without a lock: a signal's handler, which runs meanwhile, may launch the same kernel. If two threads make it, one is dropped.
        let version = make(&self.context, &self.maker, assume, cancel).map_err(LaunchFailure::Version)?;
        Ok(place.get_or_init(|| version))
    }
}

/// Gives all that was printed to the sink.
fn hand_over(plan: &Plan, queue: &PrintQueue, sink: PrintSink<'_>) {
    queue.drain(&mut |site, operands| sink(plan, Printed::Record { site, operands }));
    if queue.dropped() > 0 {
        sink(plan, Printed::Dropped(queue.dropped()));
    }
}

fn make<M: MakeVersion>(
    context: &Arc<Context>,
    maker: &M,
    assume: Assumptions,
    cancel: &Cancel,
) -> Result<Version<M::Info>, M::Error> {
    let code = maker.make(assume, cancel)?;
    let mut started = Instant::now();
    let was_kept = maker.was_kept(&code.info);
    let version = match Version::load(context, code) {
        // It was made elsewhere, on a machine that looked the same, or in a form that this device does not take.
        Err(DeviceError::BadImage { .. }) if was_kept => {
            let code = maker.make_anew(assume, cancel)?;
            started = Instant::now();
            Version::load(context, code)
        }
        loaded => loaded,
    };
    let mut version = version.map_err(|error| maker.refused(error))?;
    maker.loaded(version.info_mut(), started.elapsed());
    Ok(version)
}

fn check_size<E>(found: usize, expected: u32) -> Result<(), LaunchFailure<E>> {
    let expected = expected as usize;
    if found == expected { Ok(()) } else { Err(LaunchFailure::BlockSize { expected, found }) }
}

impl<E: fmt::Display> fmt::Display for LaunchFailure<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stale => f.write_str("the kernel belongs to a session that was reset"),
            Self::Cancelled => f.write_str("interrupted"),
            Self::BlockSize { expected, found } => {
                write!(f, "a block of arguments or results has {found} bytes instead of {expected}")
            }
            Self::TooManyPoints => f.write_str("a parallel loop has more points than can be counted"),
            Self::PartialBlock(points, multiple) => write!(
                f,
                "{points} iterations are no whole number of blocks of {multiple} threads, and threads of a block wait for each other: \
                 round up, and do the work under `if i < n:`"
            ),
            Self::Fault(report) => write!(f, "check {} failed", report.first.site),
            Self::Device(error) => error.fmt(f),
            Self::Version(error) => error.fmt(f),
        }
    }
}
