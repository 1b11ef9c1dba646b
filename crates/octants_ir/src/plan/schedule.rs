//! In which order the tasks of a plan run, and how much the branches of forks have to do.

use serde::{Deserialize, Serialize};

use super::{Bound, Plan};

/// A tree over tasks. What stands in a branch is run by that branch, so nothing can lose its place.
///
/// Later kinds of nodes are leaves or wrap a tree, too: a clear of memory, the generation of a list of active cells, an allocation that
/// is sized at launch; a part that is repeated while a flag holds.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Schedule {
    /// One task, by its number in [`Plan::tasks`](super::Plan::tasks).
    Task(usize),
    /// One after another.
    Seq(Vec<Schedule>),
    /// All begin when what came before is over, in any order or at the same time; what comes after waits for all of them.
    Fork(Vec<Branch>),
}

/// One branch of a fork.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Branch {
    pub schedule: Schedule,
    /// How much its tasks do, one after another; `None` if some task may run for any time, as far as a launch can tell.
    pub work: Option<Vec<Work>>,
}

/// How many instructions a task runs, in what a launch knows.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Work {
    /// The points that threads share, by axis; none of a serial task.
    pub axes: Vec<(Bound, Bound)>,
    /// At most so many threads.
    pub max_threads: Option<u32>,
    /// Instructions of one point, with the loops around them: each runs as often as the product of its loops' trips.
    pub instructions: Vec<(u32, Vec<(Bound, Bound)>)>,
}

impl Work {
    /// Roughly how many instructions the busiest of so many threads runs, and all of them together. No bound needs a temporary.
    ///
    /// # Panics
    /// If the block is smaller than the plan's layout.
    pub fn instructions(&self, plan: &Plan, args: &[u8], threads: u64) -> (u64, u64) {
        let product = |axes: &[(Bound, Bound)]| {
            axes.iter().fold(1_u64, |product, (lo, hi)| {
                let trips = hi.evaluate(plan, args, &[]).saturating_sub(lo.evaluate(plan, args, &[]));
                product.saturating_mul(u64::try_from(trips).unwrap_or(0))
            })
        };
        let each = self.instructions.iter().fold(0_u64, |sum, (count, loops)| {
            sum.saturating_add(product(loops).saturating_mul((*count).into()))
        });
        let points = product(&self.axes);
        let threads = self.max_threads.map_or(threads, |most| threads.min(most.into())).max(1);
        (points.div_ceil(threads).saturating_mul(each), points.saturating_mul(each))
    }
}

impl Schedule {
    /// So many tasks, one after another.
    pub fn in_order(tasks: usize) -> Self {
        Self::Seq((0..tasks).map(Self::Task).collect())
    }

    /// The tasks' numbers, in the order in which one thread would run them.
    pub fn tasks(&self) -> Vec<usize> {
        match self {
            Self::Task(task) => vec![*task],
            Self::Seq(nodes) => nodes.iter().flat_map(Self::tasks).collect(),
            Self::Fork(branches) => branches.iter().flat_map(|branch| branch.schedule.tasks()).collect(),
        }
    }

    /// How many branches run at the same time, at most; 1 without a fork.
    pub fn width(&self) -> usize {
        match self {
            Self::Task(_) => 1,
            Self::Seq(nodes) => nodes.iter().map(Self::width).max().unwrap_or(1),
            Self::Fork(branches) => branches.iter().map(|branch| branch.schedule.width()).sum(),
        }
    }

    /// Whether nothing is run.
    pub fn is_empty(&self) -> bool {
        match self {
            Self::Task(_) => false,
            Self::Seq(nodes) => nodes.iter().all(Self::is_empty),
            Self::Fork(branches) => branches.iter().all(|branch| branch.schedule.is_empty()),
        }
    }
}
