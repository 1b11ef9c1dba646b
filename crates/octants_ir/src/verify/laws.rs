//! Every law that the verifier checks.

#[rustfmt::skip]
macro_rules! all_laws { ($declare:ident) => { $declare! {
    1 Tree "An op stands once in one region; a region belongs to one op, a body to its kernel or function alone.";
    2 Regions "An op has as many regions as its kind has.";
    3 Terminator "A region ends in its only terminator: the body of a kernel or a function in `return`, every other in `yield`.";
    4 Definition "A value says truly which op or region defines it, and is defined once.";
    5 Visible "An operand is defined earlier in the same region, or in a region around it.";
    6 Params "A kernel or function names each parameter of its body; those are data or arrays, a function's also locals. Other regions' parameters are data.";
    7 KnownTypes "Types name structs and layouts of the kernel; members of a struct name earlier ones; a tensor has entries.";
    8 OperandCount "An op has as many operands as its kind takes.";
    9 ResultCount "An op has as many results as its kind gives.";
    10 Takes "Operands are of the scalars, or tensors of them, that the op's table names.";
    11 OneType "Operands that the table puts together have one type.";
    12 ResultType "A result has the type that follows from the operands.";
    13 Shift "A shift's amount is an integer, or a tensor of them with the shape of what is shifted.";
    14 Power "An exponent is integral with the shape of the base, or has the base's real type.";
    15 Select "A selecting condition is `u1`, or a `u1` tensor with the shape of the arms.";
    16 Convert "A conversion keeps the shape; `bit_cast` keeps the width too.";
    17 Tensor "A tensor is made of as many scalars of its type as it has entries; components are as many integers as its rank.";
    18 Struct "Members exist, and have the types that their struct says.";
    19 PlaceUse "A place is only ever the base of an access, of `extent` or `address`, or of a reduction, or ends a `for_cells`, or is passed to a function.";
    20 Path "A base is a place; its path is one integer per index, and then none or one integer per component.";
    21 Cell "What is loaded, stored or updated has the type of the addressed cell.";
    22 Atomic "An atomic update takes what its table names; `atomic_cas` takes integers, one scalar at a time.";
    23 Extent "`extent` names an axis that its array has, and gives `i32`. A field has constants instead.";
    24 Condition "The condition of `if`, `while` and `assert` is `u1`.";
    25 Bounds "Bounds and index of one loop axis are of one integer type; a parallel loop has an axis; over a layout it has an `i32` index for each of the layout's.";
    26 Carried "Carried values, their parameters, what is yielded and what results have the same types in the same order.";
    27 Reduction "A reduction is a sum, product, least, greatest or bitwise op; its accumulator has its cell's type.";
    28 Attributes "`block_dim` and `max_threads` are not zero; what is staged are parameters of the kernel, ascending.";
    29 Top "`temp` and `fork` stand in the kernel's body only, `parallel_for` and `serial` there or in a branch of a `fork`.";
    30 Returned "A kernel or function returns values of its results' types; a kernel split into tasks returns none.";
    31 Message "An assertion's message has one blank, `{}` or `{:.2f}`, per argument, and arguments are scalars.";
    32 StoreResult "`store_result` names a result of the kernel and has its type; it stands inside a task.";
    33 Split "Only a kernel in its tasks phase has `temp`, `serial` and `store_result`, and its body holds only tasks, temps and what the host evaluates at launch.";
    34 TaskValues "A task uses the kernel's parameters, temps, and values of its own.";
    35 Scalars "In a task, nothing computes with tensors or structs; a tensor in memory is addressed by component, a struct is moved whole.";
    36 AllResults "Each result of a split kernel is stored by some task.";
    37 Call "A call names a function of the kernel, and has arguments and results of its types; an array is passed to a function that takes the same.";
    38 Print "A `print` has one operand for each value of its text, a scalar or tensor that the format fits.";
    39 Random "A random number is a scalar, and not `u1`.";
    40 Layout "The digits of a layout cover each axis once; strides are multiples of the scalar's bytes, and cells do not reach into each other, but for digits of stride 0.";
    41 Field "A field holds scalars or tensors, has the rank of its layout, and clamps no index.";
    42 Address "`address` takes a scalar or tensor in an array or a field, and gives `u64`.";
    43 Digits "In a kernel that is split into tasks, each axis of a layout is one digit, and no loop runs over a layout.";
    44 Nullary "An op that takes nothing, such as `clock` or `launch_key`, gives the type that its row names.";
    45 Fork "A `fork` takes and gives nothing, and has a branch; branches have no parameters and yield nothing.";
    46 Order "An order permutes the axes of its array; a field's layout says its order and spacing.";
    47 Tape "`tape` takes an integer, or with it an array of its scalars and an `i32`, or with these an `i32` and an array of such, and stands in a parallel loop; a tape is only loaded and stored.";
    48 Block "Where threads of a block wait for each other or exchange values is in a parallel loop over ranges that has `block_dim`, reduces nothing, and limits no threads; in no function.";
    49 Shared "`shared` stands in a parallel loop, and gives a field of which no element is missing. Without blocks, each iteration is one.";
    50 Exchange "A barrier is of a subgroup or a block, a fence of a block or the device; `barrier_count` and `ballot` take a `u1`; a shuffle takes a scalar of 32 or 64 bits and an `i32`.";
} } }

/// Declares the laws: an enum, the list of them, number and text of each.
macro_rules! laws {
    ($($number:literal $law:ident $text:literal;)*) => {
        /// A law of the IR.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum Law { $(#[doc = $text] $law = $number),* }

        impl Law {
            pub const ALL: &'static [Law] = &[$(Law::$law),*];

            pub fn number(self) -> u32 {
                self as u32
            }

            pub fn text(self) -> &'static str {
                match self { $(Law::$law => $text),* }
            }
        }
    };
}
all_laws!(laws);
