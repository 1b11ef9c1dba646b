//! Members that an earlier launch has read, and what they put into the block.
//!
//! A frozen dataclass refers to the same objects as long as it lives, and so do frozen ones and tuples that it leads to. What they led to is kept from
//! one launch to the next; it is let go of when an argument that led to it dies. Members of other objects are items of a dictionary, which
//! may be replaced: a launch looks there whether they are the same objects.
//!
//! What numbers, arrays of the session and fields put into the block is kept, too, and a launch with the same objects writes none of these
//! again. Objects that may be replaced are watched, not held: one that is replaced is given back as if nothing were kept. Of a property that
//! follows from members alone those are compared, and its code is not run.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, TryLockError, Weak};

use octants::front::{Dependency, Origin, Role, Step};
use octants::{CompiledKernel, Tree};
use pyo3::ffi;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyCFunction, PyDict, PyString, PyTuple, PyType, PyWeakrefReference};
use smallvec::SmallVec;

use super::class_version::{self, ClassGuard};
use super::input::{Check, Input, class_attribute};
use super::instance_dict::{self, InstanceDict, LastPlace, is_asked_plainly};
use super::pure_property::{self, Sources};
use super::writer::{ArgumentWriter, Members};
use crate::arrays::tensor;
use crate::host::number_of;
use crate::host::template::{self, TemplateKey};
use crate::values::number;

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
pub enum Cached {
    /// The members that are kept.
    Members,
    /// What members put into the block. Only those of these numbers have to be bound again.
    Block(MemberNumbers),
}

pub type MemberNumbers = SmallVec<[usize; 8]>;

/// The members behind arguments of a specialisation that can be kept.
pub struct MemberCache {
    readings: Vec<Reading>,
    /// Numbers of the arguments that lead to members that are kept or compared.
    roots: Vec<usize>,
    /// Members that are read anew, and can be compared with what they were.
    stored: Vec<StoredMember>,
    /// Likewise, by what they follow from.
    computed: Vec<ComputedMember>,
    /// Funcs of classes, which are compared with what they were.
    methods: Vec<MethodMember>,
    shared: Arc<Shared>,
}

/// A member that is an item of its object's dictionary.
struct StoredMember {
    /// Its number among the members, and that of the input whose dictionary it is in.
    member: usize,
    of: usize,
    parent: Parent,
    name: Py<PyString>,
    /// Whether other members are read from it.
    leads_on: bool,
    place: LastPlace,
}

/// A member that is a property of its object, and follows from members in its dictionary.
struct ComputedMember {
    member: usize,
    of: usize,
    parent: Parent,
    name: Py<PyString>,
    from: Sources,
    class: ClassGuard,
}

/// A member that is a func of the class of its object.
struct MethodMember {
    member: usize,
    of: usize,
    parent: Parent,
    name: Py<PyString>,
    class: ClassGuard,
}

/// The object that a stored or computed member belongs to.
#[derive(Clone, Copy)]
enum Parent {
    Argument(usize),
    /// By its place among the stored members, before this one.
    Stored(usize),
}

#[derive(Default)]
struct Shared {
    /// An object that is not held has died: what is known is of no use any more.
    is_stale: AtomicBool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Addresses of the arguments of the last launch. Only a hint: the objects may be gone.
    last: Vec<usize>,
    /// Launches after which nothing is kept, since what was kept of one before them was of no use; and how many there were last.
    pause: (u32, u32),
    /// Whether what was kept last was of use.
    was_recalled: bool,
    known: Option<Known>,
}

/// What the arguments of an earlier launch led to. It is taken away when one of them dies, so an address stands for the same object.
struct Known {
    roots: Vec<usize>,
    /// Of the objects that always refer to what is kept, and which versions they have.
    classes: Vec<(Py<PyType>, u32)>,
    /// One for each member; none for those that are not kept.
    objects: Vec<Option<Py<PyAny>>>,
    /// What a launch was given, if members put nothing else there at another one.
    block: Option<KeptBlock>,
    _watches: Vec<Py<PyWeakrefReference>>,
}

/// What members have put into the block of a launch. Of no use once a tree among them was destroyed.
struct KeptBlock {
    bytes: Box<[u8]>,
    /// Members that may put something else there, in ascending order.
    bound_again: Vec<usize>,
    /// What the stored members were, but for those that are bound again.
    stored: Vec<StoredObject>,
    /// What the computed members followed from, likewise.
    computed: Vec<ComputedFrom>,
    /// What the methods were, likewise.
    methods: Vec<MethodWas>,
    trees: Arc<[Arc<Tree>]>,
    /// How many there were when it was written.
    deferred_frees: u64,
}

struct StoredObject {
    /// Which of the stored members it is.
    at: usize,
    /// Of an object that is held here or watched.
    address: usize,
    class: usize,
    /// The address of the object that it belongs to, if that is stored, too.
    parent: Option<usize>,
    /// A value such as a number, which keeps no memory from being given back. Others must live until a launch is over.
    held: Option<Py<PyAny>>,
}

struct MethodWas {
    /// Which of the methods it is.
    at: usize,
    /// The address of the object that it belongs to, if that is stored.
    parent: Option<usize>,
    /// The func, which its class holds as long as it is the same.
    address: usize,
}

struct ComputedFrom {
    /// Which of the computed members follows from it.
    at: usize,
    /// The address of the object that it belongs to, if that is stored.
    parent: Option<usize>,
    /// In the order of the names; each is a value that nothing can change.
    values: Vec<Py<PyAny>>,
}

impl KeptBlock {
    /// Whether all addresses in it still stand for what they stood for.
    #[inline]
    fn is_valid(&self, compiled: &CompiledKernel) -> bool {
        self.trees.is_empty() || self.deferred_frees == compiled.deferred_frees().count()
    }
}

/// Launches after which nothing is kept, at most.
const MAX_PAUSE: u32 = 1 << 10;

type Dependencies<'a, 'py> = &'a [Dependency<Bound<'py, PyAny>>];

impl MemberCache {
    /// `numbers` has the number of the input that each dependency is; as many arguments come first. `None` if nothing can be kept.
    pub fn new(
        py: Python<'_>,
        dependencies: Dependencies<'_, '_>,
        numbers: &[usize],
        inputs: &[Input],
    ) -> Option<Self> {
        let arguments = dependencies.iter().filter(|one| matches!(one.origin, Origin::Argument(_))).count();
        let is_member =
            |&at: &usize| !matches!(dependencies[at].origin, Origin::Captured) && numbers[at] >= arguments;
        let all = readings(dependencies);
        let readings: Vec<_> = (0..dependencies.len()).filter(is_member).map(|at| all[at]).collect();
        let stored = stored_members(py, &readings, inputs, arguments);
        let computed = computed_members(py, &readings, inputs, arguments, (dependencies, numbers), &stored);
        let methods = method_members(py, &readings, inputs, arguments, &stored);
        let is_compared = |at: usize| {
            stored.iter().any(|one| one.member + arguments == numbers[at])
                || computed.iter().any(|one| one.member + arguments == numbers[at])
                || methods.iter().any(|one| one.member + arguments == numbers[at])
        };
        let mut roots: Vec<_> = (0..dependencies.len())
            .filter(is_member)
            .filter(|&at| all[at] != Reading::Anew || is_compared(at))
            .filter_map(|at| root(dependencies, at))
            .collect();
        roots.sort_unstable();
        roots.dedup();
        (!roots.is_empty()).then(|| Self {
            readings,
            roots,
            stored,
            computed,
            methods,
            shared: Arc::default(),
        })
    }

    /// What it keeps alive, for Python's collector.
    pub fn visit(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.computed.iter().try_for_each(|one| one.from.visit(visit))?;
        let Some(state) = self.shared.try_state() else { return Ok(()) };
        let Some(known) = &state.known else { return Ok(()) };
        known.classes.iter().try_for_each(|(class, _)| visit.call(class))?;
        known.objects.iter().try_for_each(|object| visit.call(object))?;
        let Some(block) = &known.block else { return Ok(()) };
        block.stored.iter().try_for_each(|stored| visit.call(&stored.held))?;
        block.computed.iter().flat_map(|one| &one.values).try_for_each(|value| visit.call(value))
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
        members: &[Input],
        read: &mut Members<'py>,
        writer: &mut ArgumentWriter<'_, 'py>,
    ) -> PyResult<Option<Cached>> {
        if self.shared.is_stale() {
            self.shared.forget();
        }
        // Whoever holds it is about to be done; reading anew is right, too.
        let Some(mut state) = self.shared.try_state() else { return Ok(None) };
        let State { known: Some(known), was_recalled, .. } = &mut *state else { return Ok(None) };
        let same = self.roots.iter().zip(&known.roots).all(|(&at, &root)| address(&arguments[at]) == root);
        let is_version = |(class, version): &(Py<PyType>, u32)| class_version::of(class.bind(py)) == *version;
        if !same || !known.classes.iter().all(is_version) {
            return Ok(None);
        }
        let Some(block) = known.block.as_ref().filter(|_| !writer.is_tracking()) else {
            read.extend(
                known.objects.iter().map(|object| object.as_ref().map(|object| object.bind(py).clone())),
            );
            *was_recalled = true;
            return Ok(Some(Cached::Members));
        };
        if !block.is_valid(writer.compiled) {
            return Ok(None);
        }
        writer.set_block(&block.bytes, &block.trees);
        if block.bound_again.is_empty() {
            let keep = |_: usize, object: Bound<'py, PyAny>| read.push(Some(object));
            match self.compare(py, block, (arguments, members), keep, writer)? {
                Some(changed) if changed.is_empty() && !self.shared.is_stale() => {
                    *was_recalled = true;
                    return Ok(Some(Cached::Block(changed)));
                }
                _ => read.clear(),
            }
        }
        // Members that are bound are found by their numbers, and so are the objects that they belong to.
        read.resize(members.len(), None);
        let keep = |member: usize, object: Bound<'py, PyAny>| read[member] = Some(object);
        let compared = self.compare(py, block, (arguments, members), keep, writer)?;
        let Some(mut bound) = compared.filter(|_| !self.shared.is_stale()) else {
            read.clear();
            return Ok(None);
        };
        for &member in &block.bound_again {
            if self.readings[member] == Reading::Kept {
                read[member] = known.objects[member].as_ref().map(|object| object.bind(py).clone());
            }
        }
        bound.extend_from_slice(&block.bound_again);
        *was_recalled = true;
        Ok(Some(Cached::Block(bound)))
    }

    /// Numbers of the stored members that are other objects now; `None` if one of them leads to others. A plain number that is another one is
    /// written. What must live until the launch is over is given to `keep`.
    #[inline]
    fn compare<'py>(
        &self,
        py: Python<'py>,
        block: &KeptBlock,
        (arguments, members): (&[Borrowed<'_, 'py, PyAny>], &[Input]),
        mut keep: impl FnMut(usize, Bound<'py, PyAny>),
        writer: &mut ArgumentWriter<'_, 'py>,
    ) -> PyResult<Option<MemberNumbers>> {
        let mut changed = MemberNumbers::new();
        let mut dict = InstanceDict::default();
        let parent_of = |parent: Parent, address: Option<usize>| match (parent, address) {
            (Parent::Argument(at), _) => Some(arguments[at]),
            // SAFETY: it was found to be an item of another dictionary, and given to `keep`, which holds it.
            (Parent::Stored(_), Some(address)) => unsafe {
                Some(Borrowed::from_ptr(py, address as *mut ffi::PyObject))
            },
            (Parent::Stored(_), None) => None,
        };
        for was in &block.stored {
            let stored = &self.stored[was.at];
            let Some(parent) = parent_of(stored.parent, was.parent) else { return Ok(None) };
            let Some(object) = dict.item_at(stored.of, &parent, &stored.name, &stored.place) else {
                return Ok(None);
            };
            if address(&object) == was.address {
                if object.get_type_ptr() as usize != was.class {
                    return Ok(None);
                }
                // What others are read from must be there, whatever it is: a number may have members, too.
                if was.held.is_none() || stored.leads_on {
                    keep(stored.member, object.to_owned());
                }
                continue;
            }
            if stored.leads_on {
                return Ok(None);
            }
            let check = &members[stored.member].check;
            let is_quick = matches!(check, Check::Number { .. } | Check::Constant(_));
            if is_quick && number::is_plain(&object) {
                if !check.write(&object, |at| arguments[at], writer)? {
                    return Ok(None);
                }
            } else {
                changed.push(stored.member);
            }
        }
        for was in &block.computed {
            let computed = &self.computed[was.at];
            let Some(parent) = parent_of(computed.parent, was.parent) else { return Ok(None) };
            let version = dict.class_version(computed.of, &parent);
            if !computed.class.is_as_it_was(version, &parent, || computed.from.are_those_of(&parent))
                || !computed.from.have_the_same_code(py)
            {
                return Ok(None);
            }
            for (name, value) in computed.from.members.iter().zip(&was.values) {
                let now = dict.item(computed.of, &parent, name);
                if now.is_none_or(|now| !now.is(value)) {
                    return Ok(None);
                }
            }
        }
        for was in &block.methods {
            let method = &self.methods[was.at];
            let Some(parent) = parent_of(method.parent, was.parent) else { return Ok(None) };
            let version = dict.class_version(method.of, &parent);
            if !method.class.is_as_it_was(version, &parent, || is_asked_plainly(&parent)) {
                return Ok(None);
            }
            let is_hidden = dict.item(method.of, &parent, &method.name).is_some();
            if is_hidden || func_of_class(&parent, &method.name) != Some(was.address) {
                return Ok(None);
            }
        }
        Ok(Some(changed))
    }

    /// Keeps what a launch has read if the launch before it had the same arguments, and what it was given if `has_block`: if members
    /// put nothing else into the block at another one.
    pub fn remember<'py>(
        &self,
        py: Python<'py>,
        arguments: &[Borrowed<'_, 'py, PyAny>],
        (members, read): (&[Input], &Members<'py>),
        writer: &ArgumentWriter<'_, 'py>,
        has_block: bool,
    ) {
        let roots = self.roots.iter().map(|&at| address(&arguments[at]));
        {
            let Some(mut state) = self.shared.try_state() else { return };
            let State { last, pause: (left, length), was_recalled, .. } = &mut *state;
            if *left > 0 {
                *left -= 1;
                return;
            }
            if !last.iter().copied().eq(roots.clone()) {
                last.clear();
                last.extend(roots);
                return;
            }
            *length = if *was_recalled { 0 } else { (2 * *length).clamp(1, MAX_PAUSE) };
            *left = *length;
            *was_recalled = false;
        }
        if has_block {
            writer.note_default_uses();
        }
        let known = self.known(py, arguments, (members, read), has_block.then_some(writer));
        let Some(mut state) = self.shared.try_state() else { return };
        let old = std::mem::replace(&mut state.known, known);
        // What is let go of may run code.
        drop(state);
        drop(old);
    }

    /// What can be kept of a launch; nothing if an object cannot be watched, or if nothing is kept.
    fn known<'py>(
        &self,
        py: Python<'py>,
        arguments: &[Borrowed<'_, 'py, PyAny>],
        (members, read): (&[Input], &Members<'py>),
        block: Option<&ArgumentWriter<'_, 'py>>,
    ) -> Option<Known> {
        let mut watches = Vec::new();
        for &at in &self.roots {
            watches.push(self.watch(&arguments[at]).ok()?);
        }
        let block = block.map(|writer| self.block(py, arguments, (members, read), writer, &mut watches));
        let keeps_some = self.readings.iter().any(|&reading| reading != Reading::Anew);
        let compares = |block: &KeptBlock| {
            !block.stored.is_empty() || !block.computed.is_empty() || !block.methods.is_empty()
        };
        if !keeps_some && !block.as_ref().is_some_and(compares) {
            return None;
        }
        let objects = read.iter().zip(&self.readings).map(|(object, reading)| match (object, reading) {
            (Some(object), Reading::Kept) => Some(tensor::unwrapped(object).clone().unbind()),
            (None, _) | (_, Reading::Anew | Reading::Compared) => None,
        });
        let roots = self.roots.iter().map(|&at| address(&arguments[at])).collect();
        let classes = self.classes_of_fixed(arguments, members, read)?;
        Some(Known { roots, classes, objects: objects.collect(), block, _watches: watches })
    }

    /// The classes of objects that are not asked again for what they refer to, each once. `None` if one may change unseen.
    fn classes_of_fixed<'py>(
        &self,
        arguments: &[Borrowed<'_, 'py, PyAny>],
        members: &[Input],
        read: &Members<'py>,
    ) -> Option<Vec<(Py<PyType>, u32)>> {
        let mut classes: Vec<(Py<PyType>, u32)> = Vec::new();
        let fixed = members.iter().zip(&self.readings).filter(|(_, reading)| **reading != Reading::Anew);
        for (input, of) in fixed.filter_map(|(input, _)| Some((input, input.parent()?))) {
            let parent: &Bound<'py, PyAny> = match of.checked_sub(arguments.len()) {
                None => &arguments[of],
                Some(of) => read.get(of)?.as_ref()?,
            };
            let (py, class) = (parent.py(), parent.get_type());
            if class.is(py.get_type::<PyTuple>()) {
                continue;
            }
            // The class may have come to another mind since the code was made.
            let (_, name) = input.stored(py).or_else(|| input.attribute(py))?;
            if !instance_dict::holds(parent, name.bind(py)) {
                return None;
            }
            if classes.iter().any(|(other, _)| class.is(other)) {
                continue;
            }
            let version = class_version::given(&class)?;
            classes.push((class.unbind(), version));
        }
        Some(classes)
    }

    /// What a launch was given, with the stored members that it can be compared by.
    fn block<'py>(
        &self,
        py: Python<'py>,
        arguments: &[Borrowed<'_, 'py, PyAny>],
        (members, read): (&[Input], &Members<'py>),
        writer: &ArgumentWriter<'_, 'py>,
        watches: &mut Vec<Py<PyWeakrefReference>>,
    ) -> KeptBlock {
        let mut stored: Vec<StoredObject> = Vec::new();
        for (at, one) in self.stored.iter().enumerate() {
            let Some(object) = &read[one.member] else { continue };
            let parent = match one.parent {
                Parent::Argument(_) => None,
                Parent::Stored(at) => match stored.iter().find(|other| other.at == at) {
                    Some(parent) => Some(parent.address),
                    None => continue,
                },
            };
            let check = &members[one.member].check;
            // What is compared with another input depends on that, too.
            if matches!(check, Check::Same(_)) || !check.is_fixed_for(object) {
                continue;
            }
            let held = template::is_value(object).then(|| object.clone().unbind());
            if held.is_none() {
                let Ok(watch) = self.watch(object) else { continue };
                watches.push(watch);
            }
            let class = object.get_type_ptr() as usize;
            stored.push(StoredObject { at, address: address(object), class, parent, held });
        }
        // The object that something is asked of, and its address unless it is an argument; nothing if it is not compared itself.
        let object_of = |parent: Parent| match parent {
            Parent::Argument(at) => Some((arguments[at], None)),
            Parent::Stored(at) => {
                let address = stored.iter().find(|other| other.at == at)?.address;
                // SAFETY: what the launch has read holds it.
                let object = unsafe { Borrowed::from_ptr(py, address as *mut ffi::PyObject) };
                Some((object, Some(address)))
            }
        };
        let mut computed: Vec<ComputedFrom> = Vec::new();
        for (at, one) in self.computed.iter().enumerate() {
            let Some((object, parent)) = object_of(one.parent) else { continue };
            let values = one.values(&object, &members[one.member].check);
            computed.extend(values.map(|values| ComputedFrom { at, parent, values }));
        }
        let mut methods: Vec<MethodWas> = Vec::new();
        for (at, one) in self.methods.iter().enumerate() {
            let Some((object, parent)) = object_of(one.parent) else { continue };
            if object.is_instance_of::<PyType>() {
                continue;
            }
            // One that is a new object whenever it is asked for is compared in the usual way.
            let known = read[one.member].as_ref().map(|func| address(func));
            let address = func_of_class(&object, &one.name).filter(|&now| Some(now) == known);
            methods.extend(address.map(|address| MethodWas { at, parent, address }));
        }
        let is_compared = |member: usize| {
            stored.iter().any(|one| self.stored[one.at].member == member)
                || computed.iter().any(|one| self.computed[one.at].member == member)
                || methods.iter().any(|one| self.methods[one.at].member == member)
        };
        let changes = |&member: &usize| match (self.readings[member], &read[member]) {
            (Reading::Anew, _) | (Reading::Kept, None) => !is_compared(member),
            (Reading::Kept, Some(object)) => !members[member].check.is_fixed_for(object),
            (Reading::Compared, _) => false,
        };
        KeptBlock {
            bytes: writer.block().into(),
            bound_again: (0..members.len()).filter(changes).collect(),
            stored,
            computed,
            methods,
            trees: writer.distinct_trees(),
            deferred_frees: writer.deferred_frees,
        }
    }

    /// Lets go of everything when an object dies.
    fn watch(&self, object: &Bound<'_, PyAny>) -> PyResult<Py<PyWeakrefReference>> {
        let shared: Weak<Shared> = Arc::downgrade(&self.shared);
        let forget = move |_: &Bound<'_, PyTuple>, _: Option<&Bound<'_, PyDict>>| {
            let Some(shared) = shared.upgrade() else { return };
            shared.is_stale.store(true, Ordering::Relaxed);
            shared.forget();
        };
        let callback = PyCFunction::new_closure(object.py(), None, None, forget)?;
        Ok(PyWeakrefReference::new_with(object, callback)?.unbind())
    }
}

impl ComputedMember {
    /// What it follows from, in the order of the names. `None` if that is not what the code was made for, or may change by itself.
    fn values(&self, object: &Bound<'_, PyAny>, check: &Check) -> Option<Vec<Py<PyAny>>> {
        let py = object.py();
        let mut dict = InstanceDict::default();
        let mut values = Vec::new();
        for name in &self.from.members {
            let value = dict.item(self.of, object, name)?.to_owned();
            if !pure_property::is_plain(&value) {
                return None;
            }
            values.push(value.unbind());
        }
        // Another thread may have changed a member since the property was read.
        let Check::Constant(key) = check else { return None };
        let now = object.getattr(self.name.bind(py)).ok()?;
        (key.is_lasting() && key.matches(&now)).then_some(values)
    }
}

impl Shared {
    /// Whether an object has died that what is known is about. To compare may run code, in which one does: another one may have come to its address.
    #[inline]
    fn is_stale(&self) -> bool {
        self.is_stale.load(Ordering::Relaxed)
    }

    /// What is known, unless another thread has it. Nobody waits for it: who has it may run code of Python, and so let go of the interpreter, which who waits may have.
    fn try_state(&self) -> Option<MutexGuard<'_, State>> {
        match self.state.try_lock() {
            Ok(state) => Some(state),
            Err(TryLockError::Poisoned(state)) => Some(state.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Lets go of what is known, unless a launch is looking at it: the next one does then.
    #[cold]
    fn forget(&self) {
        let Some(mut state) = self.try_state() else { return };
        self.is_stale.store(false, Ordering::Relaxed);
        let known = state.known.take();
        drop(state);
        drop(known);
    }
}

fn address(object: &Bound<'_, PyAny>) -> usize {
    object.as_ptr() as usize
}

/// Members that are read anew from dictionaries, of arguments or of each other.
fn stored_members(
    py: Python<'_>,
    readings: &[Reading],
    inputs: &[Input],
    arguments: usize,
) -> Vec<StoredMember> {
    let mut found: Vec<StoredMember> = Vec::new();
    for (member, _) in readings.iter().enumerate().filter(|(_, reading)| **reading == Reading::Anew) {
        let Some((of, name)) = inputs[arguments + member].stored(py) else { continue };
        let parent = match of.checked_sub(arguments) {
            None => Parent::Argument(of),
            Some(of) => match found.iter().position(|stored| stored.member == of) {
                Some(at) => Parent::Stored(at),
                None => continue,
            },
        };
        let leads_on = inputs.iter().any(|input| input.depends_on(arguments + member));
        found.push(StoredMember { member, of, parent, name, leads_on, place: LastPlace::default() });
    }
    found
}

/// Members that are funcs of the classes of arguments, or of stored members.
fn method_members(
    py: Python<'_>,
    readings: &[Reading],
    inputs: &[Input],
    arguments: usize,
    stored: &[StoredMember],
) -> Vec<MethodMember> {
    let mut found = Vec::new();
    for (member, _) in readings.iter().enumerate().filter(|(_, reading)| **reading == Reading::Anew) {
        let Some((of, name)) = inputs[arguments + member].method(py) else { continue };
        let parent = match of.checked_sub(arguments) {
            None => Parent::Argument(of),
            Some(of) => match stored.iter().position(|stored| stored.member == of) {
                Some(at) => Parent::Stored(at),
                None => continue,
            },
        };
        found.push(MethodMember { member, of, parent, name, class: ClassGuard::default() });
    }
    found
}

/// The address of what an object finds under a name in its class.
#[inline]
fn func_of_class(object: &Bound<'_, PyAny>, name: &Py<PyString>) -> Option<usize> {
    class_attribute(object, name.bind(object.py())).ok().map(|func| address(&func))
}

/// Members that are read anew and are properties, of arguments or of stored members, which follow from members in the dictionary of their object.
fn computed_members(
    py: Python<'_>,
    readings: &[Reading],
    inputs: &[Input],
    arguments: usize,
    (dependencies, numbers): (Dependencies<'_, '_>, &[usize]),
    stored: &[StoredMember],
) -> Vec<ComputedMember> {
    let mut found = Vec::new();
    for (member, _) in readings.iter().enumerate().filter(|(_, reading)| **reading == Reading::Anew) {
        let is_computed = inputs.iter().all(|input| !input.depends_on(arguments + member));
        let Some((of, name)) = inputs[arguments + member].attribute(py).filter(|_| is_computed) else {
            continue;
        };
        let parent = match of.checked_sub(arguments) {
            None => Parent::Argument(of),
            Some(of) => match stored.iter().position(|stored| stored.member == of) {
                Some(at) => Parent::Stored(at),
                None => continue,
            },
        };
        let object = dependencies
            .iter()
            .zip(numbers)
            .find(|(dependency, number)| **number == of && !matches!(dependency.origin, Origin::Captured));
        let Some((Dependency { object, .. }, _)) = object else { continue };
        if let Some(from) = Sources::of(object, name.bind(py)) {
            found.push(ComputedMember { member, of, parent, name, from, class: ClassGuard::default() });
        }
    }
    found
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
                Role::Constant if number_of(&dependency.object).is_some() => Reading::Kept,
                // What it holds may change.
                Role::Constant if !is_lasting(&dependency.object) => Reading::Anew,
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

/// Whether an object is the same constant as long as it lives.
fn is_lasting(object: &Bound<'_, PyAny>) -> bool {
    TemplateKey::of(object).is_ok_and(|key| key.is_lasting())
}

/// Whether a member of an object is the same as long as the object lives: a field of a frozen dataclass, or an item of a tuple.
fn is_fixed(object: &Bound<'_, PyAny>, step: &Step<Bound<'_, PyAny>>) -> PyResult<bool> {
    let class = object.get_type();
    let Step::Attribute(name) = step else { return Ok(object.is_exact_instance_of::<PyTuple>()) };
    let Some(parameters) = class.getattr_opt("__dataclass_params__")? else { return Ok(false) };
    Ok(parameters.getattr("frozen")?.is_truthy()?
        && class.getattr("__dataclass_fields__")?.contains(name)?
        && instance_dict::holds(object, &PyString::intern(object.py(), name)))
}
