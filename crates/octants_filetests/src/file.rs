//! A test file's head and cases.

use octants_passes::Mode;

/// What a file's cases are tests of.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Kind {
    RoundTrip,
    VerifyError,
    Run,
    Pass(Vec<String>),
    Llvm,
    Plan,
    Derivative(Mode),
    /// How much tape the derivative needs.
    Sizes,
    /// The derivative with its tapes in arrays.
    Placed,
    /// Likewise, computing itself how many iterations run at once.
    Sized,
    Gradient,
}

/// The comment lines at the top.
#[derive(Clone, Debug)]
pub struct Head {
    pub kind: Kind,
    pub noalias: bool,
    pub exclusive: bool,
    pub vector_bits: Option<u32>,
    pub lanes: Option<u32>,
    /// The text is for a GPU.
    pub gpu: bool,
    pub steps: Option<u64>,
    pub interpreter_only: bool,
}

/// A kernel with what is expected of it.
#[derive(Clone, Debug)]
pub struct Case {
    /// Comments and blank lines before the kernel.
    pub before: String,
    /// The kernel's text, with its closing line.
    pub input: String,
    /// Comment lines right below.
    pub notes: Vec<String>,
    /// Whether there is a section for output, as kinds with an output have.
    pub has_output: bool,
}

#[derive(Clone, Debug)]
pub struct TestFile {
    pub head: Head,
    /// The lines of the head as they are.
    pub head_text: String,
    pub cases: Vec<Case>,
    /// What follows the last case.
    pub after: String,
}

/// Begins the expected output of a case.
pub const OUTPUT: &str = "; ----";
/// Ends it.
pub const END: &str = "; ====";

impl TestFile {
    pub fn parse(text: &str) -> Result<Self, String> {
        let (head, head_text, rest) = parse_head(text)?;
        let mut file = Self { head, head_text, cases: Vec::new(), after: String::new() };
        let mut lines = rest.lines().peekable();
        loop {
            let mut before = String::new();
            while let Some(line) = lines.next_if(|line| is_blank(line)) {
                before += line;
                before.push('\n');
            }
            if lines.peek().is_none() {
                file.after = before;
                return if file.cases.is_empty() {
                    Err("there is no kernel in the file".into())
                } else {
                    Ok(file)
                };
            }
            let mut input = String::new();
            let mut in_kernel = false;
            for line in lines.by_ref() {
                input += line;
                input.push('\n');
                in_kernel |= line.starts_with("kernel");
                // Functions come before it, and end alike.
                if line == "}" && in_kernel {
                    break;
                }
            }
            let mut notes = Vec::new();
            while let Some(line) =
                lines.next_if(|line| line.starts_with(';') && *line != OUTPUT && *line != END)
            {
                notes.push(line.to_string());
            }
            let has_output = lines.next_if_eq(&OUTPUT).is_some();
            if has_output {
                for line in lines.by_ref() {
                    if line == END {
                        break;
                    }
                }
            }
            file.cases.push(Case { before, input, notes, has_output });
        }
    }
}

fn is_blank(line: &str) -> bool {
    line.trim().is_empty() || line.trim_start().starts_with(';')
}

fn parse_head(text: &str) -> Result<(Head, String, &str), String> {
    let first = text.lines().next().unwrap_or_default();
    let words: Vec<_> = first.split_whitespace().collect();
    let kind = match &words[..] {
        [";", "test", "roundtrip"] => Kind::RoundTrip,
        [";", "test", "verify-error"] => Kind::VerifyError,
        [";", "test", "run"] => Kind::Run,
        [";", "test", "pass", names @ ..] if !names.is_empty() => {
            Kind::Pass(names.iter().map(ToString::to_string).collect())
        }
        [";", "test", "llvm"] => Kind::Llvm,
        [";", "test", "plan"] => Kind::Plan,
        [";", "test", "derivative", "forward"] => Kind::Derivative(Mode::Forward),
        [";", "test", "derivative", "reverse"] => Kind::Derivative(Mode::Reverse),
        [";", "test", "derivative", "sizes"] => Kind::Sizes,
        [";", "test", "derivative", "placed"] => Kind::Placed,
        [";", "test", "derivative", "sized"] => Kind::Sized,
        [";", "test", "gradient"] => Kind::Gradient,
        _ => return Err(format!("the first line names no kind of test: {first:?}")),
    };
    let mut head = Head {
        kind,
        noalias: false,
        exclusive: false,
        vector_bits: None,
        lanes: None,
        gpu: false,
        steps: None,
        interpreter_only: false,
    };
    let mut length = 0;
    for (number, line) in text.lines().enumerate() {
        if !line.starts_with(';') {
            break;
        }
        length += line.len() + 1;
        if number == 0 {
            continue;
        }
        let words: Vec<_> = line.split_whitespace().collect();
        match &words[..] {
            [";", "assume", "noalias"] => head.noalias = true,
            [";", "assume", "exclusive"] => head.exclusive = true,
            [";", "vector_bits", n] => head.vector_bits = Some(count(line, n)?),
            [";", "lanes", n] => head.lanes = Some(count(line, n)?),
            [";", "target", "gpu"] => head.gpu = true,
            [";", "steps", n] => head.steps = Some(count(line, n)?),
            [";", "interpreter", "only"] => head.interpreter_only = true,
            _ => {}
        }
    }
    let length = length.min(text.len());
    Ok((head, text[..length].to_string(), &text[length..]))
}

fn count<T: std::str::FromStr>(line: &str, number: &str) -> Result<T, String> {
    number.parse().map_err(|_| format!("no number in {line:?}"))
}
