//! What the front end asks of the host language. Python objects exist only behind this trait.
//!
//! The PyO3 crate implements it over the interpreter; tests implement it over a few Rust values. All methods take `&self`, because
//! user code that runs inside a call may come back through the [`Tracer`] and end in another call of the host.

use std::any::Any;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use octants_ir::{ArrayType, Boundary, Data, Layout, Scalar, SparseTree, TensorShape};

use crate::intrinsics::Intrinsic;

/// A compile-time exception of the host language.
#[derive(Clone)]
pub struct HostException {
    /// `ZeroDivisionError`
    pub type_name: String,
    pub message: String,
    /// The host's own stack, as text in its own format; empty if there is none to show.
    pub traceback: String,
    /// The exception itself, to be chained by the caller that raises the diagnostic.
    pub cause: Option<Arc<dyn Any + Send + Sync>>,
}

pub type HostResult<T> = Result<T, HostException>;

impl HostException {
    pub fn new(type_name: impl Into<String>, message: impl Into<String>) -> Self {
        Self { type_name: type_name.into(), message: message.into(), traceback: String::new(), cause: None }
    }
}

impl std::fmt::Debug for HostException {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.type_name, self.message)
    }
}

/// A value of the kernel being lowered, as seen by host code: the host wraps it in an object whose operators call the [`Tracer`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ExprId {
    /// Which lowering it belongs to: what [`Host::begin_trace`] gave.
    pub trace: u64,
    pub index: u32,
}

/// What a host object is to the language. Subclasses of a number are that number (an `IntEnum` is an `Int`), unless they have operators of their own; so are
/// the scalars of array libraries.
#[derive(Clone, Debug)]
pub enum Meaning<O> {
    None,
    Bool(bool),
    /// An integer of at most 128 bits; a longer one is `Other`.
    Int(i128),
    Float(f64),
    Str(String),
    /// A sequence; [`Host::items`] gives what is in it, which may be much.
    Tuple,
    List,
    /// [`Host::pairs`] gives what is in it.
    Dict,
    Dtype(Scalar),
    /// A callable of the language itself, or a builtin that it gives a meaning to (`range`, `min`, `int`, …).
    Intrinsic(Intrinsic),
    /// An `@oc.func`, to be inlined; `receiver` is the object that a method is bound to.
    Func {
        receiver: Option<O>,
    },
    /// A callable of the language with some of its arguments: `functools.partial(f, 1, b=2)`.
    Partial {
        function: O,
        args: Vec<O>,
        keywords: Vec<(String, O)>,
    },
    /// An `@oc.kernel`.
    Kernel,
    /// Any other callable: runs at compile time. `known` is true for builtins, the package's own functions and modules whose use is
    /// clearly meant; calling any other gives a warning.
    Callable {
        known: bool,
    },
    /// A function or method of the language's own that only the host may call: it touches data or the session.
    HostOnly,
    Module,
    /// An array object that is not an argument.
    Ndarray,
    /// A field; [`Host::field`] says more.
    Field,
    /// A node of a tree of fields; [`Host::node`] says more.
    Node,
    /// An array in the host's memory that is not an argument: its elements and its shape are constants.
    HostArray,
    /// A vector or matrix of numbers, with its declared type if it has one; entries in row-major order.
    Tensor(TensorConstant),
    /// A struct: its members in order, and its type if it has one.
    Struct {
        members: Vec<(String, O)>,
        ty: Option<O>,
    },
    /// A value of a kernel that is being lowered.
    Expr(ExprId),
    Other,
}

/// A vector or matrix that the host knows.
#[derive(Clone, Debug)]
pub struct TensorConstant {
    pub shape: TensorShape,
    pub dtype: Option<Scalar>,
    pub entries: Vec<Number>,
}

/// What a field is made of, as a kernel sees it: nothing of addresses and names. Its *leaves* are counted in order, through all
/// members. A session interns kinds, down to the layouts, so that a launch compares pointers.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum FieldKind {
    /// Scalars, or tensors whose entries lie side by side.
    Leaf {
        elem: Data,
        /// Of elements that may not be there, the strides mean nothing.
        layout: Arc<Layout>,
        sparse: Option<Arc<SparseLeaf>>,
    },
    /// Vectors or matrices with a leaf for each entry, in row-major order.
    Entries { shape: TensorShape, entries: Vec<Arc<FieldKind>> },
    /// A field for each member.
    Struct { members: Vec<(String, Arc<FieldKind>)> },
}

/// A leaf of a tree with sparse nodes, on the way to which cells may not be there. Code knows the tree: no other one has it.
#[derive(Clone, Debug)]
pub struct SparseLeaf {
    pub tree: Arc<SparseTree>,
    /// Tells trees apart.
    pub serial: u64,
    pub leaf: u32,
    /// One entry of its elements, or all.
    pub entry: Option<u32>,
}

impl PartialEq for SparseLeaf {
    fn eq(&self, other: &Self) -> bool {
        (self.serial, self.leaf, self.entry) == (other.serial, other.leaf, other.entry)
    }
}

impl Eq for SparseLeaf {}

impl Hash for SparseLeaf {
    fn hash<S: Hasher>(&self, state: &mut S) {
        (self.serial, self.leaf, self.entry).hash(state);
    }
}

/// A node of a tree with sparse nodes.
#[derive(Clone, Debug)]
pub struct SparseNode {
    pub tree: Arc<SparseTree>,
    pub serial: u64,
    pub node: usize,
}

impl FieldKind {
    /// How the first leaf's elements lie; all leaves have the same shape and origin. None for a struct without members.
    pub fn layout(&self) -> Option<&Arc<Layout>> {
        match self {
            Self::Leaf { layout, .. } => Some(layout),
            Self::Entries { entries, .. } => entries.iter().find_map(|entry| entry.layout()),
            Self::Struct { members } => members.iter().find_map(|(_, member)| member.layout()),
        }
    }

    pub fn leaf_count(&self) -> usize {
        match self {
            Self::Leaf { .. } => 1,
            Self::Entries { entries, .. } => entries.iter().map(|entry| entry.leaf_count()).sum(),
            Self::Struct { members } => members.iter().map(|(_, member)| member.leaf_count()).sum(),
        }
    }
}

/// A number of the host.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Number {
    Bool(bool),
    Int(i128),
    Float(f64),
}

/// What an annotation says.
#[derive(Clone, PartialEq, Debug)]
pub enum Annotation {
    Scalar(ScalarAnnotation),
    Tensor(ScalarAnnotation, TensorShape),
    /// `oc.types.vector(n)`, `oc.types.matrix(n, m)`: entries of any type.
    Shape(TensorShape),
    /// A struct type: members by name, in order.
    Struct(Vec<(String, Annotation)>),
    /// `oc.ref(T)`: the parameter of a function that is not inlined, passed by reference.
    Ref,
    Array(ArrayAnnotation),
    /// `oc.Tensor`: an array of any kind, or nothing.
    AnyTensor,
    Template,
    /// `BufferView`, `BufferView[dtype]`
    View(ArrayAnnotation),
    /// A class made by `dataclasses.dataclass`; its name.
    Dataclass(String),
    /// `T | None` of a struct type or a dataclass.
    Optional(Box<Annotation>),
    /// `None`
    None,
    /// `tuple[…]`, `typing.Tuple[…]` or a literal tuple of types.
    Tuple(Vec<Annotation>),
    Ellipsis,
    /// Anything else; its `repr`.
    Other(String),
}

/// `a 3-vector`, or `a 3×2 matrix`.
pub(crate) fn describe_shape(shape: TensorShape) -> String {
    match shape {
        TensorShape::Vector(n) => format!("a {n}-vector"),
        TensorShape::Matrix(n, m) => format!("a {n}×{m} matrix"),
    }
}

/// A scalar type, or one that follows the session's defaults.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ScalarAnnotation {
    Is(Scalar),
    /// Python's `int`.
    DefaultInt,
    /// Python's `float`.
    DefaultFloat,
    /// Unsigned integers as wide as Python's `int`.
    DefaultUnsigned,
}

/// The unsigned integers that are as wide as others.
pub fn unsigned_like(integer: Scalar) -> Scalar {
    if integer.bits() == 64 { Scalar::U64 } else { Scalar::U32 }
}

#[derive(Clone, PartialEq, Debug)]
pub struct ArrayAnnotation {
    /// The scalars that elements are made of; `None`: whatever arrives.
    pub scalar: Option<ScalarAnnotation>,
    pub element: ElementAnnotation,
    pub ndim: Option<u8>,
    pub boundary: Boundary,
    pub needs_grad: Option<bool>,
    /// `… | None`: nothing may be passed in its place, which is known while compiling.
    pub optional: bool,
}

/// What the elements of an array must be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ElementAnnotation {
    /// Whatever arrives.
    Any,
    Scalar,
    /// Vectors of some length.
    Vector,
    /// Matrices of some shape.
    Matrix,
    Is(TensorShape),
}

impl ElementAnnotation {
    pub fn admits(self, shape: Option<TensorShape>) -> bool {
        match self {
            Self::Any => true,
            Self::Scalar => shape.is_none(),
            Self::Vector => matches!(shape, Some(TensorShape::Vector(_))),
            Self::Matrix => matches!(shape, Some(TensorShape::Matrix(..))),
            Self::Is(wanted) => shape == Some(wanted),
        }
    }

    /// How many of the last axes of an array of scalars hold the entries of the elements.
    pub fn rank(self) -> usize {
        match self {
            Self::Any | Self::Scalar => 0,
            Self::Vector => 1,
            Self::Matrix => 2,
            Self::Is(shape) => shape.rank(),
        }
    }
}

/// An object that can be passed as an array.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ArgumentArray {
    Array(ArrayType),
    /// A part of an array along its first axis.
    View(ArrayType),
}

/// Where a function's source is.
#[derive(Clone, Debug)]
pub struct FunctionSource {
    /// As the user knows it: a path, `<stdin>`, `<ipython-input-3>`.
    pub file_name: String,
    /// The whole file. The same `Arc` for the same file makes looking it up again cheap.
    pub text: Arc<str>,
    /// The 1-based line where the function starts: of its first decorator, or of its `def`.
    pub line: u32,
    pub name: String,
    pub qualname: Arc<str>,
    /// Whether its first parameter is the receiver of a class's method (which needs no annotation).
    pub is_method: bool,
}

/// Why code is made again and again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Renewal {
    /// The result is of a class that the call has made.
    Class,
    /// As much code is kept as there may be, each for another result.
    Often,
}

/// Operators of the host language, by their spelling.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum BinaryOp {
    Add,
    Sub,
    Mul,
    Div,
    FloorDiv,
    Mod,
    Pow,
    Shl,
    Shr,
    BitAnd,
    BitOr,
    BitXor,
    MatMul,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum UnaryOp {
    Neg,
    Pos,
    Invert,
    Not,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum CompareOp {
    Lt,
    Le,
    Gt,
    Ge,
    Eq,
    Ne,
    Is,
    IsNot,
    In,
    NotIn,
}

/// A failure inside the [`Tracer`]. The host raises it as an exception of the class's name so that user code may see it; if it comes out
/// of the call again, the front end shows its own diagnostic instead.
#[derive(Clone, Debug)]
pub struct TraceError {
    pub class: octants_diag::Class,
    pub message: String,
}

/// What may not happen while a kernel is being compiled.
#[derive(Clone, Copy, Debug)]
pub enum HostOnly<'a> {
    /// A launch of a kernel.
    Launch,
    /// A call of a function or method that touches data or the session, by its name.
    Call(&'a str),
}

/// The kernel being lowered, as host code sees it while it runs inside one of the host's calls. Operands may be expressions or plain objects.
pub trait Tracer<O> {
    fn binary(&mut self, op: BinaryOp, a: &O, b: &O) -> Result<O, TraceError>;
    fn unary(&mut self, op: UnaryOp, a: &O) -> Result<O, TraceError>;
    fn compare(&mut self, op: CompareOp, a: &O, b: &O) -> Result<O, TraceError>;
    fn getattr(&mut self, object: &O, name: &str) -> Result<O, TraceError>;
    fn getitem(&mut self, object: &O, index: &O) -> Result<O, TraceError>;
    fn setitem(&mut self, object: &O, index: &O, value: &O) -> Result<(), TraceError>;
    /// An `@oc.func`, or an intrinsic or a dtype with at least one expression among the arguments.
    fn call(&mut self, callee: &O, args: &[O], kwargs: &[(String, O)]) -> Result<O, TraceError>;
    /// Refuses what host code is about to do: it may not happen while a kernel is being compiled.
    fn host_only(&mut self, what: HostOnly<'_>) -> TraceError;
    /// The text for `repr(expr)`: its type.
    fn describe(&mut self, object: &O) -> String;
}

/// The host language.
pub trait Host {
    /// A handle to an object.
    type Object: Clone;

    /// How many bytes of the thread's stack are left. Lowering refuses what would need more.
    fn stack_left(&self) -> usize {
        usize::MAX
    }

    /// A number that no earlier call gave: marks the expressions of one lowering.
    fn begin_trace(&self) -> u64;

    /// Lets the host look whether somebody wants the lowering to end, between any two statements. An exception ends it.
    fn check_interrupt(&self) -> HostResult<()> {
        Ok(())
    }

    // Functions and names.
    fn function(&self, function: &Self::Object) -> HostResult<Arc<FunctionSource>>;
    /// Closure cells, then module globals, then builtins.
    fn global(&self, function: &Self::Object, name: &str) -> HostResult<Option<Self::Object>>;
    /// The names that a function sees besides its own and the builtins: a misspelt one may be meant for one of them.
    fn names(&self, _function: &Self::Object) -> Vec<String> {
        Vec::new()
    }
    /// Where the package itself has a name, as users write it: `oc.sin` for `sin`.
    fn package_name(&self, _name: &str) -> Option<String> {
        None
    }
    /// The public attributes of an object.
    fn attributes(&self, _object: &Self::Object) -> Vec<String> {
        Vec::new()
    }
    /// What the parameter is annotated with, strings resolved; `None` if it is not. The name `return` means the result.
    fn annotation_of(&self, function: &Self::Object, param: &str) -> HostResult<Option<Self::Object>>;
    fn default_of(&self, function: &Self::Object, param: &str) -> HostResult<Option<Self::Object>>;
    fn annotation(&self, object: &Self::Object) -> Annotation;

    /// What `T | None` says of T.
    fn optional(&self, _annotation: &Self::Object) -> Option<Self::Object> {
        None
    }

    /// Whether a global is part of the program's text rather than a value: a module, a function, a class.
    fn is_definition(&self, _object: &Self::Object) -> bool {
        false
    }

    /// Whether a func is compiled as a function of its own rather than into its callers.
    fn is_real_function(&self, _func: &Self::Object) -> bool {
        false
    }

    /// Whether two funcs have one body: a method is a new object each time it is taken from its receiver.
    fn same_function(&self, a: &Self::Object, b: &Self::Object) -> bool {
        self.same(a, b)
    }

    /// The function, in the kernel language, that is the method of vectors and matrices with this name.
    fn tensor_method(&self, _name: &str) -> Option<Self::Object> {
        None
    }

    /// The function, in the kernel language, that is the method of fields and arrays with this name.
    fn array_method(&self, _name: &str) -> Option<Self::Object> {
        None
    }

    /// The function, in the kernel language, that `load`s, `store`s or `add`s to an element of a field whose elements are encoded in another
    /// one's, or gives its `cells`; `None` if the object is no such field. What has `add` alone is a list that elements are added to.
    fn encoded_method(&self, _object: &Self::Object, _name: &str) -> Option<Self::Object> {
        None
    }

    // Looking at objects.
    fn meaning(&self, object: &Self::Object) -> Meaning<Self::Object>;
    /// What is in a tuple or list.
    fn items(&self, object: &Self::Object) -> Vec<Self::Object>;
    /// The keys and values of a dict.
    fn pairs(&self, object: &Self::Object) -> Vec<(Self::Object, Self::Object)>;
    fn repr(&self, object: &Self::Object) -> String;
    fn type_name(&self, object: &Self::Object) -> String;

    /// Whether an object is of a class with this name, or of one that is derived from it.
    fn is_instance(&self, object: &Self::Object, class: &str) -> bool {
        self.type_name(object) == class
    }
    /// Whether two handles are one object.
    fn same(&self, a: &Self::Object, b: &Self::Object) -> bool;

    /// The array that an object is, if it can be an argument. Where elements are asked for that are no scalars, the last axes of an
    /// array of another library hold their entries.
    fn argument_array(&self, _object: &Self::Object, _element: ElementAnnotation) -> Option<ArgumentArray> {
        None
    }
    /// What a field is made of, if it has its place in memory by now.
    fn field(&self, object: &Self::Object) -> HostResult<Arc<FieldKind>> {
        Err(HostException::new("TypeError", format!("{} is no field", self.repr(object))))
    }
    /// The struct type that a field's elements have, if they have one.
    fn field_type(&self, _object: &Self::Object) -> Option<Self::Object> {
        None
    }
    /// The cells of a node of a tree of fields, in its own resolution; the strides mean nothing.
    fn node(&self, object: &Self::Object) -> HostResult<Arc<Layout>> {
        Err(HostException::new("TypeError", format!("{} is no node of a tree of fields", self.repr(object))))
    }
    /// The same node, if its tree has nodes whose cells come and go.
    fn sparse_node(&self, _object: &Self::Object) -> HostResult<Option<SparseNode>> {
        Ok(None)
    }
    /// The annotation of a dataclass's field, strings resolved; `None` if it has no such field.
    fn member_annotation(&self, _object: &Self::Object, _name: &str) -> HostResult<Option<Self::Object>> {
        Ok(None)
    }
    /// Whether an object's class is data-oriented, and then whether its numbers are compile-time constants.
    fn data_oriented(&self, _object: &Self::Object) -> Option<bool> {
        None
    }
    /// Whether an object keeps a number, a vector, a text or the like under a name.
    fn has_plain_attribute(&self, _object: &Self::Object, _name: &str) -> bool {
        false
    }
    /// The object that a plain callable is bound to.
    fn receiver(&self, _object: &Self::Object) -> Option<Self::Object> {
        None
    }
    /// Whether a func may only be called outside of run-time loops and branches.
    fn requires_top_level(&self, _func: &Self::Object) -> bool {
        false
    }

    // Making objects.
    fn make_none(&self) -> Self::Object;
    fn make_bool(&self, value: bool) -> Self::Object;
    fn make_int(&self, value: i128) -> Self::Object;
    fn make_float(&self, value: f64) -> Self::Object;
    fn make_str(&self, value: &str) -> Self::Object;
    fn make_dtype(&self, scalar: Scalar) -> Self::Object;
    fn make_tuple(&self, items: Vec<Self::Object>) -> Self::Object;
    fn make_list(&self, items: Vec<Self::Object>) -> Self::Object;
    fn make_dict(&self, items: Vec<(Self::Object, Self::Object)>) -> HostResult<Self::Object>;
    fn make_slice(&self, start: Self::Object, stop: Self::Object, step: Self::Object) -> Self::Object;
    fn make_expr(&self, id: ExprId) -> Self::Object;

    // Looking again at a launch. What an operation below gives is compared by the host; what is read of a member, by `getattr` and `getitem`, is a
    // dependency, and compared as such.

    /// What is in a container or an array becomes part of the code.
    fn observe(&self, _object: &Self::Object) {}
    /// Whether an object is a container of the host's own besides tuples, lists and dicts, which is compared by what it holds.
    fn is_collection(&self, _object: &Self::Object) -> bool {
        false
    }
    /// What is in an object is compared as a dependency: what follows from it need not be evaluated again.
    fn guard(&self, _object: &Self::Object) {}
    /// Whether a callable gives something else each time: the time, a random number.
    fn is_unsteady(&self, _callee: &Self::Object) -> bool {
        false
    }
    /// Whether code was made before for what the newest call gave then, and has to be made again for what it gives now, and why.
    fn renewal(&self) -> Option<Renewal> {
        None
    }
    /// What was evaluated and must be again by a launch, in the host's own form; `None` if there is nothing.
    fn evaluations(&self) -> HostResult<Option<Arc<dyn Any + Send + Sync>>> {
        Ok(None)
    }

    // Operations; each may run user code, which may come back through the tracer.
    /// An attribute of an object that is no member.
    fn evaluate_attribute(
        &self,
        object: &Self::Object,
        name: &str,
        tracer: &mut dyn Tracer<Self::Object>,
    ) -> HostResult<Self::Object> {
        self.getattr(object, name, tracer)
    }
    /// An item of an object that is no member.
    fn evaluate_item(
        &self,
        object: &Self::Object,
        index: &Self::Object,
        tracer: &mut dyn Tracer<Self::Object>,
    ) -> HostResult<Self::Object> {
        self.getitem(object, index, tracer)
    }
    fn truth(&self, object: &Self::Object, tracer: &mut dyn Tracer<Self::Object>) -> HostResult<bool>;
    fn iterate(
        &self,
        object: &Self::Object,
        tracer: &mut dyn Tracer<Self::Object>,
    ) -> HostResult<Vec<Self::Object>>;
    fn getattr(
        &self,
        object: &Self::Object,
        name: &str,
        tracer: &mut dyn Tracer<Self::Object>,
    ) -> HostResult<Self::Object>;
    fn getitem(
        &self,
        object: &Self::Object,
        index: &Self::Object,
        tracer: &mut dyn Tracer<Self::Object>,
    ) -> HostResult<Self::Object>;
    fn binary(
        &self,
        op: BinaryOp,
        a: &Self::Object,
        b: &Self::Object,
        tracer: &mut dyn Tracer<Self::Object>,
    ) -> HostResult<Self::Object>;
    fn unary(
        &self,
        op: UnaryOp,
        a: &Self::Object,
        tracer: &mut dyn Tracer<Self::Object>,
    ) -> HostResult<Self::Object>;
    fn compare(
        &self,
        op: CompareOp,
        a: &Self::Object,
        b: &Self::Object,
        tracer: &mut dyn Tracer<Self::Object>,
    ) -> HostResult<Self::Object>;
    fn call(
        &self,
        callee: &Self::Object,
        args: &[Self::Object],
        kwargs: &[(String, Self::Object)],
        tracer: &mut dyn Tracer<Self::Object>,
    ) -> HostResult<Self::Object>;
    /// `format(object, spec)`, for text that is known at compile time.
    fn format(
        &self,
        object: &Self::Object,
        spec: &str,
        tracer: &mut dyn Tracer<Self::Object>,
    ) -> HostResult<String>;
}
