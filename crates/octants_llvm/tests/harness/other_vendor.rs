//! A maker of GPUs that is not there, either: 64 lanes, words of its own, no sums of neighbours, another library. What the emitter knows of
//! NVIDIA without asking shows as a wrong value, or as a name that nobody defines.

use octants_llvm::{Instruction, PrintMeeting, Registers, Vendor};

macro_rules! own {
    ($result:literal, $name:literal, $types:literal, $operands:literal) => {
        Instruction {
            text: concat!("call ", $result, " @other.", $name, "(", $operands, ")"),
            needs: &[(
                concat!("other.", $name),
                concat!("declare ", $result, " @other.", $name, "(", $types, ")"),
            )],
        }
    };
}

pub static OTHER: Vendor = Vendor {
    lanes: 64,
    kernel: "define protected void",
    by_value: "ptr byval([<0> x i8]) align 8",
    annotations: &[],
    registers: Registers {
        thread: own!("i32", "item", "", ""),
        threads: own!("i32", "items", "", ""),
        block: own!("i32", "group", "", ""),
        blocks: own!("i32", "groups", "", ""),
    },
    wait_for_block: own!("void", "wait.group", "", ""),
    wait_for_warp: own!("void", "wait.wave", "", ""),
    fence_for_host: Instruction { text: "fence seq_cst", needs: &[] },
    lane_behind: own!("i32", "read.behind", "i32, i32, i64", "i32 <1>, i32 <2>, i64 <0>"),
    lane_before: own!("i32", "read.before", "i32", "i32 <0>"),
    all: own!("i1", "everywhere", "i1", "i1 <0>"),
    ballot: own!("i64", "where", "i1", "i1 <0>"),
    wait_for_lanes: own!("void", "wait.items", "i64", "i64 <0>"),
    meet_of_block: own!("void", "wait.group", "", ""),
    count_of_block: own!("i32", "count.group", "i32", "i32 <0>"),
    fence_for_block: own!("void", "fence.group", "", ""),
    fence_for_device: own!("void", "fence.device", "", ""),
    ballot_of: own!("i64", "where.of", "i64, i1", "i64 <0>, i1 <1>"),
    shuffles: [
        own!("i32", "read.lane", "i64, i32, i32", "i64 <0>, i32 <1>, i32 <2>"),
        own!("i32", "read.below", "i64, i32, i32", "i64 <0>, i32 <1>, i32 <2>"),
        own!("i32", "read.above", "i64, i32, i32", "i64 <0>, i32 <1>, i32 <2>"),
        own!("i32", "read.other", "i64, i32, i32", "i64 <0>, i32 <1>, i32 <2>"),
    ],
    // Each for itself.
    printing: PrintMeeting {
        meet: Instruction {
            text: "  %rank = add i32 0, 0\n  %together = add i32 0, 1\n  %first = add i32 0, 0",
            needs: &[],
        },
        share: Instruction {
            text: "  %fitting = add i32 0, %own.count\n  %low = add i32 0, %own.low\n  %high = add i32 0, %own.high",
            needs: &[],
        },
    },
    add_neighbours: None,
    library: ["other_<0>_f32", "other_<0>_f64"],
    large_angles: None,
};
