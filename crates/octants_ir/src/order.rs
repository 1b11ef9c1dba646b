//! How the elements of an array argument lie in memory: the order of its axes, and what lies between elements.

use std::fmt::{Debug, Display, Formatter, Result};

use serde::{Deserialize, Serialize};

/// A permutation of an array's axes, from the slowest to the fastest. Axes beyond the first sixteen keep their places.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Order {
    /// Four bits for each place, the slowest first: which axis stands there. Places beyond the rank hold themselves, so that equal orders
    /// are equal data.
    places: u64,
}

/// How many places an order says something about.
const PLACES: usize = 16;

impl Order {
    /// The last index runs fastest, as in C.
    pub const ROW_MAJOR: Self = Self { places: 0xFEDC_BA98_7654_3210 };

    /// The order with these axes from the slowest to the fastest; `None` if they are no permutation, or too many.
    pub fn new(axes: &[usize]) -> Option<Self> {
        let mut seen = 0_u32;
        let mut order = Self::ROW_MAJOR;
        for (place, &axis) in axes.iter().enumerate() {
            if axes.len() > PLACES || axis >= axes.len() || seen & (1 << axis) != 0 {
                return None;
            }
            seen |= 1 << axis;
            order.places = order.places & !(0xF << (4 * place)) | (axis as u64) << (4 * place);
        }
        Some(order)
    }

    /// The axes of an array of this rank, from the slowest to the fastest.
    pub fn axes(self, rank: usize) -> impl Iterator<Item = usize> {
        (0..rank).map(move |place| self.axis(place))
    }

    fn axis(self, place: usize) -> usize {
        if place < PLACES { (self.places >> (4 * place) & 0xF) as usize } else { place }
    }

    /// Whether it permutes only the axes of an array of this rank.
    pub fn fits(self, rank: usize) -> bool {
        (rank..PLACES).all(|place| self.axis(place) == place)
    }
}

/// The axes that it permutes, from the slowest to the fastest.
impl Display for Order {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let rank = (0..PLACES).rev().find(|&place| self.axis(place) != place).map_or(0, |place| place + 1);
        for (place, axis) in self.axes(rank).enumerate() {
            write!(f, "{}{axis}", if place == 0 { "" } else { " " })?;
        }
        Ok(())
    }
}

impl Debug for Order {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        write!(f, "Order({self})")
    }
}

/// What lies between the elements of an array argument.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Spacing {
    /// Nothing: the extents say where elements lie.
    Dense,
    /// Nothing along the fastest axis; the strides of the others are known at launch.
    Rows,
    /// The strides of all axes are known at launch. They may be negative, and zero.
    Strided,
}

impl Spacing {
    pub const ALL: &'static [Self] = &[Self::Dense, Self::Rows, Self::Strided];

    pub fn name(self) -> &'static str {
        match self {
            Self::Dense => "dense",
            Self::Rows => "rows",
            Self::Strided => "strided",
        }
    }

    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|spacing| spacing.name() == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permutations_and_nothing_else_are_orders() {
        let order = Order::new(&[2, 0, 1]).unwrap();
        assert_eq!(order.axes(3).collect::<Vec<_>>(), [2, 0, 1]);
        assert_eq!((order.fits(3), order.fits(2)), (true, false));
        assert_eq!(Order::new(&[0, 1, 2]), Some(Order::ROW_MAJOR));
        for wrong in [&[0, 0][..], &[1, 2], &[3]] {
            assert_eq!(Order::new(wrong), None);
        }
        assert_eq!(Order::new(&(0..17).collect::<Vec<_>>()), None);
        assert_eq!(order.to_string(), "2 0 1");
        assert_eq!(Order::new(&[1, 0, 2]).unwrap().to_string(), "1 0");
    }
}
