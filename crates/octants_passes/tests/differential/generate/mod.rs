//! Small structured kernels, made at random, that keep every law and never trap: indices are brought into their arrays, loops and
//! recursion end. Updates of one place by all iterations are of integers, so that their order does not matter.

mod functions;
mod layouts;
mod statements;
mod values;

use octants_ir::plan::size_and_align;
use octants_ir::{
    ArrayType, Boundary, Builder, Data, Func, Id, Kernel, Scalar, StructId, StructType, TensorShape,
    TensorType, Type, Value,
};

use crate::random::Random;

/// Every array has this many elements along each axis.
pub const EXTENT: i32 = 8;
/// The usual ones more often.
const SCALARS: [Scalar; 16] = [
    Scalar::I32,
    Scalar::I32,
    Scalar::F32,
    Scalar::F32,
    Scalar::U1,
    Scalar::U1,
    Scalar::F64,
    Scalar::I64,
    Scalar::U8,
    Scalar::I8,
    Scalar::I16,
    Scalar::U16,
    Scalar::U32,
    Scalar::U64,
    Scalar::F16,
    Scalar::F16,
];
pub const PAIR: Data = Data::Tensor(TensorType { elem: Scalar::I32, shape: TensorShape::Vector(2) });
pub const MATRIX: Data = Data::Tensor(TensorType { elem: Scalar::F32, shape: TensorShape::Matrix(2, 3) });
const BIG: Data = Data::Tensor(TensorType { elem: Scalar::I32, shape: TensorShape::Matrix(5, 5) });

/// Variables and parameters are of these types.
fn held() -> Vec<Data> {
    let scalars = SCALARS.iter().map(|&scalar| Data::from(scalar));
    let wholes = [PAIR, MATRIX, BIG, inner(), outer()];
    scalars.chain(wholes).chain(wholes).collect()
}

pub fn inner() -> Data {
    Data::Struct(StructId::from_index(0))
}

pub fn outer() -> Data {
    Data::Struct(StructId::from_index(1))
}

fn add_structs(kernel: &mut Kernel) {
    let member = |name: &str, data: Data| (name.to_owned(), data);
    let members = vec![member("n", Scalar::I32.into()), member("p", PAIR)];
    kernel.structs.push(StructType { name: "Inner".into(), members });
    let members = vec![
        member("x", Scalar::F32.into()),
        member("flag", Scalar::U1.into()),
        member("inner", inner()),
        member("h", Scalar::F16.into()),
    ];
    kernel.structs.push(StructType { name: "Outer".into(), members });
}

struct Local {
    place: Value,
    data: Data,
    /// Declared outside the parallel loop that is being made.
    outside: bool,
}

struct Generator {
    random: Random,
    /// Values that can be used here.
    scope: Vec<Value>,
    locals: Vec<Local>,
    arrays: Vec<Value>,
    /// The indices of the parallel loop being made.
    axes: Vec<Value>,
    /// Functions that may be called here.
    functions: Vec<Func>,
    depth: usize,
}

pub fn kernel(seed: u64) -> Kernel {
    let mut kernel = Kernel::new(format!("seed{seed}"));
    add_structs(&mut kernel);
    kernel.results = vec![Scalar::I32.into(), Scalar::F32.into(), PAIR, outer()];
    let array = |elem: Data, rank| Type::Array(ArrayType::array(elem, rank, Boundary::Unsafe));
    let mut random = Random::new(seed);
    let mut place = |kernel: &mut Kernel, elem: Data, rank: usize| {
        if random.chance(2) {
            return array(elem, rank as u8);
        }
        let bytes = size_and_align(kernel, elem).0;
        kernel.field_type(elem, layouts::layout(&mut random, rank, bytes))
    };
    // The first and the fourth may be the same one.
    let a = place(&mut kernel, Scalar::I32.into(), 1);
    let b = place(&mut kernel, Scalar::F32.into(), 1);
    let c = place(&mut kernel, PAIR, 1);
    let e = place(&mut kernel, Scalar::I32.into(), 2);
    let arrays = vec![
        kernel.add_param("a", a),
        kernel.add_param("b", b),
        kernel.add_param("c", c),
        kernel.add_param("d", a),
        kernel.add_param("e", e),
        kernel.add_param("f", array(outer(), 1)),
    ];
    let scope = vec![
        kernel.add_param("n", Type::I32),
        kernel.add_param("x", Type::F32),
        kernel.add_param("m", MATRIX.into()),
        kernel.add_param("p", PAIR.into()),
        kernel.add_param("s", outer().into()),
    ];
    let mut g = Generator {
        random,
        scope,
        locals: Vec::new(),
        arrays,
        axes: Vec::new(),
        functions: Vec::new(),
        depth: 0,
    };
    for number in 0..g.random.below(4) {
        g.function(&mut kernel, number);
    }
    let mut b = Builder::new(&mut kernel);
    let statements = 3 + g.random.below(8);
    for _ in 0..statements {
        if g.random.chance(3) { g.parallel_for(&mut b) } else { g.statement(&mut b) }
    }
    let results: Vec<_> =
        [Scalar::I32.into(), Scalar::F32.into(), PAIR, outer()].map(|data| g.data(&mut b, data)).to_vec();
    b.returns(&results);
    kernel
}
