//! Systems of linear equations and inequalities over integers, and whether one surely has no solution.
//!
//! Law: **what [`System::is_empty`] says has no solution in the integers has none.** The converse does not hold: what takes too many steps, or needs
//! more than projections with rounded bounds, counts as solvable.
//!
//! Equations are solved for a variable each, by the steps of Euclid's algorithm where no coefficient is 1. Of what is left, variables are eliminated one after the
//! other: each lower bound is at most each upper bound. Bounds are divided by what their coefficients have in common, and rounded.

use std::collections::BTreeMap;

/// Inequalities that are kept at most. Chosen, not measured: what loops and indices need is some dozens.
const MOST_ROWS: usize = 600;
/// Steps of Euclid's algorithm at most.
const MOST_STEPS: usize = 200;

/// `constant` plus, for each variable, a coefficient times it.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Linear {
    pub constant: i128,
    /// Ascending, each variable once, with coefficients that are not zero.
    terms: Vec<(u32, i128)>,
}

impl Linear {
    pub fn constant(constant: i128) -> Self {
        Self { constant, terms: Vec::new() }
    }

    pub fn variable(variable: u32) -> Self {
        Self { constant: 0, terms: vec![(variable, 1)] }
    }

    pub fn terms(&self) -> &[(u32, i128)] {
        &self.terms
    }

    /// The constant, if nothing else is in it.
    pub fn as_constant(&self) -> Option<i128> {
        self.terms.is_empty().then_some(self.constant)
    }

    /// `self + factor · other`; `None` if that takes numbers that are too large.
    pub fn plus(&self, factor: i128, other: &Self) -> Option<Self> {
        let product = factor.checked_mul(other.constant)?;
        let mut sum = Self::constant(self.constant.checked_add(product)?);
        let (mut one, mut two) = (self.terms.iter().peekable(), other.terms.iter().peekable());
        loop {
            let of_one = one.peek().map(|&&(variable, _)| variable);
            let of_two = two.peek().map(|&&(variable, _)| variable);
            let Some(variable) = of_one.into_iter().chain(of_two).min() else { return Some(sum) };
            let mut coefficient = 0;
            if of_one == Some(variable) {
                coefficient = one.next()?.1;
            }
            if of_two == Some(variable) {
                coefficient = coefficient.checked_add(factor.checked_mul(two.next()?.1)?)?;
            }
            if coefficient != 0 {
                sum.terms.push((variable, coefficient));
            }
        }
    }

    pub fn coefficient(&self, variable: u32) -> i128 {
        let found = self.terms.binary_search_by_key(&variable, |&(variable, _)| variable);
        found.map_or(0, |at| self.terms[at].1)
    }

    /// What the coefficients have in common; 0 if there are none.
    fn divisor(&self) -> i128 {
        self.terms.iter().fold(0, |divisor, &(_, coefficient)| gcd(divisor, coefficient))
    }

    fn without(&self, variable: u32) -> Self {
        let terms = self.terms.iter().copied().filter(|&(other, _)| other != variable).collect();
        Self { constant: self.constant, terms }
    }
}

fn gcd(mut a: i128, mut b: i128) -> i128 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a.abs()
}

/// Sums that are zero, and sums that are not negative.
#[derive(Clone, Debug, Default)]
pub struct System {
    variables: u32,
    zero: Vec<Linear>,
    not_negative: Vec<Linear>,
}

impl System {
    /// A new integer, of which nothing is known.
    pub fn variable(&mut self) -> u32 {
        self.variables += 1;
        self.variables - 1
    }

    pub fn require_zero(&mut self, sum: Linear) {
        self.zero.push(sum);
    }

    pub fn require_not_negative(&mut self, sum: Linear) {
        self.not_negative.push(sum);
    }

    /// Whether surely no integers are a solution.
    pub fn is_empty(&self) -> bool {
        Elimination { system: self.clone(), steps: 0 }.run() == Some(true)
    }
}

struct Elimination {
    system: System,
    steps: usize,
}

impl Elimination {
    /// `None` if it takes too many steps, or numbers that are too large.
    fn run(mut self) -> Option<bool> {
        loop {
            if self.solve_equations()? {
                return Some(true);
            }
            match self.tighten() {
                Tightened::Empty => return Some(true),
                Tightened::Equations => continue,
                Tightened::Done => {}
            }
            let Some(variable) = self.cheapest() else { return Some(false) };
            self.eliminate(variable)?;
        }
    }

    /// Uses up all equations; whether one has no solution.
    fn solve_equations(&mut self) -> Option<bool> {
        while let Some(sum) = self.system.zero.pop() {
            let divisor = sum.divisor();
            if divisor == 0 {
                if sum.constant != 0 {
                    return Some(true);
                }
                continue;
            }
            if sum.constant % divisor != 0 {
                return Some(true);
            }
            let terms = sum.terms.iter().map(|&(variable, coefficient)| (variable, coefficient / divisor));
            let sum = Linear { constant: sum.constant / divisor, terms: terms.collect() };
            self.steps += 1;
            if self.steps > MOST_STEPS {
                return None;
            }
            let &(variable, coefficient) =
                sum.terms.iter().min_by_key(|(_, coefficient)| coefficient.unsigned_abs())?;
            if coefficient.abs() == 1 {
                let value = Linear::default().plus(-coefficient, &sum.without(variable))?;
                self.substitute(variable, &value)?;
                continue;
            }
            // The variable is another one minus the whole parts of all other terms divided by its coefficient: what remains has smaller coefficients.
            let other = self.system.variable();
            let mut value = Linear::variable(other);
            value.constant = -sum.constant.div_euclid(coefficient);
            for &(term, factor) in sum.terms.iter().filter(|&&(term, _)| term != variable) {
                value = value.plus(-factor.div_euclid(coefficient), &Linear::variable(term))?;
            }
            let rest = sum.without(variable).plus(coefficient, &value)?;
            self.substitute(variable, &value)?;
            self.system.zero.push(rest);
        }
        Some(false)
    }

    fn substitute(&mut self, variable: u32, value: &Linear) -> Option<()> {
        let System { zero, not_negative, .. } = &mut self.system;
        for sum in zero.iter_mut().chain(not_negative) {
            let coefficient = sum.coefficient(variable);
            if coefficient != 0 {
                *sum = sum.without(variable).plus(coefficient, value)?;
            }
        }
        Some(())
    }

    /// Divides and rounds bounds, and keeps the tightest of those that bound the same. Two that meet are an equation.
    fn tighten(&mut self) -> Tightened {
        let mut tightest: BTreeMap<Vec<(u32, i128)>, i128> = BTreeMap::new();
        for sum in std::mem::take(&mut self.system.not_negative) {
            let divisor = sum.divisor();
            if divisor == 0 {
                if sum.constant < 0 {
                    return Tightened::Empty;
                }
                continue;
            }
            let terms: Vec<_> =
                sum.terms.iter().map(|&(variable, coefficient)| (variable, coefficient / divisor)).collect();
            let constant = sum.constant.div_euclid(divisor);
            tightest.entry(terms).and_modify(|known| *known = constant.min(*known)).or_insert(constant);
        }
        for (terms, &constant) in &tightest {
            let opposite: Vec<_> =
                terms.iter().map(|&(variable, coefficient)| (variable, -coefficient)).collect();
            let Some(&other) = tightest.get(&opposite) else { continue };
            let Some(width) = constant.checked_add(other) else { continue };
            if width < 0 {
                return Tightened::Empty;
            }
            if width == 0 && *terms < opposite {
                self.system.zero.push(Linear { constant, terms: terms.clone() });
            }
        }
        let rows = tightest.into_iter().map(|(terms, constant)| Linear { constant, terms });
        self.system.not_negative = rows.collect();
        if self.system.zero.is_empty() { Tightened::Done } else { Tightened::Equations }
    }

    /// The variable whose elimination loses no integers, if there is one, and leaves the fewest inequalities.
    fn cheapest(&self) -> Option<u32> {
        #[derive(Default)]
        struct Bounds {
            lower: usize,
            upper: usize,
            /// Whether some are of a multiple.
            scaled: [bool; 2],
        }
        let mut bounds: BTreeMap<u32, Bounds> = BTreeMap::new();
        for &(variable, coefficient) in self.system.not_negative.iter().flat_map(|sum| &sum.terms) {
            let found = bounds.entry(variable).or_default();
            *if coefficient > 0 { &mut found.lower } else { &mut found.upper } += 1;
            found.scaled[usize::from(coefficient > 0)] |= coefficient.abs() > 1;
        }
        let cost = |(_, found): &(u32, Bounds)| {
            let (lower, upper) = (found.lower as i64, found.upper as i64);
            (found.scaled == [true, true], lower * upper - lower - upper)
        };
        bounds.into_iter().min_by_key(cost).map(|(variable, _)| variable)
    }

    fn eliminate(&mut self, variable: u32) -> Option<()> {
        let rows = std::mem::take(&mut self.system.not_negative);
        let (bounds, mut rest): (Vec<_>, Vec<_>) =
            rows.into_iter().partition(|sum| sum.coefficient(variable) != 0);
        let (lower, upper): (Vec<_>, Vec<_>) =
            bounds.into_iter().partition(|sum| sum.coefficient(variable) > 0);
        if rest.len() + lower.len() * upper.len() > MOST_ROWS {
            return None;
        }
        for low in &lower {
            for high in &upper {
                let (a, b) = (low.coefficient(variable), -high.coefficient(variable));
                let scaled = Linear::default().plus(b, low)?;
                rest.push(scaled.plus(a, high)?);
            }
        }
        self.system.not_negative = rest;
        Some(())
    }
}

enum Tightened {
    /// There is no solution.
    Empty,
    /// Equations were found.
    Equations,
    Done,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum(constant: i128, terms: &[(u32, i128)]) -> Linear {
        let start = Linear::constant(constant);
        terms.iter().fold(start, |sum, &(variable, factor)| {
            sum.plus(factor, &Linear::variable(variable)).expect("small numbers")
        })
    }

    fn system(variables: u32, zero: &[Linear], not_negative: &[Linear]) -> System {
        System { variables, zero: zero.to_vec(), not_negative: not_negative.to_vec() }
    }

    #[test]
    fn even_and_odd_never_meet() {
        assert!(system(2, &[sum(1, &[(0, 2), (1, -2)])], &[]).is_empty());
        assert!(!system(2, &[sum(1, &[(0, 2), (1, -3)])], &[]).is_empty());
        // 6a + 10b + 15c = 1 has solutions, and none where c is even.
        assert!(!system(3, &[sum(-1, &[(0, 6), (1, 10), (2, 15)])], &[]).is_empty());
        assert!(system(3, &[sum(-1, &[(0, 6), (1, 10), (2, 30)])], &[]).is_empty());
    }

    #[test]
    fn bounds_are_rounded() {
        // 0 < 4x - 4y < 4
        let bounds = [sum(-1, &[(0, 4), (1, -4)]), sum(3, &[(0, -4), (1, 4)])];
        assert!(system(2, &[], &bounds).is_empty());
        // x < y < x + 1
        let bounds = [sum(-1, &[(0, -1), (1, 1)]), sum(0, &[(0, 1), (1, -1)])];
        assert!(system(2, &[], &bounds).is_empty());
        // x < y and y < z and z < x
        let less = |a, b| sum(-1, &[(a, -1), (b, 1)]);
        assert!(system(3, &[], &[less(0, 1), less(1, 2), less(2, 0)]).is_empty());
        assert!(!system(3, &[], &[less(0, 1), less(1, 2)]).is_empty());
    }

    #[test]
    fn what_is_empty_has_no_solution_in_a_small_box() {
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let mut next = |bound: u64| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 33) % bound
        };
        let (mut empty, mut solvable) = (0, 0);
        for _ in 0..3000 {
            let mut made = System { variables: 3, ..System::default() };
            for variable in 0..3 {
                made.require_not_negative(sum(0, &[(variable, 1)]));
                made.require_not_negative(sum(4, &[(variable, -1)]));
            }
            for _ in 0..=next(3) {
                let constant = next(13) as i128 - 6;
                let terms: Vec<_> = (0..3).map(|variable| (variable, next(9) as i128 - 4)).collect();
                if next(3) == 0 {
                    made.require_zero(sum(constant, &terms));
                } else {
                    made.require_not_negative(sum(constant, &terms));
                }
            }
            let holds = |point: [i128; 3]| {
                let value = |row: &Linear| {
                    row.terms.iter().fold(row.constant, |sum, &(v, c)| sum + c * point[v as usize])
                };
                made.zero.iter().all(|row| value(row) == 0)
                    && made.not_negative.iter().all(|row| value(row) >= 0)
            };
            let any = (0..125).any(|n: i128| holds([n % 5, n / 5 % 5, n / 25]));
            assert!(!(any && made.is_empty()), "{made:?}");
            empty += usize::from(made.is_empty());
            solvable += usize::from(any);
        }
        // Most of the others are found to be so.
        assert!(solvable > 500 && empty > (3000 - solvable) * 9 / 10, "{solvable} {empty}");
    }
}
