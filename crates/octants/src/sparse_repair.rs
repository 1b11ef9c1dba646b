//! What an interrupted kernel leaves in a tree with sparse nodes, and the host puts in order.
//!
//! Cells that a kernel gives up are marked, and cleared by a task after it; a kernel that fails or is interrupted in between leaves the marks. They are its own:
//! here they become marks of nobody, which the next kernel that gives up cells makes its own.

use octants_ir::sparse::{GIVEN_UP, SparseTree, state, state_offset};
use octants_runtime::{HostQueue, Memory, MemoryError};

/// Makes all marks of a tree, which nobody uses meanwhile, marks of nobody.
pub(crate) fn adopt_marks(tree: &SparseTree, memory: &Memory) -> Result<(), MemoryError> {
    let queue = HostQueue::default();
    for (number, pool) in tree.pools.iter().enumerate().skip(1) {
        let word = |offset: usize| -> Result<u32, MemoryError> {
            let mut bytes = [0; 4];
            memory.read(queue, offset, &mut bytes)?;
            Ok(u32::from_le_bytes(bytes))
        };
        let used = word(state_offset(number, state::USED))?.min(pool.slots - 1);
        let has_memory = word(state_offset(number, state::CAPACITY))?.min(used);
        let (stride, first) = (pool.header_bytes as usize, (pool.headers + pool.header_bytes) as usize);
        let mut headers = vec![0; has_memory as usize * stride];
        memory.read(queue, first, &mut headers)?;
        let mut retired = 0_u32;
        for (slot, header) in headers.chunks_exact(stride).enumerate() {
            let found = i32::from_le_bytes([header[0], header[1], header[2], header[3]]);
            retired += u32::from(found <= GIVEN_UP);
            if found < GIVEN_UP {
                memory.write(queue, first + slot * stride, &GIVEN_UP.to_le_bytes())?;
            }
        }
        memory.write(queue, state_offset(number, state::RETIRED), &retired.to_le_bytes())?;
    }
    Ok(())
}
