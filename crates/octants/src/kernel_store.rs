//! Kernels on disk: what a session compiled is there for the next process.
//!
//! Two kinds of entries. A *kernel* is kept under its IR, with all that its code depends on: its plan, and the keys of its tasks. A *task* is kept
//! by the compile driver under its LLVM text. So a kernel that is known runs no pass, and one of which a loop was changed compiles one task.
//!
//! **Nothing of a process is in an entry**: files of the program have numbers of the kernel's own, and code is relocatable.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use octants_cache::{Claim, CleaningPolicy, Key, KeyBuilder, Store, StoreOptions};
use octants_codegen::TaskStore;
use octants_diag::FileId;
use octants_hal::{Cancel, LaunchShape};
use octants_ir::ops::Effects;
use octants_ir::plan::Plan;
use octants_ir::{Kernel, LocData, OpKind, text};
use octants_runtime::{Assumptions, Code, TaskCode};
use serde::{Deserialize, Serialize};

use crate::backend::Compiler;
use crate::error::Error;
use crate::kernel_source::{KernelSource, VersionInfo};
use crate::report::CompileStatistics;

/// The state of the compiler's sources.
const COMPILER: &str = env!("OCTANTS_COMPILER");

/// How often a process that waits for another's compilation looks for it.
const POLL_INTERVAL: Duration = Duration::from_millis(2);

/// How long it waits. Chosen: the largest kernels take as long; a process that was stopped holds others up no longer.
const MAX_WAIT: Duration = Duration::from_secs(30);

/// Where compiled kernels are kept.
#[derive(Clone, PartialEq, Debug)]
pub struct CacheOptions {
    pub folder: PathBuf,
    pub policy: CleaningPolicy,
    /// Bytes of all that is kept.
    pub max_bytes: u64,
    /// The part of `max_bytes` that is free after cleaning.
    pub cleaning_factor: f64,
}

/// The name of this state of the compiler in a folder.
pub fn cache_version() -> String {
    let (version, state) = (env!("CARGO_PKG_VERSION").replace('.', "-"), &COMPILER[..16]);
    format!("{version}-{state}")
}

pub(crate) struct KernelStore {
    store: Store,
    /// Everything that code depends on, apart from the kernel and the session's options.
    maker: String,
}

/// What a kernel's key is made of.
pub(crate) struct KernelIr {
    /// Of its text.
    pub hash: Key,
    /// Those that its locations are in, by their numbers in the text.
    pub files: Vec<FileId>,
}

impl KernelIr {
    /// Options of the kernel are part of its text. It has locations where a launch can tell of one.
    pub fn of(kernel: &Kernel, compiler: &dyn Compiler) -> Self {
        let tells = |kind: &OpKind| kind.effects().contains(Effects::REPORTS);
        let tells_of_places = compiler.reports_accesses()
            || kernel.options.debug
            || octants_passes::may_have_races(kernel)
            || kernel.ops.iter().any(|(_, op)| tells(&op.kind));
        let (text, files) =
            if tells_of_places { text::print_with_files(kernel) } else { (text::print(kernel), Vec::new()) };
        Self { hash: KeyBuilder::new("ir").part(text).finish(), files }
    }

    /// What a kernel is kept under in a session, whose options are the same for all.
    pub fn key_in_process(&self) -> String {
        let mut key = self.hash.to_string();
        for file in &self.files {
            write!(key, " {}", file.0).expect("a String takes all");
        }
        key
    }
}

#[derive(Serialize, Deserialize)]
struct KernelEntry {
    name: String,
    plan: Plan,
    races: Vec<Vec<LocData>>,
    tasks: Vec<TaskEntry>,
}

#[derive(Serialize, Deserialize)]
struct TaskEntry {
    symbol: String,
    lanes: u32,
    shape: LaunchShape,
    code: [u8; Key::BYTES],
}

/// What a process does that wants a kernel.
pub(crate) enum Turn {
    /// It was there, or another process has just made it.
    Found(Box<Code<VersionInfo>>),
    /// Nobody else does.
    Make(Option<Claim>),
}

impl KernelStore {
    /// `maker` says what the backend's code depends on.
    pub fn new(options: CacheOptions, maker: &str) -> Self {
        let CacheOptions { folder, policy, max_bytes, cleaning_factor } = options;
        let namespace = cache_version();
        let store = Store::new(StoreOptions { folder, namespace, policy, max_bytes, cleaning_factor });
        let llvm = octants_codegen::llvm_version();
        Self { store, maker: format!("{COMPILER} {llvm:?} {maker}") }
    }

    pub fn tasks(&self) -> TaskStore<'_> {
        TaskStore { store: &self.store, maker: &self.maker }
    }

    pub fn notices(&self) -> Vec<String> {
        self.store.notices()
    }

    pub fn key(&self, source: &KernelSource, assume: Assumptions) -> Key {
        let Assumptions { noalias, copies, exclusive } = assume;
        KeyBuilder::new("kernel")
            .part(&self.maker)
            .part([source.options.opt_level.min(1), noalias.into(), copies.into(), exclusive.into()])
            .part(source.ir.hash.as_bytes())
            .finish()
    }

    /// The kernel, or the right to make it. Waits while another process makes it.
    pub fn turn(
        &self,
        key: &Key,
        source: &KernelSource,
        assume: Assumptions,
        cancel: &Cancel,
    ) -> Result<Turn, Error> {
        let begin = Instant::now();
        loop {
            if let Some(code) = self.find(key, source, assume) {
                return Ok(Turn::Found(Box::new(code)));
            }
            if let Some(claim) = self.store.claim(key) {
                // Whoever had it may just be done.
                return Ok(match self.find(key, source, assume) {
                    Some(code) if begin.elapsed() > POLL_INTERVAL => Turn::Found(Box::new(code)),
                    _ => Turn::Make(Some(claim)),
                });
            }
            if begin.elapsed() > MAX_WAIT {
                return Ok(Turn::Make(None));
            }
            thread::sleep(POLL_INTERVAL);
            if cancel.is_wanted() {
                return Err(Error::Cancelled);
            }
        }
    }

    fn find(&self, key: &Key, source: &KernelSource, assume: Assumptions) -> Option<Code<VersionInfo>> {
        let begin = Instant::now();
        let KernelEntry { name, mut plan, races, tasks } =
            postcard::from_bytes(&self.store.get(key)?).ok()?;
        let here = |number: FileId| source.ir.files.get(number.0 as usize).copied();
        plan.sites = plan.sites.with_files(here)?;
        let races = with_files(races, here)?;
        let keys: Vec<_> = tasks.iter().map(|task| Key::from_bytes(task.code)).collect();
        let tasks = tasks
            .into_iter()
            .zip(&keys)
            .map(|(task, key)| {
                let TaskEntry { symbol, lanes, shape, .. } = task;
                Some(TaskCode { symbol, bytes: self.store.get(key)?, lanes, shape })
            })
            .collect::<Option<Vec<_>>>()?;
        let statistics = CompileStatistics {
            lower: source.lowering,
            tasks: tasks.len(),
            found_tasks: tasks.len(),
            found: true,
            find: begin.elapsed(),
            code_bytes: tasks.iter().map(|task| task.bytes.len()).sum(),
            ..CompileStatistics::default()
        };
        let info = VersionInfo { assume, races, statistics, passes: Vec::new(), llvm: Vec::new(), keys };
        Some(Code { name, place: source.place(), plan, tasks, info })
    }

    pub fn keep(&self, key: &Key, source: &KernelSource, code: &Code<VersionInfo>) {
        let everywhere = |file: FileId| {
            let number = source.ir.files.iter().position(|&known| known == file)?;
            Some(FileId(number as u32))
        };
        let (plan, info) = (&code.plan, &code.info);
        let sites = plan.sites.clone().with_files(everywhere);
        let races = with_files(info.races.clone(), everywhere);
        let (Some(sites), Some(races)) = (sites, races) else { return };
        if info.keys.len() != code.tasks.len() {
            return;
        }
        let tasks = code.tasks.iter().zip(&info.keys).map(|(task, key)| TaskEntry {
            symbol: task.symbol.clone(),
            lanes: task.lanes,
            shape: task.shape,
            code: *key.as_bytes(),
        });
        let entry = KernelEntry {
            name: code.name.clone(),
            plan: Plan { sites, ..plan.clone() },
            races,
            tasks: tasks.collect(),
        };
        if let Ok(bytes) = postcard::to_stdvec(&entry) {
            self.store.put(key, &bytes);
        }
    }
}

fn with_files(
    mut races: Vec<Vec<LocData>>,
    number: impl Fn(FileId) -> Option<FileId>,
) -> Option<Vec<Vec<LocData>>> {
    for span in races.iter_mut().flatten().filter_map(|place| place.span.as_mut()) {
        span.file = number(span.file)?;
    }
    Some(races)
}
