//! Code for arguments that have none yet: lowered, compiled or found, and kept by the kernel.

use std::any::Any;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::Instant;

use octants::Mode;
use octants::diag::{Code, Diagnostic};
use octants::forked::UnderWay;
use octants::front::{Dependency, LowerOptions, Lowered, Origin, Step, lower_kernel};
use pyo3::prelude::*;

use super::recording::Asked;
use super::{CodeKind, Kernel};
use crate::arrays::tensor;
use crate::gateway::interrupt::SignalScope;
use crate::gateway::under_way::Outside;
use crate::gateway::{errors, interrupt, stack};
use crate::host::evaluation::{ChangedMember, Evaluations, LaunchEvaluations};
use crate::host::template::TemplateKey;
use crate::host::{Globals, PyHost};
use crate::kernel::arguments::Binder;
use crate::launch::{
    DerivativeKind, Fit, LaunchArguments, Specialisation, TapeChecks, companions, input_number,
};
use crate::session::disk_cache;
use crate::session::runtime::ActiveSession;

impl Kernel {
    #[cold]
    pub(super) fn specialise<'py>(
        &self,
        py: Python<'py>,
        current: &ActiveSession,
        what: CodeKind,
        arguments: &[Borrowed<'_, 'py, PyAny>],
        evaluated: &mut LaunchEvaluations<'py>,
    ) -> PyResult<Arc<Specialisation>> {
        // Other threads of Python's may run, and fork, while this one has locks. A fork that was announced comes first.
        py.outside(|| ());
        let _under_way = UnderWay::inside();
        let sources = self.runtime.get().sources();
        let binder = Binder { signature: &self.signature, params: &self.params, sources: sources.map() };
        let described = arguments.iter().zip(&self.params);
        let args = described
            .map(|(object, param)| binder.describe(param, tensor::unwrapped(object), current))
            .collect::<PyResult<Vec<_>>>()?;
        let mut options = self.lower_options(py, current, arguments)?.into_owned();
        options.has_run = matches!(what, CodeKind::Derivative(kind) if kind.mode() == Mode::Reverse);
        options.names_elements =
            options.has_run || matches!(what, CodeKind::Recording | CodeKind::DualRecording);
        let started = Instant::now();
        let function = self.function.bind(py).as_any();
        let varying = self.varying(py, current, what, arguments)?;
        let is_full = evaluated.is_full;
        let launch_evaluated = evaluated;
        let evaluated = Rc::new(RefCell::new(std::mem::take(launch_evaluated)));
        let given = self.known_globals(py, current.epoch, what, arguments)?;
        let seen = RefCell::new(None);
        let lower = |options: &LowerOptions| {
            let lower = |varying: &[String]| {
                let host = PyHost::sharing(py, Rc::clone(&evaluated), given.clone());
                let lowered = lower_kernel(&host, sources, function, &args, options, varying);
                *seen.borrow_mut() = host.seen_globals().ok();
                lowered
            };
            let lowered = match lower(&varying) {
                // A number may have to be known after all, where nobody thought of one that changes.
                Err(_) if !varying.is_empty() => lower(&[]),
                lowered => lowered,
            };
            let mut lowered =
                lowered.map_err(|diagnostics| errors::from_diagnostics(py, &diagnostics, sources.map()))?;
            let Lowered { dependencies, evaluations, .. } = &mut lowered;
            find_operands(dependencies, evaluations);
            evaluated.borrow_mut().changed = evaluations.as_ref().and_then(|_| changed_member(dependencies));
            Ok::<_, PyErr>(lowered)
        };
        let mut lowered = lower(&options)?;
        launch_evaluated.changed = evaluated.borrow_mut().changed.take();
        let lowering = started.elapsed();
        // Fields that the kernel does not use must be placed, too: their layout is finished now.
        if let Some(root) = self.runtime.get().root(py) {
            root.call_method0(py, "_require_places")?;
        }
        if is_full && !lowered.warnings.iter().any(|warning| warning.code == Code::EvaluatedAnew) {
            let text = format!(
                "what Python evaluates for `{}` keeps being something else: the kernel is compiled at each launch",
                self.signature.name
            );
            let warning = Diagnostic::new(Code::EvaluatedAnew, text).at(self.signature.span);
            lowered.warnings.push(warning.help("pass what changes as an argument"));
        }
        // The user was told when the kernel itself was compiled.
        if !matches!(what, CodeKind::Derivative(_)) {
            errors::warn(py, &lowered.warnings, sources.map())?;
        }
        interrupt::install();
        let signals = SignalScope::begin(py)?;
        if let CodeKind::Derivative(kind) = what {
            let begin = Instant::now();
            let mut made =
                self.differentiate(py, current, kind, &lowered, arguments, false, signals.request())?;
            made.globals = seen.take();
            let differentiating = begin.elapsed();
            signals.finish(py, Ok(()), false, errors::from_error)?;
            py.check_signals()?;
            disk_cache::tell(py, self.runtime.get(), &current.session)?;
            let made = self.keep(current, what, made);
            self.show(py, current, &made.compiled, started, lowering, Some(differentiating))?;
            return Ok(made);
        }
        let mut checks = TapeChecks::default();
        let finding_cells = LowerOptions { has_run: true, ..options.clone() };
        let has_trees = lowered.fields.iter().any(|field| field.view.is_some());
        if what == CodeKind::DualRecording {
            // Nothing is kept of a run that makes cells.
            let recorded = if has_trees {
                None
            } else {
                self.record_duals(py, current, &lowered, arguments, signals.request())?
            };
            let mut made = if let Some(made) = recorded {
                made
            } else {
                let make = |kind, lowered| {
                    self.differentiate(py, current, kind, lowered, arguments, true, signals.request())
                };
                let mut made = make(DerivativeKind::Forward, &lowered)?;
                let finding = has_trees.then(|| lower(&finding_cells)).transpose()?;
                let of = finding.as_ref().unwrap_or(&lowered);
                made.backward = Some(make(DerivativeKind::ForwardOverReverse, of)?.as_backward());
                made
            };
            signals.finish(py, Ok(()), false, errors::from_error)?;
            py.check_signals()?;
            disk_cache::tell(py, self.runtime.get(), &current.session)?;
            made.globals = seen.take();
            return Ok(self.keep(current, what, made));
        }
        let (kind, mut backward, mut condition) = (DerivativeKind::Reverse, None, None);
        if what == CodeKind::Recording && has_trees {
            checks.has_trees = true;
            // Nothing is kept of a run that makes cells: its derivative must do without.
            let finding = lower(&finding_cells)?;
            let made = self.differentiate(py, current, kind, &finding, arguments, true, signals.request())?;
            backward = Some(made.as_backward());
        } else if what == CodeKind::Recording {
            let (found, asked) = self.record(py, current, &lowered, arguments, signals.request())?;
            checks = found;
            match asked {
                Asked::Record(mut made) => {
                    made.tape_checks = checks;
                    made.globals = seen.take();
                    signals.finish(py, Ok(()), false, errors::from_error)?;
                    py.check_signals()?;
                    disk_cache::tell(py, self.runtime.get(), &current.session)?;
                    return Ok(self.keep(current, what, *made));
                }
                Asked::Nothing { backward: made, condition: of_launches } => {
                    (backward, condition) = (Some(made), of_launches);
                }
            }
        }
        let checked = match what {
            CodeKind::Recording => companions(
                &lowered.kernel,
                DerivativeKind::Reverse,
                &lowered.dependencies,
                &lowered.fields,
                arguments,
            )?,
            CodeKind::Value | CodeKind::DualRecording | CodeKind::Derivative(_) => Vec::new(),
        };
        let kernel = std::mem::replace(&mut lowered.kernel, octants::ir::Kernel::new(""));
        let compiled = py
            .outside(|| stack::with_enough(|| current.session.compile(kernel, lowering, signals.request())))
            .map_err(|error| errors::from_error(py, &error))?;
        signals.finish(py, Ok(()), false, errors::from_error)?;
        py.check_signals()?;
        disk_cache::tell(py, self.runtime.get(), &current.session)?;
        if let Some(race) = errors::race(&compiled.races())
            && !self.told_of_races.swap(true, Ordering::Relaxed)
        {
            errors::warn(py, &[race], sources.map())?;
        }
        let known =
            self.specialisations(CodeKind::Value).iter().any(|one| Arc::ptr_eq(&one.compiled, &compiled));
        if what == CodeKind::Recording && !known {
            let mut value = Specialisation::new(current.epoch, Arc::clone(&compiled), &lowered)?;
            value.globals.clone_from(&seen.borrow());
            self.keep(current, CodeKind::Value, value);
        }
        let mut made = Specialisation::new(current.epoch, compiled, &lowered)?;
        made.require_companions(&lowered.dependencies, &checked)?;
        made.tape_checks = checks;
        (made.backward, made.condition) = (backward, condition);
        made.globals = seen.take();
        let made = self.keep(current, what, made);
        self.show(py, current, &made.compiled, started, lowering, None)?;
        Ok(made)
    }

    /// What names outside of the kernel stand for in other code for these arguments, if there is some.
    fn known_globals<'py>(
        &self,
        py: Python<'py>,
        epoch: u64,
        what: CodeKind,
        arguments: &[Borrowed<'_, 'py, PyAny>],
    ) -> PyResult<Option<Arc<Globals>>> {
        let reverse = CodeKind::Derivative(DerivativeKind::Reverse);
        let forward = CodeKind::Derivative(DerivativeKind::Forward);
        let second = CodeKind::Derivative(DerivativeKind::ForwardOverReverse);
        let all = [CodeKind::Value, CodeKind::Recording, reverse, forward, CodeKind::DualRecording, second];
        let mut launch = LaunchArguments::new(false);
        for other in all.into_iter().filter(|&other| other != what) {
            let list = self.specialisations(other).clone();
            for one in list.iter().filter(|one| one.epoch == epoch && one.globals.is_some()) {
                // What cannot be bound is no other code for these arguments.
                if matches!(one.bind(py, arguments, &mut launch, false), Ok(Fit::Fits)) {
                    return Ok(one.globals.clone());
                }
            }
        }
        Ok(None)
    }

    /// Numbers that have changed since code was made for these arguments, with those of before.
    fn varying(
        &self,
        py: Python<'_>,
        current: &ActiveSession,
        what: CodeKind,
        arguments: &[Borrowed<'_, '_, PyAny>],
    ) -> PyResult<Vec<String>> {
        let known = self.specialisations(what).clone();
        let mut varying = self.varying.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for one in known.iter().filter(|one| one.epoch == current.epoch) {
            for path in one.changed_numbers(py, arguments)? {
                if !varying.iter().any(|other| other == path) {
                    varying.push(path.to_owned());
                }
            }
        }
        self.varying.lock().unwrap_or_else(PoisonError::into_inner).clone_from(&varying);
        Ok(varying)
    }

    /// The code comes first from now on.
    pub(super) fn keep(
        &self,
        current: &ActiveSession,
        what: CodeKind,
        mut made: Specialisation,
    ) -> Arc<Specialisation> {
        for (argument, _) in self.params.iter().enumerate().filter(|(_, param)| param.demands_gradients()) {
            made.require_gradients(argument);
        }
        let made = Arc::new(made);
        let mut list = self.specialisations(what);
        list.retain(|one| one.epoch == current.epoch && one.is_alive());
        list.insert(0, Arc::clone(&made));
        made
    }
}

/// What evaluations start from is found as an input where it is one.
fn find_operands(
    dependencies: &[Dependency<Bound<'_, PyAny>>],
    evaluations: &mut Option<Arc<dyn Any + Send + Sync>>,
) {
    // Nobody else has it yet.
    let evaluations =
        evaluations.as_mut().and_then(Arc::get_mut).and_then(<dyn Any + Send + Sync>::downcast_mut);
    let Some(evaluations): Option<&mut Evaluations> = evaluations else { return };
    evaluations.find_in(|object| {
        let is_it = |one: &Dependency<Bound<'_, PyAny>>| {
            one.object.is(object) && matches!(one.origin, Origin::Argument(_) | Origin::Member { .. })
        };
        dependencies.iter().position(is_it).and_then(|at| input_number(dependencies, at))
    });
}

/// A member that is not what lowering found: what Python evaluated since has changed it.
fn changed_member<'py>(dependencies: &[Dependency<Bound<'py, PyAny>>]) -> Option<ChangedMember<'py>> {
    dependencies.iter().find_map(|one| {
        let Origin::Member { of, step } = &one.origin else { return None };
        let parent = &dependencies[*of].object;
        let now = match step {
            Step::Attribute(name) => parent.getattr(name.as_str()),
            Step::Item(key) => parent.get_item(key),
        };
        let now = tensor::into_unwrapped(now.ok()?);
        let is_same =
            now.is(&one.object) || TemplateKey::of(&one.object).is_ok_and(|known| known.matches(&now));
        (!is_same).then(|| ChangedMember { path: one.path.clone(), now })
    })
}
