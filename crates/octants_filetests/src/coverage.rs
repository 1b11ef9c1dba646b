//! Which ops the `run` tests run.

use std::collections::BTreeSet;
use std::path::Path;

use octants_ir::ops::{
    ArithOp, AtomicOp, BitOp, BitUnary, CompareOp, ConvertOp, MathOp, MathUnary, TensorOp,
};
use octants_ir::rewrite::walk_all;
use octants_ir::text::parse;

use crate::file::{Kind, TestFile};

/// Ops that belong to no family.
const PLAIN: &[&str] = &[
    "const",
    "select",
    "struct_new",
    "struct_get",
    "struct_set",
    "local",
    "tape",
    "temp",
    "load",
    "volatile_load",
    "store",
    "atomic_cas",
    "grow_pool",
    "extent",
    "if",
    "for",
    "for_lanes",
    "while",
    "parallel_for",
    "serial",
    "fork",
    "yield",
    "return",
    "store_result",
    "assert",
    "print",
    "random",
    "launch_key",
    "call",
];

/// Every op that no test among the files runs.
pub fn untested_ops(files: &[impl AsRef<Path>]) -> Result<Vec<&'static str>, String> {
    let mut tested = BTreeSet::new();
    for path in files {
        let text = std::fs::read_to_string(path).map_err(|e| e.to_string())?;
        let file = TestFile::parse(&text).map_err(|e| format!("{}: {e}", path.as_ref().display()))?;
        if file.head.kind != Kind::Run {
            continue;
        }
        for case in file.cases.iter().filter(|case| case.notes.iter().any(|n| n.starts_with("; run:"))) {
            let kernel = parse(&case.input).map_err(|e| format!("{}: {e}", path.as_ref().display()))?;
            walk_all(&kernel, &mut |op| {
                tested.insert(kernel.ops[op].kind.name());
            });
        }
    }
    Ok(all_ops().into_iter().filter(|op| !tested.contains(op)).collect())
}

fn all_ops() -> Vec<&'static str> {
    let mut names = PLAIN.to_vec();
    names.extend(ArithOp::ALL.iter().map(|op| op.name()));
    names.extend(BitOp::ALL.iter().map(|op| op.name()));
    names.extend(BitUnary::ALL.iter().map(|op| op.name()));
    names.extend(CompareOp::ALL.iter().map(|op| op.name()));
    names.extend(MathOp::ALL.iter().map(|op| op.name()));
    names.extend(MathUnary::ALL.iter().map(|op| op.name()));
    names.extend(ConvertOp::ALL.iter().map(|op| op.name()));
    names.extend(TensorOp::ALL.iter().map(|op| op.name()));
    names.extend(AtomicOp::ALL.iter().map(|op| op.name()));
    names
}
