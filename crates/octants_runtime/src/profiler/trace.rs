//! What was recorded until one moment, as data.

use std::sync::Arc;
use std::time::Instant;

use super::statistics::Statistics;

/// Where a span stands.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Track {
    /// Compilations that this thread asked for.
    Compile { thread: u32 },
    /// One of the threads that compile tasks.
    CompileWorker { worker: u32 },
    /// Ranges of the user's own.
    Scope { thread: u32 },
    /// Launches, as the host spends time on them.
    Launches { thread: u32 },
    /// What the device did on a stream; 0 is the default one. Where verbs are over when they return, several threads may be at it at the
    /// same time, and each has a track.
    Stream { stream: u32, thread: u32 },
}

/// What a device does beside running tasks.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Activity {
    CopyToDevice,
    CopyToHost,
    Copy,
    Fill,
}

impl Activity {
    pub fn name(self) -> &'static str {
        match self {
            Self::CopyToDevice => "copy to device",
            Self::CopyToHost => "copy to host",
            Self::Copy => "copy",
            Self::Fill => "fill",
        }
    }
}

/// Something that took time.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Span {
    pub track: Track,
    pub name: Arc<str>,
    /// Nanoseconds since the trace's epoch.
    pub start: i64,
    pub duration: u64,
    /// Which launch it belongs to, or is.
    pub launch: Option<u64>,
    /// How much a copy or a fill moves.
    pub bytes: Option<u64>,
}

/// All that a session has recorded.
#[derive(Clone, Debug)]
pub struct Trace {
    /// The device's name; empty if launches were not recorded.
    pub device: String,
    /// The host's moment that times count from.
    pub epoch: Instant,
    /// In the order of their starts.
    pub spans: Vec<Span>,
    /// Spans that were dropped for newer ones.
    pub dropped: u64,
    /// Tasks and copies without a time: there were too many under way at once, or the device refused an event.
    pub untimed: u64,
    /// By name.
    pub tasks: Vec<(Arc<str>, Statistics)>,
    /// By name; the time of a launch is that of its tasks together.
    pub kernels: Vec<(Arc<str>, Statistics)>,
    /// With all their bytes.
    pub copies: Vec<(Activity, Statistics, u64)>,
    /// By path: `["passes", "simplify"]`. An empty path is a whole compilation.
    pub phases: Vec<(Vec<&'static str>, Statistics)>,
}

impl Trace {
    /// Nanoseconds of all tasks.
    pub fn total(&self) -> u64 {
        self.tasks.iter().map(|(_, statistics)| statistics.total).sum()
    }

    /// Of all launches of kernels of this name, with or without the class that it is a method of, or of all runs of the task.
    pub fn query(&self, name: &str) -> Statistics {
        let is_method = |known: &str| known.strip_suffix(name).is_some_and(|class| class.ends_with('.'));
        let mut found = Statistics::default();
        for (_, statistics) in self.kernels.iter().filter(|(known, _)| &**known == name || is_method(known)) {
            found.merge(statistics);
        }
        let task = self.tasks.iter().find(|(known, _)| &**known == name);
        task.filter(|_| found.count == 0).map_or(found, |&(_, statistics)| statistics)
    }
}
