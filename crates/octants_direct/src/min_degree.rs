//! An ordering that leaves few entries in the factors: by approximate minimum degree.
//!
//! Eliminating a node joins all of its neighbours. They are not joined one by one: the node becomes an *element*, a list of the nodes that it joins, and
//! takes up the elements that it was in (the quotient graph). Of all nodes the one that joins the fewest is next, by an upper
//! bound: the sizes of its elements outside of the newest one are added up (Amestoy, Davis and Duff, 1996). Nodes with the
//! same neighbours are eliminated as one.

use crate::pattern::dense_degree;

const NONE: u32 = u32::MAX;

/// The nodes in the order in which they are eliminated.
pub fn min_degree(neighbours: Vec<Vec<u32>>) -> Vec<u32> {
    let mut graph = Graph::new(neighbours);
    while let Some(pivot) = graph.buckets.take_least() {
        graph.eliminate(pivot);
    }
    let Graph { mut order, dense, .. } = graph;
    order.extend(dense);
    order
}

struct Graph {
    /// Neighbours of a node that no element joins it with. May name nodes that are gone.
    neighbours: Vec<Vec<u32>>,
    /// Elements that a node is in. May name elements that were taken up by others.
    elements: Vec<Vec<u32>>,
    /// The nodes of an element, by the node that it was made of; empty once another has taken it up.
    members: Vec<Vec<u32>>,
    /// How many nodes the members of an element stand for; 0 for one that is gone.
    size: Vec<u32>,
    /// How many nodes a node stands for; 0 for one that is gone.
    weight: Vec<u32>,
    degree: Vec<u32>,
    /// The nodes that a node stands for, besides itself.
    followers: Vec<Vec<u32>>,
    buckets: Buckets,
    /// How many nodes are left.
    left: u32,
    order: Vec<u32>,
    /// Nodes with so many neighbours that they come last.
    dense: Vec<u32>,
    mark: Marks,
    /// Of elements that the newest one meets: how much of them is outside of it.
    outside: Vec<u32>,
    element_mark: Marks,
}

impl Graph {
    fn new(neighbours: Vec<Vec<u32>>) -> Self {
        let n = neighbours.len();
        let limit = dense_degree(n);
        let mut graph = Self {
            elements: vec![Vec::new(); n],
            members: vec![Vec::new(); n],
            size: vec![0; n],
            weight: vec![1; n],
            degree: neighbours.iter().map(|list| list.len() as u32).collect(),
            followers: vec![Vec::new(); n],
            buckets: Buckets::new(n),
            left: n as u32,
            order: Vec::with_capacity(n),
            dense: Vec::new(),
            mark: Marks::new(n),
            outside: vec![0; n],
            element_mark: Marks::new(n),
            neighbours,
        };
        for node in 0..n {
            if graph.neighbours[node].len() > limit {
                graph.weight[node] = 0;
                graph.left -= 1;
                graph.neighbours[node] = Vec::new();
                graph.dense.push(node as u32);
            } else {
                graph.buckets.insert(node as u32, graph.degree[node]);
            }
        }
        graph
    }

    fn eliminate(&mut self, pivot: u32) {
        let joined = self.joined_by(pivot);
        self.emit(pivot);
        let joined = self.prune(pivot, joined);
        self.bound_degrees(pivot, &joined);
        self.merge_alike(&joined);
        let weight = &self.weight;
        let members: Vec<_> = joined.into_iter().filter(|&node| weight[node as usize] > 0).collect();
        for &node in &members {
            self.buckets.insert(node, self.degree[node as usize]);
        }
        self.members[pivot as usize] = members;
    }

    /// The nodes that eliminating a node joins, marked and taken out of their buckets. Its elements are gone then.
    fn joined_by(&mut self, pivot: u32) -> Vec<u32> {
        self.mark.clear();
        self.mark.set(pivot);
        let mut joined = Vec::new();
        let direct = std::mem::take(&mut self.neighbours[pivot as usize]);
        let elements = std::mem::take(&mut self.elements[pivot as usize]);
        let mut lists = vec![direct];
        for element in elements {
            if std::mem::take(&mut self.size[element as usize]) > 0 {
                lists.push(std::mem::take(&mut self.members[element as usize]));
            }
        }
        for node in lists.into_iter().flatten() {
            if self.weight[node as usize] > 0 && self.mark.set(node) {
                self.buckets.remove(node, self.degree[node as usize]);
                joined.push(node);
            }
        }
        joined
    }

    /// Appends a node, and those that it stands for, to the order.
    fn emit(&mut self, node: u32) {
        self.left -= std::mem::take(&mut self.weight[node as usize]);
        let mut next = vec![node];
        while let Some(node) = next.pop() {
            self.order.push(node);
            next.append(&mut self.followers[node as usize]);
        }
    }

    /// Takes out of the lists of the joined nodes what the new element stands for, and puts the element there. Nodes that it alone joins with others are eliminated
    /// along with it; those that are left come back.
    fn prune(&mut self, pivot: u32, joined: Vec<u32>) -> Vec<u32> {
        self.measure_outside(&joined);
        let mut size = joined.iter().map(|&node| self.weight[node as usize]).sum::<u32>();
        let mut left = Vec::with_capacity(joined.len());
        for node in joined {
            let at = node as usize;
            let (sizes, outside) = (&mut self.size, &self.outside);
            self.elements[at].retain(|&element| {
                let element = element as usize;
                if outside[element] == 0 {
                    // The new element has all of its nodes.
                    sizes[element] = 0;
                }
                sizes[element] > 0
            });
            let (weight, mark) = (&self.weight, &self.mark);
            self.neighbours[at].retain(|&other| weight[other as usize] > 0 && !mark.has(other));
            if self.elements[at].is_empty() && self.neighbours[at].is_empty() {
                size -= self.weight[at];
                self.emit(node);
            } else {
                self.elements[at].push(pivot);
                left.push(node);
            }
        }
        self.size[pivot as usize] = size;
        left
    }

    /// How much of each element that a joined node is in is outside of the new one.
    fn measure_outside(&mut self, joined: &[u32]) {
        self.element_mark.clear();
        for &node in joined {
            for &element in &self.elements[node as usize] {
                let at = element as usize;
                if self.size[at] == 0 {
                    self.outside[at] = 0;
                    continue;
                }
                if self.element_mark.set(element) {
                    self.outside[at] = self.size[at];
                }
                self.outside[at] -= self.weight[node as usize];
            }
        }
    }

    fn bound_degrees(&mut self, pivot: u32, joined: &[u32]) {
        let size = self.size[pivot as usize];
        for &node in joined {
            let at = node as usize;
            let within = size - self.weight[at];
            let by_elements: u32 = self.elements[at]
                .iter()
                .filter(|&&element| element != pivot)
                .map(|&element| self.outside[element as usize])
                .fold(0, u32::saturating_add);
            let direct: u32 = self.neighbours[at].iter().map(|&other| self.weight[other as usize]).sum();
            let now = by_elements.saturating_add(direct).saturating_add(within);
            self.degree[at] =
                now.min(self.degree[at].saturating_add(within)).min(self.left - self.weight[at]);
        }
    }

    /// Lets one of several nodes with the same elements and neighbours stand for all of them.
    fn merge_alike(&mut self, joined: &[u32]) {
        let sum = |list: &[u32]| list.iter().fold(0_u32, |sum, &one| sum.wrapping_add(one));
        let mut by_key: Vec<_> = joined
            .iter()
            .map(|&node| {
                let (elements, neighbours) = (&self.elements[node as usize], &self.neighbours[node as usize]);
                let lengths = (elements.len() as u32, neighbours.len() as u32);
                (sum(elements).wrapping_add(sum(neighbours)), lengths, node)
            })
            .collect();
        by_key.sort_unstable();
        for group in by_key.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1)) {
            for (number, &(.., node)) in group.iter().enumerate() {
                if self.weight[node as usize] == 0 || number + 1 == group.len() {
                    continue;
                }
                self.mark.clear();
                self.element_mark.clear();
                for &other in &self.neighbours[node as usize] {
                    self.mark.set(other);
                }
                for &element in &self.elements[node as usize] {
                    self.element_mark.set(element);
                }
                for &(.., other) in &group[number + 1..] {
                    self.merge_if_alike(node, other);
                }
            }
        }
    }

    /// `node`'s neighbours and elements are marked.
    fn merge_if_alike(&mut self, node: u32, other: u32) {
        let (into, from) = (node as usize, other as usize);
        let is_alike = self.weight[from] > 0
            && self.elements[from].iter().all(|&element| self.element_mark.has(element))
            && self.neighbours[from].iter().all(|&neighbour| self.mark.has(neighbour));
        if !is_alike {
            return;
        }
        let weight = std::mem::take(&mut self.weight[from]);
        self.weight[into] += weight;
        self.degree[into] = self.degree[into].saturating_sub(weight);
        self.elements[from] = Vec::new();
        self.neighbours[from] = Vec::new();
        self.followers[into].push(other);
    }
}

/// A set of nodes that is cleared at once.
struct Marks {
    stamps: Vec<u32>,
    stamp: u32,
}

impl Marks {
    fn new(n: usize) -> Self {
        Self { stamps: vec![0; n], stamp: 1 }
    }

    fn clear(&mut self) {
        if self.stamp == u32::MAX {
            self.stamps.fill(0);
            self.stamp = 0;
        }
        self.stamp += 1;
    }

    /// Whether it was not there.
    fn set(&mut self, node: u32) -> bool {
        std::mem::replace(&mut self.stamps[node as usize], self.stamp) != self.stamp
    }

    fn has(&self, node: u32) -> bool {
        self.stamps[node as usize] == self.stamp
    }
}

/// Nodes by degree, as lists that are linked both ways.
struct Buckets {
    first: Vec<u32>,
    next: Vec<u32>,
    previous: Vec<u32>,
    /// No node has a lower degree.
    least: usize,
}

impl Buckets {
    fn new(n: usize) -> Self {
        Self { first: vec![NONE; n + 1], next: vec![NONE; n], previous: vec![NONE; n], least: 0 }
    }

    fn insert(&mut self, node: u32, degree: u32) {
        let first = std::mem::replace(&mut self.first[degree as usize], node);
        self.next[node as usize] = first;
        self.previous[node as usize] = NONE;
        if first != NONE {
            self.previous[first as usize] = node;
        }
        self.least = self.least.min(degree as usize);
    }

    fn remove(&mut self, node: u32, degree: u32) {
        let (next, previous) = (self.next[node as usize], self.previous[node as usize]);
        if next != NONE {
            self.previous[next as usize] = previous;
        }
        if previous == NONE {
            self.first[degree as usize] = next;
        } else {
            self.next[previous as usize] = next;
        }
    }

    fn take_least(&mut self) -> Option<u32> {
        while *self.first.get(self.least)? == NONE {
            self.least += 1;
        }
        let node = self.first[self.least];
        self.remove(node, self.least as u32);
        Some(node)
    }
}
