//! A trace as text for people.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::ops::Range;

use super::statistics::{Readable, Statistics};
use super::trace::{Trace, Track};

/// Tasks that the summary lists. Chosen: a page of a terminal.
const MAX_SUMMARY_TASKS: usize = 20;

/// Streams that it lists. Chosen likewise.
const MAX_SUMMARY_STREAMS: usize = 16;

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
            for (stream, spans) in by_stream.iter().take(MAX_SUMMARY_STREAMS) {
                let own = covered(spans.clone());
                writeln!(
                    text,
                    "  stream {stream}: {} spans, busy for {} ({:.0}%)",
                    spans.len(),
                    Readable(own as f64),
                    share(own)
                )?;
            }
            if by_stream.len() > MAX_SUMMARY_STREAMS {
                writeln!(text, "  and {} more", by_stream.len() - MAX_SUMMARY_STREAMS)?;
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

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::super::trace::{Activity, Span};
    use super::*;

    fn trace() -> Trace {
        let statistics = |count, total, min, max| Statistics { count, total, min, max };
        let span = |stream, name: &str, start, duration| Span {
            track: Track::Stream { stream, thread: 0 },
            name: name.into(),
            start,
            duration,
            launch: Some(1),
            bytes: None,
        };
        Trace {
            device: "GPU".to_owned(),
            epoch: Instant::now(),
            spans: vec![
                span(0, "k_0_serial", 1_000_000, 500_000),
                span(1, "k_1_range_for", 1_250_000, 750_000),
            ],
            dropped: 3,
            untimed: 0,
            tasks: vec![
                ("k_0_serial".into(), statistics(1, 500_000, 500_000, 500_000)),
                ("k_1_range_for".into(), statistics(2, 1_500_000, 500_000, 1_000_000)),
            ],
            kernels: vec![("k".into(), statistics(1, 2_000_000, 2_000_000, 2_000_000))],
            copies: vec![(Activity::Fill, statistics(2, 1000, 400, 600), 8000)],
            phases: vec![
                (vec![], statistics(1, 3_000_000, 3_000_000, 3_000_000)),
                (vec!["LLVM"], statistics(1, 2_500_000, 2_500_000, 2_500_000)),
                (vec!["passes"], statistics(1, 400_000, 400_000, 400_000)),
                (vec!["passes", "simplify"], statistics(2, 100_000, 40_000, 60_000)),
            ],
        }
    }

    #[test]
    fn tables_show_the_longest_first() {
        assert_eq!(
            trace().count_table(),
            "\
Kernel profiler, tasks by name @ GPU
      %       total    count |      min       avg       max    | task
 75.00%  0.001500 s       2x |   0.5000    0.7500    1.0000 ms | k_1_range_for
 25.00%  0.000500 s       1x |   0.5000    0.5000    0.5000 ms | k_0_serial
100.00%  0.002000 s, all tasks; 2 names
the 3 oldest entries of the timeline were dropped
"
        );
        assert_eq!(
            trace().trace_table(),
            "\
Kernel profiler, every task @ GPU
        start |         time |  stream | task
     0.000 ms |     0.500 ms |       0 | k_0_serial
     0.250 ms |     0.750 ms |       1 | k_1_range_for
2 tasks
the 3 oldest entries of the timeline were dropped
"
        );
        assert_eq!(
            trace().phase_table(),
            "\
Compile times by phase
      total | count |    average | phase
   2.500 ms |     1 |   2.500 ms | LLVM
 400.000 µs |     1 | 400.000 µs | passes
 100.000 µs |     2 |  50.000 µs |   simplify
"
        );
    }

    #[test]
    fn the_summary_says_how_much_streams_overlap() {
        assert_eq!(
            trace().summary(),
            "\
Octants profile @ GPU
compiled 1 times in 3.000 ms: LLVM 2.500 ms, passes 400.000 µs
launched 1 kernels 1 times: 2.000 ms of the device, 0.000 µs of the host a launch
the device was busy for 1.000 ms of 1.000 ms (100%)
2 streams, 1.25 of them busy at once while any was:
  stream 0: 1 spans, busy for 500.000 µs (50%)
  stream 1: 1 spans, busy for 750.000 µs (75%)

      %       total    count |      min       avg       max    | task
 75.00%  0.001500 s       2x |   0.5000    0.7500    1.0000 ms | k_1_range_for
 25.00%  0.000500 s       1x |   0.5000    0.5000    0.5000 ms | k_0_serial

      total   count       bytes |      rate | copies
 0.000001 s      2x        8000 |   8.0 GB/s | fill
the 3 oldest entries of the timeline were dropped
"
        );
    }
}
