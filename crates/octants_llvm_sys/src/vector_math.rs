//! Offers LLVM the vector math functions of the C library.
//!
//! glibc ships vector versions of the usual functions in libmvec, named by the vector function ABI. LLVM's own table
//! of them stops at 256 bits and at five functions, so the variants are attached here, to each call that is marked
//! `afn` (approximate functions allowed): in a vectorised loop LLVM then calls the variant of the loop's width.
//! Only functions that the library on this machine really has are offered.

use std::collections::BTreeSet;
use std::ffi::CString;
use std::fmt::Write as _;

use llvm_sys::core::{
    LLVMAddAttributeAtIndex, LLVMAddCallSiteAttribute, LLVMAddFunction, LLVMAddGlobal, LLVMArrayType2,
    LLVMConstArray2, LLVMCreateEnumAttribute, LLVMCreateStringAttribute, LLVMDoubleTypeInContext,
    LLVMFloatTypeInContext, LLVMFunctionType, LLVMGetCalledValue, LLVMGetEnumAttributeKindForName,
    LLVMGetFastMathFlags, LLVMGetFirstUse, LLVMGetNamedFunction, LLVMGetNextUse, LLVMGetUser,
    LLVMIsACallInst, LLVMIsDeclaration, LLVMPointerTypeInContext, LLVMSetInitializer, LLVMSetLinkage,
    LLVMSetSection, LLVMVectorType,
};
use llvm_sys::prelude::LLVMValueRef;
use llvm_sys::{LLVMAttributeFunctionIndex, LLVMFastMathApproxFunc, LLVMLinkage};

use crate::handles::{Context, Module, name_of};
use crate::resolve;
use crate::target::Target;

/// Functions of libmvec by their C name in double precision, with their number of arguments.
const FUNCTIONS: [(&str, usize); 26] = [
    ("acos", 1),
    ("acosh", 1),
    ("asin", 1),
    ("asinh", 1),
    ("atan", 1),
    ("atan2", 2),
    ("atanh", 1),
    ("cbrt", 1),
    ("cos", 1),
    ("cosh", 1),
    ("erf", 1),
    ("erfc", 1),
    ("exp", 1),
    ("exp10", 1),
    ("exp2", 1),
    ("expm1", 1),
    ("hypot", 2),
    ("log", 1),
    ("log10", 1),
    ("log1p", 1),
    ("log2", 1),
    ("pow", 2),
    ("sin", 1),
    ("sinh", 1),
    ("tan", 1),
    ("tanh", 1),
];

/// One call's worth of knowledge: which C function a callee stands for.
struct Scalar {
    name: &'static str,
    arity: usize,
    double: bool,
}

/// Understands `llvm.sin.f32`, `sinf` and `sin`.
fn recognise(callee: &str) -> Option<Scalar> {
    let find = |name: &str| FUNCTIONS.iter().find(|(known, _)| *known == name);
    if let Some(rest) = callee.strip_prefix("llvm.") {
        let (name, kind) = rest.rsplit_once('.')?;
        let double = match kind {
            "f32" => false,
            "f64" => true,
            _ => return None,
        };
        return find(name).map(|&(name, arity)| Scalar { name, arity, double });
    }
    if let Some(&(name, arity)) = find(callee) {
        return Some(Scalar { name, arity, double: true });
    }
    find(callee.strip_suffix('f')?).map(|&(name, arity)| Scalar { name, arity, double: false })
}

/// The vector widths in bits that the target has registers for, with the ABI's letter.
fn widths(target: &Target) -> Vec<(u32, char)> {
    let has = |feature: &str| target.features.split(',').any(|one| one == feature);
    if target.triple.starts_with("x86_64") {
        let mut widths = vec![(128, 'b')];
        if has("+avx2") {
            widths.push((256, 'd'));
        }
        if has("+avx512f") {
            widths.push((512, 'e'));
        }
        return widths;
    }
    if target.triple.starts_with("aarch64") {
        return vec![(128, 'n')];
    }
    Vec::new()
}

/// Attaches variants to the module's calls. Only for the host: elsewhere this machine's library says nothing.
pub(crate) fn offer(context: &Context, module: &Module<'_>, target: &Target) {
    if !target.triple.contains("linux") {
        return;
    }
    let widths = widths(target);
    let mut used = BTreeSet::new();
    for function in module.functions() {
        // SAFETY: handles of a live module on its own thread.
        let declared = unsafe { LLVMIsDeclaration(function) != 0 };
        if !declared {
            continue;
        }
        let callee = name_of(function);
        let Some(scalar) = recognise(&callee) else { continue };
        let calls = approximate_calls(function);
        if calls.is_empty() {
            continue;
        }
        let variants = variants(&scalar, &widths);
        if variants.is_empty() {
            continue;
        }
        let mut list = String::new();
        for variant in &variants {
            if !list.is_empty() {
                list.push(',');
            }
            // The mangled name only says the shape; what is called stands in parentheses.
            let shape = "v".repeat(scalar.arity);
            let _ = write!(list, "_ZGV_LLVM_N{}{shape}_{callee}({})", variant.lanes, variant.symbol);
            declare(context, module, &scalar, variant);
            used.insert(variant.symbol.clone());
        }
        for call in calls {
            attach(context, call, &list);
        }
    }
    keep(context, module, &used);
}

struct Variant {
    lanes: u32,
    symbol: String,
}

/// The symbol of the vector library's function for so many lanes, by its C name in double precision; nothing if this machine has none.
pub fn host_vector_function(name: &str, arguments: usize, bits: u32, lanes: u32) -> Option<String> {
    let &(name, arity) = FUNCTIONS.iter().find(|known| **known == (name, arguments))?;
    let target = Target::host();
    let width: Vec<_> = widths(target).into_iter().filter(|&(width, _)| width == bits * lanes).collect();
    let found = variants(&Scalar { name, arity, double: bits == 64 }, &width).pop()?;
    target.triple.contains("linux").then_some(found.symbol)
}

fn variants(scalar: &Scalar, widths: &[(u32, char)]) -> Vec<Variant> {
    let (bits, suffix) = if scalar.double { (64, "") } else { (32, "f") };
    let mut variants = Vec::new();
    for &(width, letter) in widths {
        let lanes = width / bits;
        let symbol = format!("_ZGV{letter}N{lanes}{}_{}{suffix}", "v".repeat(scalar.arity), scalar.name);
        if resolve::vector_library_has(&symbol) {
            variants.push(Variant { lanes, symbol });
        }
    }
    variants
}

fn approximate_calls(function: LLVMValueRef) -> Vec<LLVMValueRef> {
    let mut calls = Vec::new();
    // SAFETY: walks the uses of a live function, which do not change meanwhile. Flags are only asked of calls of a
    // function that returns a float.
    unsafe {
        let mut next = LLVMGetFirstUse(function);
        while !next.is_null() {
            let user = LLVMGetUser(next);
            if !LLVMIsACallInst(user).is_null()
                && LLVMGetCalledValue(user) == function
                && LLVMGetFastMathFlags(user) & LLVMFastMathApproxFunc != 0
            {
                calls.push(user);
            }
            next = LLVMGetNextUse(next);
        }
    }
    calls
}

fn attach(context: &Context, call: LLVMValueRef, variants: &str) {
    const KEY: &str = "vector-function-abi-variant";
    // SAFETY: strings are passed with their lengths and copied; a live call.
    unsafe {
        let attribute = LLVMCreateStringAttribute(
            context.raw(),
            KEY.as_ptr().cast(),
            KEY.len() as u32,
            variants.as_ptr().cast(),
            variants.len() as u32,
        );
        LLVMAddCallSiteAttribute(call, LLVMAttributeFunctionIndex, attribute);
    }
}

fn declare(context: &Context, module: &Module<'_>, scalar: &Scalar, variant: &Variant) {
    let name = CString::new(variant.symbol.as_str()).expect("symbols are made of letters and digits");
    // SAFETY: live handles; types of the same context.
    unsafe {
        if !LLVMGetNamedFunction(module.raw(), name.as_ptr()).is_null() {
            return;
        }
        let element = if scalar.double {
            LLVMDoubleTypeInContext(context.raw())
        } else {
            LLVMFloatTypeInContext(context.raw())
        };
        let vector = LLVMVectorType(element, variant.lanes);
        let mut parameters = vec![vector; scalar.arity];
        let signature = LLVMFunctionType(vector, parameters.as_mut_ptr(), scalar.arity as u32, 0);
        let function = LLVMAddFunction(module.raw(), name.as_ptr(), signature);
        for attribute in ["nounwind", "willreturn"] {
            let kind = LLVMGetEnumAttributeKindForName(attribute.as_ptr().cast(), attribute.len());
            let attribute = LLVMCreateEnumAttribute(context.raw(), kind, 0);
            LLVMAddAttributeAtIndex(function, LLVMAttributeFunctionIndex, attribute);
        }
        let kind = LLVMGetEnumAttributeKindForName(c"memory".as_ptr(), "memory".len());
        let no_memory = LLVMCreateEnumAttribute(context.raw(), kind, 0);
        LLVMAddAttributeAtIndex(function, LLVMAttributeFunctionIndex, no_memory);
    }
}

/// Keeps declarations that no call uses yet until the vectoriser has looked for them.
fn keep(context: &Context, module: &Module<'_>, symbols: &BTreeSet<String>) {
    if symbols.is_empty() {
        return;
    }
    // SAFETY: live handles; `llvm.compiler.used` has the type and linkage that LLVM asks for.
    unsafe {
        if !llvm_sys::core::LLVMGetNamedGlobal(module.raw(), c"llvm.compiler.used".as_ptr()).is_null() {
            return;
        }
        let mut functions: Vec<LLVMValueRef> = symbols
            .iter()
            .map(|symbol| {
                let name = CString::new(symbol.as_str()).expect("symbols are made of letters and digits");
                LLVMGetNamedFunction(module.raw(), name.as_ptr())
            })
            .collect();
        let pointer = LLVMPointerTypeInContext(context.raw(), 0);
        let list = LLVMConstArray2(pointer, functions.as_mut_ptr(), functions.len() as u64);
        let kind = LLVMArrayType2(pointer, functions.len() as u64);
        let global = LLVMAddGlobal(module.raw(), kind, c"llvm.compiler.used".as_ptr());
        LLVMSetInitializer(global, list);
        LLVMSetLinkage(global, LLVMLinkage::LLVMAppendingLinkage);
        LLVMSetSection(global, c"llvm.metadata".as_ptr());
    }
}
