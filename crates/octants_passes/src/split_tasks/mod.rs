//! Cuts a kernel into tasks: each `parallel_for` is one, and so is each run of other ops between them. What tasks share goes
//! through temporaries.
//!
//! Before:
//! ```text
//! %2: i32 = const 0
//! %3: i32 = load %a[%2]
//! %4: i32 = extent 0 %a
//! parallel_for (%5: i32) in (%2..%4) {
//!   store %a[%5], %3
//! }
//! return %3
//! ```
//! After:
//! ```text
//! %1: temp<i32> = temp
//! %2: i32 = const 0
//! %3: i32 = extent 0 %a
//! serial {
//!   %4: i32 = const 0
//!   %5: i32 = load %a[%4]
//!   store %1, %5
//!   store_result 0 %5
//! }
//! parallel_for (%6: i32) in (%2..%3) {
//!   %7: i32 = load %1
//!   store %a[%6], %7
//! }
//! return
//! ```
//!
//! Expects the structured phase with scalars, leaves the tasks phase:
//! * the body holds `temp`s, then pure ops on scalar parameters and extents, then tasks and forks; right before a `parallel_for` also
//!   loads of temporaries that its bounds or reductions need;
//! * a branch of a `fork` holds its own tasks, and such loads: what stands in a branch is run by that branch;
//! * a task refers to parameters, temporaries and its own values; what a launch knows it computes again, at its beginning;
//! * results are stored where they are first known.
//!
//! A long run of other ops is several tasks, since a function is compiled in a time that grows with the square of its length.
//!
//! A bound that the host cannot compute (see [`launch`]) is stored by a task and loaded. A store of zero into a fresh variable
//! is dropped, since temporaries begin as zero. A run of ops that does nothing is no task. A function is passed variables, never
//! temporaries (see [`arguments`]).

mod arguments;
pub(crate) mod launch;

use octants_ir::rewrite::{ValueMap, clone_op, free_values, replace_values, walk};
use octants_ir::{Builder, Kernel, Op, OpKind, Phase, Region, SideTable, Type, Value};

use crate::eliminate_dead_code::eliminate_dead_code;
use launch::LaunchTime;

pub fn split_tasks(kernel: &mut Kernel) {
    drop_zero_stores(kernel);
    let launch = LaunchTime::find(kernel);
    let found = TaskPartition::find(kernel, &launch);
    let sharing = SharedValues::find(kernel, &launch, &found.tasks);
    let split = Split { kernel, launch, sharing, temps: ValueMap::new() };
    split.build(found);
    kernel.phase = Phase::Tasks;
    arguments::pass_variables(kernel);
    eliminate_dead_code(kernel);
}

/// A store of zero at the top into a local that nothing touched yet.
fn drop_zero_stores(kernel: &mut Kernel) {
    let mut touched = SideTable::new(false);
    drop_zero_stores_in(kernel, kernel.body, &mut touched);
}

fn drop_zero_stores_in(kernel: &mut Kernel, region: Region, touched: &mut SideTable<Value, bool>) {
    for op in std::mem::take(&mut kernel.regions[region].ops) {
        if kernel.ops[op].kind == OpKind::Fork {
            for branch in kernel.ops[op].regions.clone() {
                drop_zero_stores_in(kernel, branch, touched);
            }
        }
        let data = &kernel.ops[op];
        if let (OpKind::Store, &[local, value]) = (&data.kind, &data.operands[..]) {
            let is_local = matches!(kernel.ty(local), Type::Local(_));
            let zero = kernel.as_const(value).is_some_and(|c| c.bits() == 0);
            if is_local && zero && !touched[local] {
                continue;
            }
        }
        for_operands(kernel, op, &mut |operand| touched.set(operand, true));
        kernel.regions[region].ops.push(op);
    }
}

/// Operands of the op and of all ops inside it.
fn for_operands(kernel: &Kernel, op: Op, visit: &mut impl FnMut(Value)) {
    kernel.ops[op].operands.iter().copied().for_each(&mut *visit);
    for &region in &kernel.ops[op].regions {
        walk(kernel, region, &mut |op| kernel.ops[op].operands.iter().copied().for_each(&mut *visit));
    }
}

/// A serial task has at most about this much [`weight`]: what follows is the next task. Each task is compiled as a function of its own,
/// and LLVM takes time that grows with the square of a function's length: 4000 lines of straight code took 3.4 s as one function, 0.4 s
/// in pieces of 1000 (`benches/compile_time.py`). A value that pieces share costs a store and a load.
const MAX_SERIAL_WEIGHT: u32 = 1000;
/// How many ops a loop weighs besides its own: analyses of loops look at all the loops before (500 loops took 2.6 s as one function).
const LOOP_WEIGHT: u32 = 30;

/// Roughly how long the op takes to compile, in ops.
fn weight(kernel: &Kernel, op: Op) -> u32 {
    let mut weight: u32 = 0;
    let mut add = |op: Op| {
        let own = if kernel.ops[op].kind.is_loop() { 1 + LOOP_WEIGHT } else { 1 };
        weight = weight.saturating_add(own);
    };
    add(op);
    for &region in &kernel.ops[op].regions {
        walk(kernel, region, &mut add);
    }
    weight
}

enum Task {
    Serial {
        ops: Vec<Op>,
        /// Of all its ops.
        weight: u32,
        /// Results of the kernel that it stores.
        results: Vec<(u32, Value)>,
    },
    Range(Op),
}

/// The kernel's ops in tasks. Locals and what a launch knows belong to none.
struct TaskPartition {
    /// In the order of the text.
    tasks: Vec<Task>,
    /// What the kernel's body runs.
    body: Vec<Node>,
    /// The task that computes a value.
    home: SideTable<Value, Option<usize>>,
}

/// What a body or a branch runs, in order.
enum Node {
    /// By its number in [`TaskPartition::tasks`].
    Task(usize),
    Fork(Op, Vec<Vec<Node>>),
}

impl TaskPartition {
    fn find(kernel: &Kernel, launch: &LaunchTime) -> Self {
        let mut found = Self { tasks: Vec::new(), body: Vec::new(), home: SideTable::new(None) };
        found.body = found.region(kernel, launch, kernel.body);
        let returned = kernel.terminator(kernel.body).map(|end| end.operands.to_vec()).unwrap_or_default();
        for (number, value) in (0..).zip(returned) {
            found.store_result(number, value);
        }
        found
    }

    fn region(&mut self, kernel: &Kernel, launch: &LaunchTime, region: Region) -> Vec<Node> {
        let mut nodes = Vec::new();
        for &op in &kernel.regions[region].ops {
            let data = &kernel.ops[op];
            match data.kind {
                OpKind::ParallelFor(_) => nodes.push(self.add(Task::Range(op))),
                OpKind::Fork => {
                    let branches = data.regions.iter().map(|&branch| self.region(kernel, launch, branch));
                    nodes.push(Node::Fork(op, branches.collect()));
                }
                OpKind::Return | OpKind::Yield | OpKind::Local => {}
                _ if data.results.len() == 1 && launch.knows(data.results[0]) => {}
                _ => self.serial_op(kernel, op, &mut nodes),
            }
        }
        nodes
    }

    fn add(&mut self, task: Task) -> Node {
        self.tasks.push(task);
        Node::Task(self.tasks.len() - 1)
    }

    /// The op joins the serial task that it stands right behind, or begins one.
    fn serial_op(&mut self, kernel: &Kernel, op: Op, nodes: &mut Vec<Node>) {
        let number = match nodes.last() {
            Some(&Node::Task(number)) if self.has_capacity(number) => number,
            _ => {
                nodes.push(self.add(Task::Serial { ops: Vec::new(), weight: 0, results: Vec::new() }));
                self.tasks.len() - 1
            }
        };
        if let Task::Serial { ops, weight: total, .. } = &mut self.tasks[number] {
            ops.push(op);
            *total = total.saturating_add(weight(kernel, op));
        }
        for &result in &kernel.ops[op].results {
            self.home.set(result, Some(number));
        }
    }

    /// Whether a serial task may take another op.
    fn has_capacity(&self, task: usize) -> bool {
        matches!(self.tasks[task], Task::Serial { weight, .. } if weight < MAX_SERIAL_WEIGHT)
    }

    /// A result is stored where it is computed; if every task knows it, in whichever runs on one thread.
    fn store_result(&mut self, number: u32, value: Value) {
        let any_serial = || self.tasks.iter().rposition(|task| matches!(task, Task::Serial { .. }));
        let at = self.home[value].or_else(any_serial).unwrap_or_else(|| {
            let node = self.add(Task::Serial { ops: Vec::new(), weight: 0, results: Vec::new() });
            self.body.push(node);
            self.tasks.len() - 1
        });
        if let Task::Serial { results, .. } = &mut self.tasks[at] {
            results.push((number, value));
        }
    }
}

/// What more than one task needs.
struct SharedValues {
    /// Values and locals that become temporaries, in the order in which they are defined.
    shared: Vec<Value>,
    is_shared: SideTable<Value, bool>,
    /// Where a local lives that only one serial task uses.
    local_of: SideTable<Value, Option<usize>>,
}

impl SharedValues {
    fn find(kernel: &Kernel, launch: &LaunchTime, tasks: &[Task]) -> Self {
        let mut home: SideTable<Value, Option<usize>> = SideTable::new(None);
        for (number, task) in tasks.iter().enumerate() {
            if let Task::Serial { ops, .. } = task {
                for &result in ops.iter().flat_map(|&op| &kernel.ops[op].results) {
                    home.set(result, Some(number));
                }
            }
        }
        let mut top = SideTable::new(false);
        let ops = kernel.top_ops();
        let definitions = ops.iter().flat_map(|&op| &kernel.ops[op].results);
        for &result in definitions.clone() {
            top.set(result, true);
        }
        let mut sharing =
            Self { shared: Vec::new(), is_shared: SideTable::new(false), local_of: SideTable::new(None) };
        for (number, task) in tasks.iter().enumerate() {
            let mut visit = |value: Value| {
                if !top[value] || launch.knows(value) {
                    return;
                }
                let shared = match kernel.ty(value) {
                    Type::Local(_) => {
                        let serial = matches!(task, Task::Serial { .. });
                        !serial || *sharing.local_of.get_mut(value).get_or_insert(number) != number
                    }
                    _ => home[value] != Some(number),
                };
                if shared {
                    sharing.is_shared.set(value, true);
                }
            };
            match task {
                Task::Serial { ops, results, .. } => {
                    for &op in ops {
                        for_operands(kernel, op, &mut visit);
                    }
                    for &(_, value) in results {
                        visit(value);
                    }
                }
                Task::Range(op) => for_operands(kernel, *op, &mut visit),
            }
        }
        sharing.shared = definitions.copied().filter(|&value| sharing.is_shared[value]).collect();
        sharing
    }
}

struct Split<'k> {
    kernel: &'k mut Kernel,
    launch: LaunchTime,
    sharing: SharedValues,
    /// The temporary of each shared value or local.
    temps: ValueMap,
}

impl Split<'_> {
    fn build(mut self, found: TaskPartition) {
        let body = self.kernel.body;
        let old = self.kernel.top_ops();
        let regions = self.kernel.top_regions();
        let ends = regions.into_iter().map(|region| {
            let ops = std::mem::take(&mut self.kernel.regions[region].ops);
            (region, *ops.last().expect("a region ends in a terminator"))
        });
        let ends: Vec<_> = ends.collect();
        self.make_temps();
        for &op in &old {
            if matches!(self.kernel.ops[op].results[..], [result] if self.launch.knows(result)) {
                self.kernel.regions[body].ops.push(op);
            }
        }
        let locals: Vec<_> =
            old.iter().copied().filter(|&op| self.kernel.ops[op].kind == OpKind::Local).collect();
        let mut tasks: Vec<_> = found.tasks.into_iter().map(Some).collect();
        self.nodes(body, found.body, &mut tasks, &locals);
        for (region, terminator) in ends {
            self.kernel.ops[terminator].operands.clear();
            self.kernel.regions[region].ops.push(terminator);
        }
    }

    /// Puts tasks and forks into the region.
    fn nodes(&mut self, region: Region, nodes: Vec<Node>, tasks: &mut [Option<Task>], locals: &[Op]) {
        for node in nodes {
            match node {
                Node::Task(number) => match tasks[number].take().expect("a task stands in one place") {
                    Task::Serial { ops, results, .. } => {
                        let own = locals.iter().copied().filter(|&op| {
                            let local = self.kernel.ops[op].results[0];
                            !self.sharing.is_shared[local] && self.sharing.local_of[local] == Some(number)
                        });
                        let own: Vec<_> = own.collect();
                        self.serial(region, own, ops, &results);
                    }
                    Task::Range(op) => self.range(region, op),
                },
                Node::Fork(op, branches) => {
                    for (branch, nodes) in self.kernel.ops[op].regions.clone().into_iter().zip(branches) {
                        self.nodes(branch, nodes, tasks, locals);
                    }
                    self.kernel.regions[region].ops.push(op);
                }
            }
        }
    }

    fn make_temps(&mut self) {
        for &value in &self.sharing.shared {
            let (data, loc) = match (self.kernel.ty(value), self.kernel.def(value)) {
                (Type::Data(data) | Type::Local(data), Some(op)) => (data, op.loc),
                (other, _) => unreachable!("{value} of type {other:?} is shared by tasks"),
            };
            let body = self.kernel.body;
            let temp = Builder::at(self.kernel, body, loc).temp(data);
            self.temps.insert(value, temp);
        }
    }

    fn serial(&mut self, at: Region, locals: Vec<Op>, ops: Vec<Op>, results: &[(u32, Value)]) {
        let region = self.kernel.add_region();
        let loc =
            ops.first().map_or(self.kernel.ops[self.kernel.ops.ids().next().expect("an op")].loc, |&op| {
                self.kernel.ops[op].loc
            });
        self.kernel.regions[region].ops = locals;
        for op in ops {
            self.kernel.regions[region].ops.push(op);
            let loc = self.kernel.ops[op].loc;
            for result in self.kernel.ops[op].results.clone() {
                if let Some(temp) = self.temps.get(result) {
                    Builder::at(self.kernel, region, loc).store(temp, &[], result);
                }
            }
        }
        let mut b = Builder::at(self.kernel, region, loc);
        for &(number, value) in results {
            b.op(OpKind::StoreResult(number), [value], [], []);
        }
        b.yields(&[]);
        self.materialise_inputs(region);
        Builder::at(self.kernel, at, loc).op(OpKind::Serial, [], [], [region]);
    }

    fn range(&mut self, at: Region, op: Op) {
        let loc = self.kernel.ops[op].loc;
        for index in 0..self.kernel.ops[op].operands.len() {
            let operand = self.kernel.ops[op].operands[index];
            if let Some(temp) = self.temps.get(operand) {
                let is_place = self.kernel.ty(operand).is_place();
                let known = if is_place { temp } else { Builder::at(self.kernel, at, loc).load(temp, &[]) };
                self.kernel.ops[op].operands[index] = known;
            }
        }
        self.kernel.regions[at].ops.push(op);
        self.materialise_inputs(self.kernel.ops[op].regions[0]);
    }

    /// What the task's region uses from outside is computed or loaded at its beginning.
    fn materialise_inputs(&mut self, region: Region) {
        let mut map = ValueMap::new();
        let mut head = Vec::new();
        for value in free_values(self.kernel, region) {
            self.materialise(value, &mut head, &mut map);
        }
        // What a task defines itself was never outside, though a copy of it may be a temporary elsewhere.
        head.extend(std::mem::take(&mut self.kernel.regions[region].ops));
        self.kernel.regions[region].ops = head;
        replace_values(self.kernel, region, &map);
    }

    fn materialise(&mut self, value: Value, head: &mut Vec<Op>, map: &mut ValueMap) {
        if self.kernel.as_param(value).is_some() || map.get(value).is_some() {
            return;
        }
        match (self.temps.get(value), self.kernel.ty(value)) {
            (Some(temp), Type::Data(data)) => {
                let loc =
                    self.kernel.def(value).map_or_else(|| unreachable!("{value} is an op's"), |op| op.loc);
                let load = self.kernel.make_op(OpKind::Load, [temp], [data.into()], [], loc);
                head.push(load);
                map.insert(value, self.kernel.ops[load].results[0]);
            }
            (Some(temp), _) => map.insert(value, temp),
            // Temporaries that stores in this task name already.
            (None, Type::Temp(_)) => {}
            (None, _) => {
                let octants_ir::ValueDef::Result(op, _) = self.kernel.values[value].def else {
                    unreachable!("{value} is no parameter of the kernel")
                };
                for operand in self.kernel.ops[op].operands.clone() {
                    self.materialise(operand, head, map);
                }
                head.push(clone_op(self.kernel, op, map));
            }
        }
    }
}
