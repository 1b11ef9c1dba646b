//! Names: what they stand for, and new variables.

use octants_diag::{Code, Diagnostic, Span};

use crate::ast::Name;
use crate::host::Host;
use crate::lower::Lowerer;
use crate::lower::data::scope::{AliasKind, Binding};
use crate::lower::data::term::{Place, Term};
use crate::lower::error::Fallible;

/// Entries of a vector or matrix above which a variable is warned of, as `oc.types` warns: a 12×12 matrix is the largest that is not.
const MAX_QUIET_ENTRIES: u32 = 144;

impl<H: Host> Lowerer<'_, H> {
    /// Locals of the enclosing blocks, parameters, the closure, the module, the builtins.
    pub(crate) fn name(&mut self, name: &str, span: Span) -> Fallible<Term<H::Object>> {
        if let Some(binding) = self.frame().lookup(name) {
            return Ok(match binding {
                Binding::Variable { place, in_parallel, .. } => {
                    let shared = self.in_parallel && !in_parallel;
                    Term::Place(Place { base: *place, path: Vec::new(), shared, guard: None, sparse: None })
                }
                Binding::Alias { term: Term::Struct(of), .. } if self.in_parallel && !of.in_parallel => {
                    Term::Struct(Self::shared_struct(of))
                }
                Binding::Alias { term, .. } => {
                    let term = term.clone();
                    if self.in_static { self.pinned(term) } else { term }
                }
            });
        }
        let host = self.host;
        let found = host.global(&self.frame().object, name);
        match found.map_err(|exception| self.host_error(exception, span))? {
            Some(object) => {
                self.check_purity(name, &object, span)?;
                Ok(self.captured(object))
            }
            None => Err(Box::new(self.undefined(name, span))),
        }
    }

    /// Refuses a global that is a value in a kernel that promises to use none. Functions of the package may.
    fn check_purity(&mut self, name: &str, object: &H::Object, span: Span) -> Fallible<()> {
        if !self.options.pure || self.host.is_definition(object) || self.is_library(self.frame()) {
            return Ok(());
        }
        let message = format!("[PURE.VIOLATION] `{name}` is a global, and the kernel has `fastcache=True`");
        let is_constant = name.chars().any(char::is_alphabetic) && !name.chars().any(char::is_lowercase);
        if is_constant || self.in_static {
            let warning = self.diagnostic(Code::ConstantGlobal, span, message);
            self.warn(warning.help("it is taken for a constant; pass it as an argument if it is not"));
            return Ok(());
        }
        let help = "pass it as an argument, or leave `fastcache=True` out: kernels are kept anyway";
        Err(self.error_with_help(Code::ImpureGlobal, span, message, help))
    }

    pub(crate) fn undefined(&self, name: &str, span: Span) -> Diagnostic {
        let message = format!("Name \"{name}\" is not defined");
        if let Some(block) = self.frame().block_that_had(name) {
            let help = if self.blocks.heads.contains(&block) {
                format!("branches share no variables: calculate `{name}` in this block, too")
            } else {
                format!("assign `{name}` before the block, so that it lives on after it")
            };
            return self
                .diagnostic(Code::LeftScope, span, message)
                .marked("not visible here")
                .label(block, "it was defined inside this block")
                .help(help);
        }
        let diagnostic = self.diagnostic(Code::UndefinedName, span, message);
        if let Some(known) = self.frame().visible().find(|known| is_near(known, name)) {
            return diagnostic.help(format!("did you mean `{known}`?"));
        }
        if let Some(path) = self.host.package_name(name) {
            return diagnostic.help(format!("write `{path}`"));
        }
        match nearest(self.host.names(&self.frame().object), name) {
            Some(known) => diagnostic.help(format!("did you mean `{known}`?")),
            None => diagnostic,
        }
    }

    /// A new variable in the innermost block that holds the value of a term. What is not a number is only given a name.
    pub(crate) fn define(&mut self, name: &Name, term: Term<H::Object>, span: Span) -> Fallible<()> {
        let term = self.copied(term, span)?;
        let binding = self.variable_or_alias(term, span);
        self.frame_mut().declare(name.clone(), binding);
        Ok(())
    }

    /// What a new name stands for, once its value was copied.
    pub(crate) fn variable_or_alias(&self, term: Term<H::Object>, span: Span) -> Binding<H::Object> {
        match term {
            Term::Place(place) if place.path.is_empty() => {
                Binding::Variable { place: place.base, in_parallel: self.in_parallel, span }
            }
            other => Binding::Alias { term: other, kind: AliasKind::Named, span },
        }
    }

    /// A copy of a value in a variable of its own; sequences item by item.
    pub(crate) fn copied(&mut self, term: Term<H::Object>, span: Span) -> Fallible<Term<H::Object>> {
        Ok(match self.loaded(term, span)? {
            Term::Tuple(items) => Term::Tuple(self.copied_items(items, span)?),
            Term::List(items) => Term::List(self.copied_items(items, span)?),
            Term::Struct(of) => {
                let mut members = Vec::with_capacity(of.members.len());
                for (name, member) in of.members {
                    members.push((name, self.copied(member, span)?));
                }
                self.new_struct(members, of.ty)
            }
            term @ (Term::Value(_)
            | Term::Index(_)
            | Term::Bool(_)
            | Term::Int(_)
            | Term::Float(_)
            | Term::Formula(_)) => {
                let value = self.value(term, span)?;
                Term::Place(self.new_local(value, span))
            }
            other => other,
        })
    }

    fn copied_items(&mut self, items: Vec<Term<H::Object>>, span: Span) -> Fallible<Vec<Term<H::Object>>> {
        items.into_iter().map(|item| self.copied(item, span)).collect()
    }

    /// A `local` that holds a value.
    pub(crate) fn new_local(&mut self, value: octants_ir::Value, span: Span) -> Place {
        let data = self.data(value);
        self.warn_of_size(data, span);
        let mut builder = self.at(span);
        let base = builder.local(data);
        builder.store(base, &[], value);
        Place { base, path: Vec::new(), shared: false, guard: None, sparse: None }
    }

    fn warn_of_size(&mut self, data: octants_ir::Data, span: Span) {
        let count = data.tensor_shape().map_or(0, octants_ir::TensorShape::count);
        if count > MAX_QUIET_ENTRIES && !self.is_library(self.frame()) {
            let message = format!("a variable with {count} entries takes long to compile");
            let warning = self.diagnostic(Code::LargeTensor, span, message);
            self.warn(warning.help("keep many numbers in an array, `oc.ndarray`"));
        }
    }

    /// Binds a parameter or a loop variable: to the term itself if nothing assigns to it, else to a variable.
    pub(crate) fn bind(&mut self, name: &Name, term: Term<H::Object>, span: Span) -> Fallible<()> {
        if self.frame().function.assigns(name) {
            return self.define(name, term, span);
        }
        let binding = Binding::Alias { term, kind: AliasKind::Constant, span };
        self.frame_mut().declare(name.clone(), binding);
        Ok(())
    }

    /// A loop's variable is new: it may not hide one that is visible.
    pub(crate) fn check_loop_variable(&self, name: &Name, span: Span) -> Fallible<()> {
        if &**name == "_" {
            return Ok(());
        }
        let Some(binding) = self.frame().lookup(name) else { return Ok(()) };
        Err(Box::new(
            self.diagnostic(
                Code::LoopVariableShadows,
                span,
                format!("loop variable \"{name}\" shadows a variable of an enclosing block"),
            )
            .label(binding.span(), "already defined here")
            .help("choose another name for the loop variable"),
        ))
    }
}

/// The first of some names, in the alphabet's order, that another may be a slip of the pen for.
pub(crate) fn nearest(mut known: Vec<String>, name: &str) -> Option<String> {
    known.retain(|known| is_near(known, name));
    known.into_iter().min()
}

/// Whether one name may be a slip of the pen for another: one letter missing, added or changed, or two swapped.
fn is_near(a: &str, b: &str) -> bool {
    if a.len().min(b.len()) < 3 || a.len().abs_diff(b.len()) > 1 {
        return false;
    }
    let (a, b): (Vec<_>, Vec<_>) = (a.chars().collect(), b.chars().collect());
    let start = a.iter().zip(&b).take_while(|(x, y)| x == y).count();
    let end = a[start..].iter().rev().zip(b[start..].iter().rev()).take_while(|(x, y)| x == y).count();
    let (left_a, left_b) = (a.len() - start - end, b.len() - start - end);
    let swapped = left_a == 2 && left_b == 2 && a[start] == b[start + 1] && a[start + 1] == b[start];
    left_a.max(left_b) <= 1 || swapped
}

#[cfg(test)]
mod tests {
    use super::is_near;

    #[test]
    fn near_names_differ_by_one_slip() {
        assert!(is_near("total", "totl") && is_near("total", "toatl") && is_near("velocity", "velocitty"));
        assert!(!is_near("total", "local") && !is_near("i", "j") && !is_near("ab", "abc"));
    }
}
