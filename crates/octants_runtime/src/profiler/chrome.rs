//! Traces as JSON for viewers: Perfetto, Chrome's `about:tracing`. A session is two processes there, its host and its device, and a track
//! is a thread. An arrow leads from each launch to its tasks.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::trace::{Span, Trace, Track};

/// The traces of one process, oldest first, in one text.
pub fn chrome_trace(traces: &[Trace]) -> String {
    let Some(epoch) = traces.iter().map(|trace| trace.epoch).min() else {
        return "{\"traceEvents\":[]}\n".to_owned();
    };
    let mut writer = Writer { text: "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[".to_owned(), first: true };
    for (session, trace) in traces.iter().enumerate() {
        let offset = (trace.epoch - epoch).as_nanos() as i64;
        write_session(&mut writer, session as u32, trace, offset);
    }
    writer.text.push_str("\n]}\n");
    writer.text
}

struct Writer {
    text: String,
    first: bool,
}

impl Writer {
    /// Begins an event; the caller writes the rest of its fields and a brace.
    fn event(&mut self, phase: char, place: Place) -> &mut String {
        self.text.push_str(if self.first { "\n" } else { ",\n" });
        self.first = false;
        let Place { process, thread } = place;
        // Writing to a string does not fail.
        let _ = write!(self.text, "{{\"ph\":\"{phase}\",\"pid\":{process},\"tid\":{thread}");
        &mut self.text
    }

    fn metadata(&mut self, place: Place, what: &str, name: &str) {
        let text = self.event('M', place);
        let _ = write!(text, ",\"name\":\"{what}\",\"args\":{{\"name\":");
        string(text, name);
        text.push_str("}}");
    }

    fn order(&mut self, place: Place, what: &str, index: u32) {
        let text = self.event('M', place);
        let _ = write!(text, ",\"name\":\"{what}\",\"args\":{{\"sort_index\":{index}}}}}");
    }
}

/// Where a viewer shows a track.
#[derive(Clone, Copy)]
struct Place {
    process: u32,
    thread: u32,
}

fn write_session(writer: &mut Writer, session: u32, trace: &Trace, offset: i64) {
    let (host, device) = (2 * session + 1, 2 * session + 2);
    let mut places = BTreeMap::new();
    for span in &trace.spans {
        places.entry(span.track).or_insert(Place { process: 0, thread: 0 });
    }
    let suffix = if session == 0 { String::new() } else { format!(" (session {})", session + 1) };
    for (process, name) in [(host, "host"), (device, trace.device.as_str())] {
        let place = Place { process, thread: 0 };
        writer.metadata(place, "process_name", &format!("{name}{suffix}"));
        writer.order(place, "process_sort_index", process);
    }
    for (index, (track, place)) in places.iter_mut().enumerate() {
        let process = if let Track::Stream { .. } = track { device } else { host };
        *place = Place { process, thread: index as u32 + 1 };
        writer.metadata(*place, "thread_name", &track_name(*track));
        writer.order(*place, "thread_sort_index", index as u32);
    }
    for span in &trace.spans {
        write_span(writer, session, places[&span.track], span, offset);
    }
}

fn write_span(writer: &mut Writer, session: u32, place: Place, span: &Span, offset: i64) {
    let start = span.start + offset;
    let text = writer.event('X', place);
    text.push_str(",\"name\":");
    string(text, &span.name);
    let category = match span.track {
        Track::Compile { .. } | Track::CompileWorker { .. } => "compile",
        Track::Scope { .. } => "scope",
        Track::Launches { .. } => "launch",
        Track::Stream { .. } if span.bytes.is_some() => "copy",
        Track::Stream { .. } => "task",
    };
    let _ = write!(text, ",\"cat\":\"{category}\",\"ts\":");
    microseconds(text, start);
    text.push_str(",\"dur\":");
    microseconds(text, span.duration as i64);
    match (span.launch, span.bytes) {
        (Some(launch), _) => drop(write!(text, ",\"args\":{{\"launch\":{launch}}}}}")),
        (None, Some(bytes)) => drop(write!(text, ",\"args\":{{\"bytes\":{bytes}}}}}")),
        (None, None) => text.push('}'),
    }
    // Arrows bind to the span that encloses their moment.
    let arrow = match span.track {
        Track::Launches { .. } => "s",
        Track::Stream { .. } => "f",
        Track::Compile { .. } | Track::CompileWorker { .. } | Track::Scope { .. } => return,
    };
    if let Some(launch) = span.launch.filter(|&launch| launch != 0) {
        let text = writer.event(if arrow == "s" { 's' } else { 'f' }, place);
        let _ = write!(text, ",\"name\":\"launch\",\"cat\":\"launch\",\"id\":\"{session}.{launch}\",\"ts\":");
        microseconds(text, start);
        text.push_str(if arrow == "s" { "}" } else { ",\"bp\":\"e\"}" });
    }
}

fn track_name(track: Track) -> String {
    let of = |what: &str, thread: u32| match thread {
        0 => what.to_owned(),
        other => format!("{what}, thread {}", other + 1),
    };
    match track {
        Track::Compile { thread } => of("compile", thread),
        Track::CompileWorker { worker } => format!("compile tasks {}", worker + 1),
        Track::Scope { thread } => of("scopes", thread),
        Track::Launches { thread } => of("launches", thread),
        Track::Stream { stream: 0, thread } => of("default stream", thread),
        Track::Stream { stream, thread } => of(&format!("stream {stream}"), thread),
    }
}

/// Nanoseconds as microseconds, exactly.
fn microseconds(text: &mut String, nanoseconds: i64) {
    let sign = if nanoseconds < 0 { "-" } else { "" };
    let _ = write!(text, "{sign}{}.{:03}", nanoseconds.abs() / 1000, nanoseconds.abs() % 1000);
}

fn string(text: &mut String, value: &str) {
    text.push('"');
    for c in value.chars() {
        match c {
            '"' | '\\' => text.extend(['\\', c]),
            c if c < ' ' => drop(write!(text, "\\u{:04x}", c as u32)),
            c => text.push(c),
        }
    }
    text.push('"');
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn spans_become_events_of_their_tracks_with_an_arrow_to_each_task() {
        let epoch = Instant::now();
        let span = |track, name: &str, start, launch, bytes| Span {
            track,
            name: name.into(),
            start,
            duration: 1500,
            launch,
            bytes,
        };
        let stream = Track::Stream { stream: 0, thread: 0 };
        let trace = Trace {
            device: "null".to_owned(),
            epoch,
            spans: vec![
                span(Track::Launches { thread: 0 }, "k", -500, Some(1), None),
                span(stream, "k_0_\"serial\"", 1000, Some(1), None),
                span(stream, "fill", 3000, None, Some(64)),
            ],
            dropped: 0,
            untimed: 0,
            tasks: Vec::new(),
            kernels: Vec::new(),
            copies: Vec::new(),
            phases: Vec::new(),
        };
        let later = Trace {
            epoch: epoch + Duration::from_micros(7),
            spans: trace.spans[1..2].to_vec(),
            ..trace.clone()
        };
        let text = chrome_trace(&[trace, later]);
        let events: Vec<_> = text.lines().filter(|line| !line.contains("\"ph\":\"M\"")).collect();
        assert_eq!(
            events,
            [
                r#"{"displayTimeUnit":"ns","traceEvents":["#,
                r#"{"ph":"X","pid":1,"tid":1,"name":"k","cat":"launch","ts":-0.500,"dur":1.500,"args":{"launch":1}},"#,
                r#"{"ph":"s","pid":1,"tid":1,"name":"launch","cat":"launch","id":"0.1","ts":-0.500},"#,
                r#"{"ph":"X","pid":2,"tid":2,"name":"k_0_\"serial\"","cat":"task","ts":1.000,"dur":1.500,"args":{"launch":1}},"#,
                r#"{"ph":"f","pid":2,"tid":2,"name":"launch","cat":"launch","id":"0.1","ts":1.000,"bp":"e"},"#,
                r#"{"ph":"X","pid":2,"tid":2,"name":"fill","cat":"copy","ts":3.000,"dur":1.500,"args":{"bytes":64}},"#,
                r#"{"ph":"X","pid":4,"tid":1,"name":"k_0_\"serial\"","cat":"task","ts":8.000,"dur":1.500,"args":{"launch":1}},"#,
                r#"{"ph":"f","pid":4,"tid":1,"name":"launch","cat":"launch","id":"1.1","ts":8.000,"bp":"e"}"#,
                "]}",
            ]
        );
        let names = text.lines().filter(|line| line.contains("thread_name")).count();
        assert_eq!(names, 3);
    }
}
