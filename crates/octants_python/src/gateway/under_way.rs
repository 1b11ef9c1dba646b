//! Work without the interpreter's lock, and forks of the process.
//!
//! Whoever forks has the interpreter's lock. So what is under way in other threads then is what runs without it, which begins here alone, and what may be
//! interrupted by other threads of Python's while it holds locks of ours: lowering.

use octants::forked::UnderWay;
use pyo3::prelude::*;

pub trait Outside {
    /// Does something without the interpreter's lock. A fork is not told of what [`Python::detach`] runs, hence this.
    fn outside<T: Send>(self, work: impl FnOnce() -> T + Send) -> T;
}

impl Outside for Python<'_> {
    #[inline]
    fn outside<T: Send>(self, work: impl FnOnce() -> T + Send) -> T {
        #[expect(clippy::disallowed_methods)]
        self.detach(|| {
            let _under_way = UnderWay::begin();
            work()
        })
    }
}
