//! Target machines kept for the next compilation.
//!
//! Making one means reading the processor's long list of features and building LLVM's tables of legal operations:
//! nearly a millisecond. They hold nothing of a module or a context, so one that is done serves again. This is a cache
//! that nobody can observe but by the clock.

use std::ops::Deref;
use std::sync::Mutex;

use crate::handles::TargetMachine;
use crate::pipeline::OptLevel;
use crate::target::Target;

/// Machines beyond this many are not kept. Chosen, not measured: a kernel's tasks are compiled on as many threads as there are processors.
const MAX_IDLE_MACHINES: usize = 16;

struct IdleMachine {
    target: Target,
    level: OptLevel,
    machine: TargetMachine,
}

static IDLE: Mutex<Vec<IdleMachine>> = Mutex::new(Vec::new());

/// A machine that is given back when dropped.
pub(crate) struct Lease(Option<IdleMachine>);

impl Lease {
    pub(crate) fn take(target: &Target, level: OptLevel) -> Result<Lease, String> {
        // Never waits: after a fork another thread of the parent may hold the lock for ever.
        if let Ok(mut idle) = IDLE.try_lock()
            && let Some(index) = idle.iter().position(|one| one.level == level && one.target == *target)
        {
            return Ok(Lease(Some(idle.swap_remove(index))));
        }
        let machine = TargetMachine::new(target, level)?;
        Ok(Lease(Some(IdleMachine { target: target.clone(), level, machine })))
    }
}

impl Deref for Lease {
    type Target = TargetMachine;

    fn deref(&self) -> &TargetMachine {
        &self.0.as_ref().expect("present until dropped").machine
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if let (Some(done), Ok(mut idle)) = (self.0.take(), IDLE.try_lock())
            && idle.len() < MAX_IDLE_MACHINES
        {
            idle.push(done);
        }
    }
}
