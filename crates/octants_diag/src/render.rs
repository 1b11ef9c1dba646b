//! A diagnostic as text. The only module that knows `annotate-snippets`.
//!
//! ```text
//! error[OC0201]: name `y` is not defined
//!  --> wave.py:12:9
//!    |
//! 12 |     x = y + 1
//!    |         ^ not found in this function, its closure or its module
//!    |
//! note: in `g`, inlined here
//! …
//! help: …
//! ```

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};

use crate::diagnostic::{Diagnostic, Severity};
use crate::source_map::{SourceFile, SourceMap};
use crate::span::Span;

/// How text is drawn.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Style {
    #[default]
    Plain,
    /// With terminal colours.
    Coloured,
}

/// One diagnostic as text, without a final line end.
pub fn render(diagnostic: &Diagnostic, sources: &SourceMap, style: Style) -> String {
    let renderer = match style {
        Style::Plain => Renderer::plain(),
        Style::Coloured => Renderer::styled(),
    };
    let excerpts = Excerpts::of(diagnostic, sources);
    renderer.render(&groups(diagnostic, &excerpts))
}

/// Several diagnostics, with an empty line between them.
pub fn render_all(diagnostics: &[Diagnostic], sources: &SourceMap, style: Style) -> String {
    diagnostics.iter().map(|d| render(d, sources, style)).collect::<Vec<_>>().join("\n\n")
}

/// A place as a line of a trace has it: where it is, its line, and a mark below what is meant.
///
/// ```text
/// File "wave.py", line 12, in step:
///     x = y + 1
///         ^^^^^
/// ```
pub fn quote(span: Span, function: &str, sources: &SourceMap) -> String {
    let Some(file) = sources.file(span.file) else { return String::new() };
    let number = file.line(span.start);
    let range = file.line_range(number);
    let line = file.text[range.clone()].trim_end();
    let indent = line.len() - line.trim_start().len();
    let begin = (span.start as usize - range.start).clamp(indent, line.len());
    let end = (span.end as usize).saturating_sub(range.start).clamp(begin, line.len());
    let width = |text: &str| text.chars().count();
    let (before, marked) = (width(&line[indent..begin]), width(&line[begin..end]).max(1));
    format!(
        "File \"{}\", line {number}, in {function}:\n    {}\n    {}{}",
        file.name,
        &line[indent..],
        " ".repeat(before),
        "^".repeat(marked)
    )
}

/// The lines around a span, cut out of the file: rendering a file of a hundred thousand lines must not cost that much.
struct Excerpt {
    name: String,
    text: String,
    first_line: u32,
    /// Where the excerpt starts in the file.
    start: usize,
}

impl Excerpt {
    /// The lines from that of `span`'s start to that of its end, widened by those of `others` in the same file when they are near.
    fn new(file: &SourceFile, spans: &[Span]) -> Self {
        let first = spans.iter().map(|span| file.line(span.start)).min().unwrap_or(1);
        let last = spans.iter().map(|span| file.line(span.end)).max().unwrap_or(1);
        let range = file.line_range(first).start..file.line_range(last).end;
        Self {
            name: file.name.clone(),
            // The end of a line of Windows is no character to show; offsets stay what they are.
            text: file.text[range.clone()].replace("\r\n", " \n").trim_end_matches('\r').to_owned(),
            first_line: first,
            start: range.start,
        }
    }

    fn range(&self, span: Span) -> std::ops::Range<usize> {
        let within = |offset: u32| (offset as usize).saturating_sub(self.start).min(self.text.len());
        within(span.start)..within(span.end)
    }
}

/// All excerpts that a diagnostic shows; the groups borrow from them.
struct Excerpts {
    primary: Option<Excerpt>,
    /// Labels that are not in the primary's file, each with its own.
    labels: Vec<Option<Excerpt>>,
    frames: Vec<Option<Excerpt>>,
}

impl Excerpts {
    fn of(diagnostic: &Diagnostic, sources: &SourceMap) -> Self {
        let cut = |spans: &[Span]| {
            let file = sources.file(spans.first()?.file)?;
            Some(Excerpt::new(&file, spans))
        };
        let primary = diagnostic.span.and_then(|span| {
            let near =
                diagnostic.labels.iter().map(|label| label.span).filter(|other| other.file == span.file);
            cut(&std::iter::once(span).chain(near).collect::<Vec<_>>())
        });
        let elsewhere = |span: Span| diagnostic.span.is_none_or(|primary| primary.file != span.file);
        Self {
            primary,
            labels: diagnostic
                .labels
                .iter()
                .map(|label| if elsewhere(label.span) { cut(&[label.span]) } else { None })
                .collect(),
            frames: diagnostic.frames.iter().map(|frame| cut(&[frame.call])).collect(),
        }
    }
}

fn groups<'a>(diagnostic: &'a Diagnostic, excerpts: &'a Excerpts) -> Vec<Group<'a>> {
    let level = match diagnostic.severity() {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
    };
    let mut main = Group::with_title(level.primary_title(&diagnostic.message).id(diagnostic.code.name()));
    if let (Some(excerpt), Some(span)) = (&excerpts.primary, diagnostic.span) {
        let mut mark = AnnotationKind::Primary.span(excerpt.range(span));
        if !diagnostic.label.is_empty() {
            mark = mark.label(&diagnostic.label);
        }
        let mut snippet = snippet(excerpt).annotation(mark);
        for label in diagnostic.labels.iter().filter(|label| label.span.file == span.file) {
            snippet = snippet
                .annotation(AnnotationKind::Context.span(excerpt.range(label.span)).label(&label.text));
        }
        main = main.element(snippet);
    }
    for (label, excerpt) in diagnostic.labels.iter().zip(&excerpts.labels) {
        if let Some(excerpt) = excerpt {
            main = main.element(
                snippet(excerpt)
                    .annotation(AnnotationKind::Context.span(excerpt.range(label.span)).label(&label.text)),
            );
        }
    }
    // Groups follow each other; what explains the main one is attached to the last so that it ends the text.
    let mut groups = vec![main];
    for (frame, excerpt) in diagnostic.frames.iter().zip(&excerpts.frames).rev() {
        let verb = if frame.inlined { "was inlined by this call" } else { "was compiled for this call" };
        let title = format!("`{}` {verb}", frame.function);
        let mut group = Group::with_title(Level::NOTE.secondary_title(title));
        if let Some(excerpt) = excerpt {
            group = group.element(
                snippet(excerpt).annotation(AnnotationKind::Primary.span(excerpt.range(frame.call))),
            );
        }
        groups.push(group);
    }
    let mut last = groups.pop().expect("there is the main group");
    for note in &diagnostic.notes {
        last = last.element(Level::NOTE.message(note));
    }
    for help in &diagnostic.help {
        last = last.element(Level::HELP.message(help));
    }
    groups.push(last);
    groups
}

fn snippet(excerpt: &Excerpt) -> Snippet<'_, annotate_snippets::Annotation<'_>> {
    Snippet::source(&excerpt.text).path(&excerpt.name).line_start(excerpt.first_line as usize).fold(true)
}
