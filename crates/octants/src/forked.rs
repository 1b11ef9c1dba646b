//! Forks of the process by the host language. What a child may use is written in [`octants_hal::forked`].

use std::time::{Duration, Instant};

use octants_codegen::{compiling_threads, forget_compilations_of_parent};
pub use octants_hal::forked::{UnderWay, begin_fork, end_fork, generation, is_cut_off};
use octants_hal::forked::{cut_off, others_are_under_way, set_unquiet, wait_for_quiet};

use crate::session::Session;

/// How long a fork waits for what is under way in other threads. Chosen: most kernels are over and compiled by then, and a program that forks beside a
/// long one hardly notices.
const MAX_WAIT: Duration = Duration::from_secs(1);

/// A fork that was announced and is about to happen.
pub struct ComingFork {
    deadline: Instant,
    session: Option<Session>,
}

impl ComingFork {
    /// Announces a fork of a process with this session. [`end_fork`] or [`in_child`] ends it.
    pub fn announce(session: Option<Session>) -> Self {
        begin_fork();
        Self { deadline: Instant::now() + MAX_WAIT, session }
    }

    fn is_quiet(&self) -> bool {
        !others_are_under_way()
            && compiling_threads() == 0
            && self.session.as_ref().is_none_or(Session::is_at_rest)
    }

    /// Waits for other threads, for a while. To be called where they can go on.
    pub fn wait(&self) {
        wait_for_quiet(self.deadline, || self.is_quiet());
    }

    /// Whether the fork need not wait any more, since nothing is under way or it has waited long enough. To be called where no other thread can begin anything, until
    /// the fork has happened.
    pub fn is_due(&self) -> bool {
        let quiet = self.is_quiet();
        set_unquiet(!quiet);
        quiet || Instant::now() >= self.deadline
    }
}

/// To be called first in a forked child.
pub fn in_child() {
    if compiling_threads() > 0 {
        cut_off();
    }
    forget_compilations_of_parent();
    set_unquiet(false);
}
