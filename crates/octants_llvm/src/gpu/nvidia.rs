//! NVIDIA's words: intrinsics of LLVM's target NVPTX, and the device library that comes with CUDA, which the linker of modules has.

use super::vendor::{Instruction, LargeAngles, PrintMeeting, Registers, Vendor};

macro_rules! shuffle {
    ($mode:literal, $clamp:literal) => {
        Instruction {
            text: concat!(
                "call i32 @llvm.nvvm.shfl.sync.",
                $mode,
                ".i32(i32 <0>, i32 <1>, i32 <2>, i32 ",
                $clamp,
                ")"
            ),
            needs: &[(
                concat!("llvm.nvvm.shfl.sync.", $mode, ".i32"),
                concat!("declare i32 @llvm.nvvm.shfl.sync.", $mode, ".i32(i32, i32, i32, i32)"),
            )],
        }
    };
}

macro_rules! register {
    ($name:literal) => {
        Instruction {
            text: concat!("call i32 @llvm.nvvm.read.ptx.sreg.", $name, "()"),
            needs: &[(
                concat!("llvm.nvvm.read.ptx.sreg.", $name),
                concat!("declare i32 @llvm.nvvm.read.ptx.sreg.", $name, "()"),
            )],
        }
    };
}

const SHARE: (&str, &str) =
    ("llvm.nvvm.shfl.sync.idx.i32", "declare i32 @llvm.nvvm.shfl.sync.idx.i32(i32, i32, i32, i32)");

/// GPUs of NVIDIA's, of any capability that the runtime takes.
pub static NVIDIA: Vendor = Vendor {
    lanes: 32,
    kernel: "define void",
    by_value: "ptr byval([<0> x i8]) align 8",
    annotations: &[(
        "nvvm.annotations",
        &["!{ptr @<0>, !\"kernel\", i32 1}", "!{ptr @<0>, !\"maxntidx\", i32 <1>}"],
    )],
    registers: Registers {
        thread: register!("tid.x"),
        threads: register!("ntid.x"),
        block: register!("ctaid.x"),
        blocks: register!("nctaid.x"),
    },
    wait_for_block: Instruction {
        text: "call void @llvm.nvvm.barrier0()",
        needs: &[("llvm.nvvm.barrier0", "declare void @llvm.nvvm.barrier0()")],
    },
    wait_for_warp: Instruction {
        text: "call void @llvm.nvvm.bar.warp.sync(i32 -1)",
        needs: &[("llvm.nvvm.bar.warp.sync", "declare void @llvm.nvvm.bar.warp.sync(i32)")],
    },
    // LLVM 19 has no code for `fence` on this target.
    fence_for_host: Instruction {
        text: "call void @llvm.nvvm.membar.sys()",
        needs: &[("llvm.nvvm.membar.sys", "declare void @llvm.nvvm.membar.sys()")],
    },
    lane_behind: Instruction {
        text: "call i32 @llvm.nvvm.shfl.sync.down.i32(i32 <0>, i32 <1>, i32 <2>, i32 31)",
        needs: &[(
            "llvm.nvvm.shfl.sync.down.i32",
            "declare i32 @llvm.nvvm.shfl.sync.down.i32(i32, i32, i32, i32)",
        )],
    },
    lane_before: Instruction {
        text: "call i32 @llvm.nvvm.shfl.sync.up.i32(i32 -1, i32 <0>, i32 1, i32 0)",
        needs: &[(
            "llvm.nvvm.shfl.sync.up.i32",
            "declare i32 @llvm.nvvm.shfl.sync.up.i32(i32, i32, i32, i32)",
        )],
    },
    all: Instruction {
        text: "call i1 @llvm.nvvm.vote.all.sync(i32 -1, i1 <0>)",
        needs: &[("llvm.nvvm.vote.all.sync", "declare i1 @llvm.nvvm.vote.all.sync(i32, i1)")],
    },
    ballot: Instruction {
        text: "call i32 @llvm.nvvm.vote.ballot.sync(i32 -1, i1 <0>)",
        needs: &[("llvm.nvvm.vote.ballot.sync", "declare i32 @llvm.nvvm.vote.ballot.sync(i32, i1)")],
    },
    wait_for_lanes: Instruction {
        text: "call void @llvm.nvvm.bar.warp.sync(i32 <0>)",
        needs: &[("llvm.nvvm.bar.warp.sync", "declare void @llvm.nvvm.bar.warp.sync(i32)")],
    },
    // Not `bar.sync`, which says that the lanes of a warp come to it together: the assembler then keeps what counts the rounds of a loop behind it in one register for
    // all of them, also where the loop holds another one which they leave one by one. On an H200 a persistent loop lost rounds by that.
    meet_of_block: Instruction {
        text: "call void @llvm.nvvm.barrier.sync(i32 0)",
        needs: &[("llvm.nvvm.barrier.sync", "declare void @llvm.nvvm.barrier.sync(i32)")],
    },
    // LLVM 19 has it as `bar.red` alone.
    count_of_block: Instruction {
        text: "call i32 asm sideeffect \"{ .reg .pred %holds; setp.ne.u32 %holds, $1, 0; barrier.red.popc.u32 $0, 0, %holds; }\", \
               \"=r,r,~{memory}\"(i32 <0>) convergent nounwind",
        needs: &[],
    },
    fence_for_block: Instruction {
        text: "call void @llvm.nvvm.membar.cta()",
        needs: &[("llvm.nvvm.membar.cta", "declare void @llvm.nvvm.membar.cta()")],
    },
    fence_for_device: Instruction {
        text: "call void @llvm.nvvm.membar.gl()",
        needs: &[("llvm.nvvm.membar.gl", "declare void @llvm.nvvm.membar.gl()")],
    },
    ballot_of: Instruction {
        text: "call i32 @llvm.nvvm.vote.ballot.sync(i32 <0>, i1 <1>)",
        needs: &[("llvm.nvvm.vote.ballot.sync", "declare i32 @llvm.nvvm.vote.ballot.sync(i32, i1)")],
    },
    shuffles: [shuffle!("idx", "31"), shuffle!("up", "0"), shuffle!("down", "31"), shuffle!("bfly", "31")],
    printing: PrintMeeting {
        meet: Instruction {
            text: "  %active = call i32 @llvm.nvvm.activemask()
  %peers = call i32 @llvm.nvvm.match.any.sync.i32(i32 %active, i32 %count)
  %lower = call i32 @llvm.nvvm.read.ptx.sreg.lanemask.lt()
  %before = and i32 %peers, %lower
  %rank = call i32 @llvm.ctpop.i32(i32 %before)
  %together = call i32 @llvm.ctpop.i32(i32 %peers)
  %first = call i32 @llvm.cttz.i32(i32 %peers, i1 true)",
            needs: &[
                ("llvm.nvvm.activemask", "declare i32 @llvm.nvvm.activemask()"),
                ("llvm.nvvm.match.any.sync.i32", "declare i32 @llvm.nvvm.match.any.sync.i32(i32, i32)"),
                ("llvm.nvvm.read.ptx.sreg.lanemask.lt", "declare i32 @llvm.nvvm.read.ptx.sreg.lanemask.lt()"),
                ("llvm.ctpop.i32", "declare i32 @llvm.ctpop.i32(i32)"),
                ("llvm.cttz.i32", "declare i32 @llvm.cttz.i32(i32, i1)"),
            ],
        },
        share: Instruction {
            text: "  %fitting = call i32 @llvm.nvvm.shfl.sync.idx.i32(i32 %peers, i32 %own.count, i32 %first, i32 31)
  %low = call i32 @llvm.nvvm.shfl.sync.idx.i32(i32 %peers, i32 %own.low, i32 %first, i32 31)
  %high = call i32 @llvm.nvvm.shfl.sync.idx.i32(i32 %peers, i32 %own.high, i32 %first, i32 31)",
            needs: &[SHARE],
        },
    },
    add_neighbours: Some([
        Instruction {
            text: "call void asm sideeffect \"red.relaxed.gpu.global.add.v2.f32 [$0], {$1, $2};\", \
                   \"l,f,f,~{memory}\"(ptr addrspace(1) <0>, float <1>, float <2>)",
            needs: &[],
        },
        Instruction {
            text: "call void asm sideeffect \"red.relaxed.gpu.global.add.v4.f32 [$0], {$1, $2, $3, $4};\", \
                   \"l,f,f,f,f,~{memory}\"(ptr addrspace(1) <0>, float <1>, float <2>, float <3>, float <4>)",
            needs: &[],
        },
    ]),
    library: ["__nv_<0>f", "__nv_<0>"],
    // 105615: from here on the library reduces with as many digits of π as it takes, in 150 lines of PTX; without them sine takes 30. It takes this intrinsic and
    // calls it so: else LLVM finds out late that both compare alike, and optimises each copy of the code for large angles until then, in half of its time.
    large_angles: Some(LargeAngles {
        from: "0x40F9C8F000000000",
        magnitude: Instruction {
            text: "call float @llvm.nvvm.fabs.f(float <0>) nounwind",
            needs: &[("llvm.nvvm.fabs.f", "declare float @llvm.nvvm.fabs.f(float) #1")],
        },
        both: Instruction {
            text: "call void @__nv_sincosf(float <0>, ptr <1>, ptr <2>)",
            needs: &[("__nv_sincosf", "declare void @__nv_sincosf(float, ptr, ptr) nounwind")],
        },
    }),
};
