//! What all targets share: the tasks of a kernel go through LLVM, several at a time, unless their code is in a store.

use std::cmp::Reverse;
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use octants_cache::{Key, KeyBuilder, Store};
use octants_hal::{Cancel, LaunchShape};
use octants_ir::Kernel;
use octants_ir::plan::Plan;
use octants_llvm::{EmitOptions, TaskText, emit};
use octants_llvm_sys::{Compilation, CompileError, Compiled, OptLevel, Options, Stage, Timing, start};

/// How often a waiting compilation looks at the caller's flag. Chosen: Ctrl-C is to be heard within half a second.
const CANCEL_POLL_INTERVAL: Duration = Duration::from_millis(10);

/// Code for all tasks of a kernel.
#[derive(Debug)]
pub struct KernelCode {
    /// By task number.
    pub tasks: Vec<CompiledTask>,
    /// From IR to LLVM text.
    pub emit: Duration,
    /// All of LLVM, as the caller saw it.
    pub llvm: Duration,
}

#[derive(Debug)]
pub struct CompiledTask {
    pub symbol: String,
    /// An ELF object, PTX text, or what an assembler made of it.
    pub bytes: Vec<u8>,
    /// What it is kept under; nothing without a store.
    pub key: Option<Key>,
    /// Whether it was there.
    pub found: bool,
    /// How many points of its range it runs at once.
    pub lanes: u32,
    /// How it deals its points to the threads of a GPU.
    pub shape: LaunchShape,
    /// Where LLVM's time went.
    pub timing: Timing,
}

/// Texts of a kernel's code.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum KernelText {
    Llvm,
    OptimisedLlvm,
    /// The target's own: of a CPU, or PTX.
    Assembly,
}

/// Why there is no code.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum CodegenError {
    /// The caller's flag was raised.
    Cancelled,
    /// LLVM refuses what we emitted, in its own words: a bug of ours.
    Refused { symbol: String, message: String },
    /// This build cannot make code for the target, for this reason.
    Unsupported { message: String },
}

impl fmt::Display for CodegenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cancelled => f.write_str("interrupted"),
            Self::Refused { symbol, message } => write!(f, "`{symbol}`: {message}"),
            Self::Unsupported { message } => f.write_str(message),
        }
    }
}

impl std::error::Error for CodegenError {}

/// Where code of tasks is kept. Its key is the task's LLVM text, what LLVM is told to do with it, and `maker`.
#[derive(Clone, Copy)]
pub struct TaskStore<'a> {
    pub store: &'a Store,
    /// Everything else that code depends on: the version of the compiler, the assembler behind it.
    pub maker: &'a str,
}

impl TaskStore<'_> {
    fn key(&self, text: &str, options: &Options) -> Key {
        let Options { target, opt, straight, passes, output, vector_math, keep_ir: _, keep_assembly: _ } =
            options;
        KeyBuilder::new("task")
            .part(self.maker)
            .part(format!("{target:?} {opt:?} {straight} {passes:?} {output:?} {vector_math}"))
            .part(text)
            .finish()
    }
}

/// What is done to LLVM's output before it is code.
pub(crate) type Finish<'a> = &'a (dyn Fn(Vec<u8>) -> Vec<u8> + Sync);

/// What one target's code is made with.
pub(crate) struct CompileOptions {
    pub emit: EmitOptions,
    pub llvm: Options,
    /// Tasks that compile at the same time; at least 1.
    pub threads: usize,
}

/// Compiles every task of a kernel in its tasks phase that is not in the store. A compilation that was begun when `cancel` is raised ends unobserved.
pub(crate) fn compile(
    kernel: &Kernel,
    plan: &Plan,
    options: &CompileOptions,
    store: Option<TaskStore<'_>>,
    finish: Option<Finish<'_>>,
    cancel: &Cancel,
) -> Result<KernelCode, CodegenError> {
    let begin = Instant::now();
    let texts = emit(kernel, plan, &options.emit);
    let emitted = Instant::now();
    if cancel.is_wanted() {
        return Err(CodegenError::Cancelled);
    }
    let keys: Vec<_> = texts
        .iter()
        .map(|task| store.map(|store| store.key(&task.text, &of_task(&options.llvm, task))))
        .collect();
    let get = |key: &Option<Key>| store.zip(*key).and_then(|(store, key)| store.store.get(&key));
    let found: Vec<_> = keys.iter().map(get).collect();
    let missing: Vec<_> =
        texts.iter().zip(&found).filter(|(_, found)| found.is_none()).map(|(task, _)| task).collect();
    let compiled = compile_all(&missing, &options.llvm, options.threads, cancel)?;
    let mut made = finish_all(compiled, options.threads, finish).into_iter();
    let mut tasks = Vec::with_capacity(texts.len());
    for ((task, key), found) in texts.into_iter().zip(keys).zip(found) {
        let (was_found, (bytes, timing)) = match found {
            Some(bytes) => (true, (bytes, Timing::default())),
            None => (false, made.next().expect("one for each that was missing")),
        };
        if let (false, Some(store), Some(key)) = (was_found, store, key) {
            store.store.put(&key, &bytes);
        }
        let TaskText { symbol, lanes, shape, .. } = task;
        tasks.push(CompiledTask { symbol, bytes, key, found: was_found, lanes, shape, timing });
    }
    Ok(KernelCode { tasks, emit: emitted - begin, llvm: emitted.elapsed() })
}

/// Finishes what LLVM made, several at a time: an assembler takes as long as LLVM.
fn finish_all(compiled: Vec<Compiled>, threads: usize, finish: Option<Finish<'_>>) -> Vec<(Vec<u8>, Timing)> {
    let Some(finish) = finish else {
        return compiled.into_iter().map(|compiled| (compiled.bytes, compiled.timing)).collect();
    };
    let one = |compiled: Compiled| (finish(compiled.bytes), compiled.timing);
    if compiled.len() < 2 || threads < 2 {
        return compiled.into_iter().map(one).collect();
    }
    let count = compiled.len();
    let share = count.div_ceil(threads.min(count));
    let mut pieces: Vec<Vec<Compiled>> = Vec::new();
    let mut rest = compiled.into_iter();
    while rest.len() > 0 {
        pieces.push(rest.by_ref().take(share).collect());
    }
    std::thread::scope(|scope| {
        let start = |piece: Vec<Compiled>| scope.spawn(|| piece.into_iter().map(one).collect::<Vec<_>>());
        let running: Vec<_> = pieces.into_iter().map(start).collect();
        let joined = running.into_iter();
        joined
            .flat_map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect()
    })
}

/// The code of all tasks as text, one after another.
pub(crate) fn text(
    kernel: &Kernel,
    plan: &Plan,
    options: &CompileOptions,
    what: KernelText,
) -> Result<String, CodegenError> {
    let texts = emit(kernel, plan, &options.emit);
    if what == KernelText::Llvm {
        return Ok(texts.into_iter().map(|task| task.text).collect::<Vec<_>>().join("\n"));
    }
    let (keep_ir, keep_assembly) = (what == KernelText::OptimisedLlvm, what == KernelText::Assembly);
    let llvm = Options { keep_ir, keep_assembly, ..options.llvm.clone() };
    let all: Vec<_> = texts.iter().collect();
    let compiled = compile_all(&all, &llvm, options.threads, &Cancel::new())?;
    let texts = compiled.into_iter().filter_map(|compiled| compiled.ir.or(compiled.assembly));
    Ok(texts.collect::<Vec<_>>().join("\n"))
}

/// What LLVM is told of one task.
fn of_task(options: &Options, task: &TaskText) -> Options {
    let opt = match options.opt {
        OptLevel::Default if task.brief => OptLevel::Brief,
        level => level,
    };
    Options { straight: task.straight, opt, ..options.clone() }
}

/// In the order of the texts; at most `threads` at a time. Where there are more texts, the longest are begun first, so that none of them is the last one to end.
fn compile_all(
    texts: &[&TaskText],
    options: &Options,
    threads: usize,
    cancel: &Cancel,
) -> Result<Vec<Compiled>, CodegenError> {
    let begin = |task: &TaskText| start(task.text.clone(), of_task(options, task));
    if texts.len() <= threads {
        let running: Vec<_> = texts.iter().map(|task| (task, begin(task))).collect();
        return running.into_iter().map(|(task, compilation)| end(task, &compilation, cancel)).collect();
    }
    let order = longest_first(texts);
    let next = AtomicUsize::new(0);
    let work = || {
        let mut done = Vec::new();
        while let Some(&number) = order.get(next.fetch_add(1, Ordering::Relaxed)) {
            done.push((number, end(texts[number], &begin(texts[number]), cancel)));
        }
        done
    };
    let mut done = std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(work)).collect();
        let mut done = work();
        for other in others {
            done.extend(other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
        done
    });
    done.sort_by_key(|&(number, _)| number);
    done.into_iter().map(|(_, result)| result).collect()
}

/// The numbers of texts, those of long ones first.
fn longest_first(texts: &[&TaskText]) -> Vec<usize> {
    let mut order: Vec<_> = (0..texts.len()).collect();
    order.sort_by_key(|&number| Reverse(texts[number].text.len()));
    order
}

/// Waits for a task's code.
fn end(task: &TaskText, compilation: &Compilation, cancel: &Cancel) -> Result<Compiled, CodegenError> {
    let result = loop {
        if cancel.is_wanted() {
            return Err(CodegenError::Cancelled);
        }
        if let Some(result) = compilation.wait_for(CANCEL_POLL_INTERVAL) {
            break result;
        }
    };
    result.map_err(|error| match error {
        CompileError { stage: Stage::Library, message } => CodegenError::Unsupported { message },
        error => CodegenError::Refused { symbol: task.symbol.clone(), message: error.to_string() },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(text: &str) -> TaskText {
        let (symbol, text) = ("f".to_owned(), text.to_owned());
        TaskText { symbol, text, lanes: 16, straight: true, brief: false, shape: LaunchShape::default() }
    }

    #[test]
    fn more_tasks_than_threads_are_compiled_in_any_order_and_given_in_their_own() {
        let text = |number: usize| {
            let comment = "x".repeat(number * 3 % 7);
            format!("define i32 @f{number}() {{\n  ret i32 {number}\n}}\n; {comment}\n")
        };
        let tasks: Vec<_> = (0..7).map(|number| task(&text(number))).collect();
        let tasks: Vec<_> = tasks.iter().collect();
        assert_eq!(longest_first(&tasks), [2, 4, 6, 1, 3, 5, 0]);
        let options = Options { keep_assembly: true, ..Options::default() };
        for threads in [1, 2, 7, 9] {
            let compiled = compile_all(&tasks, &options, threads, &Cancel::new()).expect("code");
            let functions = compiled.iter().map(|one| one.assembly.clone().unwrap_or_default());
            for (number, assembly) in functions.enumerate() {
                assert!(assembly.contains(&format!("f{number}:")), "{threads} threads: {assembly}");
            }
        }
        let broken = task("define nonsense");
        let with_broken = [tasks[0], &broken, tasks[1]];
        for threads in [1, 3] {
            let refused = compile_all(&with_broken, &options, threads, &Cancel::new());
            assert!(matches!(refused, Err(CodegenError::Refused { .. })));
        }
        let cancelled = Cancel::new();
        cancelled.raise();
        assert_eq!(compile_all(&tasks, &options, 2, &cancelled).unwrap_err(), CodegenError::Cancelled);
    }

    #[test]
    fn a_brief_task_is_optimised_less_and_never_more() {
        let level = |opt, brief| {
            let (symbol, text) = (String::new(), String::new());
            let task =
                TaskText { symbol, text, lanes: 16, straight: true, brief, shape: LaunchShape::default() };
            of_task(&Options { opt, ..Options::default() }, &task).opt
        };
        assert_eq!(level(OptLevel::Default, true), OptLevel::Brief);
        assert_eq!(level(OptLevel::Default, false), OptLevel::Default);
        assert_eq!(level(OptLevel::None, true), OptLevel::None);
    }
}
