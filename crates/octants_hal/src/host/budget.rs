//! How much memory arrays, fields and pools of a process may still be given.
//!
//! The system hands out address space generously and ends the process when the pages are touched and there are none. So memory is *granted* here
//! before it is used, while an error can still be said. What can be granted is what the system has left, less what was granted and has not been
//! touched yet. That is measured now and then; in between, every grant takes from what was found, and every release adds to it. Touching
//! memory that was granted changes nothing: the system has as much less left as there is less to come.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use super::available;

/// Granted memory is measured again when so much of what was found is gone: a sixteenth. Other processes take and give back memory, too.
const DRIFT_SHARE: u64 = 16;

/// After a look at all mappings nobody looks again for so long. Many threads may ask for the last memory at the same time, and looking at all mappings of a process takes
/// some milliseconds.
const FRESH: Duration = Duration::from_millis(10);

/// What is never granted of what is left: a share, and some bytes. Chosen, not measured: a machine of 16 GiB keeps half a gigabyte; the last pages of
/// a pool, tables of pages and Python need some.
const RESERVE_SHARE: u64 = 32;
const RESERVE_BYTES: u64 = 32 << 20;

/// The variable of the environment that bounds what is granted in all, in bytes.
const LIMIT_VARIABLE: &str = "OCTANTS_MEMORY_LIMIT";

/// What the system says.
struct System {
    left: fn() -> u64,
    resident: fn(&[Range<u64>]) -> Option<Vec<u64>>,
}

/// Grants memory.
pub struct Budget {
    system: System,
    limit: u64,
    grants: Mutex<Grants>,
}

#[derive(Default)]
struct Grants {
    /// Mappings by where they begin, with what was granted of them.
    mappings: BTreeMap<u64, Mapping>,
    /// What was granted in all.
    total: u64,
    /// What may still be granted: found by the last measurement, and now.
    found: u64,
    left: u64,
    /// When mappings were last looked at.
    looked: Option<Instant>,
}

struct Mapping {
    end: u64,
    granted: u64,
}

impl Budget {
    /// The one that everybody in this process shares.
    pub fn of_process() -> Arc<Self> {
        static BUDGET: OnceLock<Arc<Budget>> = OnceLock::new();
        Arc::clone(BUDGET.get_or_init(|| {
            let limit = std::env::var(LIMIT_VARIABLE).ok().and_then(|bytes| bytes.trim().parse().ok());
            let system = System { left: available::left, resident: available::resident };
            Arc::new(Self { system, limit: limit.unwrap_or(u64::MAX), grants: Mutex::default() })
        }))
    }

    fn grants(&self) -> MutexGuard<'_, Grants> {
        self.grants.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How much may ever be granted.
    pub fn most(&self) -> u64 {
        available::machine().min(self.limit)
    }

    /// Grants memory that is touched soon; whether there is so much.
    #[must_use]
    pub fn grant(&self, bytes: u64) -> bool {
        self.take(&mut self.grants(), bytes)
    }

    /// Memory that was granted is free again.
    pub fn release(&self, bytes: u64) {
        self.grants().give(bytes);
    }

    /// From now on a mapping is looked at when it matters what has been touched of it; so much of it was granted.
    pub fn watch(&self, mapping: Range<u64>, granted: u64) {
        self.grants().mappings.insert(mapping.start, Mapping { end: mapping.end, granted });
    }

    /// Grants more memory of the watched mapping that an address lies in; whether there is so much. What is not watched was granted whole.
    #[must_use]
    pub fn grant_of(&self, address: u64, bytes: u64) -> bool {
        let mut grants = self.grants();
        if grants.mapping_at(address).is_none() {
            return true;
        }
        let granted = self.take(&mut grants, bytes);
        if let (true, Some(mapping)) = (granted, grants.mapping_at(address)) {
            mapping.granted += bytes;
        }
        granted
    }

    /// A mapping is about to go; gives what was granted of it, which is to be released afterwards.
    #[must_use]
    pub fn unwatch(&self, start: u64) -> u64 {
        self.grants().mappings.remove(&start).map_or(0, |mapping| mapping.granted)
    }

    /// What was granted and not given back.
    #[cfg(test)]
    pub(super) fn granted(&self) -> u64 {
        self.grants().total
    }

    fn take(&self, grants: &mut Grants, bytes: u64) -> bool {
        if grants.is_stale(bytes) && grants.looked.is_none_or(|at| at.elapsed() > FRESH) {
            self.measure(grants, bytes);
        }
        let Some(left) = grants.left.checked_sub(bytes) else { return false };
        grants.left = left;
        grants.total += bytes;
        true
    }

    /// Finds out how much may be granted.
    fn measure(&self, grants: &mut Grants, wanted: u64) {
        let left = (self.system.left)();
        let left = left.saturating_sub((left / RESERVE_SHARE).saturating_add(RESERVE_BYTES));
        // Looking at mappings takes long. If there is plenty even if none of them has been touched, there is no need to.
        let mut found = left.saturating_sub(grants.total);
        grants.looked = None;
        if found / DRIFT_SHARE < wanted {
            found = left.saturating_sub(self.untouched(grants));
            grants.looked = Some(Instant::now());
        }
        grants.found = found.min(self.limit.saturating_sub(grants.total));
        grants.left = grants.found;
    }

    /// How much was granted and has not been touched yet. Where the system does not say, all was.
    fn untouched(&self, grants: &Grants) -> u64 {
        let ranges: Vec<_> = grants.mappings.iter().map(|(&start, mapping)| start..mapping.end).collect();
        let Some(resident) = (self.system.resident)(&ranges) else { return 0 };
        let each = grants.mappings.values().zip(resident);
        each.map(|(mapping, resident)| mapping.granted.saturating_sub(resident)).sum()
    }
}

impl Grants {
    /// Whether too much happened since the last measurement to grant so many bytes by it.
    fn is_stale(&self, bytes: u64) -> bool {
        let least = self.found - self.found / DRIFT_SHARE;
        self.left.checked_sub(bytes).is_none_or(|left| left < least)
    }

    fn give(&mut self, bytes: u64) {
        self.total -= bytes;
        self.left = self.left.saturating_add(bytes);
    }

    fn mapping_at(&mut self, address: u64) -> Option<&mut Mapping> {
        let (_, mapping) = self.mappings.range_mut(..=address).next_back()?;
        (address < mapping.end).then_some(mapping)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use std::cell::Cell;

    thread_local! {
        /// What the system of a test has left, whether its mappings have memory, and how often it was asked about those.
        static LEFT: Cell<u64> = const { Cell::new(0) };
        static TOUCHED: Cell<bool> = const { Cell::new(false) };
        static LOOKS: Cell<u32> = const { Cell::new(0) };
    }

    /// A system with so many bytes that may be granted.
    pub fn budget_of(bytes: u64) -> Budget {
        set_left(bytes);
        TOUCHED.set(false);
        LOOKS.set(0);
        let resident = |ranges: &[Range<u64>]| {
            LOOKS.set(LOOKS.get() + 1);
            let each = |range: &Range<u64>| if TOUCHED.get() { range.end - range.start } else { 0 };
            Some(ranges.iter().map(each).collect())
        };
        let system = System { left: || LEFT.get(), resident };
        Budget { system, limit: u64::MAX, grants: Mutex::default() }
    }

    fn set_left(bytes: u64) {
        LEFT.set((bytes + RESERVE_BYTES) * RESERVE_SHARE / (RESERVE_SHARE - 1) + 1);
    }

    fn forget_measurement(budget: &Budget) {
        budget.grants().looked = None;
    }

    #[test]
    fn what_is_granted_and_untouched_counts() {
        let gigabyte = 1 << 30;
        let budget = budget_of(10 * gigabyte);
        budget.watch(gigabyte..100 * gigabyte, 0);
        budget.watch(200 * gigabyte..300 * gigabyte, 0);
        assert!(budget.grant_of(2 * gigabyte, 6 * gigabyte));
        assert!(!budget.grant_of(200 * gigabyte, 5 * gigabyte), "the first may still touch its six");
        assert!(budget.grant_of(200 * gigabyte, 4 * gigabyte));
        // All is touched: the system has nothing left, and nothing is to come.
        set_left(0);
        TOUCHED.set(true);
        forget_measurement(&budget);
        assert!(!budget.grant(gigabyte / 4));
        // Somebody else has given memory back.
        set_left(gigabyte);
        forget_measurement(&budget);
        assert!(budget.grant(gigabyte / 2));
        let granted = budget.unwatch(gigabyte);
        assert_eq!(granted, 6 * gigabyte);
        budget.release(granted);
        assert!(budget.grant(6 * gigabyte));
        assert_eq!(budget.granted(), 10 * gigabyte + gigabyte / 2);
    }

    #[test]
    fn mappings_are_looked_at_when_memory_is_short_alone() {
        let budget = budget_of(1 << 40);
        budget.watch(0..1 << 45, 0);
        for _ in 0..100 {
            assert!(budget.grant_of(5, 1 << 20));
        }
        assert_eq!(LOOKS.get(), 0);
        forget_measurement(&budget);
        assert!(budget.grant_of(5, 1 << 39));
        assert_eq!(LOOKS.get(), 1);
        // A refusal stands for a moment: nobody looks again for each of a million cells.
        for _ in 0..100 {
            assert!(!budget.grant_of(5, 1 << 40));
        }
        assert!(LOOKS.get() <= 2);
    }

    #[test]
    fn what_is_not_watched_was_granted() {
        let budget = budget_of(1000);
        budget.watch(100..200, 0);
        assert!(budget.grant_of(50, 1 << 40) && budget.grant_of(200, 1 << 40));
        assert!(!budget.grant_of(199, 1 << 40));
        assert_eq!(budget.granted(), 0);
    }

    #[test]
    fn a_limit_bounds_all_grants() {
        let budget = Budget { limit: 1000, ..budget_of(1 << 40) };
        assert!(budget.grant(700));
        assert!(!budget.grant(400));
        budget.release(200);
        assert!(budget.grant(400));
    }
}
