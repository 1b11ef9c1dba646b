//! `@oc.kernel`: a Python function compiled when it is called, once for each kind of arguments.
//!
//! A call looks at each argument once, compares what it found with the specialisation of the call before, writes the block of
//! arguments on the stack and hands it to the device. Nothing is keyed by the address of a temporary object.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use octants::front::{ArgSpec, FunctionKind, Returns, Signature, check_signature, lower_kernel};
use octants::ir::plan::ArgKind;
use octants::ir::{Const, Data};
use octants::{Arguments, CompiledKernel, Dump};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyFunction, PyList, PyTuple};
use smallvec::SmallVec;

use crate::arguments::{Argument, Binder, Param};
use crate::host::PyHost;
use crate::runtime::{Current, Runtime};
use crate::template::TemplateKey;
use crate::{dtype, errors, interrupt};

#[pyclass(frozen, module = "octants", dict, weakref)]
pub struct Kernel {
    pub function: Py<PyFunction>,
    runtime: Py<Runtime>,
    signature: Signature,
    params: Vec<Param>,
    /// The one used last comes first.
    specialisations: Mutex<Vec<Arc<Specialisation>>>,
}

/// Code for one kind of arguments, in one session.
struct Specialisation {
    epoch: u64,
    key: Vec<KeyPart>,
    compiled: Arc<CompiledKernel>,
    returns: Returns,
}

/// What a specialisation depends on, for each parameter.
enum KeyPart {
    Scalar,
    Array(octants::ir::ArrayType),
    Template(TemplateKey),
}

impl KeyPart {
    fn of(argument: &Argument<'_, '_>) -> PyResult<Self> {
        Ok(match argument {
            Argument::Scalar(_) => Self::Scalar,
            Argument::Array(array) => Self::Array(array.ty),
            Argument::Template(object) => Self::Template(TemplateKey::of(object)?),
        })
    }

    fn matches(&self, argument: &Argument<'_, '_>) -> bool {
        match (self, argument) {
            (Self::Scalar, Argument::Scalar(_)) => true,
            (Self::Array(ty), Argument::Array(array)) => *ty == array.ty,
            (Self::Template(key), Argument::Template(object)) => key.matches(object),
            _ => false,
        }
    }
}

type Converted<'a, 'py> = SmallVec<[Argument<'a, 'py>; 8]>;

impl Kernel {
    fn find(&self, epoch: u64, arguments: &[Argument<'_, '_>]) -> Option<Arc<Specialisation>> {
        let mut list = self.specialisations.lock().unwrap_or_else(PoisonError::into_inner);
        let position = list.iter().position(|one| {
            one.epoch == epoch && one.key.iter().zip(arguments).all(|(part, argument)| part.matches(argument))
        })?;
        if position > 0 {
            list[..=position].rotate_right(1);
        }
        Some(list[0].clone())
    }

    fn specialise(
        &self,
        py: Python<'_>,
        current: &Current,
        arguments: &[Argument<'_, '_>],
    ) -> PyResult<Arc<Specialisation>> {
        let sources = self.runtime.get().sources();
        let started = Instant::now();
        let args: Vec<_> = arguments
            .iter()
            .zip(&self.params)
            .map(|(argument, param)| match argument {
                Argument::Scalar(_) => ArgSpec::Scalar(param.scalar(&current.lower)),
                Argument::Array(array) => ArgSpec::Array(array.ty),
                Argument::Template(object) => ArgSpec::Template((*object).clone()),
            })
            .collect();
        let function = self.function.bind(py).as_any();
        let lowered = lower_kernel(&PyHost::new(py), sources, function, &args, &current.lower)
            .map_err(|diagnostics| errors::from_diagnostics(py, &diagnostics, sources.map()))?;
        let lowering = started.elapsed();
        errors::warn(py, &lowered.warnings, sources.map())?;
        interrupt::install();
        let cancel = interrupt::flag();
        let compiled = py
            .detach(|| current.session.compile(lowered.kernel, lowering, cancel))
            .map_err(|error| errors::from_error(py, &error))?;
        py.check_signals()?;
        let key = arguments.iter().map(KeyPart::of).collect::<PyResult<_>>()?;
        let made = Arc::new(Specialisation { epoch: current.epoch, key, compiled, returns: lowered.returns });
        let mut list = self.specialisations.lock().unwrap_or_else(PoisonError::into_inner);
        list.retain(|one| one.epoch == current.epoch && one.key.iter().all(KeyPart::is_alive));
        list.insert(0, made.clone());
        Ok(made)
    }

    fn launch<'py>(
        &self,
        py: Python<'py>,
        specialisation: &Specialisation,
        arguments: &[Argument<'_, 'py>],
    ) -> PyResult<Bound<'py, PyAny>> {
        let compiled = &specialisation.compiled;
        let layout = compiled.args();
        let mut block: SmallVec<[u8; 512]> = SmallVec::from_elem(0, layout.bytes as usize);
        let mut results: SmallVec<[u8; 64]> = SmallVec::from_elem(0, compiled.results().bytes as usize);
        let runtime_arguments =
            arguments.iter().zip(&self.params).filter(|(a, _)| !matches!(a, Argument::Template(_)));
        for (index, ((argument, param), slot)) in runtime_arguments.zip(&layout.slots).enumerate() {
            let offset = slot.offset as usize;
            match (argument, slot.kind) {
                (Argument::Scalar(bits), ArgKind::Data(data)) => {
                    let width = data.scalar().map_or(8, |s| s.bytes() as usize);
                    block[offset..offset + width].copy_from_slice(&bits.to_le_bytes()[..width]);
                }
                (Argument::Array(array), ArgKind::Array(_)) => {
                    if compiled.access()[index].written && !array.writeable {
                        return Err(param.read_only(py, self.runtime.get().sources().map()));
                    }
                    block[offset..offset + 8].copy_from_slice(&array.address.to_le_bytes());
                    for (axis, extent) in array.shape.iter().enumerate() {
                        let at = offset + 8 + 4 * axis;
                        block[at..at + 4].copy_from_slice(&extent.to_le_bytes());
                    }
                }
                _ => return Err(errors::bug("an argument does not fit the compiled kernel")),
            }
        }
        let cancel = interrupt::flag();
        let (bytes, out) = (&block[..], &mut results[..]);
        py.detach(|| {
            // SAFETY: the addresses are of arrays that the caller's argument objects keep alive until we return, with the extents
            // that they have; whether they may be written was checked above.
            let arguments = unsafe { Arguments::new(bytes) };
            compiled.launch(arguments, out, cancel)
        })
        .map_err(|error| errors::from_launch(py, &error, self.runtime.get().sources().map()))?;
        for argument in arguments {
            if let Argument::Array(array) = argument {
                array.copy_back()?;
            }
        }
        self.returned(py, specialisation, &results)
    }

    fn returned<'py>(
        &self,
        py: Python<'py>,
        specialisation: &Specialisation,
        results: &[u8],
    ) -> PyResult<Bound<'py, PyAny>> {
        let slots = &specialisation.compiled.results().slots;
        let one = |index: usize| match slots[index].data {
            Data::Scalar(scalar) => {
                dtype::constant_to(py, Const::from_bytes(scalar, &results[slots[index].offset as usize..]))
            }
            Data::Tensor(_) | Data::Struct(_) => {
                Err(errors::bug("a kernel returned what the caller cannot take"))
            }
        };
        match &specialisation.returns {
            Returns::Nothing => Ok(py.None().into_bound(py)),
            Returns::One(_) => one(0),
            Returns::Tuple(items) => {
                let items = (0..items.len()).map(one).collect::<PyResult<Vec<_>>>()?;
                Ok(PyTuple::new(py, items)?.into_any())
            }
        }
    }
}

#[pymethods]
impl Kernel {
    #[new]
    fn new(py: Python<'_>, function: Bound<'_, PyFunction>, runtime: Bound<'_, Runtime>) -> PyResult<Self> {
        errors::gateway(|| {
            let sources = runtime.get().sources();
            let signature =
                check_signature(&PyHost::new(py), sources, function.as_any(), FunctionKind::Kernel)
                    .map_err(|diagnostics| errors::from_diagnostics(py, &diagnostics, sources.map()))?;
            let params = signature.params.iter().map(Param::new).collect();
            Ok(Self {
                function: function.unbind(),
                runtime: runtime.unbind(),
                signature,
                params,
                specialisations: Mutex::new(Vec::new()),
            })
        })
    }

    #[pyo3(signature = (*args, **kwargs))]
    fn __call__<'py>(
        slf: &Bound<'py, Self>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        errors::gateway(|| {
            let (py, this) = (slf.py(), slf.get());
            let runtime = this.runtime.get();
            let current = runtime.current(py)?;
            let binder =
                Binder { signature: &this.signature, params: &this.params, sources: runtime.sources().map() };
            let objects = binder.place(args, kwargs)?;
            let mut arguments = Converted::with_capacity(objects.len());
            for (param, object) in this.params.iter().zip(&objects) {
                arguments.push(binder.convert(param, object, &current)?);
            }
            let specialisation = match this.find(current.epoch, &arguments) {
                Some(found) => found,
                None => this.specialise(py, &current, &arguments)?,
            };
            this.launch(py, &specialisation, &arguments)
        })
    }

    /// Where the time of each compilation went, newest first: a list of dicts with milliseconds.
    fn compile_statistics<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let list = self.specialisations.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let dicts = list.iter().map(|one| {
            let statistics = one.compiled.statistics();
            let dict = PyDict::new(py);
            for (name, time) in [
                ("lower_ms", statistics.lower),
                ("passes_ms", statistics.passes),
                ("emit_ms", statistics.emit),
                ("llvm_ms", statistics.llvm),
                ("load_ms", statistics.load),
            ] {
                dict.set_item(name, time.as_secs_f64() * 1e3)?;
            }
            dict.set_item("tasks", statistics.tasks)?;
            dict.set_item("code_bytes", statistics.code_bytes)?;
            Ok(dict)
        });
        PyList::new(py, dicts.collect::<PyResult<Vec<_>>>()?)
    }

    /// A text that shows the newest compilation at some stage: "ir", "tasks", "llvm", "llvm-optimised" or "asm".
    fn dump(&self, py: Python<'_>, stage: &str) -> PyResult<Option<String>> {
        let what = match stage {
            "ir" => Dump::Ir,
            "tasks" => Dump::IrAfterPasses,
            "llvm" => Dump::Llvm,
            "llvm-optimised" => Dump::OptimisedLlvm,
            "asm" => Dump::Assembly,
            _ => {
                let message =
                    format!("no stage is named {stage:?}; there are ir, tasks, llvm, llvm-optimised and asm");
                return Err(pyo3::exceptions::PyValueError::new_err(message));
            }
        };
        let newest = self.specialisations.lock().unwrap_or_else(PoisonError::into_inner).first().cloned();
        let Some(newest) = newest else { return Ok(None) };
        py.detach(|| newest.compiled.dump(what)).map_err(|error| errors::from_error(py, &error))
    }

    #[getter]
    fn __wrapped__(&self, py: Python<'_>) -> Py<PyFunction> {
        self.function.clone_ref(py)
    }

    #[getter]
    fn __name__(&self) -> &str {
        &self.signature.name
    }

    #[getter]
    fn __qualname__(&self) -> &str {
        &self.signature.qualname
    }

    #[getter]
    fn __doc__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.function.bind(py).getattr("__doc__")
    }

    fn __repr__(&self) -> String {
        format!("<octants kernel {}>", self.signature.qualname)
    }
}

impl KeyPart {
    fn is_alive(&self) -> bool {
        match self {
            Self::Template(key) => key.is_alive(),
            Self::Scalar | Self::Array(_) => true,
        }
    }
}
