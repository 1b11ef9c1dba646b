//! Which values of a lane outlive a meeting, and which are as well computed again.

use octants_ir::rewrite::{ops_in, regions_in};
use octants_ir::{Kernel, Op, OpKind, Region, Scalar, SideTable, Type, Value, ValueDef};

use super::parts::Part;

/// Ops one behind the other that compute a value again, at most. Chosen, not measured: an element of an array costs a store and a load.
const MOST_OPS_AGAIN: u32 = 8;

/// Where the values of a block's lanes are kept.
pub(super) struct Lifetimes {
    /// In which part a value of the body comes to be.
    home: SideTable<Value, Option<u32>>,
    /// Values and variables of which each lane has an element of an array.
    pub kept: SideTable<Value, bool>,
    /// What it takes to compute a value anew; `None` for what cannot be.
    again: SideTable<Value, Option<u32>>,
    /// Reals that lanes ask each other for: what they get is rounded once, whoever computed it.
    asked: SideTable<Value, bool>,
    next: u32,
    /// Arrays that were made for them, and which of them are of variables.
    pub made: Vec<Op>,
    pub of_variables: SideTable<Value, bool>,
}

impl Lifetimes {
    /// Nothing is known.
    pub fn none() -> Self {
        Self {
            home: SideTable::new(None),
            kept: SideTable::new(false),
            again: SideTable::new(None),
            asked: SideTable::new(false),
            next: 0,
            made: Vec::new(),
            of_variables: SideTable::new(false),
        }
    }

    /// The values of a body; its indices a lane computes from its number.
    pub fn of(kernel: &Kernel, parts: &[Part], body: Region) -> Self {
        let mut found = Self::none();
        for op in ops_in(kernel, body) {
            let data = &kernel.ops[op];
            if data.kind.asks_lane() && kernel.ty(data.operands[0]).elem().is_some_and(Scalar::is_real) {
                found.asked.set(data.operands[0], true);
            }
        }
        for &index in &kernel.regions[body].params {
            found.again.set(index, Some(0));
        }
        found.define(kernel, parts);
        found.use_parts(kernel, parts, &mut 0);
        found
    }

    /// Whether a value comes from the block's body, and not from around its loop.
    pub fn is_own(&self, value: Value) -> bool {
        self.home[value].is_some()
    }

    /// Whether a lane computes a value anew wherever it needs it.
    pub fn is_computed_again(&self, value: Value) -> bool {
        self.again[value].is_some()
    }

    fn begin(&mut self) -> u32 {
        self.next += 1;
        self.next
    }

    /// Numbers the parts, and says where values are defined.
    fn define(&mut self, kernel: &Kernel, parts: &[Part]) {
        for part in parts {
            match part {
                Part::Shared(_) => {}
                Part::Lanes(ops) => {
                    let number = self.begin();
                    for &op in ops {
                        self.define_op(kernel, op, number);
                    }
                }
                Part::Meeting(op) => {
                    let number = self.begin();
                    for &result in &kernel.ops[*op].results {
                        self.home.set(result, Some(number));
                    }
                }
                Part::Control(op, regions) => {
                    let number = self.begin();
                    let data = &kernel.ops[*op];
                    for (&region, parts) in data.regions.iter().zip(regions) {
                        for &param in &kernel.regions[region].params {
                            self.home.set(param, Some(number));
                        }
                        if let (OpKind::For, Some(&index)) =
                            (&data.kind, kernel.regions[region].params.first())
                        {
                            // All that meet count alike.
                            self.again.set(index, Some(0));
                        }
                        self.define(kernel, parts);
                    }
                    for &result in &data.results {
                        self.home.set(result, Some(number));
                    }
                }
                Part::Subgroups(parts) => self.define(kernel, parts),
            }
        }
    }

    fn define_op(&mut self, kernel: &Kernel, op: Op, number: u32) {
        let data = &kernel.ops[op];
        for &result in &data.results {
            self.home.set(result, Some(number));
        }
        for &region in &data.regions {
            for region in regions_in(kernel, region) {
                let inner = kernel.regions[region].ops.iter().flat_map(|&op| &kernel.ops[op].results);
                for &value in kernel.regions[region].params.iter().chain(inner) {
                    self.home.set(value, Some(number));
                }
            }
        }
        if let [result] = data.results[..]
            && data.kind.is_pure()
            && data.kind.cost() <= MOST_OPS_AGAIN
            && self.again[result].is_none()
            && (!self.asked[result] || matches!(data.kind, OpKind::Const(_)))
        {
            let cost = data.operands.iter().try_fold(1_u32, |sum, &operand| {
                let of = if self.home[operand].is_none() && self.again[operand].is_none() {
                    // From around the loop.
                    Some(0)
                } else {
                    self.again[operand]
                };
                Some(sum.saturating_add(of?))
            });
            let constant = matches!(data.kind, OpKind::Const(_));
            self.again.set(
                result,
                cost.filter(|&cost| constant || cost <= MOST_OPS_AGAIN)
                    .map(|cost| if constant { 0 } else { cost }),
            );
        }
    }

    /// Marks what is used in another part than it is defined in.
    fn use_parts(&mut self, kernel: &Kernel, parts: &[Part], number: &mut u32) {
        for part in parts {
            match part {
                Part::Shared(_) => {}
                Part::Lanes(ops) => {
                    *number += 1;
                    for &op in ops {
                        self.use_op(kernel, op, *number);
                    }
                }
                Part::Meeting(op) => {
                    *number += 1;
                    // What is exchanged, others read.
                    for &operand in &kernel.ops[*op].operands {
                        self.keep(operand);
                    }
                    for &result in &kernel.ops[*op].results {
                        self.keep(result);
                    }
                }
                Part::Control(op, regions) => {
                    *number += 1;
                    let data = &kernel.ops[*op];
                    for &operand in &data.operands {
                        self.keep(operand);
                    }
                    for (&region, parts) in data.regions.iter().zip(regions) {
                        for &param in &kernel.regions[region].params {
                            self.keep(param);
                        }
                        self.use_parts(kernel, parts, number);
                        self.use_end(kernel, region);
                    }
                    for &result in &data.results {
                        self.keep(result);
                    }
                }
                Part::Subgroups(parts) => self.use_parts(kernel, parts, number),
            }
        }
    }

    fn use_end(&mut self, kernel: &Kernel, region: Region) {
        if let Some(end) = kernel.terminator(region) {
            for &operand in &end.operands {
                self.keep(operand);
            }
        }
    }

    fn use_op(&mut self, kernel: &Kernel, op: Op, number: u32) {
        let mut used = kernel.ops[op].operands.to_vec();
        for &region in &kernel.ops[op].regions {
            for inner in ops_in(kernel, region) {
                used.extend(&kernel.ops[inner].operands);
            }
        }
        for value in used {
            if self.home[value].is_some_and(|home| home != number) {
                self.keep(value);
            }
        }
    }

    /// Each lane keeps the value, unless it is computed again.
    fn keep(&mut self, value: Value) {
        if self.home[value].is_some() && self.again[value].is_none() {
            self.kept.set(value, true);
        }
    }
}

/// The variable that an op makes, if it makes one.
pub(super) fn variable_of(kernel: &Kernel, value: Value) -> bool {
    matches!(kernel.ty(value), Type::Local(_))
        && matches!(kernel.values[value].def, ValueDef::Result(op, _) if kernel.ops[op].kind == OpKind::Local)
}
