//! A trace as text for people.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::ops::Range;

use super::statistics::{Readable, Statistics};
use super::trace::{Trace, Track};

/// Tasks that the summary lists. Chosen: a page of a terminal.
const MAX_SUMMARY_TASKS: usize = 20;

impl Trace {
    /// Times by task, the longest total first.
    pub fn count_table(&self) -> String {
        table(|text| {
            writeln!(text, "Kernel profiler, tasks by name @ {}", self.device)?;
            writeln!(text, "      %       total    count |      min       avg       max    | task")?;
            self.task_rows(text, usize::MAX)?;
            writeln!(
                text,
                "100.00% {:>9.6} s, all tasks; {} names",
                self.total() as f64 / 1e9,
                self.tasks.len()
            )?;
            self.losses(text)
        })
    }

    /// Every task in the order of its start, counted from the first.
    pub fn trace_table(&self) -> String {
        table(|text| {
            writeln!(text, "Kernel profiler, every task @ {}", self.device)?;
            writeln!(text, "        start |         time |  stream | task")?;
            let tasks = || self.spans.iter().filter(|span| is_task(span.track, span.bytes));
            let first = tasks().next().map_or(0, |span| span.start);
            for span in tasks() {
                let Track::Stream { stream, .. } = span.track else { continue };
                let (start, time) = ((span.start - first) as f64 / 1e6, span.duration as f64 / 1e6);
                writeln!(text, "{start:>10.3} ms |{time:>10.3} ms |{stream:>8} | {}", span.name)?;
            }
            writeln!(text, "{} tasks", tasks().count())?;
            self.losses(text)
        })
    }

    /// Where the time of compilations went.
    pub fn phase_table(&self) -> String {
        table(|text| {
            writeln!(text, "Compile times by phase")?;
            writeln!(text, "      total | count |    average | phase")?;
            self.phase_rows(text, &[])
        })
    }

    /// All of it on a page.
    pub fn summary(&self) -> String {
        table(|text| {
            writeln!(text, "Octants profile @ {}", self.device)?;
            self.compile_summary(text)?;
            self.launch_summary(text)?;
            self.stream_summary(text)?;
            if !self.tasks.is_empty() {
                writeln!(text, "\n      %       total    count |      min       avg       max    | task")?;
                self.task_rows(text, MAX_SUMMARY_TASKS)?;
            }
            if !self.copies.is_empty() {
                writeln!(text, "\n      total   count       bytes |      rate | copies")?;
            }
            for &(activity, Statistics { count, total, .. }, bytes) in &self.copies {
                let rate = bytes as f64 / (total as f64).max(1.0);
                let total = total as f64 / 1e9;
                writeln!(
                    text,
                    "{total:>9.6} s {count:>6}x {bytes:>11} | {rate:>5.1} GB/s | {}",
                    activity.name()
                )?;
            }
            self.losses(text)
        })
    }

    fn compile_summary(&self, text: &mut String) -> fmt::Result {
        let phases = |depth| self.phases.iter().filter(move |(path, _)| path.len() == depth);
        for (_, Statistics { count, total, .. }) in phases(0) {
            write!(text, "compiled {count} times in {}", Readable(*total as f64))?;
            let mut parts: Vec<_> = phases(1).collect();
            parts.sort_by_key(|(path, statistics)| (std::cmp::Reverse(statistics.total), path));
            for (number, (path, statistics)) in parts.iter().enumerate() {
                let comma = if number == 0 { ":" } else { "," };
                write!(text, "{comma} {} {}", path[0], Readable(statistics.total as f64))?;
            }
            writeln!(text)?;
        }
        Ok(())
    }

    fn launch_summary(&self, text: &mut String) -> fmt::Result {
        let launches: u64 = self.kernels.iter().map(|(_, statistics)| statistics.count).sum();
        if launches == 0 {
            return Ok(());
        }
        let mut host = Statistics::default();
        for span in self.spans.iter().filter(|span| matches!(span.track, Track::Launches { .. })) {
            host.add(span.duration);
        }
        writeln!(
            text,
            "launched {} kernels {launches} times: {} of the device, {} of the host a launch",
            self.kernels.len(),
            Readable(self.total() as f64),
            Readable(host.average()),
        )
    }

    /// How busy streams were, and how much they overlapped.
    fn stream_summary(&self, text: &mut String) -> fmt::Result {
        let mut by_stream = BTreeMap::<u32, Vec<Range<i64>>>::new();
        for span in &self.spans {
            if let Track::Stream { stream, .. } = span.track {
                by_stream.entry(stream).or_default().push(span.start..span.start + span.duration as i64);
            }
        }
        let all: Vec<_> = by_stream.values().flatten().cloned().collect();
        let busy = covered(all.clone());
        let (Some(begin), Some(end)) =
            (all.iter().map(|span| span.start).min(), all.iter().map(|span| span.end).max())
        else {
            return Ok(());
        };
        let share = |part: i64| 100.0 * part as f64 / ((end - begin).max(1)) as f64;
        writeln!(
            text,
            "the device was busy for {} of {} ({:.0}%)",
            Readable(busy as f64),
            Readable((end - begin) as f64),
            share(busy)
        )?;
        if by_stream.len() > 1 {
            let alone: i64 = by_stream.values().map(|spans| covered(spans.clone())).sum();
            let overlap = alone as f64 / busy.max(1) as f64;
            writeln!(text, "{} streams, {overlap:.2} of them busy at once while any was:", by_stream.len())?;
            for (stream, spans) in &by_stream {
                let own = covered(spans.clone());
                writeln!(
                    text,
                    "  stream {stream}: {} spans, busy for {} ({:.0}%)",
                    spans.len(),
                    Readable(own as f64),
                    share(own)
                )?;
            }
        }
        Ok(())
    }

    fn task_rows(&self, text: &mut String, most: usize) -> fmt::Result {
        let all = (self.total() as f64).max(1.0);
        let mut tasks: Vec<_> = self.tasks.iter().collect();
        tasks.sort_by_key(|(name, statistics)| (std::cmp::Reverse(statistics.total), name.clone()));
        for (name, statistics) in tasks.iter().take(most) {
            let &Statistics { count, total, min, max } = statistics;
            let (min, average, max) = (min as f64 / 1e6, statistics.average() / 1e6, max as f64 / 1e6);
            writeln!(
                text,
                "{:>6.2}% {:>9.6} s {count:>7}x |{min:>9.4} {average:>9.4} {max:>9.4} ms | {name}",
                100.0 * total as f64 / all,
                total as f64 / 1e9
            )?;
        }
        if tasks.len() > most {
            writeln!(text, "and {} more", tasks.len() - most)?;
        }
        Ok(())
    }

    /// The phases inside a path, the longest first, each with those inside it.
    fn phase_rows(&self, text: &mut String, inside: &[&'static str]) -> fmt::Result {
        let depth = inside.len();
        let is_child = |path: &[&str]| path.len() == depth + 1 && path[..depth] == *inside;
        let mut rows: Vec<_> = self.phases.iter().filter(|(path, _)| is_child(path)).collect();
        rows.sort_by_key(|(path, statistics)| (std::cmp::Reverse(statistics.total), path));
        for (path, statistics) in rows {
            writeln!(
                text,
                "{:>11} |{:>6} |{:>11} | {:indent$}{}",
                Readable(statistics.total as f64).to_string(),
                statistics.count,
                Readable(statistics.average()).to_string(),
                "",
                path[depth],
                indent = 2 * depth
            )?;
            self.phase_rows(text, path)?;
        }
        Ok(())
    }

    fn losses(&self, text: &mut String) -> fmt::Result {
        if self.untimed > 0 {
            writeln!(
                text,
                "{} tasks and copies have no time: too many were under way at once",
                self.untimed
            )?;
        }
        if self.dropped > 0 {
            writeln!(text, "the {} oldest entries of the timeline were dropped", self.dropped)?;
        }
        Ok(())
    }
}

fn is_task(track: Track, bytes: Option<u64>) -> bool {
    matches!(track, Track::Stream { .. }) && bytes.is_none()
}

/// How much time at least one of the ranges covers.
fn covered(mut ranges: Vec<Range<i64>>) -> i64 {
    ranges.sort_by_key(|range| range.start);
    let (mut all, mut until) = (0, i64::MIN);
    for range in ranges {
        all += (range.end - range.start.max(until)).max(0);
        until = until.max(range.end);
    }
    all
}

fn table(write: impl FnOnce(&mut String) -> fmt::Result) -> String {
    let mut text = String::new();
    write(&mut text).expect("writing to a string");
    text
}
