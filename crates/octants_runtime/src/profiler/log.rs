//! What is known: spans, the latest of them, and statistics of all.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::statistics::Statistics;
use super::time_base::DeviceClock;
use super::trace::{Activity, Span, Trace, Track};

/// Spans that are kept. Chosen: 80 MB, and about what a viewer of traces can show.
const MAX_SPANS: usize = 1 << 20;

#[derive(Default)]
pub(super) struct Log {
    spans: VecDeque<Recorded>,
    dropped: u64,
    untimed: u64,
    tasks: BTreeMap<Arc<str>, Statistics>,
    kernels: BTreeMap<Arc<str>, Statistics>,
    copies: BTreeMap<Activity, (Statistics, u64)>,
    phases: BTreeMap<Vec<&'static str>, Statistics>,
    /// Launches that are not over, by number.
    open: HashMap<u64, Open>,
    launches: u64,
}

/// A span, and whose clock its start is of.
struct Recorded {
    span: Span,
    on_device: bool,
}

/// A launch of which some times are not known yet.
struct Open {
    kernel: Arc<str>,
    /// Tasks without a time so far.
    pending: u32,
    total: u64,
    /// The host is done with it.
    ended: bool,
}

/// What a span of the device is.
#[derive(Clone, Debug)]
pub(super) enum Work {
    Task { name: Arc<str>, launch: u64 },
    Other { activity: Activity, bytes: u64 },
}

/// When some work ran.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Timing {
    /// Nanoseconds since the epoch, or of the device's clock.
    pub start: i64,
    pub duration: u64,
    pub on_device: bool,
}

impl Log {
    pub fn begin_launch(&mut self, kernel: &Arc<str>) -> u64 {
        self.launches += 1;
        let open = Open { kernel: Arc::clone(kernel), pending: 0, total: 0, ended: false };
        self.open.insert(self.launches, open);
        self.launches
    }

    pub fn end_launch(&mut self, number: u64) {
        if let Some(open) = self.open.get_mut(&number) {
            open.ended = true;
        }
        self.close_if_over(number);
    }

    /// Some work was told to a stream, and its time will be known later.
    pub fn expect(&mut self, work: &Work) {
        if let Work::Task { launch, .. } = work
            && let Some(open) = self.open.get_mut(launch)
        {
            open.pending += 1;
        }
    }

    /// The time of what was expected.
    pub fn arrive(&mut self, track: Track, work: Work, timing: Timing) {
        let launch = match &work {
            Work::Task { launch, .. } => Some(*launch),
            Work::Other { .. } => None,
        };
        self.add(track, work, timing);
        if let Some(launch) = launch {
            self.task_done(launch);
        }
    }

    /// What was expected has no time.
    pub fn give_up(&mut self, work: &Work) {
        self.untimed += 1;
        if let Work::Task { launch, .. } = work {
            self.task_done(*launch);
        }
    }

    /// Work of which nothing was told before.
    pub fn add(&mut self, track: Track, work: Work, timing: Timing) {
        let Timing { start, duration, on_device } = timing;
        let span = match work {
            Work::Task { name, launch } => {
                count(&mut self.tasks, &name, duration);
                if let Some(open) = self.open.get_mut(&launch) {
                    open.total += duration;
                }
                Span { track, name, start, duration, launch: Some(launch), bytes: None }
            }
            Work::Other { activity, bytes } => {
                let (statistics, all) = self.copies.entry(activity).or_default();
                statistics.add(duration);
                *all += bytes;
                Span {
                    track,
                    name: activity.name().into(),
                    start,
                    duration,
                    launch: None,
                    bytes: Some(bytes),
                }
            }
        };
        self.push(Recorded { span, on_device });
    }

    /// A span of the host.
    pub fn keep(&mut self, span: Span) {
        self.push(Recorded { span, on_device: false });
    }

    pub fn count_untimed(&mut self) {
        self.untimed += 1;
    }

    pub fn count_phase(&mut self, path: &[&'static str], time: Duration) {
        self.phases.entry(path.to_vec()).or_default().add(time.as_nanos() as u64);
    }

    pub fn clear(&mut self) {
        let (phases, launches) = (std::mem::take(&mut self.phases), self.launches);
        *self = Self { phases, launches, ..Self::default() };
    }

    pub fn clear_phases(&mut self) {
        self.phases.clear();
    }

    pub fn trace(&self, device: &str, epoch: Instant, clock: DeviceClock) -> Trace {
        let on_host = |recorded: &Recorded| {
            let mut span = recorded.span.clone();
            if recorded.on_device {
                span.start = clock.on_host(span.start);
            }
            span
        };
        let mut spans: Vec<_> = self.spans.iter().map(on_host).collect();
        // Of two that begin together, the outer one comes first.
        spans.sort_by_key(|span| (span.start, std::cmp::Reverse(span.duration)));
        let list = |table: &BTreeMap<Arc<str>, Statistics>| {
            table.iter().map(|(name, &statistics)| (Arc::clone(name), statistics)).collect()
        };
        Trace {
            device: device.to_owned(),
            epoch,
            spans,
            dropped: self.dropped,
            untimed: self.untimed,
            tasks: list(&self.tasks),
            kernels: list(&self.kernels),
            copies: self
                .copies
                .iter()
                .map(|(&activity, &(statistics, all))| (activity, statistics, all))
                .collect(),
            phases: self.phases.iter().map(|(path, &statistics)| (path.clone(), statistics)).collect(),
        }
    }

    fn push(&mut self, recorded: Recorded) {
        if self.spans.len() == MAX_SPANS {
            self.spans.pop_front();
            self.dropped += 1;
        }
        self.spans.push_back(recorded);
    }

    /// One task of the launch is not expected any more.
    fn task_done(&mut self, launch: u64) {
        if let Some(open) = self.open.get_mut(&launch) {
            open.pending = open.pending.saturating_sub(1);
        }
        self.close_if_over(launch);
    }

    fn close_if_over(&mut self, launch: u64) {
        if self.open.get(&launch).is_some_and(|open| open.ended && open.pending == 0)
            && let Some(open) = self.open.remove(&launch)
        {
            count(&mut self.kernels, &open.kernel, open.total);
        }
    }
}

fn count(table: &mut BTreeMap<Arc<str>, Statistics>, name: &Arc<str>, time: u64) {
    match table.get_mut(name) {
        Some(statistics) => statistics.add(time),
        None => table.entry(Arc::clone(name)).or_default().add(time),
    }
}
