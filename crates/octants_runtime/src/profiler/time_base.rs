//! What an event's time is on the host's clock.
//!
//! A device tells only how far two events are apart, some in single precision, which is coarse over a long time. So events are
//! placed from an *anchor*, an event that is never far away; and which moment of the host one of the device is, is measured with events on
//! a stream of the profiler's own, which no work is in: at the start, and again when results are asked for, since two clocks drift apart.

use std::sync::Arc;
use std::time::Instant;

use octants_hal::{Device, DeviceError, Event, Stream, StreamPriority};

/// Nanoseconds from the anchor to an event above which that event becomes the anchor. Chosen: single precision is exact to 0.1 µs there.
const MAX_DISTANCE: f64 = 1e9;

/// Measurements of which the best counts. The first ones find a device that has to wake up.
const MEASUREMENTS: usize = 4;

/// Nanoseconds between two measurements from which on the clocks' rates are compared. Chosen: the error of one, some microseconds, is
/// below what clocks drift in that time.
const MIN_DRIFT_TIME: f64 = 2e9;

pub(super) struct TimeBase {
    device: Arc<dyn Device>,
    epoch: Instant,
    anchor: Event,
    /// When the anchor was passed, on the device's clock.
    anchor_at: f64,
    first: Moment,
    latest: Moment,
}

/// A moment on both clocks, in nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
struct Moment {
    device: f64,
    host: f64,
}

/// How to get from one clock to the other.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct DeviceClock {
    first: Moment,
    latest: Moment,
}

impl DeviceClock {
    /// Nanoseconds since the epoch.
    pub fn on_host(self, device: i64) -> i64 {
        let Self { first, latest } = self;
        let passed = latest.device - first.device;
        let rate = if passed > MIN_DRIFT_TIME { (latest.host - first.host) / passed } else { 1.0 };
        (first.host + (device as f64 - first.device) * rate).round() as i64
    }
}

impl TimeBase {
    /// The device has streams.
    pub fn new(device: &Arc<dyn Device>, epoch: Instant) -> Result<Self, DeviceError> {
        let mut base = Self {
            device: Arc::clone(device),
            epoch,
            anchor: device.create_event(true)?,
            anchor_at: 0.0,
            first: Moment::default(),
            latest: Moment::default(),
        };
        let stream = device.create_stream(StreamPriority::Normal)?;
        // SAFETY: both are live, and nobody else knows the stream.
        let anchored = unsafe {
            let anchored = device.record_event(stream, base.anchor);
            let anchored = anchored.and_then(|()| device.synchronise_event(base.anchor));
            device.destroy_stream(stream);
            anchored
        };
        anchored?;
        base.first = base.measure()?;
        base.latest = base.first;
        Ok(base)
    }

    /// When an event was passed, on the device's clock. `None` if it was not.
    ///
    /// # Safety
    /// It is live, and has timing.
    pub unsafe fn time_of(&self, event: Event) -> Result<Option<f64>, DeviceError> {
        // SAFETY: the caller says so; the anchor lives as long as this.
        let distance = unsafe { self.device.elapsed(self.anchor, event)? };
        Ok(distance.map(|distance| self.anchor_at + distance))
    }

    /// Lets a passed event of this time be the anchor, if the present one is far away. Gives the event that is free then.
    pub fn keep_near(&mut self, event: Event, at: f64) -> Event {
        if (at - self.anchor_at).abs() <= MAX_DISTANCE {
            return event;
        }
        self.anchor_at = at;
        std::mem::replace(&mut self.anchor, event)
    }

    /// Measures again how the clocks stand.
    pub fn clock(&mut self) -> DeviceClock {
        // An error says that the device is lost: what was measured stays.
        if let Ok(latest) = self.measure() {
            self.latest = latest;
        }
        DeviceClock { first: self.first, latest: self.latest }
    }

    /// On a stream that nothing else is in, so that an event there is passed at once.
    fn measure(&mut self) -> Result<Moment, DeviceError> {
        let device = Arc::clone(&self.device);
        let event = device.create_event(true)?;
        let measured = device.create_stream(StreamPriority::Normal).and_then(|stream| {
            let measured = self.measure_on(stream, event);
            // SAFETY: nobody else knows it.
            unsafe { device.destroy_stream(stream) };
            measured
        });
        let free = match measured {
            Ok((_, latest)) => self.keep_near(event, latest),
            Err(_) => event,
        };
        // SAFETY: nobody uses it any more.
        unsafe { device.destroy_event(free) };
        measured.map(|(best, _)| best)
    }

    /// The best of some measurements, and when the event was passed last.
    fn measure_on(&self, stream: Stream, event: Event) -> Result<(Moment, f64), DeviceError> {
        let (mut best, mut least, mut latest) = (Moment::default(), f64::INFINITY, 0.0);
        for _ in 0..MEASUREMENTS {
            let begin = self.epoch.elapsed().as_nanos() as f64;
            // SAFETY: both are live.
            let at = unsafe {
                self.device.record_event(stream, event)?;
                self.device.synchronise_event(event)?;
                self.time_of(event)?
            };
            let end = self.epoch.elapsed().as_nanos() as f64;
            latest = at.ok_or_else(|| DeviceError::Failed {
                verb: "elapsed",
                message: "an event that is passed has no time".to_owned(),
            })?;
            if end - begin < least {
                least = end - begin;
                best = Moment { device: latest, host: f64::midpoint(begin, end) };
            }
        }
        Ok((best, latest))
    }
}

impl Drop for TimeBase {
    fn drop(&mut self) {
        // SAFETY: it is this one's own.
        unsafe { self.device.destroy_event(self.anchor) };
    }
}

#[cfg(test)]
mod tests {
    use octants_hal::null::NullDevice;

    use super::*;

    #[test]
    fn a_clock_that_runs_faster_is_slowed_down() {
        let first = Moment { device: 100.0, host: 1_000_000.0 };
        let near = DeviceClock { first, latest: Moment { device: 1100.0, host: 1_000_990.0 } };
        assert_eq!(near.on_host(600), 1_000_500, "too short a time to compare rates");
        let latest = Moment { device: 100.0 + 4e9, host: 1_000_000.0 + 4e9 - 40_000.0 };
        let far = DeviceClock { first, latest };
        assert_eq!(far.on_host(100), 1_000_000);
        assert_eq!(far.on_host(100 + 2_000_000_000), 1_000_000 + 2_000_000_000 - 20_000);
    }

    /// Recordings of the null device are a microsecond apart.
    #[test]
    fn an_event_that_is_far_away_becomes_the_anchor() {
        let null = Arc::new(NullDevice::new());
        let device: Arc<dyn Device> = null.clone();
        let mut base = TimeBase::new(&device, Instant::now()).unwrap();
        let [near, far, next] = [(); 3].map(|()| device.create_event(true).unwrap());
        // SAFETY: the null device touches no memory, and the handles are its own.
        unsafe {
            device.record_event(device.default_stream(), near).unwrap();
            let at = base.time_of(near).unwrap().unwrap();
            assert_eq!(base.keep_near(near, at), near);
            device.record_event(device.default_stream(), far).unwrap();
            let anchor = base.keep_near(far, 7e9);
            assert!(anchor != far && anchor != near, "the one before is free");
            device.destroy_event(anchor);
            device.record_event(device.default_stream(), next).unwrap();
            assert_eq!(base.time_of(next), Ok(Some(7e9 + 1000.0)));
            device.destroy_event(near);
            device.destroy_event(next);
        }
        drop(base);
        let trace = null.take_trace();
        let count = |verb: &str| trace.iter().filter(|line| line.starts_with(verb)).count();
        assert_eq!(count("create_event"), count("destroy_event"));
        assert_eq!(count("create_stream"), count("destroy_stream"));
    }

    #[test]
    fn a_device_that_fails_while_it_is_measured_keeps_nothing() {
        for verb in ["create_event", "create_stream", "record_event", "synchronise_event", "elapsed"] {
            let null = Arc::new(NullDevice::new());
            let device: Arc<dyn Device> = null.clone();
            null.fail_next(verb);
            assert!(TimeBase::new(&device, Instant::now()).is_err(), "{verb}");
            let trace = null.take_trace();
            let count =
                |verb: &str| trace.iter().filter(|l| l.starts_with(verb) && !l.ends_with('!')).count();
            assert_eq!(count("create_event"), count("destroy_event"), "{verb}");
            assert_eq!(count("create_stream"), count("destroy_stream"), "{verb}");
        }
    }
}
