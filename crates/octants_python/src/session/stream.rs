//! Streams and events as Python objects, and what `qd_stream=` takes.

use octants::diag::Code;
use octants::{
    Event as SessionEvent, ExternalStream, HostQueue, LiveStream, Session, Stream as SessionStream,
    StreamPriority,
};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyBool;

use crate::gateway::under_way::Outside;
use crate::gateway::{errors, interrupt};
use crate::session::runtime::Runtime;
use crate::values::host_only;

/// A queue of launches. The base of the class that users see.
#[pyclass(frozen, subclass, weakref, module = "octants")]
pub struct Stream {
    stream: SessionStream,
}

/// A point in a stream's queue. The base of the class that users see.
#[pyclass(frozen, subclass, weakref, module = "octants")]
pub struct Event {
    event: SessionEvent,
    runtime: Py<Runtime>,
}

fn failed(py: Python<'_>, error: &octants::Error) -> PyErr {
    errors::from_error(py, error)
}

/// The stream that `qd_stream=` means; nothing for the default one. Something that is no stream is refused.
pub fn live(runtime: &Runtime, object: Option<&Bound<'_, PyAny>>) -> PyResult<Option<LiveStream>> {
    live_in(object, |py| Ok(runtime.current(py)?.session.clone()))
}

/// Likewise, in a session that is only asked for where the object does not know its own.
pub fn live_in(
    object: Option<&Bound<'_, PyAny>>,
    session: impl FnOnce(Python<'_>) -> PyResult<Session>,
) -> PyResult<Option<LiveStream>> {
    let Some(object) = object.filter(|object| !object.is_none()) else { return Ok(None) };
    let py = object.py();
    let live = if let Ok(stream) = object.cast::<Stream>() {
        stream.get().stream.live()
    } else if let Some(handle) = foreign_handle(object)? {
        wrap(&session(py)?, handle).and_then(|stream| stream.live())
    } else {
        let found = object.get_type().name()?.to_string();
        let message = format!("Argument `qd_stream`: a stream or None is required, got {found}");
        return Err(errors::plain(py, Code::ArgumentType, message));
    };
    Ok(Some(live.map_err(|error| failed(py, &error))?).filter(|live| !live.is_default()))
}

/// The handle of another library's stream: `torch.cuda.Stream` has it as an attribute, others follow the protocol `__cuda_stream__`.
fn foreign_handle(object: &Bound<'_, PyAny>) -> PyResult<Option<u64>> {
    let py = object.py();
    if let Some(handle) = object.getattr_opt(intern!(py, "cuda_stream"))? {
        return Ok(handle.extract().ok());
    }
    let Some(protocol) = object.getattr_opt(intern!(py, "__cuda_stream__"))? else { return Ok(None) };
    let answer = if protocol.is_callable() { protocol.call0()? } else { protocol };
    Ok(answer.extract::<(u64, u64)>().ok().map(|(_version, handle)| handle))
}

fn wrap(session: &Session, handle: u64) -> Result<SessionStream, octants::Error> {
    // SAFETY: the program says that the library keeps the stream; a device that cannot use it refuses it.
    SessionStream::wrap(session, unsafe { ExternalStream::new(handle) })
}

/// Runs an access of the host to memory: at once if nothing is at work on it, else with signals handled meanwhile.
pub fn access(
    py: Python<'_>,
    is_at_rest: bool,
    stream: Option<&LiveStream>,
    access: impl FnOnce(HostQueue<'_>) -> Result<(), octants::Error> + Send,
) -> PyResult<()> {
    if is_at_rest && stream.is_none() {
        return py.outside(|| access(HostQueue::default())).map_err(|error| failed(py, &error));
    }
    interrupt::waiting(py, |cancel| access(HostQueue { stream, cancel }))
}

#[pymethods]
impl Stream {
    /// Wraps a handle, or makes a stream of a priority.
    #[new]
    fn new(
        runtime: &Bound<'_, Runtime>,
        handle: Option<&Bound<'_, PyAny>>,
        priority: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let py = runtime.py();
        host_only::guard(py, "create_stream")?;
        let integer = |object: &Bound<'_, PyAny>| !object.is_instance_of::<PyBool>();
        if let Some(priority) = priority {
            let not_integer =
                || PyTypeError::new_err("a stream's priority is an integer: below 0 for more urgent ones");
            let level: i64 = Some(priority)
                .filter(|p| integer(p))
                .and_then(|p| p.extract().ok())
                .ok_or_else(not_integer)?;
            let priority = match level {
                ..0 => StreamPriority::High,
                0 => StreamPriority::Normal,
                1.. => StreamPriority::Low,
            };
            let session = runtime.get().current(py)?;
            let made = py.outside(|| SessionStream::new(&session.session, priority));
            return made.map(|stream| Self { stream }).map_err(|error| failed(py, &error));
        }
        let not_a_handle = || {
            PyTypeError::new_err(
                "oc.Stream takes the handle of a stream: an integer, or a stream of another library",
            )
        };
        let handle = handle.ok_or_else(not_a_handle)?;
        let number = if handle.is_instance_of::<pyo3::types::PyInt>() && integer(handle) {
            let out_of_range =
                |_| PyValueError::new_err("a stream's handle is an integer from 0 to 2**64 - 1");
            handle.extract::<u64>().map_err(out_of_range)?
        } else {
            foreign_handle(handle)?.ok_or_else(not_a_handle)?
        };
        let session = runtime.get().current(py)?;
        wrap(&session.session, number).map(|stream| Self { stream }).map_err(|error| failed(py, &error))
    }

    /// The device's own handle, an integer; 0 for the default stream, and on a device whose streams are all one.
    #[getter]
    fn handle(&self) -> u64 {
        self.stream.handle()
    }

    /// Waits until everything in the queue is done.
    fn synchronize(&self, py: Python<'_>) -> PyResult<()> {
        host_only::guard(py, "synchronize")?;
        interrupt::waiting(py, |cancel| self.stream.synchronise(cancel))
    }

    /// Waits until everything in the queue is done, then gives the stream up. One of another library lives on.
    fn destroy(&self, py: Python<'_>) -> PyResult<()> {
        host_only::guard(py, "destroy")?;
        interrupt::waiting(py, |cancel| self.stream.destroy(cancel))
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (*_raised))]
    fn __exit__(&self, py: Python<'_>, _raised: &Bound<'_, PyAny>) -> PyResult<()> {
        self.destroy(py)
    }

    fn __repr__(&self) -> String {
        format!("<octants.Stream {:#x}>", self.handle())
    }
}

#[pymethods]
impl Event {
    #[new]
    fn new(runtime: &Bound<'_, Runtime>) -> PyResult<Self> {
        let py = runtime.py();
        host_only::guard(py, "create_event")?;
        let session = runtime.get().current(py)?;
        let event = SessionEvent::new(&session.session).map_err(|error| failed(py, &error))?;
        Ok(Self { event, runtime: runtime.clone().unbind() })
    }

    /// The device's own handle, an integer; 0 on a device without several streams.
    #[getter]
    fn handle(&self) -> u64 {
        self.event.handle()
    }

    /// The event now stands at the end of the stream's queue.
    #[pyo3(signature = (qd_stream=None))]
    fn record(&self, py: Python<'_>, qd_stream: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        host_only::guard(py, "record")?;
        let stream = live(self.runtime.get(), qd_stream)?;
        self.event.record(stream.as_ref()).map_err(|error| failed(py, &error))
    }

    /// What comes later on the stream waits for the latest recording.
    #[pyo3(signature = (qd_stream=None))]
    fn wait(&self, py: Python<'_>, qd_stream: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        host_only::guard(py, "wait")?;
        let stream = live(self.runtime.get(), qd_stream)?;
        if stream.is_some() {
            // The host does not wait.
            let waited = self.event.wait(stream.as_ref(), interrupt::never());
            return waited.map_err(|error| failed(py, &error));
        }
        interrupt::waiting(py, |cancel| self.event.wait(None, cancel))
    }

    /// The host waits for the latest recording.
    fn synchronize(&self, py: Python<'_>) -> PyResult<()> {
        host_only::guard(py, "synchronize")?;
        interrupt::waiting(py, |cancel| self.event.synchronise(cancel))
    }

    /// Whether the latest recording is passed.
    fn query(&self, py: Python<'_>) -> PyResult<bool> {
        host_only::guard(py, "query")?;
        self.event.is_passed().map_err(|error| failed(py, &error))
    }

    /// Milliseconds from the latest recording of this event to that of another; waits for both.
    fn elapsed(&self, py: Python<'_>, other: &Bound<'_, PyAny>) -> PyResult<f64> {
        host_only::guard(py, "elapsed")?;
        let Ok(other) = other.cast::<Self>() else {
            let found = other.get_type().name()?.to_string();
            return Err(PyTypeError::new_err(format!("elapsed takes an event, not {found}")));
        };
        let (other, mut time) = (other.get(), 0.0);
        interrupt::waiting(py, |cancel| {
            time = self.event.elapsed(&other.event, cancel)?;
            Ok(())
        })?;
        Ok(time)
    }

    /// Gives the event up; streams that wait for it still do.
    fn destroy(&self, py: Python<'_>) -> PyResult<()> {
        host_only::guard(py, "destroy")?;
        self.event.destroy();
        Ok(())
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (*_raised))]
    fn __exit__(&self, py: Python<'_>, _raised: &Bound<'_, PyAny>) -> PyResult<()> {
        self.destroy(py)
    }

    fn __repr__(&self) -> String {
        format!("<octants.Event {:#x}>", self.handle())
    }
}
