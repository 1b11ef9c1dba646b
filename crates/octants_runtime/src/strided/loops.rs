//! The loops of a copy, with its direction known.

use super::{Direction, Stride};

/// Both sides of a copy as they lie in the host's memory.
#[derive(Clone, Copy)]
pub(super) struct Pointers {
    pub from: *const u8,
    pub to: *mut u8,
}

/// How many times, and how far it moves on each side, in bytes.
#[derive(Clone, Copy)]
pub(super) struct Loop {
    pub count: usize,
    pub from: usize,
    pub to: usize,
}

impl Loop {
    pub fn new(one: &Stride, direction: Direction) -> Self {
        match direction {
            Direction::ToHost => Self { count: one.count, from: one.device, to: one.host },
            Direction::ToDevice => Self { count: one.count, from: one.host, to: one.device },
        }
    }

    /// # Safety
    /// `times` is at most the count.
    pub unsafe fn advanced(self, pointers: Pointers, times: usize) -> Pointers {
        // SAFETY: both ends stay inside their span.
        unsafe {
            Pointers { from: pointers.from.add(self.from * times), to: pointers.to.add(self.to * times) }
        }
    }
}

/// The loops that move least where it is read, and where it is written; they may be the same.
pub(super) fn innermost(loops: &[Loop]) -> Option<(usize, usize)> {
    let along = |stride: fn(&Loop) -> usize| (0..loops.len()).min_by_key(|&n| stride(&loops[n]));
    along(|one| one.from).zip(along(|one| one.to))
}

/// # Safety
/// Both sides have the span of the loops around what `inside` copies.
pub(super) unsafe fn nest(loops: &[Loop], pointers: Pointers, inside: &mut dyn FnMut(Pointers)) {
    let Some((&outer, inner)) = loops.split_first() else { return inside(pointers) };
    for n in 0..outer.count {
        // SAFETY: `n` is below the count.
        unsafe { nest(inner, outer.advanced(pointers, n), inside) };
    }
}
