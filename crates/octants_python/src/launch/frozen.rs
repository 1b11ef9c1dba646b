//! Members of frozen dataclasses: read once, and again when another object is passed.
//!
//! A frozen dataclass refers to the same objects as long as it lives, and so do frozen ones and tuples that it leads to. What they led to is kept from
//! one launch to the next; it is let go of when an argument that led to it dies. What numbers, arrays of the session and fields among them put
//! into the block is kept, too, and a launch looks at none of these.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use octants::front::{Dependency, Origin, Role, Step};
use octants::{CompiledKernel, Tree};
use pyo3::prelude::*;
use pyo3::types::{PyCFunction, PyDict, PyTuple, PyWeakrefReference};

use super::writer::{ArgumentWriter, Members};
use crate::{number, tensor};

/// How a launch gets at a member.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Reading {
    /// From its object, at each launch.
    Anew,
    /// It is kept from an earlier launch.
    Kept,
    /// Not at all: it was compared, and nothing else asks for it.
    Compared,
}

/// What an earlier launch with the same arguments left.
pub enum Recalled {
    /// The members that are kept.
    Members,
    /// What members put into the block. Only those of these numbers have to be bound again.
    Block(Arc<[usize]>),
}

/// The members behind frozen arguments of a specialisation.
pub struct FrozenMembers {
    readings: Vec<Reading>,
    /// Numbers of the arguments that lead to what is not read anew.
    roots: Vec<usize>,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    /// Addresses of the arguments of the last launch. Only a hint: the objects may be gone.
    last: Vec<usize>,
    known: Option<Known>,
}

/// What the arguments of an earlier launch led to. It is taken away when one of them dies, so an address stands for the same object.
struct Known {
    roots: Vec<usize>,
    /// One for each member; `None` for those that are not kept.
    objects: Vec<Py<PyAny>>,
    /// What a launch was given, if members put nothing else there at another one.
    block: Option<KeptBlock>,
    _watches: Vec<Py<PyWeakrefReference>>,
}

/// What members have put into the block of a launch. Of no use once a tree among them was destroyed.
pub struct KeptBlock {
    bytes: Box<[u8]>,
    /// Members that may put something else there, in ascending order.
    bound_again: Arc<[usize]>,
    trees: Arc<[Arc<Tree>]>,
    /// How many there were when it was written.
    early_releases: u64,
}

impl KeptBlock {
    pub fn new(writer: &ArgumentWriter<'_, '_>, bound_again: Vec<usize>) -> Self {
        let (bytes, trees) = (writer.block().into(), writer.distinct_trees());
        Self { bytes, bound_again: bound_again.into(), trees, early_releases: writer.early_releases }
    }

    /// Whether all addresses in it still stand for what they stood for.
    #[inline]
    fn is_valid(&self, compiled: &CompiledKernel) -> bool {
        self.trees.is_empty() || self.early_releases == compiled.early_releases().count()
    }
}

type Dependencies<'a, 'py> = &'a [Dependency<Bound<'py, PyAny>>];

impl FrozenMembers {
    /// `numbers` has the number of the input that each dependency is; as many arguments come first. `None` if nothing is frozen.
    pub fn new(dependencies: Dependencies<'_, '_>, numbers: &[usize]) -> Option<Self> {
        let arguments = dependencies.iter().filter(|one| matches!(one.origin, Origin::Argument(_))).count();
        let is_input = |at: &usize| !matches!(dependencies[*at].origin, Origin::Captured);
        let all = readings(dependencies);
        let members = (0..dependencies.len()).filter(is_input).filter(|&at| numbers[at] >= arguments);
        let readings: Vec<_> = members.map(|at| all[at]).collect();
        let mut roots: Vec<_> = (0..dependencies.len())
            .filter(|&at| all[at] != Reading::Anew)
            .filter_map(|at| root(dependencies, at))
            .collect();
        roots.sort_unstable();
        roots.dedup();
        (!roots.is_empty()).then(|| Self { readings, roots, state: Arc::default() })
    }

    pub fn readings(&self) -> &[Reading] {
        &self.readings
    }

    /// Puts what is kept into the block, or into `read`. `None` if other arguments led to it.
    #[inline]
    pub fn recall<'py>(
        &self,
        py: Python<'py>,
        arguments: &[Borrowed<'_, 'py, PyAny>],
        read: &mut Members<'py>,
        writer: &mut ArgumentWriter<'_, 'py>,
    ) -> Option<Recalled> {
        // Whoever holds it is about to be done; reading anew is right, too.
        let state = self.state.try_lock().ok()?;
        let known = state.known.as_ref()?;
        let same = self.roots.iter().zip(&known.roots).all(|(&at, &root)| address(arguments[at]) == root);
        if !same {
            return None;
        }
        if let Some(block) = &known.block
            && !writer.is_tracking()
        {
            if !block.is_valid(writer.compiled) {
                return None;
            }
            writer.set_block(&block.bytes, &block.trees);
            let count = block.bound_again.last().map_or(0, |last| last + 1);
            read.resize(count, py.None().into_bound(py));
            for &member in &*block.bound_again {
                read[member] = known.objects[member].bind(py).clone();
            }
            return Some(Recalled::Block(Arc::clone(&block.bound_again)));
        }
        read.extend(known.objects.iter().map(|object| object.bind(py).clone()));
        Some(Recalled::Members)
    }

    /// Keeps what a launch has read, and the block that members alone have filled, if the launch before it had the same arguments.
    pub fn remember<'py>(
        &self,
        py: Python<'py>,
        arguments: &[Borrowed<'_, 'py, PyAny>],
        read: &Members<'py>,
        block: Option<KeptBlock>,
    ) {
        let roots: Vec<_> = self.roots.iter().map(|&at| address(arguments[at])).collect();
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.last != roots {
            state.last = roots;
            return;
        }
        drop(state);
        // An object that cannot be watched is read anew.
        let Ok(watches) = self.roots.iter().map(|&at| self.watch(arguments[at])).collect() else { return };
        let objects = read.iter().zip(&self.readings).map(|(object, reading)| match reading {
            Reading::Kept => tensor::unwrapped(object).clone().unbind(),
            Reading::Anew | Reading::Compared => py.None(),
        });
        let known = Known { roots, objects: objects.collect(), block, _watches: watches };
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let old = state.known.replace(known);
        // What is let go of may run code.
        drop(state);
        drop(old);
    }

    /// Lets go of everything when an object dies.
    fn watch(&self, object: Borrowed<'_, '_, PyAny>) -> PyResult<Py<PyWeakrefReference>> {
        let state: Weak<Mutex<State>> = Arc::downgrade(&self.state);
        let forget = move |_: &Bound<'_, PyTuple>, _: Option<&Bound<'_, PyDict>>| {
            let Some(state) = state.upgrade() else { return };
            let known = state.lock().unwrap_or_else(PoisonError::into_inner).known.take();
            drop(known);
        };
        let callback = PyCFunction::new_closure(object.py(), None, None, forget)?;
        Ok(PyWeakrefReference::new_with(&object, callback)?.unbind())
    }
}

fn address(object: Borrowed<'_, '_, PyAny>) -> usize {
    object.as_ptr() as usize
}

/// The number of the argument that a dependency is behind.
fn root(dependencies: Dependencies<'_, '_>, mut at: usize) -> Option<usize> {
    loop {
        match dependencies[at].origin {
            Origin::Argument(index) => return Some(index),
            Origin::Member { of, .. } => at = of,
            Origin::Held | Origin::Captured => return None,
        }
    }
}

fn readings(dependencies: Dependencies<'_, '_>) -> Vec<Reading> {
    // Whether what refers to it always refers to it; a member comes after what it belongs to.
    let mut fixed = vec![false; dependencies.len()];
    let mut has_members = vec![false; dependencies.len()];
    for (at, dependency) in dependencies.iter().enumerate() {
        fixed[at] = match &dependency.origin {
            Origin::Argument(_) => true,
            Origin::Member { of, step } => {
                has_members[*of] = true;
                let parent = &dependencies[*of];
                fixed[*of] && parent.role == Role::Walked && is_fixed(&parent.object, step).unwrap_or(false)
            }
            Origin::Held | Origin::Captured => false,
        };
    }
    // An object whose member is read anew is needed for that, and so is one that another is compared with.
    let mut readings = vec![Reading::Anew; dependencies.len()];
    let mut is_needed = vec![false; dependencies.len()];
    for (at, dependency) in dependencies.iter().enumerate().rev() {
        let of = match dependency.origin {
            Origin::Member { of, .. } => Some(of),
            Origin::Argument(_) | Origin::Held | Origin::Captured => None,
        };
        if of.is_some() && fixed[at] && !is_needed[at] {
            readings[at] = match dependency.role {
                _ if has_members[at] => Reading::Compared,
                Role::Constant if number::of(&dependency.object).is_some() => Reading::Kept,
                Role::Constant | Role::Walked | Role::Same(_) => Reading::Compared,
                _ => Reading::Kept,
            };
        }
        if readings[at] == Reading::Anew {
            if let Some(of) = of {
                is_needed[of] = true;
            }
            if let Role::Same(other) = dependency.role {
                is_needed[other] = true;
            }
        }
    }
    readings
}

/// Whether a member of an object is the same as long as the object lives: a field of a frozen dataclass, or an item of a tuple.
fn is_fixed(object: &Bound<'_, PyAny>, step: &Step<Bound<'_, PyAny>>) -> PyResult<bool> {
    let class = object.get_type();
    let Step::Attribute(name) = step else { return Ok(object.is_exact_instance_of::<PyTuple>()) };
    let Some(parameters) = class.getattr_opt("__dataclass_params__")? else { return Ok(false) };
    let plain = object.py().import("builtins")?.getattr("object")?.getattr("__getattribute__")?;
    Ok(parameters.getattr("frozen")?.is_truthy()?
        && class.getattr("__getattribute__")?.is(&plain)
        && class.getattr("__dataclass_fields__")?.contains(name)?
        && object.getattr("__dict__")?.contains(name)?)
}
