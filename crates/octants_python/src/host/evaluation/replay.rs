//! What a function of Python's asked the compiler for: operations on values of the kernel that it was given.
//!
//! While compiling, each is noted with its operands and its result. At a launch the function is given stand-ins for the values; it must ask
//! for the same operations on the same operands, and is told the same results.

use octants::front::host::{BinaryOp, CompareOp, HostOnly, UnaryOp};
use octants::front::{ExprId, TraceError, Tracer};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;

use super::Seen;
use super::record::seen_now;
use crate::values::expr::Expr;

type Object<'py> = Bound<'py, PyAny>;

#[derive(Clone, PartialEq)]
pub enum Asked {
    Binary(BinaryOp),
    Unary(UnaryOp),
    Compare(CompareOp),
    Attribute(String),
    Item,
    SetItem,
    Call(Vec<String>),
    /// Something that only the host may do; it was refused, and the function went on.
    Refusal,
}

pub struct Step {
    asked: Asked,
    operands: Vec<Seen>,
    /// What the function was told; none if nothing.
    result: Option<Told>,
    refusal: Option<TraceError>,
}

enum Told {
    Expr(ExprId),
    Object(Py<PyAny>),
}

impl Step {
    /// Whether it is this that a function asks for.
    pub fn is_for(&self, asked: &Asked, operands: &[Object<'_>]) -> bool {
        self.asked == *asked
            && self.operands.len() == operands.len()
            && self.operands.iter().zip(operands).all(|(seen, now)| seen.matches(now))
    }

    /// What it keeps alive, for Python's collector.
    pub fn visit(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.operands.iter().try_for_each(|seen| seen.visit(visit))?;
        match &self.result {
            Some(Told::Object(object)) => visit.call(object),
            Some(Told::Expr(_)) | None => Ok(()),
        }
    }

    fn is_same(&self, other: &Self, py: Python<'_>) -> bool {
        let is_told_same = match (&self.result, &other.result) {
            (Some(Told::Expr(a)), Some(Told::Expr(b))) => a.index == b.index,
            (Some(Told::Object(a)), Some(Told::Object(b))) => {
                a.is(b)
                    || seen_now(a.bind(py)).is_ok_and(|seen| seen.is_by_value() && seen.matches(b.bind(py)))
            }
            (None, None) => true,
            _ => false,
        };
        self.asked == other.asked
            && self.operands.len() == other.operands.len()
            && self.operands.iter().zip(&other.operands).all(|(a, b)| a.is_same(b, py))
            && is_told_same
    }
}

/// Whether the first steps of two functions are the same.
pub fn same_steps(py: Python<'_>, a: &[Step], b: &[Step], count: usize) -> bool {
    a.len() >= count && b.len() >= count && a.iter().zip(b).take(count).all(|(a, b)| a.is_same(b, py))
}

/// Passes on what a function asks for, and notes it.
pub struct Noting<'a, 'py> {
    pub inner: &'a mut dyn Tracer<Object<'py>>,
    pub steps: Vec<Step>,
    /// Whether anything could not be noted.
    pub is_lost: bool,
}

impl<'py> Noting<'_, 'py> {
    fn note(&mut self, asked: Asked, operands: &[&Object<'py>], result: Option<&Object<'py>>) {
        let mut seen = Vec::with_capacity(operands.len());
        for operand in operands {
            match seen_now(operand) {
                Ok(operand) => seen.push(operand),
                Err(_) => self.is_lost = true,
            }
        }
        let result = result.map(|result| match result.cast::<Expr>() {
            Ok(expr) => Told::Expr(expr.get().id),
            Err(_) => Told::Object(result.clone().unbind()),
        });
        self.steps.push(Step { asked, operands: seen, result, refusal: None });
    }
}

impl<'py> Tracer<Object<'py>> for Noting<'_, 'py> {
    fn binary(&mut self, op: BinaryOp, a: &Object<'py>, b: &Object<'py>) -> Result<Object<'py>, TraceError> {
        let result = self.inner.binary(op, a, b)?;
        self.note(Asked::Binary(op), &[a, b], Some(&result));
        Ok(result)
    }

    fn unary(&mut self, op: UnaryOp, a: &Object<'py>) -> Result<Object<'py>, TraceError> {
        let result = self.inner.unary(op, a)?;
        self.note(Asked::Unary(op), &[a], Some(&result));
        Ok(result)
    }

    fn compare(
        &mut self,
        op: CompareOp,
        a: &Object<'py>,
        b: &Object<'py>,
    ) -> Result<Object<'py>, TraceError> {
        let result = self.inner.compare(op, a, b)?;
        self.note(Asked::Compare(op), &[a, b], Some(&result));
        Ok(result)
    }

    fn getattr(&mut self, object: &Object<'py>, name: &str) -> Result<Object<'py>, TraceError> {
        let result = self.inner.getattr(object, name)?;
        self.note(Asked::Attribute(name.to_owned()), &[object], Some(&result));
        Ok(result)
    }

    fn getitem(&mut self, object: &Object<'py>, index: &Object<'py>) -> Result<Object<'py>, TraceError> {
        let result = self.inner.getitem(object, index)?;
        self.note(Asked::Item, &[object, index], Some(&result));
        Ok(result)
    }

    fn setitem(
        &mut self,
        object: &Object<'py>,
        index: &Object<'py>,
        value: &Object<'py>,
    ) -> Result<(), TraceError> {
        self.inner.setitem(object, index, value)?;
        self.note(Asked::SetItem, &[object, index, value], None);
        Ok(())
    }

    fn call(
        &mut self,
        callee: &Object<'py>,
        args: &[Object<'py>],
        kwargs: &[(String, Object<'py>)],
    ) -> Result<Object<'py>, TraceError> {
        let result = self.inner.call(callee, args, kwargs)?;
        let operands: Vec<_> =
            std::iter::once(callee).chain(args).chain(kwargs.iter().map(|(_, value)| value)).collect();
        let names = kwargs.iter().map(|(name, _)| name.clone()).collect();
        self.note(Asked::Call(names), &operands, Some(&result));
        Ok(result)
    }

    fn host_only(&mut self, what: HostOnly<'_>) -> TraceError {
        let error = self.inner.host_only(what);
        let refusal = Some(error.clone());
        self.steps.push(Step { asked: Asked::Refusal, operands: Vec::new(), result: None, refusal });
        error
    }

    fn describe(&mut self, object: &Object<'py>) -> String {
        self.inner.describe(object)
    }
}

/// Answers what a function asks for as long as it asks what it asked before.
pub struct Replay<'a, 'py> {
    py: Python<'py>,
    steps: &'a [Step],
    at: usize,
    /// What it asked for that is not the next step. It is answered nothing from then on.
    other: Option<(Asked, Vec<Object<'py>>)>,
}

impl<'a, 'py> Replay<'a, 'py> {
    pub fn new(py: Python<'py>, steps: &'a [Step]) -> Self {
        Self { py, steps, at: 0, other: None }
    }

    /// How many of the steps it has asked for, and what else then.
    pub fn end(self) -> (usize, Option<(Asked, Vec<Object<'py>>)>) {
        (self.at, self.other)
    }

    fn answer(&mut self, asked: Asked, operands: &[&Object<'py>]) -> Result<Object<'py>, TraceError> {
        let operands: Vec<_> = operands.iter().map(|&operand| operand.clone()).collect();
        let next = self.steps.get(self.at).filter(|step| step.is_for(&asked, &operands));
        let Some(step) = next.filter(|_| self.other.is_none()) else {
            return Err(self.differs(asked, operands));
        };
        self.at += 1;
        match &step.result {
            Some(Told::Expr(id)) => match Bound::new(self.py, Expr { id: *id }) {
                Ok(expr) => Ok(expr.into_any()),
                Err(_) => Err(self.differs(asked, operands)),
            },
            Some(Told::Object(object)) => Ok(object.bind(self.py).clone()),
            None => Ok(self.py.None().into_bound(self.py)),
        }
    }

    /// The function does something else than before: the code is not for that, and it is compiled anew.
    fn differs(&mut self, asked: Asked, operands: Vec<Object<'py>>) -> TraceError {
        self.other.get_or_insert((asked, operands));
        TraceError {
            class: octants::diag::Class::Runtime,
            message: "a function that ran while compiling does something else now".to_owned(),
        }
    }
}

impl<'py> Tracer<Object<'py>> for Replay<'_, 'py> {
    fn binary(&mut self, op: BinaryOp, a: &Object<'py>, b: &Object<'py>) -> Result<Object<'py>, TraceError> {
        self.answer(Asked::Binary(op), &[a, b])
    }

    fn unary(&mut self, op: UnaryOp, a: &Object<'py>) -> Result<Object<'py>, TraceError> {
        self.answer(Asked::Unary(op), &[a])
    }

    fn compare(
        &mut self,
        op: CompareOp,
        a: &Object<'py>,
        b: &Object<'py>,
    ) -> Result<Object<'py>, TraceError> {
        self.answer(Asked::Compare(op), &[a, b])
    }

    fn getattr(&mut self, object: &Object<'py>, name: &str) -> Result<Object<'py>, TraceError> {
        self.answer(Asked::Attribute(name.to_owned()), &[object])
    }

    fn getitem(&mut self, object: &Object<'py>, index: &Object<'py>) -> Result<Object<'py>, TraceError> {
        self.answer(Asked::Item, &[object, index])
    }

    fn setitem(
        &mut self,
        object: &Object<'py>,
        index: &Object<'py>,
        value: &Object<'py>,
    ) -> Result<(), TraceError> {
        self.answer(Asked::SetItem, &[object, index, value]).map(|_| ())
    }

    fn call(
        &mut self,
        callee: &Object<'py>,
        args: &[Object<'py>],
        kwargs: &[(String, Object<'py>)],
    ) -> Result<Object<'py>, TraceError> {
        let operands: Vec<_> =
            std::iter::once(callee).chain(args).chain(kwargs.iter().map(|(_, value)| value)).collect();
        let names = kwargs.iter().map(|(name, _)| name.clone()).collect();
        self.answer(Asked::Call(names), &operands)
    }

    fn host_only(&mut self, _what: HostOnly<'_>) -> TraceError {
        let next = self.steps.get(self.at).filter(|_| self.other.is_none());
        match next.and_then(|step| step.refusal.clone()) {
            Some(refusal) => {
                self.at += 1;
                refusal
            }
            None => self.differs(Asked::Refusal, Vec::new()),
        }
    }

    fn describe(&mut self, _object: &Object<'py>) -> String {
        "a value of a kernel".to_owned()
    }
}
