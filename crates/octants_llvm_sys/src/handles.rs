//! Owning handles of LLVM's objects: each releases what it holds, in the order that LLVM needs.

use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char, c_void};
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::ptr;

use llvm_sys::analysis::{LLVMVerifierFailureAction, LLVMVerifyModule};
use llvm_sys::bit_reader::LLVMGetBitcodeModuleInContext2;
use llvm_sys::core::{
    LLVMAddAttributeAtIndex, LLVMCloneModule, LLVMContextCreate, LLVMContextDispose,
    LLVMContextSetDiagnosticHandler, LLVMContextSetDiscardValueNames, LLVMCreateMemoryBufferWithMemoryRange,
    LLVMCreateMemoryBufferWithMemoryRangeCopy, LLVMCreateStringAttribute, LLVMDisposeMemoryBuffer,
    LLVMDisposeMessage, LLVMDisposeModule, LLVMGetBufferSize, LLVMGetBufferStart, LLVMGetDiagInfoDescription,
    LLVMGetDiagInfoSeverity, LLVMGetFirstFunction, LLVMGetFirstUse, LLVMGetLinkage, LLVMGetNextFunction,
    LLVMGetNextUse, LLVMGetUser, LLVMGetValueName2, LLVMIsDeclaration, LLVMPrintModuleToString,
    LLVMSetTarget,
};
use llvm_sys::error::{LLVMDisposeErrorMessage, LLVMGetErrorMessage};
use llvm_sys::ir_reader::LLVMParseIRInContext;
use llvm_sys::linker::LLVMLinkModules2;
use llvm_sys::prelude::{
    LLVMContextRef, LLVMDiagnosticInfoRef, LLVMMemoryBufferRef, LLVMModuleRef, LLVMValueRef,
};
use llvm_sys::target::{LLVMCopyStringRepOfTargetData, LLVMDisposeTargetData, LLVMSetModuleDataLayout};
use llvm_sys::target_machine::{self as tm, LLVMCodeGenFileType, LLVMCodeModel, LLVMRelocMode};
use llvm_sys::transforms::pass_builder::{
    LLVMCreatePassBuilderOptions, LLVMDisposePassBuilderOptions, LLVMRunPasses,
};
use llvm_sys::{LLVMAttributeFunctionIndex, LLVMDiagnosticSeverity, LLVMLinkage};

use crate::pipeline::OptLevel;
use crate::target::Target;

/// Copies and releases a string that LLVM allocated.
///
/// # Safety
/// `message` is null or came from an LLVM function that hands over ownership of its result.
pub(crate) unsafe fn owned_message(message: *mut c_char) -> String {
    if message.is_null() {
        return String::new();
    }
    // SAFETY: a C string by contract, not used after its release.
    unsafe {
        let text = CStr::from_ptr(message).to_string_lossy().into_owned();
        LLVMDisposeMessage(message);
        text
    }
}

/// The name of a function or global.
pub(crate) fn name_of(value: LLVMValueRef) -> String {
    let mut length = 0;
    // SAFETY: a live value; the name is copied before anything can change it.
    unsafe {
        let start = LLVMGetValueName2(value, &raw mut length).cast::<u8>();
        String::from_utf8_lossy(std::slice::from_raw_parts(start, length)).into_owned()
    }
}

/// The users of a value, each once.
pub(crate) fn users(value: LLVMValueRef) -> Vec<LLVMValueRef> {
    let mut users = Vec::new();
    // SAFETY: walks the uses of a live value, which do not change meanwhile.
    unsafe {
        let mut next = LLVMGetFirstUse(value);
        while !next.is_null() {
            let user = LLVMGetUser(next);
            if !users.contains(&user) {
                users.push(user);
            }
            next = LLVMGetNextUse(next);
        }
    }
    users
}

/// Everything that one compilation makes. Not shared between threads.
pub(crate) struct Context {
    raw: LLVMContextRef,
    /// Errors that LLVM reported without stopping. Boxed: LLVM keeps its address.
    errors: Box<RefCell<Vec<String>>>,
}

impl Context {
    pub(crate) fn new() -> Context {
        let errors: Box<RefCell<Vec<String>>> = Box::default();
        // SAFETY: the box outlives the context, and only this thread touches either. Without a handler LLVM would end
        // the process at the first error.
        let raw = unsafe {
            let raw = LLVMContextCreate();
            let sink = (&raw const *errors).cast_mut().cast::<c_void>();
            LLVMContextSetDiagnosticHandler(raw, Some(collect_error), sink);
            raw
        };
        Context { raw, errors }
    }

    /// Parses a module from text and checks that it is well formed.
    pub(crate) fn parse(&self, text: &str) -> Result<Module<'_>, String> {
        // SAFETY: the buffer is a copy and the parser takes it over. The message is ours on failure.
        unsafe {
            let buffer =
                LLVMCreateMemoryBufferWithMemoryRangeCopy(text.as_ptr().cast(), text.len(), c"text".as_ptr());
            let (mut module, mut message) = (ptr::null_mut(), ptr::null_mut());
            if LLVMParseIRInContext(self.raw, buffer, &raw mut module, &raw mut message) != 0 {
                return Err(owned_message(message));
            }
            let module = Module { raw: module, context: PhantomData };
            let mut message = ptr::null_mut();
            let action = LLVMVerifierFailureAction::LLVMReturnStatusAction;
            let broken = LLVMVerifyModule(module.raw, action, &raw mut message) != 0;
            let message = owned_message(message);
            if broken { Err(message) } else { Ok(module) }
        }
    }

    /// Reads a module from bitcode, function bodies only when something asks for them.
    pub(crate) fn read_bitcode(&self, bytes: &'static [u8]) -> Result<Module<'_>, String> {
        // SAFETY: the buffer refers to bytes that live for ever, and the module takes it over, also on failure. Messages go to
        // the context.
        unsafe {
            let (start, name) = (bytes.as_ptr().cast(), c"bitcode".as_ptr());
            let buffer = LLVMCreateMemoryBufferWithMemoryRange(start, bytes.len(), name, 0);
            let mut module = ptr::null_mut();
            if LLVMGetBitcodeModuleInContext2(self.raw, buffer, &raw mut module) != 0 {
                self.check()?;
                return Err("the bitcode cannot be read".to_owned());
            }
            Ok(Module { raw: module, context: PhantomData })
        }
    }

    /// New values get no names from here on. Text cannot be parsed any more, as it refers to values by name.
    pub(crate) fn discard_names(&self) {
        // SAFETY: a live context.
        unsafe { LLVMContextSetDiscardValueNames(self.raw, 1) };
    }

    /// The errors so far, joined; `Ok` if there are none.
    pub(crate) fn check(&self) -> Result<(), String> {
        let errors = self.errors.borrow();
        if errors.is_empty() { Ok(()) } else { Err(errors.join("\n")) }
    }

    pub(crate) fn raw(&self) -> LLVMContextRef {
        self.raw
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: modules borrow the context, so none is left.
        unsafe { LLVMContextDispose(self.raw) };
    }
}

extern "C" fn collect_error(info: LLVMDiagnosticInfoRef, sink: *mut c_void) {
    // SAFETY: `sink` is the box of the context that reports, on the only thread that uses it.
    unsafe {
        if LLVMGetDiagInfoSeverity(info) as u32 == LLVMDiagnosticSeverity::LLVMDSError as u32 {
            let description = owned_message(LLVMGetDiagInfoDescription(info));
            (*sink.cast::<RefCell<Vec<String>>>()).borrow_mut().push(description);
        }
    }
}

/// One module of a context.
pub(crate) struct Module<'c> {
    raw: LLVMModuleRef,
    context: PhantomData<&'c Context>,
}

impl<'c> Module<'c> {
    pub(crate) fn raw(&self) -> LLVMModuleRef {
        self.raw
    }

    pub(crate) fn duplicate(&self) -> Module<'c> {
        // SAFETY: a live module; the copy belongs to the same context.
        Module { raw: unsafe { LLVMCloneModule(self.raw) }, context: PhantomData }
    }

    /// Moves what another module of the same context defines into this one. Messages go to the context.
    pub(crate) fn link(&self, other: Module<'c>) -> Result<(), String> {
        let other = ManuallyDrop::new(other);
        // SAFETY: live modules of one context; the other one is used up.
        match unsafe { LLVMLinkModules2(self.raw, other.raw) } {
            0 => Ok(()),
            _ => Err("the modules do not link".to_owned()),
        }
    }

    pub(crate) fn print(&self) -> String {
        // SAFETY: a live module; the string is ours.
        unsafe { owned_message(LLVMPrintModuleToString(self.raw)) }
    }

    /// Every function, defined or only declared.
    pub(crate) fn functions(&self) -> Vec<LLVMValueRef> {
        let mut all = Vec::new();
        // SAFETY: walks the module's list, which does not change meanwhile.
        unsafe {
            let mut next = LLVMGetFirstFunction(self.raw);
            while !next.is_null() {
                all.push(next);
                next = LLVMGetNextFunction(next);
            }
        }
        all
    }

    /// Whether a function is defined that nothing outside of the module can call.
    pub(crate) fn has_private_functions(&self) -> bool {
        self.functions().into_iter().any(|function| {
            // SAFETY: a function of the live module.
            let (declared, linkage) = unsafe { (LLVMIsDeclaration(function) != 0, LLVMGetLinkage(function)) };
            !declared && matches!(linkage, LLVMLinkage::LLVMInternalLinkage | LLVMLinkage::LLVMPrivateLinkage)
        })
    }

    /// Gives the defined functions of which this is true a string attribute.
    pub(crate) fn set_function_attribute(
        &self,
        context: &Context,
        (key, value): (&str, &str),
        of: impl Fn(LLVMValueRef) -> bool,
    ) {
        // SAFETY: both strings are passed with their lengths and copied.
        unsafe {
            let attribute = LLVMCreateStringAttribute(
                context.raw,
                key.as_ptr().cast(),
                key.len() as u32,
                value.as_ptr().cast(),
                value.len() as u32,
            );
            for function in self.functions() {
                if LLVMIsDeclaration(function) == 0 && of(function) {
                    LLVMAddAttributeAtIndex(function, LLVMAttributeFunctionIndex, attribute);
                }
            }
        }
    }
}

impl Drop for Module<'_> {
    fn drop(&mut self) {
        // SAFETY: owned, and the context is alive.
        unsafe { LLVMDisposeModule(self.raw) };
    }
}

/// LLVM's knowledge of one target.
pub(crate) struct TargetMachine {
    raw: tm::LLVMTargetMachineRef,
    triple: CString,
}

// SAFETY: a machine is tied to no thread and no context; it only must not be used by two threads at once.
unsafe impl Send for TargetMachine {}

impl TargetMachine {
    pub(crate) fn new(target: &Target, level: OptLevel) -> Result<TargetMachine, String> {
        crate::fatal::initialise();
        let text = |what: &str, value: &str| {
            CString::new(value).map_err(|_| format!("the target's {what} contains a zero byte: {value:?}"))
        };
        let triple = text("triple", &target.triple)?;
        let cpu = text("cpu", &target.cpu)?;
        let features = text("features", &target.features)?;
        // SAFETY: C strings that outlive the calls; out-pointers are valid.
        unsafe {
            let (mut known, mut message) = (ptr::null_mut(), ptr::null_mut());
            if tm::LLVMGetTargetFromTriple(triple.as_ptr(), &raw mut known, &raw mut message) != 0 {
                return Err(owned_message(message));
            }
            let raw = tm::LLVMCreateTargetMachine(
                known,
                triple.as_ptr(),
                cpu.as_ptr(),
                features.as_ptr(),
                level.codegen(target.processor()),
                LLVMRelocMode::LLVMRelocPIC,
                LLVMCodeModel::LLVMCodeModelDefault,
            );
            if raw.is_null() {
                return Err(format!("LLVM cannot generate code for {}", target.triple));
            }
            Ok(TargetMachine { raw, triple })
        }
    }

    pub(crate) fn data_layout(&self) -> String {
        // SAFETY: a live machine; the layout and its text are released here.
        unsafe {
            let layout = tm::LLVMCreateTargetDataLayout(self.raw);
            let text = owned_message(LLVMCopyStringRepOfTargetData(layout));
            LLVMDisposeTargetData(layout);
            text
        }
    }

    /// Makes the module one for this target.
    pub(crate) fn adopt(&self, module: &Module<'_>) {
        // SAFETY: live handles.
        unsafe {
            let layout = tm::LLVMCreateTargetDataLayout(self.raw);
            LLVMSetModuleDataLayout(module.raw, layout);
            LLVMDisposeTargetData(layout);
            LLVMSetTarget(module.raw, self.triple.as_ptr());
        }
    }

    pub(crate) fn run_passes(&self, module: &Module<'_>, passes: &str) -> Result<(), String> {
        let passes =
            CString::new(passes).map_err(|_| "the list of passes contains a zero byte".to_owned())?;
        // SAFETY: live handles; an error and its message are consumed here.
        unsafe {
            let options = LLVMCreatePassBuilderOptions();
            let error = LLVMRunPasses(module.raw, passes.as_ptr(), self.raw, options);
            LLVMDisposePassBuilderOptions(options);
            if error.is_null() {
                return Ok(());
            }
            let message = LLVMGetErrorMessage(error);
            let text = CStr::from_ptr(message).to_string_lossy().into_owned();
            LLVMDisposeErrorMessage(message);
            Err(text)
        }
    }

    /// Generates code. The module is used up: code generation rewrites it.
    #[allow(clippy::needless_pass_by_value)]
    pub(crate) fn emit(&self, module: Module<'_>, kind: LLVMCodeGenFileType) -> Result<Vec<u8>, String> {
        // SAFETY: live handles; buffer and message are released here.
        unsafe {
            let (mut buffer, mut message): (LLVMMemoryBufferRef, _) = (ptr::null_mut(), ptr::null_mut());
            let failed = tm::LLVMTargetMachineEmitToMemoryBuffer(
                self.raw,
                module.raw,
                kind,
                &raw mut message,
                &raw mut buffer,
            );
            if failed != 0 {
                return Err(owned_message(message));
            }
            let start = LLVMGetBufferStart(buffer).cast::<u8>();
            let bytes = std::slice::from_raw_parts(start, LLVMGetBufferSize(buffer)).to_vec();
            LLVMDisposeMemoryBuffer(buffer);
            Ok(bytes)
        }
    }
}

impl Drop for TargetMachine {
    fn drop(&mut self) {
        // SAFETY: owned.
        unsafe { tm::LLVMDisposeTargetMachine(self.raw) };
    }
}
