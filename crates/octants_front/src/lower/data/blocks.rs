//! Which block of the program an op was made for: the body of a run-time loop, a branch of a run-time `if`, a function of the kernel's
//! own, or the kernel's body. What is inlined or unrolled stands in the block around it.
//!
//! Regions do not tell: what follows an `if` that may leave its loop is made in a region of the `if`, and belongs to the block around it.

/// The number of a block.
pub(crate) type Block = usize;

/// The kernel's body.
pub(crate) const KERNEL_BODY: Block = 0;

#[derive(Debug)]
pub(crate) struct Blocks {
    /// The block around each; the kernel's body is in itself.
    around: Vec<Block>,
    open: Block,
    /// The number of the first op of each stretch of ops that belong to one block, and the block.
    stretches: Vec<(usize, Block)>,
}

impl Blocks {
    pub(crate) fn new() -> Self {
        Self { around: vec![KERNEL_BODY], open: KERNEL_BODY, stretches: vec![(0, KERNEL_BODY)] }
    }

    /// The block that ops are made for.
    pub(crate) fn open(&self) -> Block {
        self.open
    }

    pub(crate) fn around(&self, block: Block) -> Block {
        self.around[block]
    }

    /// A new block inside of another.
    pub(crate) fn add(&mut self, around: Block) -> Block {
        self.around.push(around);
        self.around.len() - 1
    }

    /// From op number `next_op` on, ops are made for another block. Gives the one before.
    pub(crate) fn switch(&mut self, to: Block, next_op: usize) -> Block {
        if self.stretches.last().is_some_and(|&(first, _)| first == next_op) {
            self.stretches.pop();
        }
        self.stretches.push((next_op, to));
        std::mem::replace(&mut self.open, to)
    }

    /// The block that the op of this number was made for.
    pub(crate) fn of(&self, op: usize) -> Block {
        let after = self.stretches.partition_point(|&(first, _)| first <= op);
        self.stretches[after - 1].1
    }

    /// Whether `inner` is `outer` or stands in it.
    pub(crate) fn is_within(&self, mut inner: Block, outer: Block) -> bool {
        while inner != outer && inner != KERNEL_BODY {
            inner = self.around[inner];
        }
        inner == outer
    }
}
