//! Notes what Python evaluates while one kernel is lowered, and what of it a launch must repeat.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use octants::front::host::Renewal;
use octants::front::{ExprId, Tracer};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyCFunction, PyDict, PyFunction, PyList, PyModule, PySlice, PyString, PyTuple, PyType};

use super::containers::{consumes, is_container, is_len, is_small};
use super::purity::{self, Purity, Reads};
use super::replay::{Noting, Step};
use super::{
    Done, Evaluation, Evaluations, LaunchEvaluations, MAX_COMPARED_BYTES, NameRead, Operand, Operation,
    Outcome, Past, PureFunction, Seen, Taken, enums, shared,
};
use crate::host::func::Func;
use crate::host::memo::Memo;
use crate::host::template::{self, TemplateKey};
use crate::interop::numpy;
use crate::values::expr::{self, Expr};

type Object<'py> = Bound<'py, PyAny>;

/// How deep a result is looked into for new objects. Chosen, not measured.
const MAX_RESULT_DEPTH: usize = 8;

/// In longer sequences nobody looks whether a new object is there twice. Chosen, not measured.
const MAX_COUNTED: usize = 32;

#[derive(Default)]
pub struct Recorder<'py> {
    entries: RefCell<Vec<Entry<'py>>>,
    /// The entry whose result an object is.
    results: Memo<'py, usize>,
    /// Objects whose contents are compared at each launch, here or by a dependency; whether by value, down to the last item.
    guarded: Memo<'py, bool>,
    /// Objects that an evaluation made: the next one makes others.
    fresh: Memo<'py, ()>,
    /// What was taken from iterators, which give it once: code stays with it.
    taken: Memo<'py, ()>,
    /// The names under which the kernel has methods of objects.
    names: Memo<'py, Bound<'py, PyString>>,
    /// What is known of functions of the user's: whether they are run again.
    purity: Memo<'py, bool>,
    reads: RefCell<Vec<Reads<'py>>>,
    /// What was evaluated for the launch before, and which of it was taken.
    shared: Rc<RefCell<LaunchEvaluations<'py>>>,
    taken_of_shared: RefCell<Taken>,
    /// What is known of the newest evaluation.
    past: Cell<Past>,
    /// Attributes that were read since code of the user's ran, which could have assigned them: the object, the name and the value.
    read: RefCell<Vec<(Object<'py>, Py<PyString>, Object<'py>)>>,
}

struct Entry<'py> {
    operation: Arc<Operation>,
    operands: Vec<Place<'py>>,
    steps: Vec<Step>,
    seen: Arc<Seen>,
    /// Whether it must be repeated, not only for those that use its result.
    is_checked: bool,
    /// Whether its result holds what it held whenever it is repeated.
    is_lasting: Cell<bool>,
}

enum Place<'py> {
    Object(Object<'py>),
    /// What an iterator gave. Nobody else may have it.
    Taken(Object<'py>),
    Result(usize),
    Expr(ExprId),
}

impl<'py> Recorder<'py> {
    /// Does it, and notes it where a launch has to do it again.
    pub fn evaluate(
        &self,
        operation: Operation,
        operands: &[Object<'py>],
        tracer: &mut dyn Tracer<Object<'py>>,
    ) -> PyResult<Object<'py>> {
        let Some(first) = operands.first() else {
            return Err(crate::gateway::errors::bug("an operation without operands"));
        };
        let py = first.py();
        self.past.set(Past::default());
        if consumes(&operation, operands, |object| self.results.get(object).is_some()) {
            let operation = Arc::new(operation);
            let result = if let Some((known, _)) = self.known(&operation, operands) {
                known?
            } else {
                let result = expr::tracing(tracer, || operation.run(py, operands))?;
                let outcome = Outcome::Result(result.clone(), Arc::new([]), 0);
                self.share(&operation, operands, outcome, Some(Arc::new(Seen::Anything)));
                result
            };
            self.take(&operation, &result);
            return Ok(result);
        }
        if self.follows(&operation, operands) {
            let result = expr::tracing(tracer, || operation.run(py, operands))?;
            if !is_plain(&result) && is_unshared(&result, 1) {
                self.fresh_function(&result);
                let (operation, seen) = (Arc::new(operation), Arc::new(Seen::Anything));
                self.add(operation, operands, Vec::new(), seen, &result, (false, true));
            }
            return Ok(result);
        }
        let operation = match operation {
            Operation::Attribute(name) if is_quiet(first, name.bind(py)) => {
                if let Some(value) = self.is_read(first, name.bind(py))? {
                    return Ok(value);
                }
                Operation::Read(name)
            }
            other => {
                self.read.borrow_mut().clear();
                other
            }
        };
        let given = operands;
        // What a function gave is called as it is.
        let (operation, operands) = if self.results.get(first).is_some() {
            (operation, given.to_vec())
        } else {
            self.asked_by_name(operation, given)
        };
        let operation = Arc::new(operation);
        let mut steps = Vec::new();
        let (known, past) = self.known(&operation, &operands).unzip();
        let is_known = known.is_some();
        self.past.set(Past::default());
        let mut is_lost = false;
        let result = known.unwrap_or_else(|| {
            let mut noting = Noting { inner: tracer, steps: Vec::new(), is_lost: false };
            let result = expr::tracing(&mut noting, || operation.run(py, &operands));
            (steps, is_lost) = (noting.steps, noting.is_lost);
            result
        });
        let is_shared = !is_known && steps.is_empty() && !operands.iter().any(shared::is_value);
        let result = match result {
            Ok(result) => result,
            Err(error) => {
                if is_shared {
                    self.share(&operation, &operands, Outcome::Raised(error.clone_ref(py)), None);
                }
                return Err(error);
            }
        };
        self.past.set(past.unwrap_or_default());
        let seen = if is_lost { Seen::Anything } else { self.seen(&result, 1, MAX_RESULT_DEPTH)? };
        let seen = Arc::new(seen);
        if is_shared {
            let outcome = Outcome::Result(result.clone(), Arc::new([]), 0);
            self.share(&operation, &operands, outcome, Some(Arc::clone(&seen)));
        }
        let is_lasting = seen.is_by_value();
        if matches!(*seen, Seen::Function(..)) {
            self.fresh_function(&result);
        }
        // What it was given may be another one now.
        for operand in given {
            if let Some(at) = self.results.get(operand) {
                self.unsettle(at);
            }
        }
        if let Operation::Read(name) = &*operation {
            self.read.borrow_mut().push((first.clone(), name.clone_ref(py), result.clone()));
        }
        self.add(operation, &operands, steps, seen, &result, (true, is_lasting));
        Ok(result)
    }

    /// The value of an attribute that a launch compares already.
    fn is_read(&self, object: &Object<'py>, name: &Bound<'py, PyString>) -> PyResult<Option<Object<'py>>> {
        let read = self.read.borrow();
        let known = read
            .iter()
            .find(|known| known.0.is(object) && known.1.bind(object.py()).as_any().eq(name).unwrap_or(false));
        let Some((.., value)) = known else { return Ok(None) };
        // Another thread may have assigned it.
        Ok(object.getattr(name)?.is(value).then(|| value.clone()))
    }

    /// For a launch for which this was evaluated before.
    pub fn sharing(shared: Rc<RefCell<LaunchEvaluations<'py>>>) -> Self {
        shared.borrow_mut().prepare();
        Self { shared, ..Self::default() }
    }

    /// What was evaluated for this launch before.
    fn known(
        &self,
        operation: &Operation,
        operands: &[Object<'py>],
    ) -> Option<(PyResult<Object<'py>>, Past)> {
        self.shared.borrow().given(operation, operands, &mut self.taken_of_shared.borrow_mut())
    }

    /// Leaves an evaluation to others that this launch may need.
    fn share(
        &self,
        operation: &Arc<Operation>,
        operands: &[Object<'py>],
        outcome: Outcome<'py>,
        seen: Option<Arc<Seen>>,
    ) {
        let (operation, operands) = (Arc::clone(operation), operands.to_vec());
        let done = Done { operation, operands, outcome, renewed: None, seen };
        self.shared.borrow_mut().push(done, &mut self.taken_of_shared.borrow_mut());
    }

    /// Notes a container that the compiler makes of objects.
    pub fn made(&self, operation: Operation, items: &[Object<'py>], result: &Object<'py>) {
        if !is_plain(result) {
            let (operation, seen) = (Arc::new(operation), Arc::new(Seen::Anything));
            self.add(operation, items, Vec::new(), seen, result, (false, true));
        }
    }

    /// Notes that the items of a container are looked at.
    pub fn items(&self, object: &Object<'py>, items: &[Object<'py>]) {
        let Some(of) = self.results.get(object) else { return };
        let is_lasting = self.entries.borrow()[of].is_lasting.get();
        for (at, item) in items.iter().enumerate() {
            if !is_plain(item) && self.results.get(item).is_none() {
                let Ok(position) = at.into_pyobject(object.py());
                let operands = [object.clone(), position.into_any()];
                let (operation, seen) = (Arc::new(Operation::Item), Arc::new(Seen::Anything));
                let is_lasting = is_lasting && content(item).is_some_and(|seen| seen.is_by_value());
                self.add(operation, &operands, Vec::new(), seen, item, (false, is_lasting));
            }
        }
    }

    /// A function of the user's was given a result, and may have changed it, what holds it and what it holds.
    fn unsettle(&self, at: usize) {
        let entries = self.entries.borrow();
        if !entries[at].is_lasting.replace(false) {
            return;
        }
        let results = |entry: &Entry<'py>| {
            let of = |place: &Place<'py>| if let Place::Result(of) = place { Some(*of) } else { None };
            entry.operands.iter().filter_map(of).collect::<Vec<_>>()
        };
        let before = results(&entries[at]);
        let after = (at + 1..entries.len()).filter(|&later| results(&entries[later]).contains(&at));
        let touched: Vec<_> = before.into_iter().chain(after).collect();
        drop(entries);
        for at in touched {
            self.unsettle(at);
        }
    }

    /// Somebody else compares what an object holds at each launch.
    pub fn guard(&self, object: &Object<'py>) {
        self.guarded.set(object, content(object).is_some_and(|seen| seen.is_by_value()));
    }

    /// What an object holds is part of the code.
    pub fn observe(&self, object: &Object<'py>) {
        let is_compared = self.observed(object).is_some() || self.results.get(object).is_some();
        if !is_compared && let Err(error) = self.observe_length(object) {
            error.write_unraisable(object.py(), Some(object));
        }
    }

    /// Of a container that is too large to be compared as a whole at least its length is. Its items are compared where they are read.
    fn observe_length(&self, object: &Object<'py>) -> PyResult<()> {
        let is_sized = object.is_instance_of::<PyList>() || object.is_instance_of::<PyDict>();
        if !is_sized {
            return Ok(());
        }
        let py = object.py();
        let len = py.import("builtins")?.getattr("len")?;
        let count = object.len()?.into_pyobject(py)?.into_any();
        let seen = Seen::Key(TemplateKey::of(&count)?);
        let operation = Arc::new(Operation::Call(Vec::new()));
        self.add(operation, &[len, object.clone()], Vec::new(), Arc::new(seen), &count, (true, true));
        Ok(())
    }

    /// Notes what was taken from an iterator: a launch cannot take it again.
    fn take(&self, operation: &Operation, result: &Object<'py>) {
        self.taken.set(result, ());
        if let (Operation::Iterate, Ok(items)) = (operation, result.cast::<PyList>()) {
            for item in items {
                self.taken.set(&item, ());
            }
        }
    }

    /// Notes a function that was made just now: a launch makes another one.
    fn fresh_function(&self, object: &Object<'py>) {
        if function_parts(object).is_some() {
            self.fresh.set(object, ());
        }
    }

    /// Whether what an object holds is compared at each launch, or can be from now on, and then whether all of it is compared by value.
    fn observed(&self, object: &Object<'py>) -> Option<bool> {
        if let Some(by_value) = self.guarded.get(object) {
            return Some(by_value);
        }
        if self.results.get(object).is_some() {
            return None;
        }
        // There is nothing to compare: it is the same object.
        if object.is_exact_instance_of::<PyTuple>() && is_steady_value(object) {
            return Some(true);
        }
        let seen = content(object).or_else(|| derived_content(object))?;
        let by_value = seen.is_by_value();
        self.guarded.set(object, by_value);
        let operands = vec![Place::Object(object.clone())];
        let (is_checked, is_lasting) = (true, Cell::new(true));
        let (operation, seen) = (Arc::new(Operation::Look), Arc::new(seen));
        let entry = Entry { operation, operands, steps: Vec::new(), seen, is_checked, is_lasting };
        self.entries.borrow_mut().push(entry);
        Some(by_value)
    }

    fn add(
        &self,
        operation: Arc<Operation>,
        operands: &[Object<'py>],
        steps: Vec<Step>,
        seen: Arc<Seen>,
        result: &Object<'py>,
        (is_checked, is_lasting): (bool, bool),
    ) {
        let operands = operands.iter().map(|operand| self.place(operand)).collect();
        let entry = Entry { operation, operands, steps, seen, is_checked, is_lasting: Cell::new(is_lasting) };
        let mut entries = self.entries.borrow_mut();
        let is_known = is_definition(result) && self.fresh.get(result).is_none();
        if !is_plain(result) && !is_known {
            self.results.set(result, entries.len());
        }
        entries.push(entry);
    }

    fn place(&self, object: &Object<'py>) -> Place<'py> {
        if let Ok(expr) = object.cast::<Expr>() {
            return Place::Expr(expr.get().id);
        }
        match self.results.get(object) {
            Some(at) => Place::Result(at),
            None if self.taken.get(object).is_some() => Place::Taken(object.clone()),
            None => Place::Object(object.clone()),
        }
    }

    /// Whether a result follows from operands that never change.
    fn follows(&self, operation: &Operation, operands: &[Object<'py>]) -> bool {
        let all = |operands: &[Object<'py>]| operands.iter().all(|operand| self.is_lasting(operand));
        match (operation, operands) {
            (Operation::Call(_), [callee, container]) if is_len(callee) && is_container(container) => {
                self.is_compared(container)
            }
            (Operation::Call(_), [callee, given @ ..]) => match purity::of(callee) {
                _ if is_print(callee) => true,
                // They ask nothing of a field that the user has put there.
                Purity::Pure if purity::is_own(callee) => {
                    given.iter().all(|given| is_own_handle(given) || self.is_lasting(given))
                }
                Purity::Pure => all(given),
                Purity::Method(receiver) => self.is_lasting(&receiver) && all(given),
                Purity::Unknown(_) if self.results.get(callee).is_some() => false,
                Purity::Unknown(function) => all(given) && self.is_pure(&function),
                Purity::Impure => false,
            },
            (Operation::Attribute(name), [object]) if is_definition(object) => {
                is_known_module(object)
                    || is_fixed_class(object)
                    || enums::is_name_of_member(object, name.bind(object.py()))
            }
            (Operation::Attribute(name), [object]) if enums::is_member(object) => {
                enums::is_fixed_attribute(object, name.bind(object.py()))
            }
            (Operation::Compare(op), [_, _]) if operands.iter().any(enums::is_member) => operands
                .iter()
                .all(|operand| enums::compares_by_identity(operand, *op) || self.is_lasting(operand)),
            // What is in a container follows from the container, whatever its items hold.
            (Operation::Item | Operation::Iterate | Operation::Truth, [container, given @ ..])
                if is_container(container) =>
            {
                self.is_compared(container) && all(given)
            }
            (_, operands) => all(operands),
        }
    }

    /// Whether a function of the user's depends on names alone that a launch can compare, which it does from now on.
    fn is_pure(&self, function: &Bound<'py, PyFunction>) -> bool {
        self.purity.get_or_find(function.as_any(), || match Reads::of(function) {
            Some(reads) => {
                self.reads.borrow_mut().push(reads);
                true
            }
            None => false,
        })
    }

    /// Whether an object is, and holds, the same at every launch with this code, and its operators are Python's, numpy's or ours.
    fn is_lasting(&self, object: &Object<'py>) -> bool {
        if object.is_instance_of::<Expr>() {
            return true;
        }
        if let Some(at) = self.results.get(object) {
            // A container that the program has built has the same items; what these hold may change.
            return self.entries.borrow()[at].is_lasting.get() && self.holds_what_lasts(object);
        }
        if let Ok(function) = object.cast::<PyFunction>() {
            return matches!(purity::of(object), Purity::Pure)
                || has_no_attributes(object) && self.is_pure(function);
        }
        if is_definition(object) {
            return is_fixed_definition(object);
        }
        if object.is_exact_instance_of::<PyTuple>() {
            return self.holds_what_lasts(object);
        }
        if enums::is_member(object) {
            return enums::is_simple_member(object);
        }
        if is_plain(object) {
            return true;
        }
        if let Ok(slice) = object.cast::<PySlice>() {
            return ["start", "stop", "step"]
                .iter()
                .all(|&part| slice.getattr(part).is_ok_and(|part| self.is_lasting(&part)));
        }
        is_own_handle(object) && has_no_attributes(object) || self.observed(object) == Some(true)
    }

    /// Whether what is in a container of Python's own lasts, too. One that holds itself is not asked to the end.
    fn holds_what_lasts(&self, object: &Object<'py>) -> bool {
        if let Ok(items) = object.cast_exact::<PyTuple>() {
            return items.iter().all(|item| self.is_lasting(&item));
        }
        if !is_container(object) {
            return true;
        }
        let lasts = |items: PyResult<Bound<'py, PyAny>>| -> PyResult<bool> {
            for item in items?.try_iter()? {
                let item = item?;
                let is_nested = is_container(&item) && !item.is_exact_instance_of::<PyTuple>();
                if is_nested || !self.is_lasting(&item) {
                    return Ok(false);
                }
            }
            Ok(true)
        };
        let of_values = object.cast::<PyDict>().map_or(Ok(true), |dict| lasts(Ok(dict.values().into_any())));
        lasts(Ok(object.clone())).unwrap_or(false) && of_values.unwrap_or(false)
    }

    /// Whether a container of Python's own has the same items at every launch with this code. These may hold something else.
    fn is_compared(&self, container: &Object<'py>) -> bool {
        match self.results.get(container) {
            Some(at) => self.entries.borrow()[at].is_lasting.get(),
            None => container.is_exact_instance_of::<PyTuple>() || self.observed(container).is_some(),
        }
    }

    /// What a result is to a launch. `references` is how many there are to it that do not count.
    fn seen(&self, object: &Object<'py>, references: isize, depth: usize) -> PyResult<Seen> {
        if let Ok(expr) = object.cast::<Expr>() {
            return Ok(Seen::Expr(expr.get().id.index));
        }
        if is_plain(object) {
            return Ok(Seen::Key(TemplateKey::of(object)?));
        }
        let class = || object.get_type().into_any().unbind();
        let is_small = is_small(object);
        if depth > 0 && is_small {
            if object.is_exact_instance_of::<PyTuple>() || object.is_exact_instance_of::<PyList>() {
                let count = object.len()?;
                let items = (0..count).map(|at| {
                    let item = object.get_item(at)?;
                    let references = 1 + appearances(object, &item)?;
                    self.seen(&item, references, depth - 1)
                });
                return Ok(Seen::Sequence(class(), items.collect::<PyResult<_>>()?));
            }
            if let Ok(pairs) = object.cast_exact::<PyDict>() {
                let pairs = pairs
                    .iter()
                    .map(|(key, value)| Ok((TemplateKey::of(&key)?, self.seen(&value, 2, depth - 1)?)));
                return Ok(Seen::Mapping(class(), pairs.collect::<PyResult<_>>()?));
            }
        }
        let is_moving = self.past.get().is_moving && !is_own_handle(object);
        if let Some(content) = content(object)
            && (!is_moving || content.is_by_value())
        {
            return Ok(content);
        }
        let is_fresh = is_moving
            || self.fresh.get(object).is_some()
            || is_unshared(object, references.saturating_add(self.shared.borrow().references(object)));
        let is_new_module = object.is_instance_of::<PyModule>() && !is_known_module(object);
        let is_text = is_definition(object) && function_parts(object).is_none() && !is_new_module;
        if !is_fresh || is_text {
            let key = if is_small { TemplateKey::of(object)? } else { TemplateKey::identity(object) };
            return Ok(Seen::Key(key));
        }
        if let Some(parts) = function_parts(object) {
            let cells = parts.cells.iter().map(|cell| self.seen(cell, 3, depth.saturating_sub(1)));
            return Ok(Seen::Function(
                TemplateKey::identity(&parts.code),
                Box::new(self.seen(&parts.defaults, 3, depth.saturating_sub(1))?),
                cells.collect::<PyResult<_>>()?,
            ));
        }
        if let Some((function, receiver)) = template::bound(object) {
            // That of a new object has another receiver each time.
            let is_new = is_moving || self.fresh.get(&receiver).is_some() || is_unshared(&receiver, 2);
            return Ok(if is_new {
                Seen::Method(TemplateKey::identity(&function), receiver.get_type().into_any().unbind())
            } else {
                Seen::Key(TemplateKey::of(object)?)
            });
        }
        self.fresh.set(object, ());
        Ok(Seen::Type(class()))
    }

    /// Notes under which name a kernel has a method of an object: its function may have another.
    pub fn named(&self, object: &Object<'py>, name: &str, found: &Object<'py>) {
        let receiver = found.getattr_opt("__self__").ok().flatten();
        if receiver.is_some_and(|receiver| receiver.is(object)) {
            self.names.set(found, PyString::intern(object.py(), name));
        }
    }

    /// A method that an object has under a name is asked for again: its class, or it itself, may have another one by then.
    fn asked_by_name(&self, operation: Operation, operands: &[Object<'py>]) -> (Operation, Vec<Object<'py>>) {
        let by_name = || {
            let (callee, given) = operands.split_first()?;
            let receiver = callee.getattr_opt("__self__").ok()??;
            if receiver.is_none() || receiver.is_instance_of::<PyModule>() {
                return None;
            }
            let name = match self.names.get(callee) {
                Some(name) => name,
                None => callee.getattr("__name__").ok()?.cast_into::<PyString>().ok()?,
            };
            if !receiver.getattr(&name).ok()?.eq(callee).ok()? {
                return None;
            }
            let operands = std::iter::once(receiver).chain(given.iter().cloned()).collect();
            Some((name.unbind(), operands))
        };
        match operation {
            Operation::Call(names) => match by_name() {
                Some((name, operands)) => (Operation::CallMethod(name, names), operands),
                None => (Operation::Call(names), operands.to_vec()),
            },
            other => (other, operands.to_vec()),
        }
    }

    /// Why code is made again for what the newest evaluation gave.
    pub fn renewal(&self) -> Option<Renewal> {
        self.past.get().renewal
    }

    /// Whether an evaluation made an object, or took it from an iterator: no other launch finds the same one.
    pub fn is_fresh(&self, object: &Object<'py>) -> bool {
        self.fresh.get(object).is_some() || self.taken.get(object).is_some()
    }

    /// What a launch has to do again.
    pub fn finish(&self) -> PyResult<Evaluations> {
        let entries = std::mem::take(&mut *self.entries.borrow_mut());
        let mut is_needed: Vec<_> = entries.iter().map(|entry| entry.is_checked).collect();
        for at in (0..entries.len()).rev().filter(|&at| is_needed[at]).collect::<Vec<_>>() {
            need(&entries, at, &mut is_needed);
        }
        let mut numbers = vec![usize::MAX; entries.len()];
        let mut evaluations: Vec<Evaluation> = Vec::new();
        for (at, entry) in entries.into_iter().enumerate().filter(|(at, _)| is_needed[*at]) {
            numbers[at] = evaluations.len();
            let operands = entry.operands.into_iter().map(|place| match place {
                Place::Object(object) => Operand::Object(held(&object)),
                Place::Taken(object) => Operand::Object(TemplateKey::Kept(object.unbind())),
                Place::Result(at) => Operand::Result(numbers[at]),
                Place::Expr(id) => Operand::Expr(id),
            });
            let operands = operands.collect();
            evaluations.push(Evaluation {
                operation: entry.operation,
                operands,
                steps: entry.steps.into(),
                seen: entry.seen,
            });
        }
        let mut found = Evaluations { repeated: evaluations, ..Evaluations::default() };
        for reads in self.reads.take() {
            for (function, is_builtin, name, value) in reads.names {
                let value = value.map(|value| TemplateKey::of(&value)).transpose()?;
                let function = found.functions.len() + function;
                found.names.push(NameRead { function, is_builtin, name: name.unbind(), value });
            }
            for function in reads.functions {
                found.functions.push(PureFunction {
                    code: TemplateKey::identity(&function.getattr("__code__")?),
                    defaults: TemplateKey::of(&function.getattr("__defaults__")?)?,
                    function: TemplateKey::identity(&function),
                });
            }
        }
        Ok(found)
    }
}

fn need(entries: &[Entry<'_>], at: usize, is_needed: &mut [bool]) {
    is_needed[at] = true;
    for operand in &entries[at].operands {
        if let Place::Result(of) = operand
            && !is_needed[*of]
        {
            need(entries, *of, is_needed);
        }
    }
}

/// What an object is to a launch, where nothing is known of it but itself.
pub fn seen_now(object: &Object<'_>) -> PyResult<Seen> {
    Recorder::default().seen(object, isize::MIN, MAX_RESULT_DEPTH)
}

/// An object that code stays with. One that nobody else holds would be gone.
fn held(object: &Object<'_>) -> TemplateKey {
    let is_fleeting = object.is_instance_of::<PyCFunction>()
        || object.is_instance_of::<PySlice>()
        || object.getattr_opt("__func__").is_ok_and(|function| function.is_some());
    if is_fleeting || template::is_value(object) {
        return TemplateKey::Kept(object.clone().unbind());
    }
    TemplateKey::identity(object)
}

/// What an object of Python's, numpy's or ours holds, if that can be compared as a whole.
fn content(object: &Object<'_>) -> Option<Seen> {
    if let Some(view) = numpy::View::of(object) {
        // One of a class of its own may hold more than its elements: a mask, attributes.
        if !is_exact_array(object) {
            return None;
        }
        if view.shape().is_empty() {
            return TemplateKey::of(object).ok().map(Seen::Key);
        }
        let (scalar, bytes) =
            view.contiguous_bytes().filter(|(_, bytes)| bytes.len() <= MAX_COMPARED_BYTES)?;
        return Some(Seen::Array(scalar, view.shape().to_vec(), bytes.into()));
    }
    if !is_small(object) {
        return None;
    }
    let key = TemplateKey::of(object).ok()?;
    let is_whole = is_container(object)
        || template::is_collection(object)
        || matches!(key, TemplateKey::Own(..) | TemplateKey::Struct(..) | TemplateKey::Number(..));
    is_whole.then_some(Seen::Key(key))
}

/// What an object of a class derived from one of Python's containers holds. It is of no use for a new object: it is that object, too.
fn derived_content(object: &Object<'_>) -> Option<Seen> {
    let is_whole = template::is_derived(object) && is_small(object);
    is_whole.then(|| TemplateKey::of(object).ok().map(Seen::Key)).flatten()
}

/// Whether an attribute is read by Python itself or by us: of a module that has it, or of a class of ours.
fn is_quiet(object: &Object<'_>, name: &Bound<'_, PyString>) -> bool {
    if let Ok(module) = object.cast_exact::<PyModule>() {
        return module.dict().contains(name).unwrap_or(false);
    }
    purity::is_own(object.get_type().as_any()) && !is_own_handle(object)
}

/// An array whose class is numpy's own.
fn is_exact_array(object: &Object<'_>) -> bool {
    let class = object.get_type();
    class.module().is_ok_and(|module| module == "numpy") && class.name().is_ok_and(|name| name == "ndarray")
}

/// A value that never changes, of a class of Python's, numpy's or ours: its operators are known. Members of enums are such, too.
pub fn is_plain(object: &Object<'_>) -> bool {
    if object.is_none() {
        return true;
    }
    if let Ok(items) = object.cast_exact::<PyTuple>() {
        return items.iter().all(|item| is_plain(&item));
    }
    let class = object.get_type();
    template::is_value(object) && template::is_known_class(class.as_any())
        || template::is_enum(class.as_any())
}

/// A value that never changes, nor what its operators and attributes give.
pub fn is_steady_value(object: &Object<'_>) -> bool {
    if let Ok(items) = object.cast_exact::<PyTuple>() {
        return items.iter().all(|item| is_steady_value(&item));
    }
    if enums::is_member(object) { enums::is_simple_member(object) } else { is_plain(object) }
}

/// Part of a program's text: a module, a class, a function of Python's own.
fn is_definition(object: &Object<'_>) -> bool {
    object.is_instance_of::<PyModule>()
        || object.is_instance_of::<PyType>()
        || object.is_instance_of::<Func>()
        || object.is_instance_of::<PyFunction>()
        || object.is_instance_of::<PyCFunction>()
            && object.getattr("__self__").is_ok_and(|of| of.is_none() || of.is_instance_of::<PyModule>())
}

/// Whether an attribute is part of a program's text: a function or a class of a module.
pub fn is_part_of_text(object: &Object<'_>, attribute: &Object<'_>) -> bool {
    object.is_instance_of::<PyModule>() && (is_definition(attribute) || is_own_handle(attribute))
}

/// A field, an array or a node of ours: what can be asked of it while compiling does not change.
pub fn is_own_handle(object: &Object<'_>) -> bool {
    object.is_instance_of::<crate::arrays::field::Field>()
        || object.is_instance_of::<crate::arrays::ndarray::Ndarray>()
        || object.is_instance_of::<crate::arrays::tree::Node>()
        || object.is_instance_of::<crate::kernel::Kernel>()
}

fn is_known_module(object: &Object<'_>) -> bool {
    object.cast::<PyModule>().is_ok_and(|module| {
        module.name().is_ok_and(|name| purity::is_pure_module(&name.to_string()) || name == "builtins")
    })
}

/// A definition that gives the same also to those who ask for its attributes, or call it.
fn is_fixed_definition(object: &Object<'_>) -> bool {
    if object.is_instance_of::<PyCFunction>() {
        return !purity::is_unsteady(object) && matches!(purity::of(object), Purity::Pure);
    }
    is_known_module(object)
        || is_fixed_class(object)
        || object.is_instance_of::<Func>() && has_no_attributes(object)
}

/// What the package itself puts into fields, nodes and functions.
const OWN_ATTRIBUTES: &[&str] = &[
    "__doc__",
    "__module__",
    "__wrapped__",
    "_builder",
    "_companions",
    "_declared",
    "_dtypes",
    "_element_shape",
    "_entry_fields",
    "_is_placed",
    "_is_taken",
    "_member_fields",
    "_members",
    "_needs",
    "_offset",
    "_placement",
    "_snode",
    "_tree",
    "_used",
    "_waiting",
    "_whole_snode",
];

/// Likewise, under names that the user could take for a function.
const OWN_PUBLIC_ATTRIBUTES: &[&str] = &["dtype", "name", "struct_type"];

/// Whether the user has put nothing into an object.
pub fn has_no_attributes(object: &Object<'_>) -> bool {
    let is_own = |name: Object<'_>| {
        name.extract::<String>().is_ok_and(|name| {
            OWN_ATTRIBUTES.contains(&&*name)
                || OWN_PUBLIC_ATTRIBUTES.contains(&&*name) && is_own_handle(object)
        })
    };
    match object.getattr_opt("__dict__") {
        Ok(Some(attributes)) => {
            attributes.cast::<PyDict>().is_ok_and(|attributes| attributes.keys().iter().all(is_own))
        }
        Ok(None) => true,
        Err(_) => false,
    }
}

/// A class whose attributes nobody assigns: of Python's own, of numpy's or ours, or of an enum without methods.
fn is_fixed_class(object: &Object<'_>) -> bool {
    object.cast::<PyType>().is_ok_and(|class| {
        enums::is_simple(class)
            || class.module().is_ok_and(|module| {
                let module = module.to_string();
                module == "builtins" || purity::is_pure_module(&module)
            })
    })
}

fn is_print(callee: &Object<'_>) -> bool {
    let name = callee.getattr("__name__").and_then(|name| name.extract::<String>());
    let module = callee.getattr("__module__").and_then(|module| module.extract::<String>());
    matches!((name.as_deref(), module.as_deref()), (Ok("print"), Ok("builtins")))
        || matches!((name, module), (Ok(name), Ok(module)) if name == "static_print" && module.starts_with("octants"))
}

/// Whether nobody else has a reference to an object: it was made just now.
fn is_unshared(object: &Object<'_>, references: isize) -> bool {
    // SAFETY: the object lives.
    let count = unsafe { ffi::Py_REFCNT(object.as_ptr()) };
    references > 0 && count as isize <= references
}

/// How often an object is in a sequence.
fn appearances(items: &Object<'_>, object: &Object<'_>) -> PyResult<isize> {
    if items.len()? > MAX_COUNTED {
        return Ok(1);
    }
    let mut count = 0;
    for item in items.try_iter()? {
        count += isize::from(item?.is(object));
    }
    Ok(count)
}

/// What a function that was made just now is compared by.
pub struct FunctionParts<'py> {
    pub code: Object<'py>,
    pub defaults: Object<'py>,
    pub cells: Vec<Object<'py>>,
}

/// Those of a function or of a func that is bound to nothing.
pub fn function_parts<'py>(object: &Object<'py>) -> Option<FunctionParts<'py>> {
    let function = match object.cast::<Func>() {
        Ok(func) if func.get().receiver.is_none() => func.get().function.bind(object.py()).clone(),
        Ok(_) => return None,
        Err(_) => object.cast::<PyFunction>().ok()?.clone(),
    };
    let closure = function.getattr("__closure__").ok()?;
    let cells = match closure.cast::<PyTuple>() {
        Ok(cells) => cells.iter().filter_map(|cell| cell.getattr("cell_contents").ok()).collect(),
        Err(_) => Vec::new(),
    };
    Some(FunctionParts {
        code: function.getattr("__code__").ok()?,
        defaults: function.getattr("__defaults__").ok()?,
        cells,
    })
}
