//! What an op may do besides giving a value.

bitflags::bitflags! {
    /// What an op itself may do besides giving a value; what its regions do comes on top.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub struct Effects: u16 {
        /// Depends on what was written before: may not be moved over a write, nor merged with an equal op.
        const READS = 1;
        /// Writes memory, fails, or is otherwise seen from outside: stays where it is, and runs as often as the program says.
        const WRITES = 1 << 1;
        /// Threads of a group run it together, and each sees what others do: it may not come under a condition that they differ in, nor leave
        /// one, nor run for another set of iterations.
        const CONVERGENT = 1 << 2;
        /// What stands behind it may not run: it ends its region, or the thread.
        const ENDS = 1 << 3;
        /// May go on only after another thread did something, or see how far others have come: what this thread does before it is not done after it.
        const MAY_WAIT = 1 << 4;
        /// Gives another value each time it runs, though operands and memory are the same.
        const NONDETERMINISTIC = 1 << 5;
        /// Its value follows from the launch's key: within a launch it is what it is, and the next launch gives another.
        const KEY = 1 << 6;
        /// Writes text.
        const OUTPUT = 1 << 7;
        /// Has a number in the table of sites, by which it reports to the host.
        const REPORTS = 1 << 8;
        /// May run for any time; how long is not known before it is over.
        const UNBOUNDED = 1 << 9;
    }
}

impl Effects {
    /// Whether an op with these may be moved, merged with an equal one, repeated, run where it would not have run, or removed when unused.
    pub const fn is_pure(self) -> bool {
        self.difference(Self::KEY).is_empty()
    }

    /// Whether an op with these runs where the program has it, as often, and by the same threads, whether its results are used or not.
    pub const fn stays(self) -> bool {
        self.intersects(Self::WRITES.union(Self::CONVERGENT))
    }

    /// Whether an op with these may give another value in another launch that has the same arguments and memory.
    pub const fn differs_between_launches(self) -> bool {
        self.intersects(Self::KEY.union(Self::NONDETERMINISTIC))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> impl Iterator<Item = Effects> {
        (0..=Effects::all().bits()).filter_map(Effects::from_bits)
    }

    #[test]
    fn whatever_else_a_convergent_op_does_it_is_not_moved_repeated_or_dropped() {
        for effects in all().filter(|effects| effects.contains(Effects::CONVERGENT)) {
            assert!(effects.stays() && !effects.is_pure(), "{effects:?}");
        }
    }

    #[test]
    fn what_stays_is_not_pure_and_what_differs_by_the_launch_may_be() {
        assert!(all().all(|effects| !(effects.stays() && effects.is_pure())));
        assert!(Effects::KEY.is_pure() && Effects::KEY.differs_between_launches());
        assert!(!Effects::NONDETERMINISTIC.is_pure());
    }
}
