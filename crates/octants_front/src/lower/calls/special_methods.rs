//! Special methods that are funcs: what operators, indices and calls of objects mean where a class says so for kernels.
//!
//! `__call__`, `__getitem__`, binary operators and comparisons; those that are plain Python run while compiling, as all of it does.

use octants_diag::Span;

use crate::host::{BinaryOp, CompareOp, Host, Meaning};
use crate::lower::Lowerer;
use crate::lower::data::argument::Argument;
use crate::lower::data::term::Term;
use crate::lower::error::Fallible;

impl<H: Host> Lowerer<'_, H> {
    /// The func that an object's class has under this name, bound to the object. As in Python, the class is asked first, not the object.
    pub(crate) fn special_method(&mut self, object: &H::Object, name: &str) -> Option<H::Object> {
        if !matches!(self.host.meaning(object), Meaning::Other | Meaning::Callable { .. }) {
            return None;
        }
        let host = self.host;
        let class = host.getattr(object, "__class__", self).ok()?;
        let of_class = host.getattr(&class, name, self).ok()?;
        if !matches!(host.meaning(&of_class), Meaning::Func { .. }) {
            return None;
        }
        host.getattr(object, name, self).ok()
    }

    /// An operator of an object whose class defines it as a func, the operand on the left first.
    pub(crate) fn special_operator(
        &mut self,
        op: BinaryOp,
        a: &Term<H::Object>,
        b: &Term<H::Object>,
        span: Span,
    ) -> Fallible<Option<Term<H::Object>>> {
        let name = operator_name(op);
        self.first_special([(a, b, &format!("__{name}__")), (b, a, &format!("__r{name}__"))], span)
    }

    /// As [`Self::special_operator`]; a comparison is turned round for the operand on the right.
    pub(crate) fn special_comparison(
        &mut self,
        op: CompareOp,
        a: &Term<H::Object>,
        b: &Term<H::Object>,
        span: Span,
    ) -> Fallible<Option<Term<H::Object>>> {
        let (name, reflected) = match op {
            CompareOp::Lt => ("__lt__", "__gt__"),
            CompareOp::Le => ("__le__", "__ge__"),
            CompareOp::Gt => ("__gt__", "__lt__"),
            CompareOp::Ge => ("__ge__", "__le__"),
            CompareOp::Eq => ("__eq__", "__eq__"),
            CompareOp::Ne => ("__ne__", "__ne__"),
            CompareOp::Is | CompareOp::IsNot | CompareOp::In | CompareOp::NotIn => return Ok(None),
        };
        self.first_special([(a, b, name), (b, a, reflected)], span)
    }

    /// Calls the first special method that there is: of an object, with another operand.
    fn first_special(
        &mut self,
        candidates: [(&Term<H::Object>, &Term<H::Object>, &str); 2],
        span: Span,
    ) -> Fallible<Option<Term<H::Object>>> {
        for (object, other, name) in candidates {
            if let Term::Object(object) = object
                && let Some(method) = self.special_method(object, name)
            {
                return self.call_special(&method, other.clone(), span).map(Some);
            }
        }
        Ok(None)
    }

    /// The length of an object that says it and cannot be looped over.
    pub(crate) fn special_length(
        &mut self,
        object: &H::Object,
        span: Span,
    ) -> Fallible<Option<Term<H::Object>>> {
        if !matches!(self.host.meaning(object), Meaning::Other | Meaning::Callable { .. }) {
            return Ok(None);
        }
        if self.class_has(object, "__iter__") || !self.class_has(object, "__len__") {
            return Ok(None);
        }
        let method = self.host_attribute(object, "__len__", span)?;
        self.call_evaluated(&method, Vec::new(), span).map(Some)
    }

    /// Whether an object has no other items than those that a func gives.
    pub(crate) fn is_indexed_by_func(&mut self, object: &H::Object) -> bool {
        self.special_method(object, "__getitem__").is_some() && !self.class_has(object, "__iter__")
    }

    fn class_has(&mut self, object: &H::Object, name: &str) -> bool {
        let host = self.host;
        host.getattr(object, "__class__", self).is_ok_and(|class| host.getattr(&class, name, self).is_ok())
    }

    pub(crate) fn call_special(
        &mut self,
        method: &H::Object,
        term: Term<H::Object>,
        span: Span,
    ) -> Fallible<Term<H::Object>> {
        let outer = std::mem::replace(&mut self.call_span, span);
        let argument = Argument { name: None, term, span, is_literal: false };
        let result = self.call_evaluated(method, vec![argument], span);
        self.call_span = outer;
        result
    }
}

fn operator_name(op: BinaryOp) -> &'static str {
    match op {
        BinaryOp::Add => "add",
        BinaryOp::Sub => "sub",
        BinaryOp::Mul => "mul",
        BinaryOp::Div => "truediv",
        BinaryOp::FloorDiv => "floordiv",
        BinaryOp::Mod => "mod",
        BinaryOp::Pow => "pow",
        BinaryOp::Shl => "lshift",
        BinaryOp::Shr => "rshift",
        BinaryOp::BitAnd => "and",
        BinaryOp::BitOr => "or",
        BinaryOp::BitXor => "xor",
        BinaryOp::MatMul => "matmul",
    }
}
