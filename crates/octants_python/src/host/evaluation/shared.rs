//! What Python has evaluated for one launch.
//!
//! Law: **a launch evaluates once what its kernel evaluates once**, however many pieces of code it is compared with, and also if code is made for it then:
//! whoever is second takes what the first was given. Two things are evaluated again: a function that was given values of the kernel, where what it asks the
//! compiler for is not what any code is for, and everything, where something that evaluated later has changed what code was compared with.
//!
//! An evaluation is known by what was done with which operands; what is done twice is there twice, in order. Code compares the result as it was when it was new:
//! what evaluates later may change it. So each is kept with what it matched, and other code must expect the same.

use std::sync::Arc;

use octants::front::host::Renewal;
use pyo3::prelude::*;
use pyo3::types::{PyCFunction, PySlice, PyString, PyType};

use super::record::is_plain;
use super::replay::{Asked, Step, same_steps};
use super::{Operation, Seen};
use crate::host::template::{self, TemplateKey};
use crate::values::expr::Expr;

type Object<'py> = Bound<'py, PyAny>;

#[derive(Default)]
pub struct LaunchEvaluations<'py> {
    done: Vec<Done<'py>>,
    /// After a lowering: a member that was something else when the lowering read it.
    pub changed: Option<ChangedMember<'py>>,
    /// Whether as much code is kept as there may be, each for other results.
    pub is_full: bool,
}

/// How a result differs from one that there is code for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Renewed {
    Value,
    /// The one was compared by what it is: the function may make another at each call.
    Object,
    /// It is of another class of the same name, or is such a class.
    Class,
}

pub struct ChangedMember<'py> {
    /// As the user writes it.
    pub path: String,
    pub now: Object<'py>,
}

/// Something that was evaluated for this launch.
pub(super) struct Done<'py> {
    pub operation: Arc<Operation>,
    pub operands: Vec<Object<'py>>,
    pub outcome: Outcome<'py>,
    /// Whether there is code for another result, which is compared by what it is and not by what it holds; whether that is of another class of the same name.
    pub renewed: Option<Renewed>,
    /// What the result was when it was new. None if it was not what code is for: nothing has evaluated since, unless for other code.
    pub seen: Option<Arc<Seen>>,
}

pub(super) enum Outcome<'py> {
    /// It asked the compiler for the first ones of these steps.
    Result(Object<'py>, Arc<[Step]>, usize),
    Raised(PyErr),
    /// It asked for something else after the first ones of these steps.
    Asked(Arc<[Step]>, usize, Asked, Vec<Object<'py>>),
}

/// What launches before have shown of an evaluation.
#[derive(Clone, Copy, Default)]
pub struct Past {
    /// Its result is another object each time.
    pub is_moving: bool,
    pub renewal: Option<Renewal>,
}

/// Which evaluations have been taken, by one piece of code or one lowering.
#[derive(Default)]
pub struct Taken(Vec<bool>);

/// What is known of an evaluation that code expects.
pub(super) enum Known<'py> {
    /// It was done, and gave what the code is for.
    Fits(Object<'py>),
    Differs,
    /// It must be done.
    Unknown,
}

impl<'py> LaunchEvaluations<'py> {
    pub fn is_empty(&self) -> bool {
        self.done.is_empty()
    }

    pub fn clear(&mut self) {
        self.done.clear();
    }

    pub(super) fn push(&mut self, done: Done<'py>, taken: &mut Taken) {
        self.done.push(done);
        taken.0.resize(self.done.len(), false);
        *taken.0.last_mut().expect("it was pushed") = true;
    }

    /// The first such evaluation that was not taken, which is taken then.
    fn take(&self, operation: &Operation, operands: &[Object<'py>], taken: &mut Taken) -> Option<usize> {
        taken.0.resize(self.done.len(), false);
        let is_it = |&at: &usize| {
            let done = &self.done[at];
            !taken.0[at]
                && done.operands.len() == operands.len()
                && done.operation.is_same(operation, operands)
                && done.operands.iter().zip(operands).all(|(a, b)| same_operand(a, b))
        };
        let at = (0..self.done.len()).find(is_it)?;
        taken.0[at] = true;
        Some(at)
    }

    /// For code that expects a result after these steps.
    pub(super) fn known(
        &mut self,
        (operation, operands): (&Operation, &[Object<'py>]),
        (steps, seen): (&Arc<[Step]>, &Arc<Seen>),
        taken: &mut Taken,
    ) -> Known<'py> {
        let Some(at) = self.take(operation, operands, taken) else { return Known::Unknown };
        let is_last = at + 1 == self.done.len();
        let done = &mut self.done[at];
        let result = match &done.outcome {
            Outcome::Result(result, asked, count) => {
                let is_same = steps.len() == *count && same_steps(result.py(), steps, asked, *count);
                if !is_same {
                    return Known::Differs;
                }
                result
            }
            Outcome::Raised(_) => return Known::Differs,
            Outcome::Asked(asked, count, next, given) => {
                let Some(py) = operands.first().map(Bound::py) else { return Known::Differs };
                let is_next = steps.get(*count).is_some_and(|step| step.is_for(next, given));
                if !is_next || !same_steps(py, steps, asked, *count) {
                    return Known::Differs;
                }
                // It goes on where it ended, and so begins again.
                self.done.remove(at);
                taken.0.remove(at);
                return Known::Unknown;
            }
        };
        let fits = match &done.seen {
            Some(known) => Arc::ptr_eq(known, seen) || known.is_same(seen, result.py()),
            None => (is_last || is_plain(result)) && seen.matches(result),
        };
        if !fits {
            return Known::Differs;
        }
        let result = result.clone();
        done.seen.get_or_insert_with(|| Arc::clone(seen));
        Known::Fits(result)
    }

    /// For a lowering: what was given, if anything was that no compiler was asked for, and what is known of others.
    pub fn given(
        &self,
        operation: &Operation,
        operands: &[Object<'py>],
        taken: &mut Taken,
    ) -> Option<(PyResult<Object<'py>>, Past)> {
        let py = operands.first()?.py();
        let at = self.take(operation, operands, taken)?;
        let done = &self.done[at];
        let renewal = match done.renewed {
            Some(Renewed::Class) => Some(Renewal::Class),
            Some(Renewed::Value | Renewed::Object) if self.is_full => Some(Renewal::Often),
            Some(Renewed::Value | Renewed::Object) | None => None,
        };
        let is_moving = done.renewed.is_some_and(|renewed| renewed != Renewed::Value)
            || done.seen.as_ref().is_some_and(|seen| seen.is_moving());
        let past = Past { is_moving, renewal };
        match &done.outcome {
            Outcome::Result(result, _, 0) if !operands.iter().any(is_value) => {
                Some((Ok(result.clone()), past))
            }
            Outcome::Raised(error) if !operands.iter().any(is_value) => {
                Some((Err(error.clone_ref(py)), past))
            }
            Outcome::Result(..) | Outcome::Raised(_) | Outcome::Asked(..) => None,
        }
    }

    /// A lowering begins. It looks at what evaluations gave, so none of it may be another by now.
    pub fn prepare(&mut self) {
        let count = self.done.len();
        let is_as_it_was = |(at, done): (usize, &Done<'py>)| match (&done.outcome, &done.seen) {
            // What is read of a result that is not compared by value was evaluated, too.
            (Outcome::Result(result, ..), Some(seen)) => !seen.is_by_value() || seen.matches(result),
            (Outcome::Result(result, ..), None) => at + 1 == count || is_plain(result),
            (Outcome::Raised(_) | Outcome::Asked(..), _) => true,
        };
        if !self.done.iter().enumerate().all(is_as_it_was) {
            self.clear();
        }
    }

    /// How many references to an object are from here.
    pub fn references(&self, object: &Object<'py>) -> isize {
        let of = |done: &Done<'py>| {
            let is_result = matches!(&done.outcome, Outcome::Result(result, ..) if result.is(object));
            done.operands.iter().filter(|operand| operand.is(object)).count() + usize::from(is_result)
        };
        self.done.iter().map(of).sum::<usize>() as isize
    }
}

/// A value of a kernel.
pub fn is_value(object: &Object<'_>) -> bool {
    object.is_instance_of::<Expr>()
}

/// Whether operands of two evaluations are the same to these.
fn same_operand(a: &Object<'_>, b: &Object<'_>) -> bool {
    if a.is(b) {
        return true;
    }
    if let (Ok(a), Ok(b)) = (a.cast::<Expr>(), b.cast::<Expr>()) {
        return a.get().id.index == b.get().id.index;
    }
    // They are made anew whenever they are asked for.
    let is_fleeting = |object: &Object<'_>| {
        object.is_instance_of::<PySlice>()
            || object.is_instance_of::<PyCFunction>()
            || template::bound(object).is_some()
    };
    if is_plain(a) {
        return is_plain(b) && TemplateKey::of(a).is_ok_and(|key| key.matches(b));
    }
    is_fleeting(a) && is_fleeting(b) && a.eq(b).unwrap_or(false)
}

impl Operation {
    fn is_same(&self, other: &Self, operands: &[Object<'_>]) -> bool {
        let Some(py) = operands.first().map(Bound::py) else { return false };
        let same = |a: &Py<PyString>, b: &Py<PyString>| a.bind(py).as_any().eq(b).unwrap_or(false);
        match (self, other) {
            (Self::Call(a), Self::Call(b)) => a == b,
            (Self::CallMethod(name, a), Self::CallMethod(other, b)) => a == b && same(name, other),
            (Self::Attribute(a), Self::Attribute(b)) | (Self::Read(a), Self::Read(b)) => same(a, b),
            (Self::Binary(a), Self::Binary(b)) => a == b,
            (Self::Unary(a), Self::Unary(b)) => a == b,
            (Self::Compare(a), Self::Compare(b)) => a == b,
            (Self::Format(a), Self::Format(b)) => a == b,
            (Self::Item, Self::Item)
            | (Self::Truth, Self::Truth)
            | (Self::Iterate, Self::Iterate)
            | (Self::Tuple, Self::Tuple)
            | (Self::List, Self::List)
            | (Self::Dict, Self::Dict)
            | (Self::Look, Self::Look) => true,
            _ => false,
        }
    }
}

impl Seen {
    /// How a result differs that is not this.
    pub fn renewed(&self, result: &Object<'_>) -> Renewed {
        if self.is_by_value() {
            return Renewed::Value;
        }
        let (py, class) = (result.py(), result.get_type());
        let is_namesake = |known: &Object<'_>| {
            let same = |name: &str| match (known.getattr(name), class.getattr(name)) {
                (Ok(a), Ok(b)) => a.eq(b).unwrap_or(false),
                _ => false,
            };
            !known.is(&class) && same("__qualname__") && same("__module__")
        };
        let known = match self {
            Self::Type(class) | Self::Sequence(class, _) | Self::Mapping(class, _) => {
                Some(class.bind(py).clone())
            }
            Self::Key(key) => key.class(py),
            Self::Array(..) | Self::Expr(_) | Self::Method(..) | Self::Function(..) | Self::Anything => None,
        };
        let is_new_class =
            result.is_instance_of::<PyType>() || known.is_some_and(|known| is_namesake(&known));
        if is_new_class { Renewed::Class } else { Renewed::Object }
    }

    /// Whether a part of it is compared by its class alone: it is another object each time.
    fn is_moving(&self) -> bool {
        match self {
            Self::Type(_) => true,
            Self::Sequence(_, items) => items.iter().any(Self::is_moving),
            Self::Mapping(_, pairs) => pairs.iter().any(|(_, seen)| seen.is_moving()),
            Self::Key(_)
            | Self::Array(..)
            | Self::Expr(_)
            | Self::Method(..)
            | Self::Function(..)
            | Self::Anything => false,
        }
    }

    /// Whether what matches one matches the other.
    pub fn is_same(&self, other: &Self, py: Python<'_>) -> bool {
        let all =
            |a: &[Self], b: &[Self]| a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.is_same(b, py));
        match (self, other) {
            (Self::Key(a), Self::Key(b)) => a.is_same(b, py),
            (Self::Type(a), Self::Type(b)) => a.is(b),
            (Self::Array(scalar, shape, bytes), Self::Array(other, others, and)) => {
                scalar == other && shape == others && bytes == and
            }
            (Self::Expr(a), Self::Expr(b)) => a == b,
            (Self::Sequence(class, a), Self::Sequence(other, b)) => class.is(other) && all(a, b),
            (Self::Mapping(class, a), Self::Mapping(other, b)) => {
                class.is(other)
                    && a.len() == b.len()
                    && a.iter().zip(b).all(|(a, b)| a.0.is_same(&b.0, py) && a.1.is_same(&b.1, py))
            }
            (Self::Method(a, class), Self::Method(b, other)) => class.is(other) && a.is_same(b, py),
            (Self::Function(code, defaults, cells), Self::Function(other, others, and)) => {
                code.is_same(other, py) && defaults.is_same(others, py) && all(cells, and)
            }
            (Self::Anything, Self::Anything) => true,
            _ => false,
        }
    }
}
