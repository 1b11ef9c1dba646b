//! The callables that the language gives a meaning to, by name.
//!
//! The Python package marks its functions with these names, and the host recognises builtins of the same name; what they mean is in
//! `lower::intrinsic`.

macro_rules! intrinsics {
    ($($variant:ident $name:literal $doc:literal;)*) => {
        /// A callable of the language.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum Intrinsic { $(#[doc = concat!("`", $name, "`")] $variant),* }

        impl Intrinsic {
            pub const ALL: &'static [Intrinsic] = &[$(Intrinsic::$variant),*];

            pub fn name(self) -> &'static str {
                match self { $(Intrinsic::$variant => $name),* }
            }

            /// How it is called.
            pub fn doc(self) -> &'static str {
                match self { $(Intrinsic::$variant => $doc),* }
            }
        }
    };
}

intrinsics! {
    Static "static" "static(*values): its arguments are evaluated at compile time.";
    StaticAssert "static_assert" "static_assert(condition, message=None)";
    LibraryAssert "library_assert" "library_assert(condition, message): an assertion that is no matter of debug mode, for the library.";
    Deprecated "deprecated" "deprecated(old, new): warns of the call of a function of the library, for the library.";
    StaticPrint "static_print" "static_print(*values): prints while compiling.";
    Range "range" "range(end), range(begin, end)";
    Ndrange "ndrange" "ndrange(*bounds, axes=None): each bound an integer or a pair (begin, end).";
    Grouped "grouped" "grouped(x): loops over x with one index vector.";
    LoopConfig "loop_config" "loop_config(*, block_dim=None, serialize=False, parallelize=None, block_dim_adaptive=True, bit_vectorize=False, name=None)";
    BlockDim "block_dim" "block_dim(dim): loop_config(block_dim=dim), as programs for Taichi write it.";
    StreamParallel "stream_parallel" "with stream_parallel(): a block that runs at the same time as those beside it.";

    GetAddr "get_addr" "get_addr(f, indices): the address of a field's element, as u64.";
    RescaleIndex "rescale_index" "rescale_index(a, b, I): an index into a as one into b, which has more or fewer cells.";
    LoopUnique "loop_unique" "loop_unique(val, covers=None): a promise that no two iterations have the same value.";
    AssumeInRange "assume_in_range" "assume_in_range(val, base, low, high): a promise that base + low <= val < base + high.";
    BlockLocal "block_local" "block_local(*fields): the next loop adds to their elements; a hint to share them in a block.";
    CacheReadOnly "cache_read_only" "cache_read_only(*fields): the next loop only reads them.";
    StopGrad "stop_grad" "stop_grad(*fields): what is loaded from them in this block counts as a constant in derivatives.";
    NoActivate "no_activate" "no_activate(*nodes): a hint.";
    IsActive "is_active" "is_active(node, indices)";
    Activate "activate" "activate(node, indices)";
    Deactivate "deactivate" "deactivate(node, indices)";
    Append "append" "append(node, indices, val)";
    Length "length" "length(node, indices)";
    DeactivateAll "deactivate_all" "deactivate_all(node): gives up all cells of the node and below.";

    BufferView "BufferView" "BufferView(arr, offset, size)";
    Super "super" "super(): the parent's methods, in a method.";

    Int "int" "int(x): cast to the default integer type.";
    Float "float" "float(x): cast to the default real type.";
    Bool "bool" "bool(x): non-zero.";
    Len "len" "len(sequence): known at compile time.";
    Print "print" "print(*values, sep=' ', end='\\n')";
    Any "any" "any(values)";
    All "all" "all(values)";

    Matrix "Matrix" "Matrix(rows, dt=None): from a list of rows, or of numbers.";
    Vector "Vector" "Vector(numbers, dt=None)";
    MatrixType "matrix_type" "a type of vectors or matrices, called with one number, or with all entries.";
    Struct "Struct" "Struct(**members), Struct(dict)";
    StructType "struct_type" "a type of structs, called with its members in order or by name.";

    Abs "abs" "abs(x)";
    Min "min" "min(a, b, …)";
    Max "max" "max(a, b, …)";
    Pow "pow" "pow(base, exponent)";
    Round "round" "round(x, dtype=None): halves away from zero.";
    Floor "floor" "floor(x, dtype=None)";
    Ceil "ceil" "ceil(x, dtype=None)";
    Sqrt "sqrt" "sqrt(x)";
    Rsqrt "rsqrt" "rsqrt(x): one over the square root.";
    Exp "exp" "exp(x)";
    Log "log" "log(x): natural logarithm.";
    Log2 "log2" "log2(x)";
    Sin "sin" "sin(x)";
    Cos "cos" "cos(x)";
    Tan "tan" "tan(x)";
    Tanh "tanh" "tanh(x)";
    Asin "asin" "asin(x)";
    Acos "acos" "acos(x)";
    Erf "erf" "erf(x): the error function.";
    Atan2 "atan2" "atan2(x1, x2): the angle of the point (x2, x1).";
    Frexp "frexp" "frexp(x): mantissa and exponent.";
    IsNan "isnan" "isnan(x)";
    IsInf "isinf" "isinf(x)";
    RawDiv "raw_div" "raw_div(x1, x2): quotient as in C.";
    RawMod "raw_mod" "raw_mod(x1, x2): remainder as in C.";
    Select "select" "select(cond, x1, x2): both are evaluated.";
    Zero "zero" "zero(x): 0 of the type of x.";
    One "one" "one(x): 1 of the type of x.";
    Greatest "greatest_of" "greatest_of(x): the greatest number of the type of x, for the library; infinity of reals.";
    Least "least_of" "least_of(x): the least number of the type of x, for the library; minus infinity of reals.";

    Cast "cast" "cast(x, dtype)";
    BitCast "bit_cast" "bit_cast(x, dtype)";
    BitShr "bit_shr" "bit_shr(x1, x2): logical shift right.";
    Popcnt "popcnt" "popcnt(x)";
    Clz "clz" "clz(x)";
    Ffs "ffs" "ffs(x)";

    AtomicAdd "atomic_add" "atomic_add(x, y): the old value.";
    AtomicSub "atomic_sub" "atomic_sub(x, y): the old value.";
    AtomicMul "atomic_mul" "atomic_mul(x, y): the old value.";
    AtomicMin "atomic_min" "atomic_min(x, y): the old value.";
    AtomicMax "atomic_max" "atomic_max(x, y): the old value.";
    AtomicAnd "atomic_and" "atomic_and(x, y): the old value.";
    AtomicOr "atomic_or" "atomic_or(x, y): the old value.";
    AtomicXor "atomic_xor" "atomic_xor(x, y): the old value.";
    AtomicExchange "atomic_exchange" "atomic_exchange(x, y): the old value.";
    AtomicCas "atomic_cas" "atomic_cas(x, expected, desired): the old value.";
    AtomicCasWord "atomic_cas_word" "atomic_cas of unsigned integers of any width, for the library.";
    VolatileLoad "volatile_load" "volatile_load(target)";

    SharedArray "SharedArray" "SharedArray(shape, dtype): memory that the threads of a block share.";
    BlockSync "block_sync" "sync(): the threads of a block wait for each other.";
    BlockCount "block_count" "sync_count_nonzero(predicate): the threads of a block wait for each other; for how many the predicate holds.";
    BlockFence "block_fence" "mem_fence()";
    ThreadIdx "thread_idx" "thread_idx(): the thread's number in its block.";
    BlockThreads "block_threads" "block_threads(): how many threads a block has, for the library.";
    GlobalThreadIdx "global_thread_idx" "global_thread_idx(): the thread's number among all.";
    SubgroupLane "invocation_id" "invocation_id(): the lane's number in its subgroup.";
    SubgroupSync "subgroup_sync" "sync(): the lanes of a subgroup wait for each other.";
    Ballot "ballot" "ballot(predicate): on which lanes it holds, a bit for each.";
    Shuffle "shuffle" "shuffle(value, lane)";
    ShuffleUp "shuffle_up" "shuffle_up(value, offset)";
    ShuffleDown "shuffle_down" "shuffle_down(value, offset)";
    ShuffleXor "shuffle_xor" "shuffle_xor(value, mask)";
    GridFence "grid_fence" "mem_fence()";
    Outer "outer" "outer(a, b): the product of two columns, of which each lane has an entry. `tile -= outer(a, b)`.";

    Random "random" "random(dtype=float)";
    Randn "randn" "randn(dtype=None)";
    ClockCounter "clock_counter" "clock_counter()";
}

impl Intrinsic {
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|intrinsic| intrinsic.name() == name)
    }
}
