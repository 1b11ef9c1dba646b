//! List and dict comprehensions over what is known at compile time.

use octants_diag::Span;

use crate::ast::{Expr, Generator};
use crate::host::Host;
use crate::lower::Lowerer;
use crate::lower::data::term::Term;
use crate::lower::error::Fallible;

impl<H: Host> Lowerer<'_, H> {
    pub(crate) fn list_comprehension(
        &mut self,
        element: &Expr,
        generators: &[Generator],
    ) -> Fallible<Term<H::Object>> {
        let mut items = Vec::new();
        self.generate(generators, element.span, &mut |lowerer| {
            items.push(lowerer.operand(element)?);
            Ok(())
        })?;
        Ok(Term::List(items))
    }

    pub(crate) fn dict_comprehension(
        &mut self,
        key: &Expr,
        value: &Expr,
        generators: &[Generator],
    ) -> Fallible<Term<H::Object>> {
        let mut items = Vec::new();
        self.generate(generators, key.span, &mut |lowerer| {
            let key_term = lowerer.operand(key)?;
            if !key_term.is_static() {
                return Err(lowerer.must_be_constant("keys of a dict", key.span));
            }
            items.push((key_term, lowerer.operand(value)?));
            Ok(())
        })?;
        Ok(Term::Dict(items))
    }

    /// Runs `each` once per combination of the generators' items, their variables bound.
    fn generate(
        &mut self,
        generators: &[Generator],
        span: Span,
        each: &mut dyn FnMut(&mut Self) -> Fallible<()>,
    ) -> Fallible<()> {
        let Some((generator, inner)) = generators.split_first() else { return each(self) };
        let iterable = self.static_expr(&generator.iter)?;
        for item in self.static_items(&iterable, generator.iter.span)? {
            self.frame_mut().push_comprehension();
            self.bind_static(&generator.target, item)?;
            let mut holds = true;
            for condition in &generator.conditions {
                let term = self.static_expr(condition)?;
                holds = holds && self.static_truth(&term, condition.span)?;
            }
            if holds {
                self.generate(inner, span, each)?;
            }
            self.frame_mut().pop_scope(span);
        }
        Ok(())
    }

    /// An expression evaluated as if it stood inside `oc.static(…)`.
    pub(crate) fn static_expr(&mut self, expr: &Expr) -> Fallible<Term<H::Object>> {
        if let crate::ast::ExprKind::Call { .. } = &expr.kind {
            // It may be `oc.static(…)` itself, which does not nest.
            let outer = self.in_static;
            self.in_static = false;
            let callee_is_static = self.is_static_call(expr);
            self.in_static = outer;
            if callee_is_static? && !outer {
                return self.operand(expr);
            }
        }
        let outer = std::mem::replace(&mut self.in_static, true);
        let result = self.operand(expr);
        self.in_static = outer;
        result
    }
}
