//! A kernel ready to be launched: its code in the versions that exist so far, and the guard that chooses between them.

use std::fmt;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Instant;

use octants_hal::{Capabilities, DeviceError, FAULT_ARGUMENTS, Listener};
use octants_ir::plan::{Access, ArgLayout, LaunchUses, Plan, ResultLayout};

use crate::arguments::Arguments;
use crate::context::Context;
use crate::copies::{copies_pay, has_copies};
use crate::guard::OverlapGuard;
use crate::version::{Assumptions, MakeVersion, Version};
use crate::{run_here, run_remote};

/// A kernel's code and how to launch it. The version for arrays that do not overlap, and of which copies pay, is there from the start;
/// the others are made when a launch first needs them.
pub struct LaunchPlan<M: MakeVersion> {
    context: Arc<Context>,
    maker: M,
    guard: OverlapGuard,
    first: Version<M::Info>,
    /// How many copies of an array a launch of the first version may need; 0 if it has none.
    copies: usize,
    /// For arrays that do not overlap, without copies.
    shared: OnceLock<Version<M::Info>>,
    overlapping: OnceLock<Version<M::Info>>,
    /// Held while another version is made, so that it is made once.
    making: Mutex<()>,
    /// Whether tasks run on memory of the host, and are over when the verb returns.
    here: bool,
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
    /// A check failed.
    Fault(FaultReport),
    Device(DeviceError),
    /// The version that the launch needs could not be made.
    Version(E),
}

/// The first check that failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FaultReport {
    /// Which version ran.
    pub assume: Assumptions,
    /// Which check, in that version's numbering.
    pub site: u32,
    pub arguments: [u64; FAULT_ARGUMENTS],
}

/// What a launch gets beside its arguments.
pub struct Surroundings<'a> {
    /// Raised by someone else to make the launch end early.
    pub cancel: &'a AtomicBool,
    /// A number of this launch's own, for kernels that use one.
    pub key: u64,
    /// Is told what the kernel prints, by any thread while it runs.
    pub tell: Option<Tell<'a>>,
}

impl<'a> Surroundings<'a> {
    /// Of a kernel that neither prints nor has random numbers.
    pub fn plain(cancel: &'a AtomicBool) -> Self {
        Self { cancel, key: 0, tell: None }
    }
}

/// Is told which version ran, which of its prints, and the operands' words.
pub type Tell<'a> = &'a (dyn Fn(&Plan, u32, &[u64]) + Sync);

/// The same, once it is known which version runs.
pub(crate) struct Given<'a> {
    pub cancel: &'a AtomicBool,
    pub key: u64,
    pub listener: Option<Listener<'a>>,
}

/// What running a version can end with, apart from the making of one.
pub(crate) enum Ended {
    Cancelled,
    TooManyPoints,
    Fault { site: u32, arguments: [u64; FAULT_ARGUMENTS] },
    Device(DeviceError),
}

impl From<DeviceError> for Ended {
    fn from(error: DeviceError) -> Self {
        Self::Device(error)
    }
}

impl<M: MakeVersion> LaunchPlan<M> {
    /// Makes the first version.
    pub fn new(context: &Arc<Context>, maker: M, cancel: &AtomicBool) -> Result<Self, M::Error> {
        let copies = context.device().copies();
        let first = make(context, &maker, Assumptions { noalias: true, copies: copies > 0 }, cancel)?;
        let guard = OverlapGuard::new(&first.plan().args, &first.plan().access);
        let copies = if has_copies(first.plan()) { copies } else { 0 };
        Ok(Self {
            context: Arc::clone(context),
            maker,
            guard,
            first,
            copies,
            shared: OnceLock::new(),
            overlapping: OnceLock::new(),
            making: Mutex::new(()),
            here: context.device().capabilities().has(Capabilities::HOST_MEMORY | Capabilities::IMMEDIATE),
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
        match assume {
            Assumptions { noalias: false, .. } => self.overlapping.get(),
            Assumptions { copies: false, .. } if self.copies > 0 => self.shared.get(),
            Assumptions { .. } => Some(&self.first),
        }
    }

    /// What the kernel wants of a launch, apart from memory.
    pub fn uses(&self) -> LaunchUses {
        self.first.plan().uses
    }

    /// Runs the kernel's tasks in order and waits for the last.
    pub fn launch(
        &self,
        args: Arguments<'_>,
        results: &mut [u8],
        surroundings: &Surroundings<'_>,
    ) -> Result<(), LaunchFailure<M::Error>> {
        let &Surroundings { cancel, key, tell } = surroundings;
        if self.context.check().is_err() {
            return Err(LaunchFailure::Stale);
        }
        let args = args.bytes();
        check_size(args.len(), self.args().bytes)?;
        check_size(results.len(), self.results().bytes)?;
        let noalias = !self.guard.is_needed() || !self.guard.overlaps(args);
        let copies = noalias && (self.copies == 0 || copies_pay(self.first.plan(), args, self.copies));
        let assume = Assumptions { noalias, copies };
        let version = if copies { &self.first } else { self.other_version(assume, cancel)? };
        let listener = |site: u32, words: &[u64]| {
            if let Some(tell) = tell {
                tell(version.plan(), site, words);
            }
        };
        let given = Given { cancel, key, listener: tell.is_some().then_some(&listener as Listener<'_>) };
        // SAFETY: whoever made `Arguments` vouches for the addresses; the sizes were checked, and the code was made for them.
        let ended = unsafe {
            if self.here {
                run_here::run(version, args, results, &given)
            } else {
                run_remote::run(version, args, results, &given)
            }
        };
        ended.map_err(|ended| match ended {
            Ended::Cancelled => LaunchFailure::Cancelled,
            Ended::TooManyPoints => LaunchFailure::TooManyPoints,
            Ended::Device(error) => LaunchFailure::Device(error),
            Ended::Fault { site, arguments } => LaunchFailure::Fault(FaultReport { assume, site, arguments }),
        })
    }

    #[cold]
    fn other_version(
        &self,
        assume: Assumptions,
        cancel: &AtomicBool,
    ) -> Result<&Version<M::Info>, LaunchFailure<M::Error>> {
        let place = if assume.noalias { &self.shared } else { &self.overlapping };
        if let Some(version) = place.get() {
            return Ok(version);
        }
        let _making = self.making.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(version) = place.get() {
            return Ok(version);
        }
        let version = make(&self.context, &self.maker, assume, cancel).map_err(LaunchFailure::Version)?;
        Ok(place.get_or_init(|| version))
    }
}

fn make<M: MakeVersion>(
    context: &Arc<Context>,
    maker: &M,
    assume: Assumptions,
    cancel: &AtomicBool,
) -> Result<Version<M::Info>, M::Error> {
    let code = maker.make(assume, cancel)?;
    let started = Instant::now();
    let mut version = Version::load(context, code).map_err(|error| maker.refused(error))?;
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
            Self::Fault(report) => write!(f, "check {} failed", report.site),
            Self::Device(error) => error.fmt(f),
            Self::Version(error) => error.fmt(f),
        }
    }
}
