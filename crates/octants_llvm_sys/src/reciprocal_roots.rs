//! Quotients by square roots of 32-bit reals, where they may be approximated (`afn` on the quotient, which LLVM itself takes no notice of).
//!
//! x86 estimates `1/√x`, and a Newton step refines the estimate: much faster than a root and a quotient. But the step that LLVM makes of a
//! quotient gives NaN at zero and infinity (∞·0), and the older estimate takes subnormal numbers for zero. So quotients by roots are
//! rewritten wherever the optimiser left them, before LLVM sees to them:
//!
//! ```text
//! a / √x         becomes  a · r
//! a / (b · √x)   becomes  (a / b) · r
//! x / √x         becomes  √x
//! where  e = estimate(x), h = e/2, s = h · (3 − x·e·e)
//!        r = e if x is zero or infinite, else s
//! ```
//!
//! One instruction tells zero and infinity on AVX-512, beside the chain of the others. Before it, `r` is `max(s, h)`, which on x86 gives `h`
//! if `s` is NaN. n-body, whose inner loop of about twenty instructions has one such root, runs at 0.91 of the speed that it has
//! with the wrong step.

use std::ffi::CStr;
use std::ops::Range;

use llvm_sys::core::{
    LLVMAddFunction, LLVMBuildCall2, LLVMBuildExtractElement, LLVMBuildFCmp, LLVMBuildFDiv, LLVMBuildFMul,
    LLVMBuildFSub, LLVMBuildInsertElement, LLVMBuildSelect, LLVMBuildShuffleVector, LLVMConstAllOnes,
    LLVMConstInt, LLVMConstReal, LLVMConstVector, LLVMCreateBuilderInContext, LLVMDisposeBuilder,
    LLVMFloatTypeInContext, LLVMFunctionType, LLVMGetFastMathFlags, LLVMGetFirstUse,
    LLVMGetInstructionOpcode, LLVMGetNamedFunction, LLVMGetNextInstruction, LLVMGetOperand, LLVMGetTypeKind,
    LLVMGetVectorSize, LLVMInstructionEraseFromParent, LLVMInt1TypeInContext, LLVMInt32TypeInContext,
    LLVMIntTypeInContext, LLVMIsACallInst, LLVMIsAInstruction, LLVMPositionBuilderBefore,
    LLVMReplaceAllUsesWith, LLVMSetFastMathFlags, LLVMTypeOf, LLVMVectorType,
};
use llvm_sys::prelude::{LLVMBuilderRef, LLVMTypeRef, LLVMValueRef};
use llvm_sys::{
    LLVMFastMathAllowContract, LLVMFastMathApproxFunc, LLVMOpcode, LLVMRealPredicate, LLVMTypeKind,
};

use crate::handles::{Context, Module, users};
use crate::target::{Processor, Target};

/// The least normal number.
const SMALLEST_NORMAL: f64 = f32::MIN_POSITIVE as f64;
/// Makes every subnormal number normal, and its root is a power of two as well.
const SCALE: f64 = (1_u64 << 48) as f64;
const SCALE_OF_ROOT: f64 = (1_u64 << 24) as f64;

/// What `vfpclassps` is to tell: zeros and positive infinity.
const ZERO_OR_INFINITY: u64 = 0b1110;

/// Rewrites the module's quotients by roots. For x86 alone: other targets' estimates are right at zero and infinity, or not used.
pub(crate) fn guard<'a>(context: &'a Context, module: &'a Module<'a>, target: &Target) {
    if target.processor() != Processor::X86 {
        return;
    }
    let estimates = Estimates::of(target);
    for function in module.functions() {
        let name = crate::handles::name_of(function);
        let is_root = name == "llvm.sqrt.f32"
            || name.strip_prefix("llvm.sqrt.v").is_some_and(|shape| shape.ends_with("f32"));
        if is_root {
            for root in users(function) {
                // SAFETY: a user of a live function.
                if unsafe { !LLVMIsACallInst(root).is_null() } {
                    Guard::new(context, module, estimates, root).rewrite();
                }
            }
        }
    }
}

/// One root, and what is written behind it.
struct Guard<'a> {
    context: &'a Context,
    module: &'a Module<'a>,
    estimates: Estimates,
    builder: LLVMBuilderRef,
    root: LLVMValueRef,
    x: LLVMValueRef,
    lanes: Option<u32>,
    reciprocal: Option<LLVMValueRef>,
}

/// The instruction that estimates.
#[derive(Clone, Copy)]
struct Estimates {
    /// AVX-512 has one that knows subnormal numbers, and one that tells zero and infinity.
    newer: bool,
    /// The most lanes that they take.
    lanes: u32,
}

impl Estimates {
    fn of(target: &Target) -> Self {
        let has = |feature: &str| target.features.split(',').any(|one| one == feature);
        let newer = has("+avx512vl") && has("+avx512dq");
        // Wider vectors than code prefers are in whole registers all the same: cutting them takes longer than the instructions.
        Self { newer, lanes: if newer { 16 } else { target.vector_bits() / 32 } }
    }
}

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        // SAFETY: owned.
        unsafe { LLVMDisposeBuilder(self.builder) };
    }
}

impl<'a> Guard<'a> {
    fn new(context: &'a Context, module: &'a Module<'a>, estimates: Estimates, root: LLVMValueRef) -> Self {
        // SAFETY: live handles; the root is a call of the intrinsic, and so has an operand.
        unsafe {
            let ty = LLVMTypeOf(root);
            let is_vector = LLVMGetTypeKind(ty) as u32 == LLVMTypeKind::LLVMVectorTypeKind as u32;
            Guard {
                context,
                module,
                estimates,
                builder: LLVMCreateBuilderInContext(context.raw()),
                root,
                x: LLVMGetOperand(root, 0),
                lanes: is_vector.then(|| LLVMGetVectorSize(ty)),
                reciprocal: None,
            }
        }
    }

    fn rewrite(&mut self) {
        for user in users(self.root) {
            if divides_fast(user, self.root) {
                self.quotient(user, None);
            } else if let Some(other) = self.factor(user) {
                for quotient in users(user) {
                    if divides_fast(quotient, user) {
                        self.quotient(quotient, Some(other));
                    }
                }
                erase_unused(user);
            }
        }
        erase_unused(self.root);
    }

    /// The other factor, if the instruction multiplies the root.
    fn factor(&self, user: LLVMValueRef) -> Option<LLVMValueRef> {
        // SAFETY: a live value; a product has two operands.
        unsafe {
            if LLVMIsAInstruction(user).is_null() || !is(user, LLVMOpcode::LLVMFMul) {
                return None;
            }
            let (a, b) = (LLVMGetOperand(user, 0), LLVMGetOperand(user, 1));
            Some(if a == self.root { b } else { a })
        }
    }

    /// Replaces a quotient by the root, or by its product with another factor.
    fn quotient(&mut self, quotient: LLVMValueRef, factor: Option<LLVMValueRef>) {
        // SAFETY: live handles. The root stands before all that use it, and so does what is written behind it; a replaced
        // quotient has no users left.
        unsafe {
            let dividend = LLVMGetOperand(quotient, 0);
            let flags = LLVMGetFastMathFlags(quotient);
            let new = if factor.is_none() && dividend == self.x {
                self.root
            } else {
                let reciprocal = self.reciprocal();
                LLVMPositionBuilderBefore(self.builder, quotient);
                let dividend = match factor {
                    Some(factor) => self.flagged(
                        LLVMBuildFDiv(self.builder, dividend, factor, c"".as_ptr()),
                        flags & !LLVMFastMathApproxFunc,
                    ),
                    None => dividend,
                };
                self.flagged(LLVMBuildFMul(self.builder, dividend, reciprocal, c"".as_ptr()), flags)
            };
            LLVMReplaceAllUsesWith(quotient, new);
            LLVMInstructionEraseFromParent(quotient);
        }
    }

    /// `1/√x`, right everywhere, written once behind the root; piece by piece where vectors are wider than registers.
    fn reciprocal(&mut self) -> LLVMValueRef {
        if let Some(known) = self.reciprocal {
            return known;
        }
        let (b, none, x) = (self.builder, c"".as_ptr(), self.x);
        // SAFETY: live handles; lanes are counted.
        let found = unsafe {
            LLVMPositionBuilderBefore(b, LLVMGetNextInstruction(self.root));
            if let Some(lanes) = self.lanes {
                let width = lanes.next_power_of_two().clamp(4, self.estimates.lanes.max(4));
                let mut whole = None;
                for begin in (0..lanes).step_by(width as usize) {
                    let piece =
                        if lanes == width { x } else { self.shuffle(x, x, begin..begin + width, lanes) };
                    let piece = self.piece(piece, width);
                    whole = Some(match whole {
                        None => piece,
                        Some(before) => self.join(before, piece, begin, width),
                    });
                }
                let whole = whole.unwrap_or(x);
                if lanes < width { self.shuffle(whole, whole, 0..lanes, width) } else { whole }
            } else {
                let whole = LLVMBuildInsertElement(b, self.splat(0.0, 4), x, self.integer(0), none);
                LLVMBuildExtractElement(b, self.piece(whole, 4), self.integer(0), none)
            }
        };
        *self.reciprocal.insert(found)
    }

    /// The reciprocal root of a vector that fits a register.
    ///
    /// # Safety
    /// A live vector of so many lanes.
    unsafe fn piece(&self, x: LLVMValueRef, lanes: u32) -> LLVMValueRef {
        let (b, none) = (self.builder, c"".as_ptr());
        let real = |value| self.splat(value, lanes);
        // SAFETY: live handles, and operands of one type.
        unsafe {
            if self.estimates.newer {
                let rest = real(0.0);
                let mask = LLVMConstAllOnes(LLVMIntTypeInContext(self.context.raw(), lanes.max(8)));
                let names = [
                    c"llvm.x86.avx512.rsqrt14.ps.128",
                    c"llvm.x86.avx512.rsqrt14.ps.256",
                    c"llvm.x86.avx512.rsqrt14.ps.512",
                ];
                let estimate = self.call(pick(names, lanes), LLVMTypeOf(x), &[x, rest, mask]);
                let names = [
                    c"llvm.x86.avx512.fpclass.ps.128",
                    c"llvm.x86.avx512.fpclass.ps.256",
                    c"llvm.x86.avx512.fpclass.ps.512",
                ];
                let bits = LLVMVectorType(LLVMInt1TypeInContext(self.context.raw()), lanes);
                let special = self.call(pick(names, lanes), bits, &[x, self.integer(ZERO_OR_INFINITY)]);
                let (_, refined) = self.refined(x, estimate, lanes);
                return LLVMBuildSelect(b, special, estimate, refined, none);
            }
            let small = LLVMBuildFCmp(b, LLVMRealPredicate::LLVMRealOLT, x, real(SMALLEST_NORMAL), none);
            let scaled = LLVMBuildFMul(b, x, real(SCALE), none);
            let scaled = LLVMBuildSelect(b, small, scaled, x, none);
            let name = if lanes == 8 { c"llvm.x86.avx.rsqrt.ps.256" } else { c"llvm.x86.sse.rsqrt.ps" };
            let estimate = self.call(name, LLVMTypeOf(x), &[scaled]);
            let (half, refined) = self.refined(scaled, estimate, lanes);
            let more = LLVMBuildFCmp(b, LLVMRealPredicate::LLVMRealOGT, refined, half, none);
            let found = LLVMBuildSelect(b, more, refined, half, none);
            let scaled = LLVMBuildFMul(b, found, real(SCALE_OF_ROOT), none);
            LLVMBuildSelect(b, small, scaled, found, none)
        }
    }

    /// Half of the estimate, and the estimate after a Newton step.
    ///
    /// # Safety
    /// Live vectors of so many lanes.
    unsafe fn refined(
        &self,
        x: LLVMValueRef,
        estimate: LLVMValueRef,
        lanes: u32,
    ) -> (LLVMValueRef, LLVMValueRef) {
        let (b, none) = (self.builder, c"".as_ptr());
        // SAFETY: the caller says so.
        unsafe {
            let half = LLVMBuildFMul(b, estimate, self.splat(0.5, lanes), none);
            let product = LLVMBuildFMul(b, x, estimate, none);
            let square = LLVMBuildFMul(b, product, estimate, none);
            let square = self.flagged(square, LLVMFastMathAllowContract);
            let rest = LLVMBuildFSub(b, self.splat(3.0, lanes), square, none);
            let rest = self.flagged(rest, LLVMFastMathAllowContract);
            (half, LLVMBuildFMul(b, half, rest, none))
        }
    }

    /// A call of an intrinsic.
    ///
    /// # Safety
    /// The intrinsic's operands and result are as LLVM declares them.
    unsafe fn call(&self, name: &CStr, result: LLVMTypeRef, operands: &[LLVMValueRef]) -> LLVMValueRef {
        let mut operands = operands.to_vec();
        // SAFETY: live handles, and what the caller says.
        unsafe {
            let mut types: Vec<_> = operands.iter().map(|&operand| LLVMTypeOf(operand)).collect();
            let ty = LLVMFunctionType(result, types.as_mut_ptr(), types.len() as u32, 0);
            let mut function = LLVMGetNamedFunction(self.module.raw(), name.as_ptr());
            if function.is_null() {
                function = LLVMAddFunction(self.module.raw(), name.as_ptr(), ty);
            }
            let count = operands.len() as u32;
            LLVMBuildCall2(self.builder, ty, function, operands.as_mut_ptr(), count, c"".as_ptr())
        }
    }

    /// Lanes of a vector of `lanes`; those behind its end are what the first one is.
    ///
    /// # Safety
    /// Two live vectors of so many lanes.
    unsafe fn shuffle(&self, a: LLVMValueRef, b: LLVMValueRef, from: Range<u32>, lanes: u32) -> LLVMValueRef {
        let picks = from.map(|lane| self.integer(if lane < 2 * lanes { lane } else { 0 }.into()));
        let mut picks: Vec<_> = picks.collect();
        // SAFETY: the caller says so; as many picks as it says.
        unsafe {
            let mask = LLVMConstVector(picks.as_mut_ptr(), picks.len() as u32);
            LLVMBuildShuffleVector(self.builder, a, b, mask, c"".as_ptr())
        }
    }

    /// `before`, of `begin` lanes, and behind it a vector of `width` lanes.
    ///
    /// # Safety
    /// Live vectors of so many lanes.
    unsafe fn join(&self, before: LLVMValueRef, next: LLVMValueRef, begin: u32, width: u32) -> LLVMValueRef {
        // SAFETY: the caller says so.
        unsafe {
            let next = if begin == width { next } else { self.shuffle(next, next, 0..begin, width) };
            self.shuffle(before, next, 0..begin + width, begin)
        }
    }

    /// The value with these flags.
    ///
    /// # Safety
    /// A live value of this builder.
    unsafe fn flagged(&self, value: LLVMValueRef, flags: u32) -> LLVMValueRef {
        // SAFETY: sums, products and quotients of reals; a folded constant has no flags.
        unsafe {
            if !LLVMIsAInstruction(value).is_null() {
                LLVMSetFastMathFlags(value, flags);
            }
        }
        value
    }

    fn integer(&self, value: u64) -> LLVMValueRef {
        // SAFETY: a constant of a live context.
        unsafe { LLVMConstInt(LLVMInt32TypeInContext(self.context.raw()), value, 0) }
    }

    /// A real in each of so many lanes.
    fn splat(&self, value: f64, lanes: u32) -> LLVMValueRef {
        // SAFETY: constants of a live context, as many as it says.
        unsafe {
            let scalar = LLVMConstReal(LLVMFloatTypeInContext(self.context.raw()), value);
            LLVMConstVector(vec![scalar; lanes as usize].as_mut_ptr(), lanes)
        }
    }
}

/// The name for vectors of 4, 8 or 16 lanes.
fn pick(names: [&CStr; 3], lanes: u32) -> &CStr {
    names[(lanes.ilog2() as usize).clamp(2, 4) - 2]
}

/// Erases a pure instruction that nobody needs any more.
fn erase_unused(instruction: LLVMValueRef) {
    // SAFETY: a live instruction, which is not used again.
    unsafe {
        if LLVMGetFirstUse(instruction).is_null() {
            LLVMInstructionEraseFromParent(instruction);
        }
    }
}

/// Whether the value is a quotient by this divisor that may be a product with the reciprocal of a root.
fn divides_fast(value: LLVMValueRef, divisor: LLVMValueRef) -> bool {
    // SAFETY: a live value; a quotient has two operands and flags.
    unsafe {
        !LLVMIsAInstruction(value).is_null()
            && is(value, LLVMOpcode::LLVMFDiv)
            && LLVMGetOperand(value, 1) == divisor
            && LLVMGetFastMathFlags(value) & LLVMFastMathApproxFunc != 0
    }
}

/// # Safety
/// A live instruction.
unsafe fn is(instruction: LLVMValueRef, opcode: LLVMOpcode) -> bool {
    // SAFETY: the caller says so.
    unsafe { LLVMGetInstructionOpcode(instruction) as u32 == opcode as u32 }
}
