//! What Python evaluated while a kernel was compiled: calls of plain functions, operators of objects, loops over them, attributes of globals.
//!
//! **What evaluation touched is what a launch checks.** Nobody can tell what a function of Python's reads, so a launch runs it again, on the same
//! operands, and compares what it gives with what the code was made for. Two kinds of evaluations are not repeated: those that follow from
//! operands that never change (`purity` says of which functions that is known), and reads of members, which are dependencies of their own.
//!
//! The launch that code is made for has just evaluated everything, and does not do so again. What an iterator of Python's gave stays with the code: it has it
//! once. An operand lasts only if all that can be asked of it does: a container of objects, a class, a module, or a field with attributes of the
//! user's does not, and neither does a member of an enum with methods.
//!
//! What was evaluated for a launch is there for all code that it is compared with, and for that which is made then (`shared`).
//!
//! Recording (`record`) is the host's, while it lowers one kernel; what it keeps is an [`Evaluations`], which a specialisation asks at each launch.
//! A function that was given values of the kernel asked the compiler for operations on them. These are repeated, too: it must ask for the same ones in the
//! same order (`replay`).

mod containers;
mod enums;
mod purity;
mod record;
mod replay;
mod shared;

use std::sync::Arc;

use octants::front::ExprId;
use octants::front::host::{BinaryOp, CompareOp, UnaryOp};
use octants::ir::Scalar;
use pyo3::basic::CompareOp as Rich;
use pyo3::exceptions::PyException;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString, PyTuple};
use smallvec::SmallVec;

pub use purity::{is_pure_module, is_unsteady};
pub use record::{Recorder, is_part_of_text};
use replay::{Replay, Step};
pub use shared::{ChangedMember, LaunchEvaluations};
use shared::{Done, Known, Outcome, Past, Taken};

use crate::arrays::tensor;
use crate::host::template::{self, TemplateKey};
use crate::interop::numpy;
use crate::values::expr;

/// Arrays of the host's are compared by their bytes up to this size; reads of longer ones are repeated one by one. Comparing 1 MiB takes some 30 µs.
const MAX_COMPARED_BYTES: usize = 1 << 20;

/// Gives arguments and members of a launch, by the numbers of the inputs.
pub type Inputs<'a, 'py> = dyn Fn(usize) -> Option<Bound<'py, PyAny>> + 'a;

/// Something that Python does with operands.
pub enum Operation {
    /// Of the first operand, with the others; the last ones have these names.
    Call(Vec<String>),
    /// Of a method of the first operand: it is asked for by its name.
    CallMethod(Py<PyString>, Vec<String>),
    Attribute(Py<PyString>),
    /// An attribute of a module or of an object of ours: no code of the user's runs.
    Read(Py<PyString>),
    Item,
    Binary(BinaryOp),
    Unary(UnaryOp),
    Compare(CompareOp),
    Truth,
    Iterate,
    Format(String),
    Tuple,
    List,
    Dict,
    /// Nothing is done: the operand itself is compared.
    Look,
}

/// An operand, as a launch finds it.
enum Operand {
    /// A value, or an object that code stays with.
    Object(TemplateKey),
    /// What an earlier evaluation gave.
    Result(usize),
    /// An argument or a member, by the number of the input. Of those that cannot be held weakly: code that kept one would keep all that it leads to.
    Input(usize),
    /// A value of the kernel.
    Expr(ExprId),
}

/// What an evaluation gave.
enum Seen {
    Key(TemplateKey),
    /// A new object, of which evaluations that follow look at all that matters.
    Type(Py<PyAny>),
    /// An array of the host's: its type, its shape and its bytes.
    Array(Scalar, Vec<isize>, Box<[u8]>),
    /// A value of the kernel, by its number.
    Expr(u32),
    /// A tuple or list, and what is in it.
    Sequence(Py<PyAny>, Vec<Seen>),
    Mapping(Py<PyAny>, Vec<(TemplateKey, Seen)>),
    /// A method of a new object: its function, and the object's class.
    Method(TemplateKey, Py<PyAny>),
    /// A new function: its code, its defaults and what it closes over.
    Function(TemplateKey, Box<Seen>, Vec<Seen>),
    /// Nothing of it matters.
    Anything,
}

struct Evaluation {
    operation: Arc<Operation>,
    operands: Vec<Operand>,
    /// What it asked the compiler for.
    steps: Arc<[Step]>,
    seen: Arc<Seen>,
}

impl Evaluation {
    /// None if an object is gone.
    fn operands<'py>(
        &self,
        py: Python<'py>,
        results: &[Bound<'py, PyAny>],
        inputs: &Inputs<'_, 'py>,
    ) -> Option<SmallVec<[Bound<'py, PyAny>; 4]>> {
        self.operands.iter().map(|operand| operand.find(py, results, inputs)).collect()
    }

    /// What it gives now, if that is what the code is for; else what became of it.
    #[inline]
    fn again<'py>(
        &self,
        py: Python<'py>,
        operands: &[Bound<'py, PyAny>],
    ) -> PyResult<Result<Bound<'py, PyAny>, Outcome<'py>>> {
        // Nothing runs then.
        if let (Operation::Look, [object]) = (&*self.operation, operands) {
            return Ok(if self.seen.matches(object) {
                Ok(object.clone())
            } else {
                Err(Outcome::Result(object.clone(), Arc::clone(&self.steps), 0))
            });
        }
        let mut replay = Replay::new(py, &self.steps);
        let result = expr::tracing(&mut replay, || self.operation.run(py, operands));
        let (count, other) = replay.end();
        let steps = || Arc::clone(&self.steps);
        Ok(match (result, other) {
            // The user's wish to end is no answer.
            (Err(error), _) if !error.is_instance_of::<PyException>(py) => return Err(error),
            (_, Some((asked, given))) => Err(Outcome::Asked(steps(), count, asked, given)),
            (Ok(result), None) if count == self.steps.len() && self.seen.matches(&result) => Ok(result),
            (Ok(result), None) => Err(Outcome::Result(result, steps(), count)),
            (Err(error), None) => Err(Outcome::Raised(error)),
        })
    }
}

impl Evaluation {
    fn done<'py>(
        &self,
        operands: SmallVec<[Bound<'py, PyAny>; 4]>,
        outcome: Outcome<'py>,
        seen: Option<&Arc<Seen>>,
    ) -> Done<'py> {
        let (operation, operands) = (Arc::clone(&self.operation), operands.into_vec());
        let renewed = match (&outcome, seen) {
            (Outcome::Result(result, ..), None) => Some(self.seen.renewed(result)),
            _ => None,
        };
        Done { operation, operands, outcome, renewed, seen: seen.map(Arc::clone) }
    }
}

/// A name that a function of Python's reads, in its module or of Python itself.
struct NameRead {
    /// The number of the function.
    function: usize,
    is_builtin: bool,
    name: Py<PyString>,
    /// None if it was not there.
    value: Option<TemplateKey>,
}

/// A function that is not run again. It is held weakly: it may lead to the kernel.
struct PureFunction {
    function: TemplateKey,
    code: TemplateKey,
    defaults: TemplateKey,
}

/// All that a kernel's code depends on of what Python evaluated for it.
#[derive(Default)]
pub struct Evaluations {
    repeated: Vec<Evaluation>,
    /// What functions read that are not run again.
    names: Vec<NameRead>,
    functions: Vec<PureFunction>,
}

impl Evaluations {
    pub fn is_empty(&self) -> bool {
        self.repeated.is_empty() && self.names.is_empty() && self.functions.is_empty()
    }

    /// Evaluates everything again that was not for this launch; whether all of it is what the code is for.
    pub fn hold<'py>(
        &self,
        py: Python<'py>,
        shared: &mut LaunchEvaluations<'py>,
        inputs: &Inputs<'_, 'py>,
    ) -> PyResult<bool> {
        if !self.functions.is_empty() && !self.names_hold(py).unwrap_or(false) {
            return Ok(false);
        }
        if !shared.is_empty() {
            return self.hold_sharing(py, shared, inputs);
        }
        let mut results = Vec::with_capacity(self.repeated.len());
        for evaluation in &self.repeated {
            let Some(operands) = evaluation.operands(py, &results, inputs) else {
                self.share(py, results, shared, inputs);
                return Ok(false);
            };
            match evaluation.again(py, &operands)? {
                Ok(result) => results.push(result),
                Err(outcome) => {
                    let mut taken = self.share(py, results, shared, inputs);
                    shared.push(evaluation.done(operands, outcome, None), &mut taken);
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// Leaves to others what the first evaluations gave.
    #[cold]
    fn share<'py>(
        &self,
        py: Python<'py>,
        results: Vec<Bound<'py, PyAny>>,
        shared: &mut LaunchEvaluations<'py>,
        inputs: &Inputs<'_, 'py>,
    ) -> Taken {
        let mut taken = Taken::default();
        for (evaluation, result) in self.repeated.iter().zip(&results) {
            let Some(operands) = evaluation.operands(py, &results, inputs) else { break };
            let (steps, count) = (Arc::clone(&evaluation.steps), evaluation.steps.len());
            let outcome = Outcome::Result(result.clone(), steps, count);
            shared.push(evaluation.done(operands, outcome, Some(&evaluation.seen)), &mut taken);
        }
        taken
    }

    #[cold]
    fn hold_sharing<'py>(
        &self,
        py: Python<'py>,
        shared: &mut LaunchEvaluations<'py>,
        inputs: &Inputs<'_, 'py>,
    ) -> PyResult<bool> {
        let mut taken = Taken::default();
        let mut results = Vec::with_capacity(self.repeated.len());
        for evaluation in &self.repeated {
            let Some(operands) = evaluation.operands(py, &results, inputs) else { return Ok(false) };
            let Evaluation { operation, steps, seen, .. } = evaluation;
            match shared.known((operation, &operands), (steps, seen), &mut taken) {
                Known::Fits(result) => {
                    results.push(result);
                    continue;
                }
                Known::Differs => return Ok(false),
                Known::Unknown => {}
            }
            match evaluation.again(py, &operands)? {
                Ok(result) => {
                    results.push(result.clone());
                    let outcome = Outcome::Result(result, Arc::clone(steps), steps.len());
                    shared.push(evaluation.done(operands, outcome, Some(seen)), &mut taken);
                }
                Err(outcome) => {
                    shared.push(evaluation.done(operands, outcome, None), &mut taken);
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// Whether functions that are not run again are the same, and read the same.
    fn names_hold(&self, py: Python<'_>) -> PyResult<bool> {
        let mut globals = Vec::with_capacity(self.functions.len());
        for PureFunction { function, code, defaults } in &self.functions {
            let Some(function) = function.held(py) else { return Ok(false) };
            let is_same = code.matches(&function.getattr(intern!(py, "__code__"))?)
                && defaults.matches(&function.getattr(intern!(py, "__defaults__"))?);
            if !is_same {
                return Ok(false);
            }
            globals.push(function.getattr(intern!(py, "__globals__"))?.cast_into::<PyDict>()?);
        }
        let builtins = py.import(intern!(py, "builtins"))?.dict();
        for read in &self.names {
            let names = if read.is_builtin { &builtins } else { &globals[read.function] };
            let is_same = match (names.get_item(&read.name)?, &read.value) {
                (Some(now), Some(value)) => value.matches(&now),
                (None, None) => true,
                _ => false,
            };
            if !is_same {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether code of the user's may run, which may change what the kernel reads.
    pub fn runs_code(&self) -> bool {
        self.repeated.iter().any(|evaluation| match &*evaluation.operation {
            Operation::Look
            | Operation::Tuple
            | Operation::List
            | Operation::Dict
            | Operation::Item
            | Operation::Read(_) => false,
            Operation::Call(_)
            | Operation::CallMethod(..)
            | Operation::Attribute(_)
            | Operation::Binary(_)
            | Operation::Unary(_)
            | Operation::Compare(_)
            | Operation::Truth
            | Operation::Iterate
            | Operation::Format(_) => true,
        })
    }

    /// Finds objects as inputs, where they are such, in place of keeping them.
    pub fn find_in(&mut self, number_of: impl Fn(&Py<PyAny>) -> Option<usize>) {
        for operand in self.repeated.iter_mut().flat_map(|evaluation| &mut evaluation.operands) {
            if let Operand::Object(TemplateKey::Kept(object)) = operand
                && let Some(number) = number_of(object)
            {
                *operand = Operand::Input(number);
            }
        }
    }

    /// The objects that evaluations start from and that are kept alive for them, for Python's collector.
    pub fn visit(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        for evaluation in &self.repeated {
            for operand in &evaluation.operands {
                if let Operand::Object(key) = operand {
                    key.visit(visit)?;
                }
            }
            evaluation.seen.visit(visit)?;
            evaluation.steps.iter().try_for_each(|step| step.visit(visit))?;
        }
        self.names.iter().filter_map(|read| read.value.as_ref()).try_for_each(|value| value.visit(visit))?;
        self.functions.iter().try_for_each(|function| {
            function.code.visit(visit)?;
            function.defaults.visit(visit)
        })
    }

    /// Whether they can ever hold again.
    pub fn is_alive(&self) -> bool {
        self.repeated.iter().all(|evaluation| {
            evaluation.operands.iter().all(|operand| match operand {
                Operand::Object(key) => key.is_alive(),
                Operand::Result(_) | Operand::Input(_) | Operand::Expr(_) => true,
            })
        })
    }
}

impl Operand {
    fn find<'py>(
        &self,
        py: Python<'py>,
        results: &[Bound<'py, PyAny>],
        inputs: &Inputs<'_, 'py>,
    ) -> Option<Bound<'py, PyAny>> {
        match self {
            Self::Object(key) => key.held(py),
            Self::Result(at) => results.get(*at).cloned(),
            Self::Input(number) => inputs(*number),
            Self::Expr(id) => Some(Bound::new(py, expr::Expr { id: *id }).ok()?.into_any()),
        }
    }
}

impl Operation {
    /// Does it. Code of the user's may run.
    pub fn run<'py>(&self, py: Python<'py>, operands: &[Bound<'py, PyAny>]) -> PyResult<Bound<'py, PyAny>> {
        let truth = |truth: bool| truth.into_pyobject(py).map(|truth| truth.to_owned().into_any());
        let result = match (self, operands) {
            (Self::Call(names), [callee, given @ ..]) => call(callee, given, names)?,
            (Self::CallMethod(name, names), [receiver, given @ ..]) => {
                call(&receiver.getattr(name)?, given, names)?
            }
            (Self::Attribute(name) | Self::Read(name), [object]) => object.getattr(name)?,
            (Self::Item, [object, key]) => object.get_item(key)?,
            (Self::Binary(op), [a, b]) => match op {
                BinaryOp::Add => a.add(b),
                BinaryOp::Sub => a.sub(b),
                BinaryOp::Mul => a.mul(b),
                BinaryOp::Div => a.div(b),
                BinaryOp::FloorDiv => a.floor_div(b),
                BinaryOp::Mod => a.rem(b),
                BinaryOp::Pow => a.pow(b, py.None()),
                BinaryOp::Shl => a.lshift(b),
                BinaryOp::Shr => a.rshift(b),
                BinaryOp::BitAnd => a.bitand(b),
                BinaryOp::BitOr => a.bitor(b),
                BinaryOp::BitXor => a.bitxor(b),
                BinaryOp::MatMul => a.matmul(b),
            }?,
            (Self::Unary(op), [a]) => match op {
                UnaryOp::Neg => a.neg()?,
                UnaryOp::Pos => a.pos()?,
                UnaryOp::Invert => a.bitnot()?,
                UnaryOp::Not => truth(!a.is_truthy()?)?,
            },
            (Self::Compare(op), [a, b]) => match op {
                CompareOp::Lt => a.rich_compare(b, Rich::Lt)?,
                CompareOp::Le => a.rich_compare(b, Rich::Le)?,
                CompareOp::Gt => a.rich_compare(b, Rich::Gt)?,
                CompareOp::Ge => a.rich_compare(b, Rich::Ge)?,
                CompareOp::Eq => a.rich_compare(b, Rich::Eq)?,
                CompareOp::Ne => a.rich_compare(b, Rich::Ne)?,
                CompareOp::Is => truth(a.is(b))?,
                CompareOp::IsNot => truth(!a.is(b))?,
                CompareOp::In => truth(b.contains(a)?)?,
                CompareOp::NotIn => truth(!b.contains(a)?)?,
            },
            (Self::Truth, [a]) => truth(a.is_truthy()?)?,
            (Self::Iterate, [a]) => {
                let items = a.try_iter()?.map(|item| item.map(tensor::into_unwrapped));
                PyList::new(py, items.collect::<PyResult<Vec<_>>>()?)?.into_any()
            }
            (Self::Format(spec), [a]) => py.import("builtins")?.getattr("format")?.call1((a, spec))?,
            (Self::Tuple, items) => PyTuple::new(py, items)?.into_any(),
            (Self::List, items) => PyList::new(py, items)?.into_any(),
            (Self::Dict, items) => {
                let dict = PyDict::new(py);
                for pair in items.chunks_exact(2) {
                    dict.set_item(&pair[0], &pair[1])?;
                }
                dict.into_any()
            }
            (Self::Look, [object]) => object.clone(),
            _ => return Err(crate::gateway::errors::bug("an operation has other operands")),
        };
        Ok(tensor::into_unwrapped(result))
    }
}

fn call<'py>(
    callee: &Bound<'py, PyAny>,
    given: &[Bound<'py, PyAny>],
    names: &[String],
) -> PyResult<Bound<'py, PyAny>> {
    let (positional, named) = given.split_at(given.len() - names.len());
    let positional = PyTuple::new(callee.py(), positional)?;
    if names.is_empty() {
        return callee.call1(positional);
    }
    let keywords = PyDict::new(callee.py());
    for (name, value) in names.iter().zip(named) {
        keywords.set_item(name, value)?;
    }
    callee.call(positional, Some(&keywords))
}

impl Seen {
    fn matches(&self, object: &Bound<'_, PyAny>) -> bool {
        let is_of = |class: &Py<PyAny>| object.get_type().as_any().is(class);
        match self {
            Self::Key(key) => key.matches(object),
            Self::Type(class) => is_of(class),
            Self::Array(scalar, shape, bytes) => numpy::View::of(object).is_some_and(|view| {
                view.shape() == shape && view.contiguous_bytes() == Some((*scalar, &**bytes))
            }),
            Self::Expr(index) => object.cast::<expr::Expr>().is_ok_and(|expr| expr.get().id.index == *index),
            Self::Sequence(class, items) => {
                is_of(class)
                    && object.try_iter().is_ok_and(|mut now| {
                        items.iter().all(|seen| matches!(now.next(), Some(Ok(item)) if seen.matches(&item)))
                            && now.next().is_none()
                    })
            }
            Self::Mapping(class, pairs) => {
                is_of(class)
                    && object.cast::<PyDict>().is_ok_and(|now| {
                        now.len() == pairs.len()
                            && now.iter().zip(pairs).all(|((name, value), (key, seen))| {
                                key.matches(&name) && seen.matches(&value)
                            })
                    })
            }
            Self::Method(function, class) => template::bound(object)
                .is_some_and(|(now, of)| function.matches(&now) && of.get_type().as_any().is(class)),
            Self::Function(code, defaults, cells) => record::function_parts(object).is_some_and(|now| {
                code.matches(&now.code)
                    && defaults.matches(&now.defaults)
                    && now.cells.len() == cells.len()
                    && cells.iter().zip(&now.cells).all(|(seen, now)| seen.matches(now))
            }),
            Self::Anything => true,
        }
    }

    /// What it keeps alive, for Python's collector.
    fn visit(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        match self {
            Self::Key(key) => key.visit(visit),
            Self::Type(class) => visit.call(class),
            Self::Sequence(class, items) => {
                visit.call(class)?;
                items.iter().try_for_each(|item| item.visit(visit))
            }
            Self::Mapping(class, pairs) => {
                visit.call(class)?;
                pairs.iter().try_for_each(|(key, seen)| {
                    key.visit(visit)?;
                    seen.visit(visit)
                })
            }
            Self::Method(function, class) => {
                function.visit(visit)?;
                visit.call(class)
            }
            Self::Function(code, defaults, cells) => {
                code.visit(visit)?;
                defaults.visit(visit)?;
                cells.iter().try_for_each(|cell| cell.visit(visit))
            }
            Self::Array(..) | Self::Expr(_) | Self::Anything => Ok(()),
        }
    }

    /// Whether an object that matches holds the same as before, as long as nobody changes it.
    fn is_by_value(&self) -> bool {
        match self {
            Self::Key(key) => key.is_by_value(),
            Self::Array(..) | Self::Expr(_) => true,
            Self::Sequence(_, items) => items.iter().all(Self::is_by_value),
            Self::Mapping(_, pairs) => {
                pairs.iter().all(|(key, seen)| key.is_by_value() && seen.is_by_value())
            }
            Self::Type(_) | Self::Method(..) | Self::Function(..) | Self::Anything => false,
        }
    }
}
