//! What an expression lowers to.

use std::sync::Arc;

use octants_diag::Span;
use octants_ir::{Layout, TensorShape, Value};

use crate::ast::Name;
use crate::formula::Formula;
use crate::host::Number;
use crate::lower::data::sparse::{SparseLoop, SparsePlace, Sublist};

/// A value at some stage: known at compile time, in a register, or in memory.
#[derive(Clone, Debug)]
pub(crate) enum Term<O> {
    None,
    /// What a call of this function gives: it returns no value. As a value it is None.
    Nothing(Name),
    Bool(bool),
    Int(i128),
    Float(f64),
    /// A number behind objects that was seen to change: known now, and calculated anew by each launch.
    Formula(Box<Calculated>),
    Str(Name),
    /// A host object that has not been looked at.
    Object(O),
    /// Data in a register.
    Value(Value),
    /// Something that can be read and written.
    Place(Place),
    /// An array argument.
    Array(Value),
    /// A part of an array.
    View(View),
    /// The shape of an array argument.
    Shape(Value),
    /// The index of a grouped loop; a vector when it is calculated with.
    Index(Vec<Value>),
    Tuple(Vec<Term<O>>),
    List(Vec<Term<O>>),
    Dict(Vec<(Term<O>, Term<O>)>),
    Range(Value, Value),
    /// And the range as Python has it, where all bounds are known while compiling.
    Ndrange(Ndrange, Option<O>),
    /// `grouped(…)` of a range or an array.
    Grouped(Box<Term<O>>),
    /// Scalars in memory that are a tensor together: a slice, a swizzle, an element of a field with an array for each entry.
    Entries(Entries),
    /// One of several scalars in memory: which one is known only at run time.
    Choice(Choice),
    /// A list of a dynamic node: an element of a field with an index less than it has axes.
    Sublist(Box<Sublist>),
    /// An element whose bits are part of another field's: reading and writing it are calls.
    Encoded(Box<Encoded<O>>),
    /// Text with run-time values in it.
    Text(Vec<TextPiece<O>>),
    /// A value with named members.
    Struct(Struct<O>),
    /// A function to be inlined with a value of the kernel as its first argument.
    Method(Box<Method<O>>),
    /// `x.fill` of a field, an array or a view.
    Fill(Box<Term<O>>),
    /// An array of structs.
    Structs(Box<StructArray<O>>),
    /// A part of an array, for a tile.
    Slice(Box<ArraySlice<O>>),
    /// `outer(a, b)`: the entries that this lane has of two columns.
    Outer(Value, Value),
    /// `static(…)`: what is inside was evaluated at compile time, and a loop over it is unrolled.
    Static(Box<Term<O>>),
}

/// A formula, and its value for the arguments at hand.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Calculated {
    pub formula: Formula,
    pub now: Number,
}

/// A place: `base[path…]`, where the path is indices and then components of a tensor.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub base: Value,
    pub path: Vec<Value>,
    /// Whether other iterations may touch it: augmented assignment is atomic.
    pub shared: bool,
    /// Whether there is an element to access; `None` where there must be.
    pub guard: Option<Value>,
    /// Of an element that may not be there: how it is found. The path's indices mean nothing then; its components do.
    pub sparse: Option<Box<SparsePlace>>,
}

/// `BufferView`: a part of an array along its first axis.
#[derive(Clone, Copy, Debug)]
pub(crate) struct View {
    pub array: Value,
    /// Where it begins in the array, and how long it is; `None` for all of it.
    pub window: Option<(Value, Value)>,
    /// Where the array begins in the one that the caller has; known in debug mode only.
    pub offset: Option<Value>,
}

/// An array for each member of its elements; of a struct among them, such arrays again.
#[derive(Clone, Debug)]
pub(crate) struct StructArray<O> {
    pub members: Vec<(Name, Term<O>)>,
    /// The host's type of an element.
    pub ty: O,
}

/// `array[begin:end, begin:end]` or one column of these rows, perhaps with an index before: what of it lies in the array.
#[derive(Clone, Debug)]
pub(crate) struct ArraySlice<O> {
    /// An array, a view or a field, of numbers.
    pub array: Term<O>,
    /// The index before.
    pub batch: Option<Value>,
    /// The first row, and how many there are.
    pub rows: (Value, Value),
    pub columns: (Value, Value),
    /// One column, which was no slice.
    pub is_column: bool,
}

/// Scalars in memory that are a tensor together: entries of a larger one, or of fields that have an array for each entry.
#[derive(Clone, Debug)]
pub(crate) struct Entries {
    /// The place of each entry, in row-major order of `shape`.
    pub places: Vec<Place>,
    pub shape: TensorShape,
}

/// `entries[at]`, where an array for each entry is no array of entries.
#[derive(Clone, Debug)]
pub(crate) struct Choice {
    pub entries: Entries,
    /// One index for each axis of the entries' shape.
    pub components: Vec<Value>,
}

/// `field[index]`, where the field has no memory of its own.
#[derive(Clone, Debug)]
pub(crate) struct Encoded<O> {
    /// A field for each entry, in row-major order; of a scalar, one.
    pub fields: Vec<O>,
    pub index: Vec<Value>,
    /// Of a vector or matrix.
    pub shape: Option<TensorShape>,
    /// The number of the one entry that is meant, where only the run tells which.
    pub chosen: Option<Value>,
}

/// A struct: it exists in the front end only, as its members.
#[derive(Clone, Debug)]
pub(crate) struct Struct<O> {
    pub members: Vec<(Name, Term<O>)>,
    /// The host's type of it, if it has one.
    pub ty: Option<O>,
    /// Whether it was made inside a parallel loop.
    pub in_parallel: bool,
}

impl<O> Struct<O> {
    pub(crate) fn member(&self, name: &str) -> Option<&Term<O>> {
        self.members.iter().find(|(known, _)| **known == *name).map(|(_, term)| term)
    }
}

/// A part of a text.
#[derive(Clone, Debug)]
pub(crate) enum TextPiece<O> {
    Literal(Name),
    /// A value and Python's format of it.
    Value {
        term: Term<O>,
        spec: Name,
        span: Span,
    },
}

#[derive(Clone, Debug)]
pub(crate) struct Method<O> {
    pub function: O,
    pub receiver: Term<O>,
    /// Whether the receiver is passed as itself, whatever the parameter says.
    pub by_reference: bool,
}

/// `ndrange(…)`: bounds per axis in the order of the loop's variables.
#[derive(Clone, Debug)]
pub(crate) struct Ndrange {
    pub bounds: Vec<(Value, Value)>,
    /// Which axis each nesting level runs over, outermost first.
    pub order: Vec<usize>,
    /// Of the elements of a field or the cells of a node: how they lie. It has no bounds then.
    pub layout: Option<Arc<Layout>>,
    /// Of cells that may not be there: how they are visited. The bounds are those of slots and digits then.
    pub sparse: Option<Box<SparseLoop>>,
}

impl Ndrange {
    pub(crate) fn new(bounds: Vec<(Value, Value)>) -> Self {
        Self { order: (0..bounds.len()).collect(), bounds, layout: None, sparse: None }
    }

    /// How many indices an iteration has.
    pub(crate) fn rank(&self) -> usize {
        if let Some(sparse) = &self.sparse {
            return sparse.origin.len();
        }
        self.layout.as_ref().map_or(self.bounds.len(), |layout| layout.rank())
    }
}

impl<O> Term<O> {
    /// Whether it is a literal or a host object: known without running the kernel.
    pub(crate) fn is_static(&self) -> bool {
        match self {
            Self::None
            | Self::Nothing(_)
            | Self::Bool(_)
            | Self::Int(_)
            | Self::Float(_)
            | Self::Formula(_)
            | Self::Str(_)
            | Self::Object(_)
            | Self::Static(_) => true,
            Self::Tuple(items) | Self::List(items) => items.iter().all(Self::is_static),
            Self::Dict(items) => items.iter().all(|(key, value)| key.is_static() && value.is_static()),
            Self::Struct(of) => of.members.iter().all(|(_, member)| member.is_static()),
            Self::Method(method) => method.receiver.is_static(),
            Self::Value(_)
            | Self::Fill(_)
            | Self::Entries(_)
            | Self::Choice(_)
            | Self::Sublist(_)
            | Self::Encoded(_)
            | Self::Text(_)
            | Self::Place(_)
            | Self::Array(_)
            | Self::View(_)
            | Self::Shape(_)
            | Self::Index(_)
            | Self::Range(..)
            | Self::Ndrange(..)
            | Self::Structs(_)
            | Self::Slice(_)
            | Self::Outer(..)
            | Self::Grouped(_) => false,
        }
    }
}

impl Place {
    fn for_each_value(&mut self, visit: &mut dyn FnMut(&mut Value)) {
        visit(&mut self.base);
        self.path.iter_mut().for_each(&mut *visit);
        self.guard.iter_mut().for_each(&mut *visit);
        self.sparse.iter_mut().flat_map(|sparse| &mut sparse.indices).for_each(visit);
    }
}

impl<O> Term<O> {
    /// Whether an object of the host is part of it.
    pub(crate) fn holds_object(&self) -> bool {
        match self {
            Self::Object(_) | Self::Encoded(_) => true,
            Self::Tuple(items) | Self::List(items) => items.iter().any(Self::holds_object),
            Self::Dict(items) => items.iter().any(|(key, item)| key.holds_object() || item.holds_object()),
            Self::Struct(of) => of.members.iter().any(|(_, member)| member.holds_object()),
            Self::Grouped(inner) | Self::Fill(inner) | Self::Static(inner) => inner.holds_object(),
            Self::Method(method) => method.receiver.holds_object(),
            Self::Slice(slice) => slice.array.holds_object(),
            Self::None
            | Self::Nothing(_)
            | Self::Bool(_)
            | Self::Int(_)
            | Self::Float(_)
            | Self::Formula(_)
            | Self::Str(_)
            | Self::Value(_)
            | Self::Place(_)
            | Self::Array(_)
            | Self::View(_)
            | Self::Shape(_)
            | Self::Index(_)
            | Self::Range(..)
            | Self::Ndrange(..)
            | Self::Entries(_)
            | Self::Choice(_)
            | Self::Sublist(_)
            | Self::Structs(_)
            | Self::Outer(..)
            | Self::Text(_) => false,
        }
    }

    /// Whether a formula is part of it.
    pub(crate) fn holds_formula(&self) -> bool {
        match self {
            Self::Formula(_) => true,
            Self::Tuple(items) | Self::List(items) => items.iter().any(Self::holds_formula),
            Self::Static(inner) => inner.holds_formula(),
            _ => false,
        }
    }

    /// Calls a function for every value of the IR that the term refers to.
    pub(crate) fn for_each_value(&mut self, visit: &mut dyn FnMut(&mut Value)) {
        match self {
            Self::None
            | Self::Nothing(_)
            | Self::Bool(_)
            | Self::Int(_)
            | Self::Float(_)
            | Self::Formula(_)
            | Self::Str(_)
            | Self::Object(_) => {}
            Self::Value(value) | Self::Array(value) | Self::Shape(value) => visit(value),
            Self::Place(place) => place.for_each_value(visit),
            Self::View(view) => {
                visit(&mut view.array);
                if let Some((start, length)) = &mut view.window {
                    visit(start);
                    visit(length);
                }
                view.offset.iter_mut().for_each(visit);
            }
            Self::Index(values) => values.iter_mut().for_each(visit),
            Self::Sublist(list) => list.indices.iter_mut().for_each(visit),
            Self::Encoded(place) => place.index.iter_mut().chain(&mut place.chosen).for_each(visit),
            Self::Tuple(items) | Self::List(items) => {
                for item in items {
                    item.for_each_value(visit);
                }
            }
            Self::Dict(items) => {
                for (key, item) in items {
                    key.for_each_value(visit);
                    item.for_each_value(visit);
                }
            }
            Self::Range(start, end) | Self::Outer(start, end) => {
                visit(start);
                visit(end);
            }
            Self::Slice(slice) => {
                slice.array.for_each_value(visit);
                slice.batch.iter_mut().for_each(&mut *visit);
                for (begin, count) in [&mut slice.rows, &mut slice.columns] {
                    visit(begin);
                    visit(count);
                }
            }
            Self::Ndrange(range, _) => {
                for (start, end) in &mut range.bounds {
                    visit(start);
                    visit(end);
                }
            }
            Self::Grouped(inner) | Self::Fill(inner) | Self::Static(inner) => inner.for_each_value(visit),
            Self::Entries(entries) => entries.places.iter_mut().for_each(|place| place.for_each_value(visit)),
            Self::Choice(choice) => {
                choice.entries.places.iter_mut().for_each(|place| place.for_each_value(visit));
                choice.components.iter_mut().for_each(visit);
            }
            Self::Text(pieces) => {
                for piece in pieces {
                    match piece {
                        TextPiece::Literal(_) => {}
                        TextPiece::Value { term, .. } => term.for_each_value(visit),
                    }
                }
            }
            Self::Struct(of) => of.members.iter_mut().for_each(|(_, member)| member.for_each_value(visit)),
            Self::Structs(of) => of.members.iter_mut().for_each(|(_, member)| member.for_each_value(visit)),
            Self::Method(method) => method.receiver.for_each_value(visit),
        }
    }
}
