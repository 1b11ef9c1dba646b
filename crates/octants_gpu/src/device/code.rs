//! Code on the device: loading it, and starting it.

use std::ffi::{CString, c_int, c_void};
use std::ptr;

use octants_abi::gpu::GpuFrame;
use octants_hal::{Device, DeviceError, FunctionUsage, Image, ImagePart, Launch, LaunchShape};

use super::{GpuDevice, handle};
use crate::driver::table::{Handle, LaunchAttribute, LaunchConfig, Linker};
use crate::grid::{FunctionShape, GridSize};
use crate::vendor::Attributes;

/// Bytes of what the driver's compiler says of code that it refuses. Chosen: some twenty lines.
const ERROR_LOG_BYTES: usize = 4096;

/// Bytes of a block's memory, with what a function declares itself, that any launch may ask for; a function is told of more.
const PLAIN_SHARED_BYTES: u64 = 48 << 10;

/// What machine code begins with, in the form that the driver's assembler gives.
const MACHINE_CODE: &[u8] = b"\x7fELF";

/// A loaded module: one of the driver's for each part, and the function that the part defines.
#[derive(Default)]
pub(super) struct LoadedModule {
    parts: Vec<Handle>,
    /// A [`Function`] is the address of one of them: they stay where they are.
    pub functions: Vec<LoadedFunction>,
}

pub(super) struct LoadedFunction {
    pub symbol: String,
    handle: Handle,
    pub shape: FunctionShape,
}

fn text_of(part: &ImagePart<'_>) -> Result<CString, DeviceError> {
    let bad = |_| DeviceError::BadImage { message: format!("`{}` has a zero inside", part.symbol) };
    CString::new(part.bytes).map_err(bad)
}

impl GpuDevice {
    /// Loads every part, or none.
    pub(super) fn load(&self, image: &Image<'_>) -> Result<LoadedModule, DeviceError> {
        let mut module = LoadedModule::default();
        for part in image.parts {
            let loaded = if part.bytes.starts_with(MACHINE_CODE) {
                self.load_part(part.symbol, part.bytes)
            } else {
                text_of(part).and_then(|text| self.load_part(part.symbol, text.as_bytes_with_nul()))
            };
            match loaded {
                Ok(loaded) => module.parts.push(loaded),
                Err(error) => {
                    self.unload(&module);
                    return Err(error);
                }
            }
            let loaded = module.parts[module.parts.len() - 1];
            match self.loaded_function(loaded, part) {
                Ok(function) => module.functions.push(function),
                Err(error) => {
                    self.unload(&module);
                    return Err(error);
                }
            }
        }
        Ok(module)
    }

    /// What a function takes of the device.
    pub(super) fn usage(&self, function: &LoadedFunction) -> Result<FunctionUsage, DeviceError> {
        let _entered = self.enter()?;
        let ask = |attribute| self.function_attribute("function_usage", function.handle, attribute);
        let attributes: &Attributes = &self.driver.vendor.attributes;
        let most = self.attribute("function_usage", attributes.threads_per_multiprocessor)?;
        let FunctionShape { shape, resident } = function.shape;
        let blocks = (resident / u64::from(self.multiprocessors)) as u32;
        Ok(FunctionUsage {
            registers: ask(attributes.registers)?,
            local_bytes: ask(attributes.local_bytes)?,
            shared_bytes: ask(attributes.shared_bytes)? + shape.shared_bytes,
            block: shape.block,
            resident_threads: blocks * shape.block,
            max_resident_threads: most as u32,
        })
    }

    /// A number of a loaded function's description.
    fn function_attribute(
        &self,
        verb: &'static str,
        function: Handle,
        attribute: c_int,
    ) -> Result<u32, DeviceError> {
        let (table, mut value) = (self.enter()?, 0);
        // SAFETY: writes one integer; the function is loaded.
        let status = unsafe { (table.function_attribute)(&raw mut value, attribute, function) };
        self.check(verb, status).map(|()| value as u32)
    }

    /// # Safety
    /// As for the verb `launch`; `frame` is in the layout of [`GpuFrame`].
    pub(super) unsafe fn start(
        &self,
        launch: &Launch<'_>,
        frame: &[u64],
        function: &LoadedFunction,
        grid: GridSize,
    ) -> Result<(), DeviceError> {
        let (args, stream) = (launch.context.args, launch.context.stream);
        if args.len() <= GpuFrame::MAX_ARGS_BY_VALUE {
            let empty = [0_u64];
            let args = if args.is_empty() { empty.as_ptr().cast() } else { args.as_ptr() };
            // SAFETY: the caller says so.
            return unsafe { self.start_with(launch, args, frame, function, grid) };
        }
        // SAFETY: the stream is live; the copy is there before the launch, and goes when the stream is past it.
        unsafe {
            let copy = self.allocate_scratch(stream, args.len())?;
            let copied = self.copy_to_device(stream, copy, args.as_ptr(), args.len());
            let parameter = (&raw const copy.0).cast();
            let started = copied.and_then(|()| self.start_with(launch, parameter, frame, function, grid));
            self.free_scratch(stream, copy, args.len());
            started
        }
    }

    /// # Safety
    /// As for `start`; `args` is the address of the first parameter.
    unsafe fn start_with(
        &self,
        launch: &Launch<'_>,
        args: *const u8,
        frame: &[u64],
        function: &LoadedFunction,
        grid: GridSize,
    ) -> Result<(), DeviceError> {
        let table = self.enter()?;
        let mut parameters: [*mut c_void; 2] = [args.cast_mut().cast(), frame.as_ptr().cast_mut().cast()];
        let (shape, stream) = (&function.shape.shape, handle(launch.context.stream.0));
        // SAFETY: the caller vouches for the function and the arguments; parameters are copied before the call returns.
        let status = unsafe {
            if let (true, Some(launch_with_attributes)) = (shape.waits, table.launch_with_attributes) {
                // With this the device begins a kernel when the last one ends, and the kernel waits for what is left of it.
                let waits = LaunchAttribute::waits(self.flags());
                let config = LaunchConfig {
                    grid: [grid.blocks, 1, 1],
                    block: [grid.threads, 1, 1],
                    shared_bytes: shape.shared_bytes,
                    stream,
                    attributes: &raw const waits,
                    attribute_count: 1,
                };
                let (parameters, extra) = (parameters.as_mut_ptr(), ptr::null_mut());
                launch_with_attributes(&raw const config, function.handle, parameters, extra)
            } else {
                (table.launch)(
                    function.handle,
                    grid.blocks,
                    1,
                    1,
                    grid.threads,
                    1,
                    1,
                    shape.shared_bytes,
                    stream,
                    parameters.as_mut_ptr(),
                    ptr::null_mut(),
                )
            }
        };
        self.check("launch", status)
    }

    /// Has the driver's linker make machine code of text.
    pub(super) fn assemble_part(&self, linker: Linker, part: &[u8]) -> Result<Vec<u8>, DeviceError> {
        let bad = |_| DeviceError::BadImage { message: "the text has a zero inside".to_owned() };
        let text = CString::new(part).map_err(bad)?;
        let (_entered, mut state) = (self.enter()?, ptr::null_mut());
        let (mut code, mut bytes) = (ptr::null_mut(), 0);
        // SAFETY: no options; the text ends with a zero and outlives the linker, which is destroyed when its code has been copied.
        unsafe {
            let none = || (0, ptr::null_mut(), ptr::null_mut());
            let (count, options, values) = none();
            let status = (linker.create)(count, options, values, &raw mut state);
            self.check("assemble", status)?;
            let whole = text.as_bytes_with_nul();
            let (count, options, values) = none();
            let mut status = (linker.add)(
                state,
                self.flags().linker_text,
                whole.as_ptr().cast_mut().cast(),
                whole.len(),
                c"task".as_ptr(),
                count,
                options,
                values,
            );
            if status == 0 {
                status = (linker.complete)(state, &raw mut code, &raw mut bytes);
            }
            let made = self.check("assemble", status).map(|()| {
                if code.is_null() {
                    Vec::new()
                } else {
                    std::slice::from_raw_parts(code.cast::<u8>(), bytes).to_vec()
                }
            });
            (linker.destroy)(state);
            made
        }
    }

    /// Has the driver load a part, and compile it if it is text. If it refuses, the error has its compiler's words.
    fn load_part(&self, symbol: &str, image: &[u8]) -> Result<Handle, DeviceError> {
        let (table, mut loaded) = (self.enter()?, ptr::null_mut());
        let mut log = [0_u8; ERROR_LOG_BYTES];
        let mut options = [self.flags().error_log, self.flags().error_log_bytes];
        let mut values = [log.as_mut_ptr().cast::<c_void>(), ptr::without_provenance_mut(ERROR_LOG_BYTES)];
        // SAFETY: machine code or a text that ends with a zero, and as many options with values as it says; the log outlives the call.
        let status = unsafe {
            let (count, options) = (options.len() as u32, options.as_mut_ptr());
            (table.module_load)(&raw mut loaded, image.as_ptr().cast(), count, options, values.as_mut_ptr())
        };
        self.check("load_module", status).map_err(|error| match error {
            DeviceError::BadImage { message } => {
                let length = log.iter().position(|&byte| byte == 0).unwrap_or(log.len());
                let said = String::from_utf8_lossy(&log[..length]);
                DeviceError::BadImage {
                    message: format!("`{symbol}`: {message} {}", said.trim()).trim_end().to_owned(),
                }
            }
            other => other,
        })?;
        Ok(loaded)
    }

    /// What a launch wants to know of the function of a part, asked once.
    fn loaded_function(&self, module: Handle, part: &ImagePart<'_>) -> Result<LoadedFunction, DeviceError> {
        let table = self.enter()?;
        let symbol = CString::new(part.symbol)
            .map_err(|_| DeviceError::BadImage { message: format!("`{}` has a zero inside", part.symbol) })?;
        let shape = part.shape;
        let (mut handle, mut blocks) = (ptr::null_mut(), 0);
        // SAFETY: the module is loaded; writes the handle.
        unsafe {
            let status = (table.module_function)(&raw mut handle, module, symbol.as_ptr());
            self.check("load_module", status)?;
            if let Some(function_load) = table.function_load {
                self.check("load_module", function_load(handle))?;
            }
        }
        if shape.shared_bytes > 0 {
            self.allow_shared_bytes(part.symbol, handle, shape.shared_bytes)?;
        }
        // SAFETY: the function is loaded; writes an integer.
        unsafe {
            let (block, shared) = (shape.block as c_int, shape.shared_bytes as usize);
            let status = (table.resident_blocks)(&raw mut blocks, handle, block, shared);
            self.check("load_module", status)?;
        }
        if blocks < 1 {
            return Err(self.too_large(part.symbol, handle, shape)?);
        }
        let resident = blocks as u64 * u64::from(self.multiprocessors);
        Ok(LoadedFunction {
            symbol: part.symbol.to_owned(),
            handle,
            shape: FunctionShape { shape, resident },
        })
    }

    /// Lets launches of a function ask for so many bytes of a block's memory, beside those that it declares itself.
    fn allow_shared_bytes(&self, symbol: &str, function: Handle, bytes: u32) -> Result<(), DeviceError> {
        let attributes: &Attributes = &self.driver.vendor.attributes;
        let own = self.function_attribute("load_module", function, attributes.shared_bytes)?;
        let whole = u64::from(own) + u64::from(bytes);
        if whole <= PLAIN_SHARED_BYTES {
            return Ok(());
        }
        let most = self.attribute("load_module", attributes.most_block_shared_bytes)?;
        if whole > most {
            let message = format!(
                "`{symbol}`: a block takes {whole} bytes of shared memory, {own} of them for what its threads combine, and this device has {most}"
            );
            return Err(DeviceError::TooLarge { message });
        }
        let table = self.enter()?;
        // SAFETY: the function is loaded.
        let status = unsafe {
            (table.function_set_attribute)(function, attributes.most_launch_shared_bytes, bytes as c_int)
        };
        self.check("load_module", status)
    }

    /// Why not even one block of a function fits a multiprocessor.
    fn too_large(
        &self,
        symbol: &str,
        function: Handle,
        shape: LaunchShape,
    ) -> Result<DeviceError, DeviceError> {
        let attributes: &Attributes = &self.driver.vendor.attributes;
        let registers = self.function_attribute("load_module", function, attributes.registers)?;
        let message = format!(
            "`{symbol}`: no block of {} threads fits, with {registers} registers of each and {} bytes of shared memory",
            shape.block, shape.shared_bytes
        );
        Ok(DeviceError::TooLarge { message })
    }

    pub(super) fn unload(&self, module: &LoadedModule) {
        if let Ok(table) = self.enter() {
            for &part in &module.parts {
                // SAFETY: loaded by this device, and never used again.
                unsafe { (table.module_unload)(part) };
            }
        }
    }
}
