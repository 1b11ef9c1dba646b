//! Alias facts: which accesses can never meet, as LLVM's scoped metadata.
//!
//! Every access belongs to one class of memory. Classes never overlap: the launch's own blocks by construction, two array
//! arguments because the launch guard compared them (else all arrays are one class). Arrays that are only read may overlap and
//! are one class.

use crate::module::{Module, Node};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Class {
    /// The array of a parameter, which is written.
    Array(usize),
    /// Any array that is only read.
    ReadOnly,
    /// Any array, where arguments may overlap; and all memory beyond the first [`MAX_CLASSES`] classes.
    Arrays,
    /// A thread's own copy of a parameter's array. Iterations on one thread share it.
    Copied(usize),
    /// A copy of a parameter's array that the threads of a block share.
    Shared(usize),
    /// An array in the block's memory, which no argument is.
    Block,
    /// The slot of a temporary.
    Temp(usize),
    Results,
    /// A variable: its alloca says enough.
    Local,
    /// Anything.
    Unknown,
}

/// Classes that are told apart, at most; all others count as one. Each access names the classes that it is not in, and LLVM
/// compares every pair of accesses: 600 fields in one kernel took 19 s to compile with a class for each. Kernels
/// have rarely more than 64 arrays.
const MAX_CLASSES: usize = 64;

struct Scope {
    class: Class,
    own: Node,
    others: Node,
}

#[derive(Default)]
pub(crate) struct Scopes {
    classes: Vec<Scope>,
    /// Accesses whose order between iterations of the parallel loop is free.
    group: Option<Node>,
    /// For each call that says so: the parameters whose arrays it may touch, and the node for those that it does not.
    calls: Vec<(Vec<usize>, Node)>,
}

impl Scopes {
    /// From here on accesses are of iterations that do not depend on each other. Gives the group for the loop.
    pub fn begin_independent(&mut self, module: &mut Module) -> Node {
        let group = module.node("distinct !{}".to_owned());
        self.group = Some(group);
        group
    }

    pub fn end_independent(&mut self) {
        self.group = None;
    }

    /// From here on accesses depend on those of other iterations, until [`Self::return_to`].
    pub fn leave_independent(&mut self) -> Option<Node> {
        self.group.take()
    }

    pub fn return_to(&mut self, group: Option<Node>) {
        self.group = group;
    }

    /// What is written behind an access of the class.
    pub fn suffix(&mut self, module: &mut Module, class: Class) -> String {
        if matches!(class, Class::Local | Class::Unknown) {
            return String::new();
        }
        let known = |class: Class| self.classes.iter().any(|scope| scope.class == class);
        let class = if known(class) || self.classes.len() < MAX_CLASSES { class } else { Class::Arrays };
        let scope = if let Some(index) = self.classes.iter().position(|scope| scope.class == class) {
            &self.classes[index]
        } else {
            let (own, others) = (module.reserve_node(), module.reserve_node());
            self.classes.push(Scope { class, own, others });
            &self.classes[self.classes.len() - 1]
        };
        let group = self.group.filter(|_| !matches!(class, Class::Copied(_) | Class::Block));
        let group = group.map_or_else(String::new, |group| format!(", !llvm.access.group {group}"));
        format!(", !alias.scope {}, !noalias {}{group}", scope.own, scope.others)
    }

    /// What is written behind a call that touches no arrays but those of these parameters.
    pub fn call_suffix(&mut self, module: &mut Module, touched: Vec<usize>) -> String {
        let known = self.calls.iter().find(|(known, _)| *known == touched).map(|&(_, node)| node);
        let node = known.unwrap_or_else(|| {
            let node = module.reserve_node();
            self.calls.push((touched, node));
            node
        });
        format!(", !noalias {node}")
    }

    /// Writes the nodes, now that all classes are known.
    pub fn finish(self, module: &mut Module) {
        if self.classes.is_empty() && self.calls.is_empty() {
            return;
        }
        let domain = module.distinct_node(&[]);
        let ids: Vec<_> = self.classes.iter().map(|_| module.distinct_node(&[domain])).collect();
        for (index, scope) in self.classes.iter().enumerate() {
            module.set_node(scope.own, format!("!{{{}}}", ids[index]));
            let others: Vec<_> =
                (0..ids.len()).filter(|&other| other != index).map(|other| ids[other].to_string()).collect();
            module.set_node(scope.others, format!("!{{{}}}", others.join(", ")));
        }
        for (touched, node) in &self.calls {
            let is_other = |class: Class| match class {
                Class::Array(param) => !touched.contains(&param),
                // Nobody writes it.
                Class::ReadOnly => true,
                _ => false,
            };
            let others = self.classes.iter().zip(&ids).filter(|(scope, _)| is_other(scope.class));
            let others: Vec<_> = others.map(|(_, id)| id.to_string()).collect();
            module.set_node(*node, format!("!{{{}}}", others.join(", ")));
        }
    }
}
