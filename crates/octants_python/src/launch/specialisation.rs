//! Code for one kind of arguments, and how a call's arguments are compared with it and written into the block of a launch.
//!
//! Both happen in one walk: over the arguments, and over what compiling found behind them (members of dataclasses and of
//! compile-time objects), which is read anew at each launch. Nothing is keyed by the address of a temporary object.

use std::any::Any;
use std::sync::{Arc, OnceLock};

use octants::front::{Dependency, FormulaParam, Lowered, Origin, Returns, Role};
use octants::{CompiledKernel, Course, FieldLeaf, Footprint, Gradient, LaunchOrder, Recorder, Refusal, ir};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyString, PyWeakrefMethods, PyWeakrefReference};
use smallvec::SmallVec;

use super::array::ArrayFit;
use super::derivative::{Companion, CompanionPath, DerivativePlan, check_apart};
use super::field::{LeafSlots, captured_leaves, leaf_slots};
use super::input::{Check, Input};
use super::instance_dict::InstanceDict;
use super::member_cache::{Cached, MemberCache, Reading};
use super::writer::{ArgumentWriter, LaunchArguments, Members};
use crate::arrays::buffer_view::BufferView;
use crate::arrays::field::Field;
use crate::arrays::ndarray::Ndarray;
use crate::arrays::tensor;
use crate::host::Globals;
use crate::host::evaluation::Evaluations;
use crate::host::number_of;
use crate::interop::foreign::Unwritable;
use crate::launch::TapeChecks;
use crate::values::aggregate;

pub struct Specialisation {
    pub epoch: u64,
    pub compiled: Arc<CompiledKernel>,
    pub returns: Returns,
    inputs: Vec<Input>,
    /// Which of the inputs are arrays.
    arrays: Vec<usize>,
    /// Members that need not be read or written at each launch.
    kept: Option<MemberCache>,
    /// Fields that no argument leads to, and where their addresses go. They live as long as the code does.
    captured: Vec<(FieldLeaf, usize)>,
    /// The objects that these fields are, as long as there are such, and where addresses of each go.
    captured_fields: Vec<(Py<PyWeakrefReference>, LeafSlots)>,
    /// Of code that keeps what it overwrites: what it takes for that.
    pub recorder: Option<Recorder>,
    /// Of code that runs in a tape: the derivative of the same run, made of the same constants. None if nothing has derivatives.
    pub backward: Option<Arc<Specialisation>>,
    /// Likewise: the code is only for launches of which this holds.
    pub condition: Option<Box<LaunchOrder>>,
    /// Parameters that are calculated from inputs, and where they go.
    formulas: Vec<FormulaInput>,
    /// Numbers behind the arguments that the code was made for: the input, and the path as the user writes it.
    baked: Vec<(usize, String)>,
    /// Of code that runs in a tape: what its launches are checked for.
    pub tape_checks: TapeChecks,
    /// Of the code of a derivative.
    pub derivative: Option<Gradient>,
    /// Likewise: what it does, for people.
    pub plan: Option<DerivativePlan>,
    footprint: OnceLock<Footprint>,
    course: OnceLock<Course>,
    differs_each_time: OnceLock<Option<&'static str>>,
    /// What names outside of the kernel stood for when it was made.
    pub globals: Option<Arc<Globals>>,
    /// What Python evaluated for the code, and evaluates again at each launch.
    evaluations: Option<Arc<dyn Any + Send + Sync>>,
    /// Whether code of the user's may run then.
    runs_code: bool,
    /// Parameters whose writes change nothing for derivatives: what finds cells that stay.
    unobserved: Vec<usize>,
    /// Parameters that a derivative reads only to leave out what is not there.
    guards: Vec<usize>,
}

/// A parameter that is calculated from inputs, by their numbers.
struct FormulaInput {
    param: FormulaParam,
    at: usize,
}

/// Whether the code is for these arguments.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Fit {
    Fits,
    Differs,
    /// The arguments and the members fit; what Python evaluates is something else by now.
    Evaluates,
    /// The code writes an array that may not be written: the number of the input.
    Unwritable(usize, Unwritable),
}

pub type Objects<'a, 'py> = SmallVec<[Borrowed<'a, 'py, PyAny>; 8]>;

impl Specialisation {
    pub fn new(
        epoch: u64,
        compiled: Arc<CompiledKernel>,
        Lowered { dependencies, fields, formulas, returns, evaluations, .. }: &Lowered<Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let mut inputs = Vec::new();
        let (mut captured, mut captured_fields) = (Vec::new(), Vec::new());
        // Fields that no argument leads to are no inputs: the others are counted without them.
        let mut numbers = Vec::new();
        for (index, dependency) in dependencies.iter().enumerate() {
            numbers.push(inputs.len());
            let leaves = leaf_slots(fields, index, &compiled);
            if let Origin::Captured = dependency.origin {
                captured.extend(captured_leaves(&dependency.object, &leaves)?);
                if let Ok(field) = dependency.object.cast::<Field>() {
                    captured_fields.push((PyWeakrefReference::new(field)?.unbind(), leaves));
                }
                continue;
            }
            let parent = match &dependency.origin {
                Origin::Member { of, .. } => Some(&dependencies[*of].object),
                Origin::Argument(_) | Origin::Held | Origin::Captured => None,
            };
            inputs.push(Input::new(dependency, &compiled, leaves, &numbers, parent)?);
        }
        let is_array = |&index: &usize| matches!(inputs[index].check, Check::Array(_));
        let arrays = (0..inputs.len()).filter(is_array).collect();
        let formulas = formulas.iter().map(|param| FormulaInput {
            at: compiled.args().slots[param.param].offset as usize,
            param: FormulaParam { formula: param.formula.renumbered(|of| numbers[of]), ..param.clone() },
        });
        let formulas = formulas.collect();
        let kept = dependencies
            .first()
            .and_then(|one| MemberCache::new(one.object.py(), dependencies, &numbers, &inputs));
        let baked = dependencies.iter().zip(&numbers).filter(|(dependency, _)| {
            matches!(dependency.origin, Origin::Member { .. })
                && dependency.role == Role::Constant
                && may_vary(&dependency.object)
        });
        let baked = baked.map(|(dependency, &number)| (number, dependency.path.clone())).collect();
        let structure = fields.iter().filter(|field| field.view.is_some_and(|view| view.is_structure));
        let unobserved = structure.map(|field| field.param).collect();
        let guards = fields.iter().filter(|field| field.view.is_some_and(|view| view.is_guard));
        let guards = guards.map(|field| field.param).collect();
        let runs_code = evaluations
            .as_ref()
            .and_then(|evaluations| evaluations.downcast_ref())
            .is_some_and(Evaluations::runs_code);
        Ok(Self {
            epoch,
            compiled,
            returns: returns.clone(),
            inputs,
            arrays,
            kept,
            captured,
            captured_fields,
            formulas,
            baked,
            recorder: None,
            backward: None,
            condition: None,
            tape_checks: TapeChecks::default(),
            derivative: None,
            plan: None,
            footprint: OnceLock::new(),
            course: OnceLock::new(),
            differs_each_time: OnceLock::new(),
            globals: None,
            evaluations: evaluations.clone(),
            runs_code,
            unobserved,
            guards,
        })
    }

    /// The code of a derivative, which takes what the kernel takes, and companions.
    pub fn of_derivative(
        epoch: u64,
        gradient: Gradient,
        returns: Returns,
        lowered: &Lowered<Bound<'_, PyAny>>,
        companions: &[Companion<'_>],
        plan: DerivativePlan,
    ) -> PyResult<Self> {
        let compiled = Arc::clone(gradient.kernel());
        let mut made = Self::new(epoch, compiled, lowered)?;
        let dependencies = &lowered.dependencies;
        for companion in companions.iter().filter(|companion| !companion.is_ignored) {
            let of = &dependencies[companion.dependency];
            let number = input_number(dependencies, companion.dependency);
            let input = companion.input(&gradient, &of.object, number)?;
            if let Check::Array(_) = input.check {
                made.arrays.push(made.inputs.len());
            }
            made.inputs.push(input);
        }
        // Derivatives of members are read from the members themselves.
        Ok(Self { returns, derivative: Some(gradient), plan: Some(plan), kept: None, ..made })
    }

    /// The code is only for arguments of which the same ones have companions.
    pub fn require_companions(
        &mut self,
        dependencies: &[Dependency<Bound<'_, PyAny>>],
        companions: &[Companion<'_>],
    ) -> PyResult<()> {
        for companion in companions.iter().filter(|companion| !companion.is_ignored) {
            let of = &dependencies[companion.dependency];
            let number = input_number(dependencies, companion.dependency);
            self.inputs.push(companion.presence(&of.object, number)?);
            self.kept = None;
        }
        Ok(())
    }

    /// The code is only for arguments with gradients there.
    pub fn require_gradients(&mut self, argument: usize) {
        self.inputs.push(Input::companion(CompanionPath::of_argument(argument), Check::Present));
        self.kept = None;
    }

    /// Whether a derivative depends on what a parameter holds.
    pub fn is_needed(&self, param: usize) -> bool {
        !self.guards.contains(&param)
    }

    /// Whether writes of a parameter matter to derivatives of others.
    pub fn is_observed(&self, param: usize) -> bool {
        !self.unobserved.contains(&param)
    }

    /// What the code touches of its arrays. Found when it is first asked for.
    pub fn footprint(&self) -> &Footprint {
        self.footprint.get_or_init(|| self.compiled.footprint())
    }

    /// In which order the code reads and surely writes its arrays. Found when it is first asked for.
    pub fn course(&self) -> &Course {
        self.course.get_or_init(|| self.compiled.course())
    }

    /// See [`CompiledKernel::differs_each_time`].
    pub fn differs_each_time(&self) -> Option<&'static str> {
        *self.differs_each_time.get_or_init(|| self.compiled.differs_each_time())
    }

    /// Whether it can ever fit again.
    pub fn is_alive(&self) -> bool {
        self.inputs.iter().all(Input::is_alive) && self.evaluations().is_none_or(Evaluations::is_alive)
    }

    /// Its code is bound to what was kept of a launch, and never compared with what Python evaluates.
    pub fn as_backward(self) -> Arc<Self> {
        Arc::new(Self { evaluations: None, ..self })
    }

    /// Whether a launch with this block of arguments is one that the code is for.
    pub fn is_for(&self, block: &[u8]) -> bool {
        self.condition.as_ref().is_none_or(|condition| self.compiled.refusal(condition, block).is_none())
    }

    /// Why the derivative that it is is not right for a launch with this block of arguments, and the kernel that this is about.
    pub fn refusal(&self, block: &[u8]) -> Option<(&ir::Kernel, Refusal)> {
        let order = self.derivative.as_ref()?.order()?;
        Some((order.kernel(), self.compiled.refusal(order, block)?))
    }

    /// Whether it computes something.
    pub fn has_companions(&self) -> bool {
        self.derivative.as_ref().is_some_and(|gradient| !gradient.companions().is_empty())
    }

    pub(super) fn captured_leaves(&self) -> &[(FieldLeaf, usize)] {
        &self.captured
    }

    pub(super) fn inputs(&self) -> &[Input] {
        &self.inputs
    }

    /// What inputs and evaluations keep alive, for Python's collector. What others share is theirs, too: it is not visited.
    pub fn visit(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        if let Some(globals) = self.globals.as_ref().filter(|globals| Arc::strong_count(globals) == 1) {
            globals.visit(visit)?;
        }
        self.inputs.iter().try_for_each(|input| input.visit(visit))?;
        if let Some(kept) = &self.kept {
            kept.visit(visit)?;
        }
        match (&self.evaluations, self.evaluations()) {
            (Some(shared), Some(evaluations)) if Arc::strong_count(shared) == 1 => evaluations.visit(visit),
            _ => Ok(()),
        }
    }

    /// What a launch takes from the host: numbers, texts, vectors, and arrays of other libraries whose parameters it reads, with the names by which it reaches them.
    #[cold]
    pub fn taken<'py>(
        &self,
        py: Python<'py>,
        arguments: &[Borrowed<'_, 'py, PyAny>],
        is_read: impl Fn(usize) -> bool,
    ) -> PyResult<Vec<(String, Bound<'py, PyAny>)>> {
        let mut found = Vec::new();
        for (index, input) in self.inputs.iter().enumerate().filter(|(_, input)| !input.is_companion()) {
            // What a launch has read itself is not always in the order of the inputs.
            let Some(object) = self.input(py, arguments, &Members::new(), index) else { continue };
            let is_taken = match &input.check {
                Check::Constant(_) | Check::Type(_) | Check::Anything => {
                    number_of(&object).is_some()
                        || object.is_instance_of::<PyBool>()
                        || object.is_instance_of::<PyString>()
                }
                Check::Number { .. } | Check::Values(..) | Check::Tensor(..) => true,
                Check::Array(array) => {
                    is_read(array.param()) && !tensor::unwrapped(&object).is_instance_of::<Ndarray>()
                }
                Check::Present
                | Check::Container(..)
                | Check::Keys(..)
                | Check::Same(_)
                | Check::View(..)
                | Check::Field(_) => false,
            };
            if is_taken {
                found.push((self.path_of(py, index), object));
            }
        }
        Ok(found)
    }

    /// The arrays among arguments and members, of the session or of another library, whose parameters are wanted.
    #[cold]
    pub fn arrays_of<'py>(
        &self,
        py: Python<'py>,
        arguments: &[Borrowed<'_, 'py, PyAny>],
        wanted: impl Fn(usize) -> bool,
    ) -> Vec<Bound<'py, PyAny>> {
        let mut found = Vec::new();
        for (index, input) in self.inputs.iter().enumerate().filter(|(_, input)| !input.is_companion()) {
            let (Check::Array(array) | Check::View(array, _)) = &input.check else { continue };
            if !wanted(array.param()) {
                continue;
            }
            let Some(object) = self.input(py, arguments, &Members::new(), index) else { continue };
            found.push(match object.cast::<BufferView>() {
                Ok(view) => view.get().ndarray.bind(py).clone().into_any(),
                Err(_) => tensor::unwrapped(&object).clone(),
            });
        }
        found
    }

    /// The parameters that arrays of other libraries are given for.
    #[cold]
    pub fn foreign_params<'py>(&self, py: Python<'py>, arguments: &[Borrowed<'_, 'py, PyAny>]) -> Vec<usize> {
        let inputs = self.inputs.iter().enumerate().filter(|(_, input)| !input.is_companion());
        let foreign = inputs.filter_map(|(index, input)| {
            let Check::Array(array) = &input.check else { return None };
            let object = self.input(py, arguments, &Members::new(), index)?;
            (!tensor::unwrapped(&object).is_instance_of::<Ndarray>()).then(|| array.param())
        });
        foreign.collect()
    }

    /// Whether a launch uses fields or arrays of the session.
    #[cold]
    pub fn uses_session<'py>(&self, py: Python<'py>, arguments: &[Borrowed<'_, 'py, PyAny>]) -> bool {
        let is_of_session = |(index, input): (usize, &Input)| match &input.check {
            Check::Field(_) | Check::View(..) => true,
            Check::Array(_) => {
                let object = self.input(py, arguments, &Members::new(), index);
                object.is_some_and(|object| tensor::unwrapped(&object).is_instance_of::<Ndarray>())
            }
            _ => false,
        };
        !self.captured.is_empty() || self.inputs.iter().enumerate().any(is_of_session)
    }

    /// The array or field that a parameter of the kernel is, if an object stands for it.
    #[cold]
    pub fn array_of<'py>(
        &self,
        py: Python<'py>,
        arguments: &[Borrowed<'_, 'py, PyAny>],
        param: usize,
    ) -> Option<Bound<'py, PyAny>> {
        let at = self.compiled.args().slots[param].offset as usize;
        let captured = self.captured_fields.iter().find(|(_, slots)| slots.iter().any(|slot| slot.at == at));
        if let Some((field, _)) = captured {
            return field.bind(py).upgrade();
        }
        let is_it = |input: &Input| match &input.check {
            Check::Array(array) | Check::View(array, _) => array.param() == param,
            Check::Field(field) => field.lies_at(at),
            _ => false,
        };
        let index = self.inputs.iter().position(is_it)?;
        let object = self.input(py, arguments, &Members::new(), index)?;
        match object.cast::<BufferView>() {
            Ok(view) => Some(view.get().ndarray.bind(py).clone().into_any()),
            Err(_) => Some(tensor::unwrapped(&object).clone()),
        }
    }

    /// What members of arguments hold now, in the order of the inputs.
    #[cold]
    pub(super) fn members_now<'py>(
        &self,
        py: Python<'py>,
        arguments: &[Borrowed<'_, 'py, PyAny>],
    ) -> PyResult<Members<'py>> {
        let (mut read, mut stored) = (Members::new(), InstanceDict::default());
        for input in self.inputs.iter().skip(arguments.len()) {
            let object = input.read(py, |at| known(py, arguments, &read, at), &mut stored)?;
            read.push(object);
        }
        Ok(read)
    }

    /// How an input is reached, from an argument on.
    fn path_of(&self, py: Python<'_>, mut index: usize) -> String {
        let mut steps = Vec::new();
        while let Some((of, step)) = self.inputs[index].last_step(py) {
            steps.push(step);
            index = of;
        }
        steps.push(index.to_string());
        steps.reverse();
        steps.concat()
    }

    fn evaluations(&self) -> Option<&Evaluations> {
        self.evaluations.as_ref()?.downcast_ref()
    }

    /// Compares the arguments and writes the block. With `again`, what Python evaluated for the code is evaluated again: not if it was just now, for
    /// this launch.
    ///
    /// Arrays come last: converting a number or reading a member may run Python code, which may resize an array.
    #[inline]
    pub fn bind<'py>(
        &self,
        py: Python<'py>,
        arguments: &[Borrowed<'_, 'py, PyAny>],
        launch: &mut LaunchArguments<'py>,
        again: bool,
    ) -> PyResult<Fit> {
        let (mut writer, read, evaluated) = launch.writer(&self.compiled);
        let BoundValues::Fit(recalled) = self.bind_values(py, arguments, read, &mut writer)? else {
            return Ok(Fit::Differs);
        };
        if again && let Some(evaluations) = self.evaluations() {
            // What was read beside a block that is as it was is not in the order of the inputs.
            let nothing = Members::new();
            let members = if matches!(recalled, Some(Cached::Block(_))) { &nothing } else { &*read };
            let find = |number| self.input(py, arguments, members, number);
            let holds = evaluations.hold(py, evaluated, &find)?;
            // What ran may have changed members: then nobody knows which of their values the kernel is for, but who runs it again in the order of its text.
            let has_members = self.inputs.len() > arguments.len();
            if (!holds || has_members && self.runs_code)
                && !self.are_values_same(py, arguments, writer.block())?
            {
                evaluated.clear();
                return Ok(Fit::Evaluates);
            }
            if !holds {
                return Ok(Fit::Evaluates);
            }
        }
        let bound_again = match &recalled {
            Some(Cached::Block(bound_again)) => Some(&**bound_again),
            Some(Cached::Members) | None => None,
        };
        match self.bind_arrays(py, arguments, read, &mut writer, bound_again)? {
            Fit::Fits => {}
            other => return Ok(other),
        }
        if let Some(kept) = &self.kept
            && recalled.is_none()
        {
            // A formula may ask for any member.
            let members = &self.inputs[arguments.len().min(self.inputs.len())..];
            let has_block = self.derivative.is_none() && self.recorder.is_none() && self.formulas.is_empty();
            kept.remember(py, arguments, (members, read), &writer, has_block);
        }
        launch.check_overlaps(py, &self.compiled)?;
        if let Some(gradient) = &self.derivative {
            check_apart(py, gradient, launch.bytes())?;
        }
        Ok(Fit::Fits)
    }

    /// Compares and writes all but arrays.
    #[inline]
    fn bind_values<'py>(
        &self,
        py: Python<'py>,
        arguments: &[Borrowed<'_, 'py, PyAny>],
        read: &mut Members<'py>,
        writer: &mut ArgumentWriter<'_, 'py>,
    ) -> PyResult<BoundValues> {
        if self.derivative.is_some() || self.recorder.is_some() {
            // The launch itself provides what is behind the companions, and expects zeros there.
            writer.clear();
        }
        let (first, members) = self.inputs.split_at(arguments.len().min(self.inputs.len()));
        let recalled = match &self.kept {
            Some(kept) => kept.recall(py, arguments, members, read, writer)?,
            None => None,
        };
        for (input, object) in first.iter().zip(arguments) {
            if !input.check.write(object, |at| arguments[at], writer)? {
                return Ok(BoundValues::Differ);
            }
        }
        for (leaf, at) in &self.captured {
            writer.put_leaf(py, *at, leaf)?;
        }
        let readings = recalled.as_ref().and(self.kept.as_ref()).map(MemberCache::readings);
        let binding = MemberBinding { inputs: members, readings, arguments };
        let fits = match &recalled {
            // The block has what the others write.
            Some(Cached::Block(some)) => binding.bind(py, some.iter().copied(), read, writer),
            Some(Cached::Members) | None => binding.bind(py, 0..members.len(), read, writer),
        };
        if !fits? {
            return Ok(BoundValues::Differ);
        }
        for FormulaInput { param, at } in &self.formulas {
            let value = param.formula.value(|input| number_of(&known(py, arguments, read, input)));
            let Some(constant) = value.and_then(|value| param.constant(value)) else {
                return Ok(BoundValues::Differ);
            };
            writer.put(*at, param.scalar, constant.bits());
        }
        Ok(BoundValues::Fit(recalled))
    }

    /// An argument or a member of this launch. None if it is not there any more.
    fn input<'py>(
        &self,
        py: Python<'py>,
        arguments: &[Borrowed<'_, 'py, PyAny>],
        read: &Members<'py>,
        number: usize,
    ) -> Option<Bound<'py, PyAny>> {
        if let Some(argument) = arguments.get(number) {
            return Some((**argument).clone());
        }
        if let Some(Some(member)) = read.get(number - arguments.len()) {
            return Some(member.clone());
        }
        // The block was kept, and nothing was read.
        let input = self.inputs.get(number)?;
        let parent = match input.parent() {
            Some(parent) => self.input(py, arguments, read, parent)?,
            None => py.None().into_bound(py),
        };
        input.read(py, |_| parent.as_borrowed(), &mut InstanceDict::default()).ok()?
    }

    /// Whether arguments and members still put into the block what they did.
    #[cold]
    fn are_values_same<'py>(
        &self,
        py: Python<'py>,
        arguments: &[Borrowed<'_, 'py, PyAny>],
        block: &[u8],
    ) -> PyResult<bool> {
        let mut launch = LaunchArguments::new(false);
        let (mut writer, read, _) = launch.writer(&self.compiled);
        writer.copy_block(block);
        let bound = self.bind_values(py, arguments, read, &mut writer)?;
        Ok(matches!(bound, BoundValues::Fit(_)) && writer.block() == block)
    }

    /// Writes the arrays among the arguments and among these members, or all members.
    #[inline]
    fn bind_arrays<'py>(
        &self,
        py: Python<'py>,
        arguments: &[Borrowed<'_, 'py, PyAny>],
        read: &Members<'py>,
        writer: &mut ArgumentWriter<'_, 'py>,
        members: Option<&[usize]>,
    ) -> PyResult<Fit> {
        let count = if members.is_none() { self.inputs.len() } else { arguments.len() };
        let first = self.arrays.iter().copied().filter(|&index| index < count);
        let again = members.into_iter().flatten().map(|member| arguments.len() + member);
        for index in first.chain(again) {
            let Check::Array(array) = &self.inputs[index].check else { continue };
            match array.write(&known(py, arguments, read, index), writer)? {
                ArrayFit::Fits => {}
                ArrayFit::Unwritable(why) => return Ok(Fit::Unwritable(index, why)),
                ArrayFit::Differs | ArrayFit::Copied => return Ok(Fit::Differs),
            }
        }
        Ok(Fit::Fits)
    }
}

/// What became of the values of a launch.
enum BoundValues {
    Differ,
    /// They are in the block; with what an earlier launch left.
    Fit(Option<Cached>),
}

/// The number of the input that a dependency is, if it is one.
pub fn input_number(dependencies: &[Dependency<Bound<'_, PyAny>>], dependency: usize) -> Option<usize> {
    let is_input = |one: &Dependency<_>| !matches!(one.origin, Origin::Captured);
    let before = dependencies[..dependency].iter().filter(|one| is_input(one)).count();
    is_input(&dependencies[dependency]).then_some(before)
}

impl Specialisation {
    /// Numbers of which the code would only need to be told, if it could be: the paths of those that have changed, where all else that
    /// was read is what the code is for.
    #[cold]
    pub fn changed_numbers(
        &self,
        py: Python<'_>,
        arguments: &[Borrowed<'_, '_, PyAny>],
    ) -> PyResult<Vec<&str>> {
        let mut changed = Vec::new();
        let mut launch = LaunchArguments::new(false);
        let (mut writer, read, _) = launch.writer(&self.compiled);
        let mut stored = InstanceDict::default();
        for (index, input) in self.inputs.iter().enumerate() {
            if index >= arguments.len() {
                let Some(object) = input.read(py, |at| known(py, arguments, read, at), &mut stored)? else {
                    return Ok(Vec::new());
                };
                read.push(Some(object));
            }
            let read = &*read;
            let object = known(py, arguments, read, index);
            if input.check.write(&object, |at| known(py, arguments, read, at), &mut writer)? {
                continue;
            }
            match self.baked.iter().find(|(number, _)| *number == index) {
                Some((_, path)) if may_vary(&object) => changed.push(path.as_str()),
                _ => return Ok(Vec::new()),
            }
        }
        Ok(changed)
    }
}

/// Whether code can be told of it, in place of being made for it.
fn may_vary(object: &Bound<'_, PyAny>) -> bool {
    number_of(object).is_some() || aggregate::is_tensor(object)
}

/// The members behind the arguments of a launch, and how each of them is read: anew, if nothing is recalled.
struct MemberBinding<'a, 'py> {
    inputs: &'a [Input],
    readings: Option<&'a [Reading]>,
    arguments: &'a [Borrowed<'a, 'py, PyAny>],
}

impl<'py> MemberBinding<'_, 'py> {
    /// Reads members and writes them; false if one is not what the code is for. Those that were recalled are in `read` already.
    #[inline]
    fn bind(
        &self,
        py: Python<'py>,
        members: impl Iterator<Item = usize>,
        read: &mut Members<'py>,
        writer: &mut ArgumentWriter<'_, 'py>,
    ) -> PyResult<bool> {
        let mut stored = InstanceDict::default();
        for index in members {
            let (input, arguments) = (&self.inputs[index], self.arguments);
            let reading = self.readings.map_or(Reading::Anew, |readings| readings[index]);
            if reading == Reading::Compared {
                continue;
            }
            if reading == Reading::Anew {
                let Some(object) = input.read(py, |at| known(py, arguments, read, at), &mut stored)? else {
                    return Ok(false);
                };
                match read.get_mut(index) {
                    Some(place) => *place = Some(object),
                    None => read.push(Some(object)),
                }
            }
            let read = &*read;
            let object = known(py, arguments, read, arguments.len() + index);
            if !input.check.write(&object, |at| known(py, arguments, read, at), writer)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// An argument, or a member that was read; Python's `None` for one that a launch need not read.
pub(super) fn known<'a, 'py>(
    py: Python<'py>,
    arguments: &[Borrowed<'a, 'py, PyAny>],
    read: &'a Members<'py>,
    at: usize,
) -> Borrowed<'a, 'py, PyAny> {
    match arguments.get(at) {
        Some(argument) => *argument,
        None => match &read[at - arguments.len()] {
            Some(member) => member.as_borrowed(),
            // SAFETY: it lives as long as the interpreter.
            None => unsafe { Borrowed::from_ptr(py, pyo3::ffi::Py_None()) },
        },
    }
}
