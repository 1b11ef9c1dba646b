//! In which order the tasks of a plan run.

/// A tree over tasks. What stands in a branch is run by that branch, so nothing can lose its place.
///
/// Later kinds of nodes are leaves or wrap a tree, too: a clear of memory, the generation of a list of active cells, an allocation that
/// is sized at launch; a part that is repeated while a flag holds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Schedule {
    /// One task, by its number in [`Plan::tasks`](super::Plan::tasks).
    Task(usize),
    /// One after another.
    Seq(Vec<Schedule>),
    /// All begin when what came before is over, in any order or at the same time; what comes after waits for all of them.
    Fork(Vec<Schedule>),
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
            Self::Seq(nodes) | Self::Fork(nodes) => nodes.iter().flat_map(Self::tasks).collect(),
        }
    }

    /// Whether nothing is run.
    pub fn is_empty(&self) -> bool {
        match self {
            Self::Task(_) => false,
            Self::Seq(nodes) | Self::Fork(nodes) => nodes.iter().all(Self::is_empty),
        }
    }
}
