//! The elimination tree of a symmetric matrix: the parent of a column is the first row below the diagonal that the factor has an entry in.

pub const NONE: u32 = u32::MAX;

/// The parent of each column. `upper(k)` gives rows of column `k`, of which those above the diagonal count.
pub fn parents<'a>(n: usize, upper: impl Fn(usize) -> &'a [u32]) -> Vec<u32> {
    let mut parents = vec![NONE; n];
    // A node above each one that was the highest when it was last asked for, so that no path is followed twice.
    let mut above = vec![NONE; n];
    for k in 0..n as u32 {
        for &row in upper(k as usize) {
            let mut at = row;
            while at < k {
                let next = std::mem::replace(&mut above[at as usize], k);
                if next == NONE {
                    parents[at as usize] = k;
                }
                at = next;
            }
        }
    }
    parents
}

/// The parent of each column, and how many entries each column of the factor has below the diagonal. `upper(k)` gives the rows above the diagonal of column `k`.
pub fn parents_and_counts<'a>(n: usize, upper: impl Fn(usize) -> &'a [u32]) -> (Vec<u32>, Vec<usize>) {
    let mut parents = vec![NONE; n];
    let mut counts = vec![0; n];
    let mut seen = vec![NONE; n];
    for k in 0..n {
        seen[k] = k as u32;
        for &row in upper(k) {
            let mut at = row as usize;
            while seen[at] != k as u32 {
                if parents[at] == NONE {
                    parents[at] = k as u32;
                }
                counts[at] += 1;
                seen[at] = k as u32;
                at = parents[at] as usize;
            }
        }
    }
    (parents, counts)
}

/// The columns, children before their parents and each subtree in one piece.
pub fn postorder(parents: &[u32]) -> Vec<u32> {
    let n = parents.len();
    let (mut first_child, mut sibling) = (vec![NONE; n], vec![NONE; n]);
    for (node, &parent) in parents.iter().enumerate().rev() {
        if parent != NONE {
            sibling[node] = first_child[parent as usize];
            first_child[parent as usize] = node as u32;
        }
    }
    let mut order = Vec::with_capacity(n);
    let mut path = Vec::new();
    for root in (0..n as u32).filter(|&node| parents[node as usize] == NONE) {
        path.push(root);
        while let Some(&node) = path.last() {
            let child = std::mem::replace(&mut first_child[node as usize], NONE);
            if child == NONE {
                order.push(node);
                path.pop();
                let next = sibling[node as usize];
                if next != NONE {
                    path.push(next);
                }
            } else {
                path.push(child);
            }
        }
    }
    order
}
