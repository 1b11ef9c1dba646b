//! The profiler: what a session's device did when, and where the time of its compilations went.
//!
//! A session that records has its device behind a [`ProfiledDevice`], which notes every task, copy and fill on its way to the device: by
//! the host's clock where a verb is over when it returns, by two events on the verb's own stream elsewhere. Nothing waits for the sake of
//! a time: elapsed times are read when somebody asks for them, or in batches once their events are passed. A session that does not record
//! has no such device in between.
//!
//! Compilations are counted in every session; there are few.
//!
//! [`Profiler`] is what others talk to. `log` keeps what is known, `pending` what was told to a stream and is not known yet, `time_base`
//! says what an event's time is on the host's clock. [`Trace`] is all of it at one moment, with its text (`report`) and its form for
//! viewers (`chrome`).

mod chrome;
mod device;
mod log;
mod pending;
mod report;
mod statistics;
mod time_base;
mod trace;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

use octants_hal::{Cancel, Device, Function};

pub use chrome::chrome_trace;
pub(crate) use device::ProfiledDevice;
use log::Log;
use pending::Streams;
pub use statistics::Statistics;
use time_base::DeviceClock;
pub use trace::{Activity, Span, Trace, Track};

/// Marks ranges of the host's time for a tool outside the process.
pub trait RangeMarker: Send + Sync {
    /// What this thread does from now on, inside what it did before.
    fn push(&self, name: &str);

    /// Ends the innermost range of this thread.
    fn pop(&self);
}

/// How often a wait for results looks at its caller's flag. Chosen: the scheduler adds about as much.
const POLL_INTERVAL: Duration = Duration::from_micros(50);

/// What a session records of itself.
pub struct Profiler {
    /// When its clock began.
    epoch: Instant,
    /// Whether launches are recorded, too.
    recording: bool,
    marker: Option<Box<dyn RangeMarker>>,
    log: Mutex<Log>,
    /// What streams were told and is not known yet; none if launches are not recorded.
    streams: Option<Streams>,
    threads: Mutex<HashMap<ThreadId, u32>>,
    /// Until when each track of threads that compile is in use.
    workers: Mutex<Vec<i64>>,
    /// What functions of loaded code are called.
    tasks: Mutex<HashMap<Function, Arc<str>>>,
}

/// A launch that is being recorded.
pub(crate) struct OpenLaunch {
    /// Not 0.
    pub number: u64,
    begin: Instant,
}

impl Profiler {
    /// One that counts compilations alone.
    pub(crate) fn idle() -> Self {
        Self::new(None, None)
    }

    /// One that records what this device is told. `marker` is told of it, too.
    pub(crate) fn recording(device: &Arc<dyn Device>, marker: Option<Box<dyn RangeMarker>>) -> Self {
        Self::new(Some(device), marker)
    }

    fn new(device: Option<&Arc<dyn Device>>, marker: Option<Box<dyn RangeMarker>>) -> Self {
        let epoch = Instant::now();
        Self {
            epoch,
            recording: device.is_some(),
            marker,
            log: Mutex::default(),
            streams: device.map(|device| Streams::new(device, epoch)),
            threads: Mutex::default(),
            workers: Mutex::default(),
            tasks: Mutex::default(),
        }
    }

    /// Whether launches are recorded.
    #[inline]
    pub fn is_recording(&self) -> bool {
        self.recording
    }

    /// A compilation, or a phase of one, of so long. `path` names it inside the phases that it is part of: `["passes", "simplify"]`.
    pub fn phase(&self, track: Track, path: &[&'static str], kernel: &str, begin: Instant, time: Duration) {
        self.log().count_phase(path, time);
        self.part(track, path.last().unwrap_or(&kernel), begin, time);
    }

    /// A part of a compilation that is not counted.
    pub fn part(&self, track: Track, name: &str, begin: Instant, time: Duration) {
        if self.recording {
            let span = Span {
                track,
                name: name.into(),
                start: self.since_epoch(begin),
                duration: time.as_nanos() as u64,
                launch: None,
                bytes: None,
            };
            self.log().keep(span);
        }
    }

    /// A track of something that was compiled on a thread of its own: one that had nothing to do from `begin` on.
    pub fn worker(&self, begin: Instant, time: Duration) -> Track {
        let begin = self.since_epoch(begin);
        let mut workers = self.workers.lock().unwrap_or_else(PoisonError::into_inner);
        let worker = workers.iter().position(|&busy_until| busy_until <= begin).unwrap_or(workers.len());
        if worker == workers.len() {
            workers.push(begin);
        }
        workers[worker] = begin + time.as_nanos() as i64;
        Track::CompileWorker { worker: worker as u32 }
    }

    /// The number of the calling thread, from 0 on.
    pub fn thread(&self) -> u32 {
        let mut threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        let next = threads.len() as u32;
        *threads.entry(thread::current().id()).or_insert(next)
    }

    /// A range of the caller's own: until [`Profiler::end_scope`] with what this gives.
    pub fn begin_scope(&self, name: &str) -> Instant {
        if let Some(marker) = &self.marker {
            marker.push(name);
        }
        Instant::now()
    }

    pub fn end_scope(&self, name: &str, begin: Instant) {
        if let Some(marker) = &self.marker {
            marker.pop();
        }
        if self.recording {
            let span = Span {
                track: Track::Scope { thread: self.thread() },
                name: name.into(),
                start: self.since_epoch(begin),
                duration: begin.elapsed().as_nanos() as u64,
                launch: None,
                bytes: None,
            };
            self.log().keep(span);
        }
    }

    /// Remembers what a function of loaded code is called.
    pub(crate) fn name_task(&self, function: Function, name: Arc<str>) {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner).insert(function, name);
    }

    /// The function's code is unloaded.
    pub(crate) fn forget_task(&self, function: Function) {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner).remove(&function);
    }

    fn task_name(&self, function: Function) -> Arc<str> {
        let known = self.tasks.lock().unwrap_or_else(PoisonError::into_inner).get(&function).cloned();
        known.unwrap_or_else(|| "unnamed".into())
    }

    pub(crate) fn begin_launch(&self, kernel: &Arc<str>) -> OpenLaunch {
        if let Some(marker) = &self.marker {
            marker.push(kernel);
        }
        OpenLaunch { number: self.log().begin_launch(kernel), begin: Instant::now() }
    }

    /// The host is done with a launch; the device may not be.
    pub(crate) fn end_launch(&self, kernel: &Arc<str>, launch: &OpenLaunch) {
        let duration = launch.begin.elapsed().as_nanos() as u64;
        if let Some(marker) = &self.marker {
            marker.pop();
        }
        let span = Span {
            track: Track::Launches { thread: self.thread() },
            name: Arc::clone(kernel),
            start: self.since_epoch(launch.begin),
            duration,
            launch: Some(launch.number),
            bytes: None,
        };
        let mut log = self.log();
        log.end_launch(launch.number);
        log.keep(span);
    }

    /// Everything that is known at this moment; waits for what the device was told until now. `None` if `cancel` was raised first.
    pub fn trace(&self, cancel: &Cancel) -> Option<Trace> {
        let Some(streams) = &self.streams else {
            return Some(self.log().trace("", self.epoch, DeviceClock::default()));
        };
        let told = streams.told();
        while !streams.collect_until(told, &self.log) {
            if cancel.is_wanted() {
                return None;
            }
            thread::sleep(POLL_INTERVAL);
        }
        let clock = streams.clock();
        Some(self.log().trace(streams.device_name(), self.epoch, clock))
    }

    /// Forgets launches, copies and ranges. What the device was told before and is not over yet is forgotten, too.
    pub fn clear(&self) {
        if let Some(streams) = &self.streams {
            streams.forget_all();
        }
        self.log().clear();
    }

    /// Forgets compilations.
    pub fn clear_phases(&self) {
        self.log().clear_phases();
    }

    fn log(&self) -> MutexGuard<'_, Log> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Nanoseconds; a moment before the epoch is negative.
    fn since_epoch(&self, moment: Instant) -> i64 {
        match moment.checked_duration_since(self.epoch) {
            Some(after) => after.as_nanos() as i64,
            None => -((self.epoch - moment).as_nanos() as i64),
        }
    }
}
