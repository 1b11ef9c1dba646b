//! Products that become part of all the sums they are used in, on GPUs, where the text allows it (`contract`).
//!
//! LLVM fuses a product and a sum that stand in one block. A product that several blocks use, as those of an iteration and of the test
//! behind it, it keeps beside what it fused:
//!
//! ```text
//! a = x · x;  b = y · y;  r = a + b;  if r < 4:  d = a - b        three to five instructions, by how blocks were cut
//! b = y · y;  r = fma(x, x, b);       if r < 4:  d = fma(x, x, -b)
//! ```
//!
//! So a product whose users are all such sums is given to each of them here, after the optimiser has done what it can, and is gone. A
//! sum of two products takes the first.

use llvm_sys::core::{
    LLVMAddFunction, LLVMBuildCall2, LLVMBuildFNeg, LLVMCreateBuilderInContext, LLVMDisposeBuilder,
    LLVMDoubleTypeInContext, LLVMFloatTypeInContext, LLVMFunctionType, LLVMGetFastMathFlags,
    LLVMGetFirstBasicBlock, LLVMGetFirstInstruction, LLVMGetInstructionOpcode, LLVMGetInstructionParent,
    LLVMGetNamedFunction, LLVMGetNextBasicBlock, LLVMGetNextInstruction, LLVMGetOperand,
    LLVMInstructionEraseFromParent, LLVMIsAInstruction, LLVMPositionBuilderBefore, LLVMReplaceAllUsesWith,
    LLVMSetFastMathFlags, LLVMTypeOf,
};
use llvm_sys::prelude::{LLVMBuilderRef, LLVMTypeRef, LLVMValueRef};
use llvm_sys::{LLVMFastMathAllowContract, LLVMOpcode};

use crate::handles::{Context, Module, users};
use crate::target::{Processor, Target};

/// Sums of a product, at most. Chosen, not measured: each keeps both factors alive as long as the product was.
const MOST_SUMS: usize = 4;

/// Fuses products with their sums. For GPUs alone: every one of them has the instruction.
pub(crate) fn apply(context: &Context, module: &Module<'_>, target: &Target) {
    if target.processor() != Processor::Gpu {
        return;
    }
    // SAFETY: live handles; the builder is released below.
    unsafe {
        let builder = LLVMCreateBuilderInContext(context.raw());
        for (ty, name) in [
            (LLVMFloatTypeInContext(context.raw()), c"llvm.fma.f32"),
            (LLVMDoubleTypeInContext(context.raw()), c"llvm.fma.f64"),
        ] {
            for product in products(module, ty) {
                let sums = users(product);
                if is_worthwhile(product, &sums) {
                    let function = LLVMFunctionType(ty, [ty; 3].as_mut_ptr(), 3, 0);
                    let mut fma = LLVMGetNamedFunction(module.raw(), name.as_ptr());
                    if fma.is_null() {
                        fma = LLVMAddFunction(module.raw(), name.as_ptr(), function);
                    }
                    for sum in sums {
                        fuse(builder, (function, fma), product, sum);
                    }
                    LLVMInstructionEraseFromParent(product);
                }
            }
        }
        LLVMDisposeBuilder(builder);
    }
}

/// The module's products of a type that may be fused.
fn products(module: &Module<'_>, ty: LLVMTypeRef) -> Vec<LLVMValueRef> {
    let mut found = Vec::new();
    for function in module.functions() {
        // SAFETY: walks the blocks and instructions of a live function, which do not change meanwhile.
        unsafe {
            let mut block = LLVMGetFirstBasicBlock(function);
            while !block.is_null() {
                let mut instruction = LLVMGetFirstInstruction(block);
                while !instruction.is_null() {
                    let is_product = is(instruction, LLVMOpcode::LLVMFMul) && LLVMTypeOf(instruction) == ty;
                    if is_product && may_be_fused(instruction) {
                        found.push(instruction);
                    }
                    instruction = LLVMGetNextInstruction(instruction);
                }
                block = LLVMGetNextBasicBlock(block);
            }
        }
    }
    found
}

/// Whether all users are sums that may be fused, of which LLVM would miss some.
fn is_worthwhile(product: LLVMValueRef, sums: &[LLVMValueRef]) -> bool {
    // SAFETY: a live product and its users; a sum has two operands and flags.
    unsafe {
        let fusible = |&sum: &LLVMValueRef| {
            !LLVMIsAInstruction(sum).is_null()
                && (is(sum, LLVMOpcode::LLVMFAdd) || is(sum, LLVMOpcode::LLVMFSub))
                && may_be_fused(sum)
                && LLVMGetOperand(sum, 0) != LLVMGetOperand(sum, 1)
        };
        let block = LLVMGetInstructionParent(product);
        let elsewhere = |&sum: &LLVMValueRef| LLVMGetInstructionParent(sum) != block;
        sums.len() <= MOST_SUMS && sums.iter().all(fusible) && sums.iter().any(elsewhere)
    }
}

/// # Safety
/// A live product and a sum that uses it once; the function is LLVM's for their type.
unsafe fn fuse(
    builder: LLVMBuilderRef,
    (ty, fma): (LLVMTypeRef, LLVMValueRef),
    product: LLVMValueRef,
    sum: LLVMValueRef,
) {
    // SAFETY: the caller says so.
    unsafe {
        LLVMPositionBuilderBefore(builder, sum);
        let (a, b) = (LLVMGetOperand(product, 0), LLVMGetOperand(product, 1));
        let (left, right) = (LLVMGetOperand(sum, 0), LLVMGetOperand(sum, 1));
        let subtracts = is(sum, LLVMOpcode::LLVMFSub);
        let mut operands = match (left == product, subtracts) {
            (true, false) => [a, b, right],
            (true, true) => [a, b, LLVMBuildFNeg(builder, right, c"".as_ptr())],
            (false, false) => [a, b, left],
            (false, true) => [LLVMBuildFNeg(builder, a, c"".as_ptr()), b, left],
        };
        let fused = LLVMBuildCall2(builder, ty, fma, operands.as_mut_ptr(), 3, c"".as_ptr());
        LLVMSetFastMathFlags(fused, LLVMGetFastMathFlags(sum));
        LLVMReplaceAllUsesWith(sum, fused);
        LLVMInstructionEraseFromParent(sum);
    }
}

/// # Safety
/// A live instruction.
unsafe fn is(instruction: LLVMValueRef, opcode: LLVMOpcode) -> bool {
    // SAFETY: the caller says so.
    unsafe { LLVMGetInstructionOpcode(instruction) as u32 == opcode as u32 }
}

/// # Safety
/// A live instruction on reals.
unsafe fn may_be_fused(instruction: LLVMValueRef) -> bool {
    // SAFETY: the caller says so.
    unsafe { LLVMGetFastMathFlags(instruction) & LLVMFastMathAllowContract != 0 }
}
