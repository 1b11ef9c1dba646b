//! The catalogue: every code with its class, title and explanation.
//!
//! Codes are stable: a retired one is never given to something else. The hundreds say the area: 01 signatures, 02 names and scopes,
//! 03 types and operators, 04 indices and arrays, 05 statements and control flow, 06 calls, 07 compile-time evaluation, 08 arguments of a
//! launch, 09 failures of a running kernel, 10 warnings, 11 derivatives.

use std::fmt::Write as _;

use crate::diagnostic::Severity;

/// Which exception (or which category of warning) a diagnostic becomes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Class {
    Compilation,
    Syntax,
    Name,
    Type,
    Index,
    Runtime,
    RuntimeType,
    Assertion,
    /// `ValueError`: a value that does not fit an annotation.
    Value,
    SyntaxWarning,
    UserWarning,
    DeprecationWarning,
}

impl Class {
    pub fn severity(self) -> Severity {
        match self {
            Self::SyntaxWarning | Self::UserWarning | Self::DeprecationWarning => Severity::Warning,
            _ => Severity::Error,
        }
    }

    /// The name of the exception or warning that Python sees.
    pub fn exception_name(self) -> &'static str {
        match self {
            Self::Compilation => "OctantsCompilationError",
            Self::Syntax => "OctantsSyntaxError",
            Self::Name => "OctantsNameError",
            Self::Type => "OctantsTypeError",
            Self::Index => "OctantsIndexError",
            Self::Runtime => "OctantsRuntimeError",
            Self::RuntimeType => "OctantsRuntimeTypeError",
            Self::Assertion => "OctantsAssertionError",
            Self::Value => "ValueError",
            Self::SyntaxWarning => "SyntaxWarning",
            Self::UserWarning => "UserWarning",
            Self::DeprecationWarning => "DeprecationWarning",
        }
    }
}

macro_rules! codes {
    ($($variant:ident $name:literal $class:ident $title:literal $text:literal;)*) => {
        /// What kind of mistake a diagnostic is about.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum Code { $(#[doc = $title] $variant),* }

        impl Code {
            pub const ALL: &'static [Code] = &[$(Code::$variant),*];

            /// `OC0101`
            pub fn name(self) -> &'static str {
                match self { $(Code::$variant => $name),* }
            }

            pub fn class(self) -> Class {
                match self { $(Code::$variant => Class::$class),* }
            }

            pub fn title(self) -> &'static str {
                match self { $(Code::$variant => $title),* }
            }

            pub fn explanation(self) -> &'static str {
                match self { $(Code::$variant => $text),* }
            }
        }
    };
}

impl Code {
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|code| code.name().eq_ignore_ascii_case(name))
    }

    pub fn severity(self) -> Severity {
        self.class().severity()
    }
}

/// The title and the explanation of a code such as `OC0201`, with a wrong and a right program.
pub fn explain(code: &str) -> Option<String> {
    let code = Code::from_name(code)?;
    let mut text = format!("{}: {}\n\n{}\n", code.name(), code.title(), code.explanation());
    if let Some(programs) = code.programs() {
        for (heading, program) in [("Wrong", programs.wrong), ("Right", programs.right)] {
            let _ = write!(text, "\n{heading}:\n\n");
            for line in program.lines() {
                text += format!("    {line}").trim_end();
                text.push('\n');
            }
        }
    }
    Some(text)
}

codes! {
    SourceUnavailable "OC0001" Syntax "the source of a function cannot be found"
        "A kernel is compiled from its text. Functions made by `eval`, by an extension module, or in an interpreter that keeps no source have none. Put the function in a file, a notebook cell or a REPL that remembers its lines.";
    SourceUnparsable "OC0002" Syntax "the file cannot be parsed"
        "The file that holds the function is not valid Python, or it changed since it was imported.";
    LambdaKernel "OC0003" Syntax "a lambda cannot be a kernel"
        "Kernels and funcs are `def` statements: a lambda has neither annotations nor statements.";

    MissingAnnotation "OC0101" Syntax "a kernel parameter without annotation"
        "Every parameter of a kernel needs a type: `x: oc.f32`, `a: oc.types.ndarray()`, `n: oc.template()`. Only the receiver of a method needs none.";
    VariadicParameter "OC0102" Syntax "`*args` or `**kwargs` in a signature"
        "The number of parameters of a kernel or func is fixed.";
    ParameterKind "OC0103" Syntax "a keyword-only or positional-only parameter"
        "Parameters of kernels and funcs can be passed by position and by keyword; the marks `*` and `/` are not supported.";
    DefaultValue "OC0104" Syntax "a kernel parameter with a default value"
        "A kernel takes all its arguments at each call. Funcs may have defaults.";
    InvalidAnnotation "OC0105" Syntax "an annotation that is not a type of the language"
        "Accepted are scalar types (`oc.f32`, `int`, `float`, `bool`), vectors and matrices, `oc.types.ndarray(...)`, `oc.template()`.";
    InvalidReturnAnnotation "OC0106" Syntax "a return annotation that is not a type of the language"
        "A kernel returns nothing, a scalar, or a tuple of these: `-> oc.f32`, `-> tuple[oc.i32, oc.f32]`.";
    ReturnWithoutAnnotation "OC0107" Syntax "a value returned from a kernel without return annotation"
        "Say what the kernel returns: `def f() -> oc.f32:`.";
    MissingReturn "OC0108" Syntax "a return annotation but no `return`"
        "A function whose annotation promises a value must return one, on every path.";
    ReturnCount "OC0109" Syntax "another number of values than the return annotation says"
        "The tuple that is returned and the tuple in the annotation must have the same length.";
    FunctionResult "OC0110" Compilation "a value returned from a real function without return annotation"
        "A function that is not inlined has a type of its own: `def f(x: oc.f32) -> oc.f32:`.";

    UndefinedName "OC0201" Name "a name that is not defined"
        "Names are looked up among the local variables of the enclosing blocks, the parameters, the closure, the module and the builtins. A variable first assigned inside an `if`, `for` or `while` is gone after it.";
    LeftScope "OC0202" Name "a variable used outside the block that defined it"
        "Each body of an `if`, `for` or `while` is a scope of its own. Assign the variable before the block if it is needed after it.";
    AssignToArgument "OC0203" Syntax "assignment to a kernel argument"
        "Arguments of a kernel are read-only. Copy it to a variable first.";
    LoopVariableShadows "OC0204" Syntax "a loop variable with the name of an existing variable"
        "The variable of a loop is a new one in each iteration, so it may not share its name with a variable of an enclosing block.";
    StaticRecreated "OC0205" Syntax "a variable recreated as, or over, a static one"
        "A name bound to a compile-time value keeps that value; it cannot be assigned again in the same scope.";
    AssignTarget "OC0206" Syntax "something that cannot be assigned to"
        "The left side of an assignment is a variable, an element of an array, or a tuple of these.";
    UnpackCount "OC0207" Syntax "unpacking into another number of names"
        "The number of names on the left must be the number of values on the right.";
    NotUnpackable "OC0208" Type "unpacking something that is not a sequence"
        "Tuples, lists and `x.shape` can be unpacked.";
    GlobalAssigned "OC0209" Name "`+=` and the like on a global"
        "A global is a constant of the kernel. A number that kernels change is an element of a field or an array: `x[None] += 1` for a field of shape `()`.";

    OperandTypes "OC0301" Type "operand types that an operator does not take"
        "Bitwise operators take integers on both sides; arithmetic takes numbers.";
    RealOnly "OC0302" Type "a function of reals applied to an integer"
        "`sin`, `floor`, `round` and the like take real numbers only: cast first, with `oc.cast(x, oc.f32)` or `float(x)`.";
    IntegralOnly "OC0303" Type "an operation on integers applied to a real"
        "`~`, `popcnt`, `clz`, `ffs` work on the bits of integers.";
    LiteralRange "OC0304" Type "an integer literal outside of the default integer type"
        "An integer literal has the type `default_ip`. Write `oc.i64(…)` or `oc.u64(…)` around a large one, or initialise with `default_ip=oc.i64`.";
    AnnotatedLiteralRange "OC0305" Type "a literal outside of the type that annotates it"
        "`oc.u16(-1)` does not fit; `oc.cast(-1, oc.u16)` wraps.";
    LiteralKind "OC0306" Type "a literal annotated with a type of another kind"
        "`oc.f32(0)` and `oc.i32(0.0)` annotate a literal with a type that it does not have. Write `oc.f32(0.0)`, or `oc.cast(0, oc.f32)`.";
    TypeCall "OC0307" Syntax "a type called with other than one argument"
        "`oc.f32(x)` casts one scalar. Use `oc.cast(x, dtype)` for vectors and matrices.";
    BitCastWidth "OC0308" Type "a bit cast between types of different widths"
        "`oc.bit_cast` reinterprets bits; both types must have the same width.";
    NotAValue "OC0309" Type "something that is not a number used as one"
        "Only numbers take part in run-time expressions; arrays are indexed first, and strings, functions and other objects exist at compile time only.";
    NotACondition "OC0310" Type "a condition that is not a scalar"
        "The condition of an `if`, `while` or conditional expression is one number.";
    NotADtype "OC0311" Type "something that is not a type where one is needed"
        "`oc.cast(x, oc.f32)`: the second argument is a type of the language.";
    AtomicTarget "OC0312" Syntax "an atomic operation on something that cannot be written"
        "The first operand of an atomic operation is a variable or an element of an array.";
    AtomicCasType "OC0313" Type "`atomic_cas` on a type that it does not support"
        "Compare-and-swap works on i32, u32, i64 and u64.";
    ReturnType "OC0314" Type "a returned value that does not fit the annotation"
        "A number is cast to the annotated type; anything else must have it.";
    LocalType "OC0315" Type "a value that does not fit the variable"
        "A variable's type is fixed by its first assignment. Numbers are cast; other kinds of values cannot change.";
    VolatileTarget "OC0316" Type "`volatile_load` of something that is not an element of an array"
        "Only memory that others may write can be loaded as volatile.";
    Swizzle "OC0317" Syntax "components that a vector does not have, or that cannot be written"
        "`v.xyz` picks components of a vector by the letters xyzw, rgba or stpq. There must be that many entries, and no letter may come twice on the left side of an assignment.";
    TensorEntries "OC0318" Type "a vector or matrix made from something else than its entries"
        "A matrix is made from rows of equal length, a typed one from one number, from all of its entries, or from a matrix of the same shape.";
    StructMembers "OC0319" Syntax "members that do not fit the struct's type"
        "A struct type is called with its members in order or by name; another struct or a dict must have the same members.";
    StructType "OC0320" Type "something else than a struct with the same members"
        "A struct is assigned as a whole, member by member, from a struct or dict with the same members.";
    FormatSpec "OC0321" Type "a format that does not fit the value"
        "The letter of a format such as `.2f` or `d` must fit the type of the value: reals take `f e g a`, integers `d i u o x c`.";
    ReturnedTensor "OC0322" RuntimeType "a returned vector or matrix that does not fit the annotation"
        "A returned vector or matrix must have the annotated shape, and reals are not returned as integers.";
    FormatFields "OC0323" Syntax "a text and its arguments that do not fit"
        "In `\"{} {name}\".format(x, name=y)` every field takes an argument and every argument has a field.";
    LibraryArgument "OC0324" Type "an operand that a function of the package does not take"
        "Methods of vectors and matrices, `oc.math` and the decompositions check shapes while compiling: `inverse` takes a square matrix, `cross` vectors of 2 or 3 entries.";
    VolatileLvalue "OC0325" Syntax "`volatile_load` of an expression"
        "`oc.volatile_load` takes the element itself, `x[i]`, not a value calculated from it.";

    IndexCount "OC0401" Index "another number of indices than the array has axes"
        "An array of rank 2 is indexed `a[i, j]`.";
    IndexType "OC0402" Type "an index that is not an integer"
        "Indices must be integers: write `a[int(x)]` if truncation is meant.";
    NegativeIndex "OC0403" Syntax "a negative constant index"
        "Indices do not count from the end: use `a[n - 1]` with `n = a.shape[0]`.";
    NotIndexable "OC0404" Type "indexing something that has no elements"
        "Arrays, tuples, lists and shapes can be indexed.";
    SliceUnsupported "OC0405" Syntax "a slice of an array"
        "Arrays are indexed element by element in a kernel.";
    StaticIndex "OC0406" Compilation "a run-time index into a compile-time sequence"
        "Lists and tuples exist at compile time only; index them with constants, or loop with `oc.static(range(n))`.";
    StaticIndexRange "OC0407" Index "a constant index outside of a sequence"
        "A shape or a tuple has fewer entries than the index asks for.";
    CapturedArray "OC0408" Compilation "an array used in a kernel without being an argument"
        "Arrays reach a kernel as arguments: `def f(x: oc.types.ndarray()): ...`.";
    NoAttribute "OC0409" Compilation "an attribute that does not exist"
        "Arrays have `shape`; host objects have what Python gives them.";
    ArrayAsValue "OC0410" Type "a whole array used as a value"
        "Index it: `x[i]`, or `x[None]` for an array or a field of rank 0.";
    ViewStep "OC0411" Syntax "a slice of a view with a step"
        "A `BufferView` is a contiguous part of an array, so that `v[a:b]` makes another one and `v[a:b:2]` does not.";
    DenseNode "OC0412" Type "an operation of sparse nodes on a dense one"
        "`is_active`, `activate`, `deactivate`, `append` and `length` are about cells that may be missing. All cells of a dense node are there.";
    FieldNotPlaced "OC0413" Runtime "a field that has no place in memory"
        "A field is made with a `shape`, or placed in a node: `oc.root.dense(oc.i, n).place(x)`. Both must be done before a kernel uses it.";
    UnpackedIndex "OC0414" Syntax "a run-time index into an unpacked vector"
        "A member declared with `unpacked=True` is kept as scalars, so that an entry of it must be known while compiling.";
    FieldAxes "OC0415" Runtime "a field of more axes than there may be"
        "A field has at most 12 axes, which are numbered from 0. Let one axis stand for several, `x[i * m + j]`, or use vectors and matrices as elements.";

    UnsupportedStatement "OC0501" Syntax "a statement that the language does not have"
        "Kernels consist of assignments, `if`, `for`, `while`, `break`, `continue`, `return`, `assert`, `pass` and calls.";
    UnsupportedExpression "OC0502" Syntax "an expression that the language does not have"
        "Among those that are missing: lambdas, sets, generators, `await`, `yield`.";
    LoopElse "OC0503" Syntax "`else` on a loop"
        "`for … else` and `while … else` are not supported: keep a flag.";
    BreakOutermost "OC0504" Syntax "`break` in a parallel loop"
        "The iterations of the outermost loop run in parallel, so there is no order in which to stop. Put `oc.loop_config(serialize=True)` before the loop to run it in order, or nest the loop.";
    StrayBreak "OC0505" Syntax "`break` or `continue` outside of a loop"
        "There is no loop to leave.";
    StaticBreak "OC0506" Syntax "`break` or `continue` of a static loop inside a run-time `if` or loop"
        "A static loop is unrolled at compile time, when a run-time condition is not known.";
    ReturnPlace "OC0507" Syntax "`return` inside a run-time `if` or loop"
        "A function has one exit that is known at compile time. Assign to a variable inside the block and return it at the end.";
    LoopIterable "OC0508" Syntax "something that a loop cannot run over"
        "Loops run over `range(...)`, `oc.ndrange(...)`, an array, `oc.grouped(...)` of these, or `oc.static(...)` of any Python iterable.";
    RangeArguments "OC0509" Syntax "`range` with other than one or two arguments"
        "`range(n)` and `range(begin, end)`; for a step, compute the index: `range(n)` with `i * step`.";
    RangeBound "OC0510" Type "a loop bound that is not a number"
        "Bounds are evaluated once and cast to i32.";
    LoopTargets "OC0511" Syntax "another number of loop variables than axes"
        "`for i, j in oc.ndrange(n, m)`: one variable per axis. `oc.grouped` takes exactly one.";
    NdrangeAxes "OC0512" Syntax "`axes` of `ndrange` is not a permutation"
        "`axes` lists every axis once, outermost first.";
    NdrangeArgument "OC0513" Type "an argument that `ndrange` does not take"
        "Each argument is an integer or a pair `(begin, end)` of integers.";
    IsOperator "OC0514" Syntax "`is` on run-time values"
        "Identity is a compile-time notion: use `==`, or write it inside `oc.static(...)`.";
    InOperator "OC0515" Syntax "`in` on run-time values"
        "Membership is evaluated at compile time only: `oc.static(x in xs)`.";
    WithStatement "OC0516" Syntax "a context manager that the language does not know"
        "The only context manager of kernels is `oc.stream_parallel()`. It is known by the object that the name stands for: one of your own, or of another package, is not taken for it, whatever its name.";
    AssertMessage "OC0517" Syntax "an assertion message that is not a constant text"
        "The message is a string or an f-string.";
    LoopConfig "OC0518" Type "`loop_config` with an argument that it does not take"
        "`oc.loop_config(block_dim=…, serialize=…, parallelize=…, name=…)` with constants, directly before a `for`.";
    GroupedNesting "OC0520" Syntax "`grouped` or `static` in a place where it has no meaning"
        "`oc.static(oc.grouped(...))` is right; `oc.grouped(oc.static(...))` and `oc.grouped(oc.grouped(...))` are not.";
    TooDeep "OC0521" Compilation "blocks nested too deeply"
        "There is a limit to how deeply `if`, loops and expressions may be nested, counting those of inlined funcs. What follows an `if` that leaves a loop or function is nested in it; any number of `elif`s is not.";
    StreamBlockForm "OC0522" Syntax "`stream_parallel` in another form than `with oc.stream_parallel():`"
        "It is called without arguments, stands alone in its `with`, and has no value.";
    StreamBlockPlace "OC0523" Syntax "an `oc.stream_parallel` block in another place than the top level of a kernel"
        "The blocks of a kernel are the branches of one fork: they stand one after the other, not in each other, in a func, or in a run-time `if`, `while` or `for`. Static `if`s and loops may hold them.";
    StreamBlockMixed "OC0524" Syntax "a statement that runs beside `oc.stream_parallel` blocks"
        "Blocks begin together and the kernel ends with the last of them, so nothing can run before, between or after. Beside blocks stand only docstrings, `pass`, `oc.static_assert`, `oc.static_print`, names for `oc.static(...)` values, and static `if`s and loops of blocks. Move anything else into a block, or into a kernel of its own.";
    StreamBlockReturn "OC0525" Syntax "`return` in a kernel with `oc.stream_parallel` blocks"
        "Blocks run at the same time, so there is no last statement that could return. Write the result to an array or a field.";
    StreamBlockInGraph "OC0526" Syntax "an `oc.stream_parallel` block in a kernel with `graph=True`"
        "A graph has no branches in this version. Leave `graph=True` out.";

    ReadOnlyWritten "OC0527" Compilation "a loop that writes what it was said only to read"
        "`oc.cache_read_only(x)` before a loop says that the loop only reads `x`. On a GPU such fields are loaded through a cache that does not see writes; loops whose reads and writes the compiler sees are loaded so in any case.";

    MissingArgument "OC0601" Syntax "a call without one of the arguments"
        "Every parameter without a default needs an argument.";
    UnexpectedArgument "OC0602" Syntax "a keyword that is not a parameter"
        "The function has no parameter of that name.";
    MultipleValues "OC0603" Syntax "an argument given twice"
        "An argument is passed by position or by keyword, not both.";
    TooManyArguments "OC0604" Syntax "more arguments than parameters"
        "The function takes fewer arguments.";
    KernelInKernel "OC0605" Syntax "a kernel called from a kernel or func"
        "A kernel starts parallel work, so it is called from Python. Make the callee an `@oc.func`.";
    NotCallable "OC0606" Type "a call of something that cannot be called"
        "Functions, types and the language's own operations can be called.";
    Recursion "OC0607" Compilation "funcs that inline each other without end"
        "Funcs are inlined; recursion must be ended by a condition that is known at compile time, `if oc.static(n > 0)`.";
    ArgumentKind "OC0608" Type "an argument of a kind that the parameter does not take"
        "An annotated scalar parameter takes a number; arrays are passed to `oc.template()` or un-annotated parameters.";
    FuncFromHost "OC0609" Syntax "a func called from Python"
        "`@oc.func` functions exist inside kernels. Call it from a kernel, or mark it `@oc.pyfunc`.";
    IntrinsicArguments "OC0610" Type "wrong arguments for an operation of the language"
        "See the operation's documentation for its parameters.";
    StarredArgument "OC0611" Syntax "unpacked arguments whose number is not known"
        "`*args` at a call needs a sequence that is known at compile time; `**kwargs` are not supported.";
    Unavailable "OC0612" Compilation "an operation that this version cannot compile"
        "The operation belongs to the language, but no device implements it yet.";
    RequiresTopLevel "OC0613" Syntax "a func that must be called at the top level is called deeper"
        "A func made with `requires_top_level=True` is called outside of run-time loops and branches, in the whole chain of calls.";
    NotDataOriented "OC0614" Syntax "a kernel method of a class that is not data-oriented"
        "Decorate the class with `@oc.data_oriented`, so that its objects can be arguments of its kernels.";
    SuperOutsideMethod "OC0615" Syntax "`super()` outside of a method"
        "`super()` without arguments works in kernels and funcs that are defined in a class.";

    DataOrientedMember "OC0616" Syntax "a data-oriented object inside a dataclass parameter"
        "Members of a dataclass parameter are values, arrays, templates and dataclasses. Pass the object itself as `oc.template()`.";
    ArgumentShape "OC0617" Syntax "an argument that is not a vector or matrix of the annotated shape"
        "A parameter of a func that is annotated with a type of vectors or matrices takes values of exactly that shape; entries are cast.";
    HostOnly "OC0618" Syntax "a function or method of the host's called in a kernel, or by Python code that runs while compiling"
        "What touches the data of fields and arrays, makes or destroys them, or changes the session belongs to the host: inside a kernel it would run once, while compiling. `fill` of a field or array is part of the kernel; elements are read and written as `x[i]`.";

    NotStatic "OC0701" Compilation "a run-time value where a compile-time constant is needed"
        "What stands inside `oc.static(...)` must be compile-time constants: literals, globals, template arguments, shapes of compile-time objects.";
    HostError "OC0702" Compilation "an exception in compile-time Python code"
        "Python code that was evaluated while compiling the kernel raised an exception.";
    StaticAssertFailed "OC0703" Compilation "a static assertion that does not hold"
        "`oc.static_assert(condition, message)` was false when the kernel was compiled.";
    StaticAssertRuntime "OC0704" Type "a static assertion over a run-time value"
        "`oc.static_assert` checks at compile time; use `assert` for run-time conditions.";
    StaticAssign "OC0706" Syntax "a static assignment to something other than a plain name"
        "`x = oc.static(...)` binds a name at compile time; elements, annotated targets and augmented assignments cannot be static.";
    StaticTrace "OC0707" Syntax "an expression used after its kernel was compiled"
        "Expressions given to Python functions at compile time live only as long as that compilation.";

    LiftedStatic "OC0708" Syntax "a number that is an argument in `oc.static`"
        "Numbers of a class decorated with `template_primitives=False` are arguments of its kernels, so that they are not known while compiling.";
    ImpureGlobal "OC0709" Compilation "a global in a kernel with `fastcache=True`"
        "A kernel with `fastcache=True` promises to depend on its arguments alone: pass the value as an argument. Modules, functions, classes, members of enumerations and names in capitals are allowed. Octants keeps every kernel and needs no such promise; it is checked for programs that run elsewhere, too.";

    ArgumentType "OC0801" RuntimeType "an argument that cannot be converted"
        "The value passed for a parameter does not have the kind that the annotation asks for.";
    ArrayMismatch "OC0802" Value "an array that does not fit the annotation"
        "Dtype, rank and layout must be those of the annotation.";
    StaleHandle "OC0804" Runtime "a handle of a session that was reset"
        "Arrays, streams and events belong to the session that made them.";
    DataclassMismatch "OC0806" RuntimeType "an argument of another class than the dataclass of the annotation"
        "A parameter annotated with a dataclass takes instances of that class and of dataclasses derived from it.";
    TemplatedFloat "OC0807" Value "a real as a compile-time argument"
        "With `raise_on_templated_floats=True` a real cannot be a compile-time argument: each value would compile the kernel again.";
    GraphStream "OC0808" Runtime "`qd_stream` for a kernel with `graph=True`"
        "A graph is not launched in a stream in this version. Leave `graph=True` out.";
    OtherDevice "OC0809" Value "an array on another GPU than the session's"
        "A kernel runs on the GPU of its session, and does not reach the memory of another one. Copy the array there first (`tensor.to(\"cuda:0\")`), or choose the GPU with `oc.init(device_id=...)`.";

    AssertionFailed "OC0901" Assertion "an assertion failed in a kernel"
        "An `assert` of the kernel was false. Assertions are compiled in with `oc.init(debug=True)`.";
    OutOfBounds "OC0902" Assertion "an index outside of an array"
        "Checked with `oc.init(debug=True)`.";
    KernelInterrupted "OC0903" Runtime "a kernel was interrupted"
        "The launch was cancelled; arrays that it writes hold whatever was written so far.";
    Arithmetic "OC0904" Assertion "an operation of integers that has no result"
        "An integer was divided by zero, or had a negative exponent. Checked with `oc.init(debug=True)`; otherwise a division by zero gives 0.";
    DeviceLost "OC0905" Runtime "a device that failed for good"
        "A kernel reached outside of its arrays, or the device itself failed. Memory and code on it are gone.";
    SparseMemory "OC0906" Runtime "no room for a cell of a sparse node"
        "All cells that the node's pool has memory for are in use, or a list has as many elements as its node has room for. What was written before stays.";
    Forked "OC0907" Runtime "a forked child that cannot use what its parent has opened"
        "A child has a copy of its parent's memory and none of its threads. Where another thread was inside of Octants when the process was forked, or the device is a GPU, the child cannot use them. Start processes with `multiprocessing.get_context(\"spawn\")`, or fork before `oc.init()`.";

    UnrollLimit "OC1001" SyntaxWarning "a static loop with many iterations"
        "Every iteration is compiled separately. Use a run-time loop where the index need not be a constant.";
    PythonCall "OC1002" SyntaxWarning "a plain Python function called in a kernel"
        "It runs while compiling, and again at each call of the kernel, to see whether it still gives the same. Mark it `@oc.func` to make it part of the kernel.";
    LossyStore "OC1003" UserWarning "a store that loses precision"
        "The value is cast to the type of the variable or element. Cast explicitly to silence this.";
    IndexCast "OC1004" UserWarning "an index or bound that is cast to i32"
        "Indices and bounds are 32-bit.";
    LoopName "OC1005" UserWarning "`loop_config(name=…)` on a loop that is not a task"
        "Only outermost loops become tasks with a name.";
    LargeTensor "OC1006" UserWarning "a vector or matrix with many entries"
        "Every entry of a vector or matrix is a value of its own: compiling one with more than 144 entries takes long, and so does every operation on it. Use an array.";
    Race "OC1007" UserWarning "an assignment in a parallel loop to what all iterations share"
        "A variable from before a parallel loop, or an element that the loop does not index, is shared by all iterations. Sums, products, minima and maxima are combined whatever the order; any other assignment overwrites what another iteration wrote, and which one is last is left to chance. Write to an element of the iteration's own, or put `oc.loop_config(serialize=True)` before the loop.";
    ConstantGlobal "OC1008" UserWarning "a global that a kernel with `fastcache=True` takes for a constant"
        "A kernel with `fastcache=True` promises to depend on its arguments alone. Names in capitals and what stands in `oc.static(...)` are taken for constants.";
    DroppedDerivative "OC1009" UserWarning "a derivative that is lost in a field without storage for it"
        "What is stored in the field depends on an input that has gradients. The field has none, so it counts as a constant for those who read it: that part of the derivative is missing. Make the field with `needs_grad=True`, or call `oc.stop_grad` on the inputs if that is meant. With ndarrays, or where nothing of the derivative is left, it is an error (OC1102).";
    IgnoredAnnotation "OC1010" UserWarning "a func that does not return what its annotation says"
        "An annotation that is a number's type converts what an `@oc.func` returns. One that is a vector, a matrix or a struct does not: the caller gets the value as it is. Correct the annotation, or cast what is returned.";
    FrozenValue "OC1011" UserWarning "a time or a random number that is part of the code"
        "Functions of Python run while the kernel is being compiled. One that gives the time or a random number gave it once: each call of the kernel sees the same. Pass it as an argument, or use `oc.random` for a number that each call draws anew.";
    UnusedLoopConfig "OC1012" UserWarning "`loop_config` without a loop"
        "What `oc.loop_config(...)` says is about the next `for` loop of the same block. Here none follows.";
    EvaluatedAnew "OC1013" UserWarning "a plain Python function for whose results the kernel is compiled again and again"
        "A plain Python function that a kernel calls is called at each launch, and the kernel is compiled for what it gives. One that gives something else at each launch, or something of a class that it has just made, lets the kernel be compiled at each launch. Pass the value as an argument, or make the class once, outside of the function. Code for 64 results is kept at most.";
    Deprecated "OC1014" DeprecationWarning "a name that another one has replaced"
        "The old name does the same, for programs that were written when it was the only one. Write the new one.";

    DerivativeOverwritten "OC1101" Compilation "a derivative that needs a value which the kernel overwrites"
        "The derivative in reverse mode runs after the kernel and reads its arrays again. What was overwritten meanwhile is gone, unless the kernel was called inside of `oc.ad.Tape`, which keeps it. Or write to another array or to another element. Likewise, how often a loop runs that overwrites what is kept must not depend on what the kernel itself writes.";
    DerivativeStorage "OC1102" Runtime "a derivative through an array without storage for it"
        "What is stored here depends on an input that has gradients, and these would be lost where it is read again, in this kernel or in a later one of the same tape. Make the array or field with `needs_grad=True` (`needs_dual=True` in forward mode), or place its gradients.";
    NotDifferentiable "OC1103" Compilation "an operation without a derivative"
        "The result depends on an input that has gradients, through something that has no derivative or that cannot be computed again.";
    DerivativeArguments "OC1104" Runtime "arrays that a derivative cannot be computed with"
        "The derivative of a kernel holds for arrays of which none that the kernel writes overlaps another, with gradients of the same shape that are no arguments themselves.";
    DerivativeChanged "OC1105" Runtime "memory that a derivative needs and that was written meanwhile"
        "A tape goes back through the launches that it recorded, and each derivative reads again what its kernel read. What a later launch or the host wrote there in the meantime is not what the kernel saw. Write to another array or to another row, use `oc.ad.checkpoint` for many steps in the same arrays, or decorate what is no part of the derivative with `oc.ad.no_grad` and keep its arrays apart.";
    DerivativeMeeting "OC1106" Assertion "iterations of a parallel loop that meet where a derivative flows"
        "What one iteration of a parallel loop reads or assigns, another one writes, at an index that is known only while it runs: which of them comes first is left to chance, and so is the derivative. `oc.ad.Tape(loss, validation=True)` finds it in debug mode. Read from one array and write to another, combine with `+=`, or put `oc.loop_config(serialize=True)` before the loop.";
    TapeLimit "OC1110" Runtime "a limit for kept values that one iteration exceeds"
        "Iterations of a derivative keep what their loops carry, as many of them at once as `oc.init(tape_memory_limit=…)` has memory for, and the others after them. One iteration alone needs more than that. In streams and on a GPU, where calls of gradients do not wait, what next waits for the device raises it.";

    BlockOutside "OC1201" Compilation "what threads of a block do together, outside of a parallel loop"
        "Threads form blocks in the outermost loops of a kernel. A serialised loop, the code around loops and a real function have one thread.";
    BlockLoop "OC1202" Compilation "a loop whose threads cannot form blocks"
        "Neighbouring iterations of a loop over `range(n)` or `oc.ndrange(...)` are run by neighbouring threads of a block, of at most 1024. Loops over fields and trees, and loops whose threads are limited, deal their iterations out in another way.";
    SharedShape "OC1203" Value "the shape of a shared array"
        "Shared arrays are laid out while the kernel is compiled: their extents are positive integers that are known then.";
    SharedSize "OC1204" Compilation "more shared memory than a block has"
        "The arrays of a block lie in memory of its own, of which a device has little: 227 KiB for each block on an H200, 48 KiB on old GPUs. `oc.device_properties()` tells.";
    BlockMultiple "OC1205" Value "iterations that do not fill their blocks"
        "Where threads wait for each other, all of them must be there: a loop with barriers or shared arrays has a multiple of `block_dim` iterations, one whose lanes only exchange values a multiple of 32. Round up, and do the work under `if i < n:`.";
    Exchange "OC1206" Type "a value that lanes cannot exchange"
        "Numbers, vectors, matrices and structs of them travel between lanes; a lane is an integer.";
    SliceBounds "OC1207" Syntax "a slice for a tile without one of its bounds, or with a step"
        "A tile is loaded from `x[r0:r1, c0:c1]`, a column from `x[r0:r1, c]`: rows and columns have a start and a stop, and follow each other without a step.";
    SliceOutside "OC1208" Syntax "a slice of an array in another place than an operation of a tile"
        "Slices of arrays stand where tiles are loaded, `t[:] = x[r0:r1, c0:c1]`, and stored, `x[r0:r1, c0:c1] = t`. A column, of which each lane has an entry, is given a name, `v = x[r0:r1, c]`, or is an operand of `oc.outer`.";
    TileAssign "OC1209" Type "an assignment that tiles do not have"
        "A tile is loaded from a slice of an array, `t[:] = x[r0:r1, c0:c1]`, and products of columns are subtracted from it, `t -= oc.outer(a, b)`.";
    OuterProduct "OC1210" Type "`oc.outer` in another place than `tile -= oc.outer(a, b)`"
        "The product of two columns is never made: a tile subtracts it entry by entry. It stands alone on the right of `-=`, and its operands are numbers: each lane gives its entry.";
    NoBlocks "OC1211" Value "blocks in a session without them"
        "`oc.init(simt_on_cpu=False)` refuses on a CPU what needs blocks of threads, as Quadrants does. By default the threads of a block run in turn there, and the program means the same as on a GPU.";
    NoSubgroups "OC1212" Compilation "subgroups in a session without them"
        "`oc.init(simt_on_cpu=False)` refuses on a CPU what needs lanes of a subgroup, as Quadrants does. By default lanes run in turn there, and the program means the same as on a GPU.";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_ordered_and_explained() {
        for pair in Code::ALL.windows(2) {
            assert!(pair[0].name() < pair[1].name(), "{} before {}", pair[0].name(), pair[1].name());
        }
        assert!(explain("oc0201").unwrap().starts_with("OC0201: a name that is not defined\n"));
        assert_eq!(explain("OC9999"), None);
    }
}
