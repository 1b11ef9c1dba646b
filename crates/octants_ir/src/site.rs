//! Sites: the places of a kernel that report to the host while it runs, with all that turns a report into words.
//!
//! A site's number is its position in the order of [`walk_all`](crate::rewrite::walk_all), so it follows from the kernel's text alone.
//! The table is part of the plan and refers to no op, so that code and plan can be stored without the kernel.

use octants_diag::FileId;
use serde::{Deserialize, Serialize};

use crate::constant::Const;
use crate::format::{print_text, with_tensors};
use crate::ids::{Id, Loc, Op, SideTable};
use crate::kernel::{Kernel, LocData};
use crate::ops::{AssertKind, CellUse, Effects, OpKind, PrintSpec, Scope};
use crate::rewrite::walk_all;
use crate::types::{Data, Scalar, TensorShape};

/// Which ops of a kernel are sites.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SiteScope {
    /// Assertions, calls and prints: what compiled code reports.
    Reports,
    /// Accesses to arrays as well: the interpreter checks them itself.
    ReportsAndAccesses,
}

/// What a site reports.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum SiteKind {
    /// An assertion that failed; the report holds its operands after the condition.
    Assert { about: AssertKind, message: Box<str>, operands: Vec<Scalar> },
    /// A call of this function that found no stack left.
    Call { function: Box<str> },
    /// A tape for which there is no memory; the report holds its bytes.
    Tape,
    /// An index out of bounds; the report holds parameter, axis, index, extent and origin. If the parameter is [`SiteKind::RACE`], two lanes, which
    /// touch an element of their block's memory.
    Access,
    /// Lanes of a block that do something together; the report holds the lane that does not come, or that one and which lane it asks for.
    Together { about: Together },
    /// A print; the report holds the scalars of its operands.
    Print { spec: PrintSpec, operands: Vec<Data> },
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Site {
    pub kind: SiteKind,
    /// In the table's own list of locations.
    loc: usize,
}

/// The sites of one kernel, by number.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct SiteTable {
    sites: Vec<Site>,
    /// Locations of sites and of the calls that were inlined around them. A `caller` is a position in this list.
    locs: Vec<LocData>,
    /// Names of the kernel's parameters, for [`SiteKind::Access`].
    params: Vec<Box<str>>,
}

impl SiteTable {
    pub fn of(kernel: &Kernel, scope: SiteScope) -> Self {
        let mut table = Self {
            params: kernel.params.iter().map(|param| param.name.as_str().into()).collect(),
            ..Self::default()
        };
        let mut known = SideTable::new(None);
        walk_all(kernel, &mut |op| {
            if !is_site(&kernel.ops[op].kind, scope) {
                return;
            }
            let kind = kind_of(kernel, op);
            let loc = table.add_loc(kernel, kernel.ops[op].loc, &mut known).index();
            table.sites.push(Site { kind, loc });
        });
        table
    }

    pub fn get(&self, number: u32) -> Option<&Site> {
        self.sites.get(number as usize)
    }

    pub fn len(&self) -> usize {
        self.sites.len()
    }

    /// Whether something can fail: all but prints.
    pub fn can_fail(&self) -> bool {
        self.sites.iter().any(|site| !matches!(site.kind, SiteKind::Print { .. }))
    }

    /// Whether all that can fail is that there is no memory for what a derivative keeps. Such code writes nothing but adjoints, and nothing outside of its
    /// memory, so that what comes after a failure may run as well.
    pub fn may_be_late(&self) -> bool {
        self.sites.iter().all(|site| match site.kind {
            SiteKind::Assert { about, .. } => matches!(about, AssertKind::Tape | AssertKind::TapeLimit),
            SiteKind::Tape => true,
            SiteKind::Call { .. } | SiteKind::Access | SiteKind::Together { .. } | SiteKind::Print { .. } => {
                false
            }
        })
    }

    pub fn is_empty(&self) -> bool {
        self.sites.is_empty()
    }

    /// The site's own location, then each call that was inlined around it.
    pub fn locations(&self, site: &Site) -> Vec<LocData> {
        let next = |loc: &&LocData| self.locs.get(loc.caller?.index());
        std::iter::successors(self.locs.get(site.loc), next).cloned().collect()
    }

    /// The name of a parameter of the kernel.
    pub fn param_name(&self, param: usize) -> Option<&str> {
        self.params.get(param).map(AsRef::as_ref)
    }

    /// The table with other numbers for files; `None` if there is none for one.
    pub fn with_files(mut self, number: impl Fn(FileId) -> Option<FileId>) -> Option<Self> {
        for loc in &mut self.locs {
            if let Some(span) = &mut loc.span {
                span.file = number(span.file)?;
            }
        }
        Some(self)
    }

    /// What a print writes; nothing if the site is no print. `values` are the scalars of its operands, tensors entry by entry.
    pub fn print_text(
        &self,
        number: u32,
        values: &[Const],
        location: &dyn Fn(&LocData) -> String,
    ) -> Option<String> {
        let site = self.get(number)?;
        let SiteKind::Print { spec, operands } = &site.kind else { return None };
        let place = || self.locs.get(site.loc).map(location).unwrap_or_default();
        if operands.iter().all(|data| data.scalar().is_some()) {
            return Some(print_text(spec, values, &place));
        }
        Some(print_text(&with_tensors(spec, operands), values, &place))
    }

    /// A location of the kernel in this table's list, with its callers.
    fn add_loc(&mut self, kernel: &Kernel, loc: Loc, known: &mut SideTable<Loc, Option<Loc>>) -> Loc {
        if let Some(known) = known[loc] {
            return known;
        }
        // Callers first, without recursion: chains of inlined calls may be long.
        let mut pending = vec![loc];
        while let Some(caller) = kernel.locs[pending[pending.len() - 1]].caller
            && known[caller].is_none()
        {
            pending.push(caller);
        }
        let mut last = Loc::from_index(0);
        for loc in pending.into_iter().rev() {
            let data = &kernel.locs[loc];
            let caller = data.caller.and_then(|caller| known[caller]);
            last = Loc::from_index(self.locs.len());
            self.locs.push(LocData { caller, ..data.clone() });
            known.set(loc, Some(last));
        }
        last
    }
}

/// What lanes do together, as a message has it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Together {
    Barrier(Scope),
    Exchange,
}

impl SiteKind {
    /// A parameter that stands for a race.
    pub const RACE: u64 = u64::MAX;
    /// What stands behind iterations and threads of a block, where the last block is not whole.
    pub const PARTIAL: u64 = 1;

    /// The types of the words that a report of this site holds.
    pub fn words(&self) -> Vec<Scalar> {
        match self {
            Self::Assert { operands, .. } => operands.clone(),
            Self::Call { .. } => Vec::new(),
            Self::Tape => vec![Scalar::U64],
            Self::Access => vec![Scalar::I64; 5],
            Self::Together { .. } => vec![Scalar::I64; 2],
            Self::Print { operands, .. } => operands
                .iter()
                .flat_map(|data| {
                    let count = data.tensor_shape().map_or(1, TensorShape::count);
                    data.elem().into_iter().flat_map(move |elem| std::iter::repeat_n(elem, count as usize))
                })
                .collect(),
        }
    }
}

/// The numbers of a kernel's sites by op, for whoever emits or interprets it.
#[derive(Clone, Debug)]
pub struct SiteNumbers {
    numbers: SideTable<Op, Option<u32>>,
}

impl SiteNumbers {
    /// The numbers that [`SiteTable::of`] gives for the same kernel and scope.
    pub fn of(kernel: &Kernel, scope: SiteScope) -> Self {
        let mut numbers = SideTable::new(None);
        let mut next = 0;
        walk_all(kernel, &mut |op| {
            if is_site(&kernel.ops[op].kind, scope) {
                numbers.set(op, Some(next));
                next += 1;
            }
        });
        Self { numbers }
    }

    /// # Panics
    /// If the op is no site in the scope.
    pub fn number(&self, op: Op) -> u32 {
        self.numbers[op].unwrap_or_else(|| panic!("{op} is no site"))
    }
}

fn is_site(kind: &OpKind, scope: SiteScope) -> bool {
    let accesses = kind.info().cell != CellUse::Nothing || kind.effects().contains(Effects::CONVERGENT);
    kind.effects().contains(Effects::REPORTS) || accesses && scope == SiteScope::ReportsAndAccesses
}

fn kind_of(kernel: &Kernel, op: Op) -> SiteKind {
    let data = &kernel.ops[op];
    match &data.kind {
        OpKind::Assert(about, message) => SiteKind::Assert {
            about: *about,
            message: message.clone(),
            operands: data.operands.iter().skip(1).filter_map(|&value| kernel.ty(value).scalar()).collect(),
        },
        OpKind::Call(function) => {
            SiteKind::Call { function: kernel.functions[*function].name.as_str().into() }
        }
        OpKind::Tape => SiteKind::Tape,
        OpKind::Print(spec) => SiteKind::Print {
            spec: (**spec).clone(),
            operands: data.operands.iter().filter_map(|&value| kernel.ty(value).data()).collect(),
        },
        kind if kind.meets() == Some(Scope::Subgroup) && !data.results.is_empty() => {
            SiteKind::Together { about: Together::Exchange }
        }
        kind => match kind.meets() {
            Some(scope) => SiteKind::Together { about: Together::Barrier(scope) },
            None => SiteKind::Access,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::{parse, print_with_locations};

    const TWO_SITES: &str = r#"kernel @k(%0 "x": array<f32, 1>, %1 "i": i32) {
  %2: i32 = const 0
  %3: u1 = ge %1, %2
  assert bounds %3, "index {} is negative", %1
  %4: f32 = load %0[%1]
  print "{@}: {:.1f}\n", %4
  return
}"#;

    #[test]
    fn numbers_follow_from_the_text_and_reports_need_no_kernel() {
        let kernel = parse(TWO_SITES).unwrap_or_else(|error| panic!("{error}"));
        let again = parse(&print_with_locations(&kernel)).unwrap_or_else(|error| panic!("{error}"));
        for scope in [SiteScope::Reports, SiteScope::ReportsAndAccesses] {
            let table = SiteTable::of(&kernel, scope);
            assert_eq!(table, SiteTable::of(&again, scope));
            let (first, second) = (SiteNumbers::of(&kernel, scope), SiteNumbers::of(&again, scope));
            let ops = |kernel: &Kernel| {
                let mut ops = Vec::new();
                walk_all(kernel, &mut |op| ops.push(op));
                ops
            };
            for (a, b) in ops(&kernel).into_iter().zip(ops(&again)) {
                assert_eq!(first.numbers[a], second.numbers[b]);
            }
        }
        let table = SiteTable::of(&kernel, SiteScope::Reports);
        drop(kernel);
        let site = table.get(0).expect("the assertion");
        assert_eq!(site.kind.words(), [Scalar::I32]);
        let text = table.print_text(1, &[Const::f32(2.0)], &|_| "here".to_owned());
        assert_eq!(text.as_deref(), Some("here: 2.0\n"));
        assert_eq!(table.print_text(0, &[], &|_| String::new()), None);
        assert!(table.get(2).is_none());
    }
}
