//! Random numbers: Philox-4x32 with ten rounds (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3"), keyed by the
//! launch's key. The counter says where in the program a number is drawn, so numbers do not depend on who runs what when.
//!
//! A *stream* is one iteration of a parallel loop, all code of a fork's branch outside of loops, or all other code. It draws words of
//! 32 bits: word `w` is entry `w mod 4` of the block with the counter `(w div 4, place, iteration low, iteration high)`. Parallel
//! loops and branches are places; they count from 1 in the order of the text, a branch before the loops in it, and 0 is what stands
//! outside. Iterations count from 0 in row-major order; a branch has one. A number of 64 bits takes two words, the first of them even;
//! every other number takes one.

use octants_ir::{Const, Kernel, Op, OpKind, Region, Scalar};

use crate::datum::Datum;
use crate::machine::Machine;

/// Where numbers are drawn from, and how many words were.
#[derive(Clone, Copy, Default)]
pub struct Stream {
    task: u32,
    iteration: u64,
    words: u32,
}

impl Stream {
    /// Of an iteration of a parallel loop.
    pub fn new(task: u32, iteration: u64) -> Self {
        Self { task, iteration, words: 0 }
    }
}

/// One block: four words for a counter.
pub fn philox([mut c0, mut c1, mut c2, mut c3]: [u32; 4], key: u64) -> [u32; 4] {
    const FACTORS: [u64; 2] = [0xD251_1F53, 0xCD9E_8D57];
    const STEPS: [u32; 2] = [0x9E37_79B9, 0xBB67_AE85];
    let (mut k0, mut k1) = (key as u32, (key >> 32) as u32);
    for _ in 0..10 {
        let (a, b) = (FACTORS[0] * u64::from(c0), FACTORS[1] * u64::from(c2));
        let high = |product: u64| (product >> 32) as u32;
        (c0, c1, c2, c3) = (high(b) ^ c1 ^ k0, b as u32, high(a) ^ c3 ^ k1, a as u32);
        (k0, k1) = (k0.wrapping_add(STEPS[0]), k1.wrapping_add(STEPS[1]));
    }
    [c0, c1, c2, c3]
}

/// Where in a kernel numbers are drawn.
#[derive(Clone, Copy, PartialEq)]
enum Place {
    Loop(Op),
    Branch(Region),
}

fn is_loop(kernel: &Kernel, op: Op) -> bool {
    matches!(kernel.ops[op].kind, OpKind::ParallelFor(_))
}

impl Machine<'_> {
    /// The number of a parallel loop among the places that numbers are drawn at.
    pub fn loop_number(&self, task: Op) -> u32 {
        self.place_number(Place::Loop(task))
    }

    /// The number of a fork's branch among the places that numbers are drawn at.
    pub fn branch_number(&self, branch: Region) -> u32 {
        self.place_number(Place::Branch(branch))
    }

    fn place_number(&self, wanted: Place) -> u32 {
        let kernel = self.kernel;
        let mut places = Vec::new();
        let loops_in = |region: Region, places: &mut Vec<Place>| {
            let ops = kernel.regions[region].ops.iter().copied();
            places.extend(ops.filter(|&op| is_loop(kernel, op)).map(Place::Loop));
        };
        for &op in &kernel.regions[kernel.body].ops {
            if is_loop(kernel, op) {
                places.push(Place::Loop(op));
            } else if kernel.ops[op].kind == OpKind::Fork {
                for &branch in &kernel.ops[op].regions {
                    places.push(Place::Branch(branch));
                    loops_in(branch, &mut places);
                }
            }
        }
        places.into_iter().take_while(|&place| place != wanted).count() as u32 + 1
    }

    pub fn random(&mut self, ty: Scalar) -> Datum {
        let bits = if ty.bits() == 64 {
            self.stream.words = self.stream.words.wrapping_add(1) & !1;
            let low = self.random_word();
            u64::from(low) | u64::from(self.random_word()) << 32
        } else {
            self.random_word().into()
        };
        Datum::Scalar(match ty {
            Scalar::F64 => Const::f64((bits >> 12) as f64 * 2_f64.powi(-52)),
            Scalar::F32 => Const::f32((bits >> 8) as f32 * 2_f32.powi(-24)),
            Scalar::F16 => Const::from_f64(ty, (bits >> 21) as f64 * 2_f64.powi(-11)),
            _ => Const::from_bits(ty, bits),
        })
    }

    fn random_word(&mut self) -> u32 {
        let Stream { task, iteration, words } = self.stream;
        self.stream.words = words.wrapping_add(1);
        let counter = [words / 4, task, iteration as u32, (iteration >> 32) as u32];
        philox(counter, self.context.key)[words as usize % 4]
    }
}

#[cfg(test)]
mod tests {
    use super::philox;

    /// The known answers that come with the authors' library.
    #[test]
    fn blocks_are_those_of_the_paper() {
        assert_eq!(philox([0; 4], 0), [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]);
        assert_eq!(philox([u32::MAX; 4], u64::MAX), [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]);
        let digits = [0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344];
        let key = 0x299f_31d0_a409_3822;
        assert_eq!(philox(digits, key), [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1]);
    }
}
