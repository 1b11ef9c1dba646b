//! What surrounds a function in a module: the target, declarations, attributes and metadata nodes.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// A metadata node, `!3`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Node(u32);

impl std::fmt::Display for Node {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "!{}", self.0)
    }
}

#[derive(Default)]
pub(crate) struct Module {
    /// By name, so that they are written once and in a fixed order.
    declarations: BTreeMap<String, String>,
    /// The texts of functions that the task calls.
    functions: Vec<String>,
    /// Names of those among them that code asks for wherever it needs them.
    once: BTreeSet<String>,
    /// What is written behind the `=` of each node.
    nodes: Vec<String>,
    /// Lists of nodes that the module has under a name.
    named: Vec<String>,
    empty: Option<Node>,
    cold: Option<Node>,
    not_unrolled: Option<Node>,
}

impl Module {
    /// Declares a function; the text is the whole line.
    pub fn declare(&mut self, name: &str, line: impl FnOnce() -> String) {
        if !self.declarations.contains_key(name) {
            self.declarations.insert(name.to_owned(), line());
        }
    }

    /// A function that is the module's own; the text is all of it.
    pub fn add_function(&mut self, text: String) {
        self.functions.push(text);
    }

    pub fn has_function(&self, name: &str) -> bool {
        self.once.contains(name)
    }

    /// A function that needs to be there once, however often it is called.
    pub fn add_function_once(&mut self, name: &str, text: impl FnOnce() -> String) {
        if self.once.insert(name.to_owned()) {
            self.functions.push(text());
        }
    }

    pub fn node(&mut self, text: String) -> Node {
        self.nodes.push(text);
        Node(self.nodes.len() as u32 - 1)
    }

    /// A node that is unlike any other, with itself as the first element.
    pub fn distinct_node(&mut self, rest: &[Node]) -> Node {
        let mut text = format!("distinct !{{{}", Node(self.nodes.len() as u32));
        for node in rest {
            write!(text, ", {node}").expect("writing to a string");
        }
        text.push('}');
        self.node(text)
    }

    /// Puts nodes where LLVM looks for them by name.
    pub fn name_nodes(&mut self, name: &str, nodes: &[Node]) {
        let nodes: Vec<_> = nodes.iter().map(ToString::to_string).collect();
        self.named.push(format!("!{name} = !{{{}}}", nodes.join(", ")));
    }

    /// A node whose text comes later.
    pub fn reserve_node(&mut self) -> Node {
        self.node(String::new())
    }

    pub fn set_node(&mut self, node: Node, text: String) {
        self.nodes[node.0 as usize] = text;
    }

    pub fn empty_node(&mut self) -> Node {
        if let Some(node) = self.empty {
            return node;
        }
        let node = self.node("!{}".to_owned());
        *self.empty.insert(node)
    }

    /// Branch weights: the first target is taken, but for failures.
    pub fn cold_node(&mut self) -> Node {
        if let Some(node) = self.cold {
            return node;
        }
        let node = self.node("!{!\"branch_weights\", i32 1048575, i32 1}".to_owned());
        *self.cold.insert(node)
    }

    /// Of a loop: it is wide enough already.
    pub fn not_unrolled(&mut self) -> Node {
        if let Some(node) = self.not_unrolled {
            return node;
        }
        let node = self.node("!{!\"llvm.loop.unroll.disable\"}".to_owned());
        *self.not_unrolled.insert(node)
    }

    /// The module's text around a function's.
    pub fn finish(self, triple: &str, data_layout: &str, function: &str) -> String {
        let mut text = String::with_capacity(function.len() + 64 * self.nodes.len() + 512);
        let mut line = |arguments: std::fmt::Arguments<'_>| {
            writeln!(text, "{arguments}").expect("writing to a string");
        };
        if !data_layout.is_empty() {
            line(format_args!("target datalayout = \"{data_layout}\""));
        }
        if !triple.is_empty() {
            line(format_args!("target triple = \"{triple}\"\n"));
        }
        line(format_args!("{function}"));
        for function in &self.functions {
            line(format_args!("{function}"));
        }
        for declaration in self.declarations.values() {
            line(format_args!("{declaration}"));
        }
        // No `mustprogress` and no `willreturn` on the task: an endless loop of the user's is an endless loop.
        line(format_args!("\nattributes #0 = {{ nounwind }}"));
        line(format_args!("attributes #1 = {{ nounwind willreturn memory(none) }}"));
        // What confirms a request to stop knows nothing of a kernel's memory.
        line(format_args!(
            "attributes #2 = {{ cold nounwind memory(argmem: readwrite, inaccessiblemem: readwrite) }}"
        ));
        for named in &self.named {
            line(format_args!("{named}"));
        }
        for (index, node) in self.nodes.iter().enumerate() {
            line(format_args!("!{index} = {node}"));
        }
        text
    }
}
