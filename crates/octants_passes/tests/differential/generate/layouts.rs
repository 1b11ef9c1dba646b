//! Layouts of fields, made at random: each axis cut into digits, in any order, with room between the cells.

use octants_ir::{Digit, Layout, Level, NodeKind};

use super::EXTENT;
use crate::random::Random;

/// For elements of so many bytes; every stride is a multiple of them.
pub fn layout(random: &mut Random, rank: usize, bytes: u32) -> Layout {
    const CUTS: [&[u32]; 5] = [&[8], &[8], &[2, 4], &[4, 2], &[2, 2, 2]];
    // The innermost digits of each axis that are not placed yet.
    let mut rest: Vec<Vec<u32>> = (0..rank).map(|_| random.pick(&CUTS).to_vec()).collect();
    let mut below = vec![1; rank];
    let mut cell = u64::from(bytes);
    let mut digits = Vec::new();
    while rest.iter().any(|axis| !axis.is_empty()) {
        let axis = random.below(rank);
        let Some(extent) = rest[axis].pop() else { continue };
        cell += u64::from(bytes) * random.below(2) as u64;
        digits.push(Digit { axis: axis as u8, below: below[axis], extent, stride: cell });
        below[axis] *= extent;
        cell *= u64::from(extent);
    }
    digits.reverse();
    let origin = (0..rank).map(|_| random.below(5) as i32 - 2).collect();
    let levels = vec![Level { kind: NodeKind::Dense, digits }];
    Layout { shape: vec![EXTENT as u32; rank], origin, levels }.normalised()
}
