//! Roots of 32-bit reals and quotients by them on NVIDIA's GPUs, where they may be approximated.
//!
//! By default LLVM's code for these targets rounds quotients and roots correctly, which takes a dozen instructions and a branch each, and it
//! gives that up only for whole modules. So roots that may be approximated (`afn`) are replaced by the hardware's approximations, and so are quotients by
//! them, after the optimiser has done what it can; all other quotients stay correctly rounded:
//!
//! ```text
//! x / √x         becomes  √x
//! a / √x         becomes  a · rsqrt.approx(x)      1.5 ULP
//! a / (x · √x)   becomes  a · r · r · r            where r = rsqrt.approx(x)
//! √x             becomes  sqrt.approx(x)           1 ULP
//! ```
//!
//! All of them take subnormal numbers for what they are. `rsqrt.approx` and `sqrt.approx` spend three of their four instructions on that, which
//! are saved where the argument is known to be no subnormal number: squares and a softening of 1e-4, as in n-body, or a maximum with a small number.
//! 64-bit reals have no approximations of this accuracy.

use std::ffi::CStr;

use llvm_sys::core::{
    LLVMAddFunction, LLVMBuildCall2, LLVMBuildFMul, LLVMConstReal, LLVMConstRealGetDouble,
    LLVMCreateBuilderInContext, LLVMDisposeBuilder, LLVMFloatTypeInContext, LLVMFunctionType,
    LLVMGetCalledValue, LLVMGetFastMathFlags, LLVMGetFirstBasicBlock, LLVMGetFirstInstruction,
    LLVMGetInstructionOpcode, LLVMGetNamedFunction, LLVMGetNextBasicBlock, LLVMGetNextInstruction,
    LLVMGetOperand, LLVMInstructionEraseFromParent, LLVMIsACallInst, LLVMIsAConstantFP, LLVMIsAFunction,
    LLVMIsAInstruction, LLVMPositionBuilderBefore, LLVMReplaceAllUsesWith, LLVMSetFastMathFlags, LLVMTypeOf,
};
use llvm_sys::prelude::{LLVMBuilderRef, LLVMTypeRef, LLVMValueRef};
use llvm_sys::{LLVMFastMathApproxFunc, LLVMOpcode};

use crate::handles::{Context, Module, name_of, users};
use crate::target::{Processor, Target};

/// Rewrites what may be approximated. For GPUs alone.
pub(crate) fn apply(context: &Context, module: &Module<'_>, target: &Target) {
    if target.processor() == Processor::Gpu {
        Rewriter::new(context, module).rewrite();
    }
}

struct Rewriter<'a> {
    module: &'a Module<'a>,
    builder: LLVMBuilderRef,
    real: LLVMTypeRef,
    /// LLVM's intrinsic, null if the module does not use it.
    root: LLVMValueRef,
}

impl Drop for Rewriter<'_> {
    fn drop(&mut self) {
        // SAFETY: owned.
        unsafe { LLVMDisposeBuilder(self.builder) };
    }
}

impl<'a> Rewriter<'a> {
    fn new(context: &Context, module: &'a Module<'a>) -> Self {
        // SAFETY: live handles.
        unsafe {
            Self {
                module,
                builder: LLVMCreateBuilderInContext(context.raw()),
                real: LLVMFloatTypeInContext(context.raw()),
                root: LLVMGetNamedFunction(module.raw(), c"llvm.sqrt.f32".as_ptr()),
            }
        }
    }

    fn rewrite(&self) {
        for quotient in self.quotients() {
            self.replace_quotient(quotient);
        }
        if !self.root.is_null() {
            for root in users(self.root) {
                self.replace_root(root);
            }
        }
    }

    /// The module's quotients that may be approximated.
    fn quotients(&self) -> Vec<LLVMValueRef> {
        let mut found = Vec::new();
        for function in self.module.functions() {
            // SAFETY: walks the blocks and instructions of a live function, which do not change meanwhile. A quotient has flags.
            unsafe {
                let mut block = LLVMGetFirstBasicBlock(function);
                while !block.is_null() {
                    let mut instruction = LLVMGetFirstInstruction(block);
                    while !instruction.is_null() {
                        if is(instruction, LLVMOpcode::LLVMFDiv)
                            && LLVMTypeOf(instruction) == self.real
                            && may_be_approximated(instruction)
                        {
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

    fn replace_quotient(&self, quotient: LLVMValueRef) {
        // SAFETY: a live quotient of 32-bit reals, which has two operands.
        unsafe {
            LLVMPositionBuilderBefore(self.builder, quotient);
            let flags = LLVMGetFastMathFlags(quotient);
            let (a, b) = (LLVMGetOperand(quotient, 0), LLVMGetOperand(quotient, 1));
            let is_one = a == LLVMConstReal(self.real, 1.0);
            let new = if self.argument_of_root(b) == Some(a) {
                // At zero and infinity, too.
                b
            } else if let Some(x) = self.argument_of_root(b) {
                let reciprocal = self.reciprocal_root(x);
                if is_one { reciprocal } else { self.product(a, reciprocal, flags) }
            } else if let Some(x) = self.argument_of_power(b) {
                let reciprocal = self.reciprocal_root(x);
                let square = self.product(reciprocal, reciprocal, flags);
                let cube = self.product(square, reciprocal, flags);
                if is_one { cube } else { self.product(a, cube, flags) }
            } else {
                return;
            };
            LLVMReplaceAllUsesWith(quotient, new);
            // A root that nobody needs any more is no code: LLVM emits what is used.
            LLVMInstructionEraseFromParent(quotient);
        }
    }

    fn replace_root(&self, root: LLVMValueRef) {
        let Some(x) = self.argument_of_root(root) else { return };
        // SAFETY: a live call of the intrinsic.
        unsafe {
            LLVMPositionBuilderBefore(self.builder, root);
            let flushing = is_normal(x, DEPTH);
            let name = if flushing { c"llvm.nvvm.sqrt.approx.ftz.f" } else { c"llvm.nvvm.sqrt.approx.f" };
            LLVMReplaceAllUsesWith(root, self.call(name, x));
            LLVMInstructionEraseFromParent(root);
        }
    }

    /// `x` of a `√x` that may be approximated.
    fn argument_of_root(&self, value: LLVMValueRef) -> Option<LLVMValueRef> {
        // SAFETY: a live value; a call of the intrinsic has an operand and flags.
        unsafe {
            let is_root = !self.root.is_null()
                && !LLVMIsACallInst(value).is_null()
                && LLVMGetCalledValue(value) == self.root;
            (is_root && may_be_approximated(value)).then(|| LLVMGetOperand(value, 0))
        }
    }

    /// `x` of an `x · √x` whose root may be approximated.
    fn argument_of_power(&self, value: LLVMValueRef) -> Option<LLVMValueRef> {
        // SAFETY: a live value; a product has two operands.
        unsafe {
            if LLVMIsAInstruction(value).is_null() || !is(value, LLVMOpcode::LLVMFMul) {
                return None;
            }
            let (a, b) = (LLVMGetOperand(value, 0), LLVMGetOperand(value, 1));
            if self.argument_of_root(a) == Some(b) {
                Some(b)
            } else {
                (self.argument_of_root(b) == Some(a)).then_some(a)
            }
        }
    }

    /// # Safety
    /// A live 32-bit real.
    unsafe fn reciprocal_root(&self, x: LLVMValueRef) -> LLVMValueRef {
        // SAFETY: the caller says so.
        unsafe {
            let flushing = is_normal(x, DEPTH);
            self.call(if flushing { c"llvm.nvvm.rsqrt.approx.ftz.f" } else { c"llvm.nvvm.rsqrt.approx.f" }, x)
        }
    }

    /// # Safety
    /// Live 32-bit reals.
    unsafe fn product(&self, a: LLVMValueRef, b: LLVMValueRef, flags: u32) -> LLVMValueRef {
        // SAFETY: the caller says so; a product has flags, a folded constant has none.
        unsafe {
            let product = LLVMBuildFMul(self.builder, a, b, c"".as_ptr());
            if !LLVMIsAInstruction(product).is_null() {
                LLVMSetFastMathFlags(product, flags);
            }
            product
        }
    }

    /// A call of an intrinsic of one 32-bit real.
    ///
    /// # Safety
    /// A live 32-bit real.
    unsafe fn call(&self, name: &CStr, x: LLVMValueRef) -> LLVMValueRef {
        // SAFETY: the caller says so; LLVM declares these intrinsics so.
        unsafe {
            let ty = LLVMFunctionType(self.real, [self.real].as_mut_ptr(), 1, 0);
            let mut function = LLVMGetNamedFunction(self.module.raw(), name.as_ptr());
            if function.is_null() {
                function = LLVMAddFunction(self.module.raw(), name.as_ptr(), ty);
            }
            LLVMBuildCall2(self.builder, ty, function, [x].as_mut_ptr(), 1, c"".as_ptr())
        }
    }
}

/// How many operations deep an argument is looked into.
const DEPTH: u32 = 6;

/// Whether a 32-bit real is known to be the least normal number, greater, or NaN.
///
/// # Safety
/// A live 32-bit real.
unsafe fn is_normal(value: LLVMValueRef, depth: u32) -> bool {
    // SAFETY: the caller says so.
    unsafe { least(value, depth) >= f64::from(f32::MIN_POSITIVE) }
}

/// A bound behind an operation that rounds, or is approximated: by a relative error far below this one.
fn rounded_down(bound: f64) -> f64 {
    bound - bound.abs() * 1e-3
}

/// A number that a 32-bit real is not below, unless it is NaN: of squares, magnitudes, roots, maxima with a constant, and of their sums
/// and products.
///
/// # Safety
/// A live 32-bit real.
unsafe fn least(value: LLVMValueRef, depth: u32) -> f64 {
    const UNKNOWN: f64 = f64::NEG_INFINITY;
    // SAFETY: the caller says so; what is asked for operands has so many, of its type.
    unsafe {
        if let Some(constant) = constant(value) {
            return if constant.is_nan() { UNKNOWN } else { constant };
        }
        if LLVMIsAInstruction(value).is_null() {
            return UNKNOWN;
        }
        let of = |number: u32| {
            let operand = LLVMGetOperand(value, number);
            if depth == 0 { constant(operand).unwrap_or(UNKNOWN) } else { least(operand, depth - 1) }
        };
        let product = || match (of(0), of(1)) {
            (a, b) if a >= 0.0 && b >= 0.0 && (a * b).is_finite() => rounded_down(a * b),
            _ if LLVMGetOperand(value, 0) == LLVMGetOperand(value, 1) => 0.0,
            _ => UNKNOWN,
        };
        if is(value, LLVMOpcode::LLVMFAdd) {
            // Known where neither is an infinity.
            return Some(of(0) + of(1)).filter(|sum| sum.is_finite()).map_or(UNKNOWN, rounded_down);
        }
        if is(value, LLVMOpcode::LLVMFMul) {
            return product();
        }
        if is(value, LLVMOpcode::LLVMSelect) {
            return of(1).min(of(2));
        }
        let callee =
            if LLVMIsACallInst(value).is_null() { std::ptr::null_mut() } else { LLVMGetCalledValue(value) };
        if callee.is_null() || LLVMIsAFunction(callee).is_null() {
            return UNKNOWN;
        }
        match name_of(callee).as_str() {
            "llvm.fabs.f32" => of(0).max(0.0),
            "llvm.sqrt.f32" | "llvm.nvvm.sqrt.approx.f" | "llvm.nvvm.sqrt.approx.ftz.f" => {
                rounded_down(of(0).max(0.0).sqrt())
            }
            // One that is NaN gives the other one.
            "llvm.maxnum.f32" => match [0, 1].map(|operand| constant(LLVMGetOperand(value, operand))) {
                [None, None] => of(0).min(of(1)),
                constants => constants.into_iter().flatten().fold(UNKNOWN, f64::max),
            },
            "llvm.minnum.f32" => of(0).min(of(1)),
            _ => UNKNOWN,
        }
    }
}

/// # Safety
/// A live real.
unsafe fn constant(value: LLVMValueRef) -> Option<f64> {
    // SAFETY: only a constant real is asked for its value.
    unsafe {
        let mut inexact = 0;
        (!LLVMIsAConstantFP(value).is_null()).then(|| LLVMConstRealGetDouble(value, &raw mut inexact))
    }
}

/// # Safety
/// A live instruction.
unsafe fn is(instruction: LLVMValueRef, opcode: LLVMOpcode) -> bool {
    // SAFETY: the caller says so.
    unsafe { LLVMGetInstructionOpcode(instruction) as u32 == opcode as u32 }
}

/// # Safety
/// A live instruction on reals, or a call that gives one.
unsafe fn may_be_approximated(instruction: LLVMValueRef) -> bool {
    // SAFETY: the caller says so.
    unsafe { LLVMGetFastMathFlags(instruction) & LLVMFastMathApproxFunc != 0 }
}
