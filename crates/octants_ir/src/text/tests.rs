//! Text that prints, parses and prints to the same bytes; and what is said of text that does not parse.

use octants_diag::{FileId, Span};

use super::{parse, print, print_with_locations};
use crate::Builder;
use crate::constant::Const;
use crate::kernel::{Kernel, LocData};
use crate::layout::{Digit, Layout, Level, NodeKind};
use crate::ops::{
    ArithOp, AssertKind, AtomicOp, BitOp, BitUnary, CompareOp, ConvertOp, Domain, MathOp, MathUnary, OpKind,
    ParallelFor, Reduction, TensorOp,
};
use crate::order::{Order, Spacing};
use crate::types::{ArrayType, Boundary, Data, Scalar, StructType, TensorShape, TensorType, Type};

fn assert_round_trip(kernel: &Kernel) {
    for render in [print, print_with_locations] {
        let text = render(kernel);
        let again = parse(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
        assert_eq!(render(&again), text);
    }
}

/// A kernel with every op of every family, every type, and every form of control.
fn everything() -> Kernel {
    let mut k = Kernel::new("every thing");
    k.options.fast_math = true;
    k.results = vec![Scalar::F32.into(), Data::Scalar(Scalar::U1)];
    let vec3 = Data::Tensor(TensorType { elem: Scalar::F32, shape: TensorShape::Vector(3) });
    let mat = Data::Tensor(TensorType { elem: Scalar::F64, shape: TensorShape::Matrix(2, 3) });
    let ray = Data::Struct(k.structs.push(StructType {
        name: "Ray \"x\"\n".into(),
        members: vec![("origin".into(), vec3), ("t".into(), Scalar::F32.into())],
    }));
    let outer =
        Data::Struct(k.structs.push(StructType { name: "O".into(), members: vec![("r".into(), ray)] }));
    let array = |elem, rank, boundary| Type::Array(ArrayType::array(elem, rank, boundary));
    let x = k.add_param("x", array(Scalar::F32.into(), 1, Boundary::Unsafe));
    let columns = ArrayType::array(Scalar::F32, 2, Boundary::Clamp)
        .ordered(Order::new(&[1, 0]).unwrap())
        .spaced(Spacing::Rows);
    k.add_param("columns", Type::Array(columns));
    let m = k.add_param("m", array(mat, 2, Boundary::Clamp));
    let n = k.add_param("n", Type::I32);
    let blocked = Layout {
        shape: vec![4, 6],
        origin: vec![-2, 0],
        levels: vec![
            Level {
                kind: NodeKind::Dense,
                digits: vec![
                    Digit { axis: 0, below: 2, extent: 2, stride: 96 },
                    Digit { axis: 1, below: 1, extent: 6, stride: 16 },
                ],
            },
            Level { kind: NodeKind::Dense, digits: vec![Digit { axis: 0, below: 1, extent: 2, stride: 4 }] },
        ],
    };
    let field = k.field_type(Scalar::F32, blocked);
    let field = k.add_param("field", field);
    let cell = k.field_type(vec3, Layout::row_major(&[], 12));
    let cell = k.add_param("cell", cell);
    let caller =
        k.intern_loc(LocData { span: Some(Span::new(FileId(0), 4, 9)), function: None, caller: None });
    let called = k.intern_loc(LocData {
        span: Some(Span::new(FileId(1), 40, 90)),
        function: Some("f".into()),
        caller: Some(caller),
    });
    let mut b = Builder::new(&mut k);
    for &ty in Scalar::ALL {
        for value in [0.0, 1.0, -0.1, 1e30, f64::INFINITY, f64::NAN] {
            b.constant(Const::from_f64(ty, value));
        }
    }
    b.constant(Const::from_bits(Scalar::F32, 0x7fc0_1234));
    b.constant(Const::from_bits(Scalar::F16, 1));
    b.loc = called;
    let a = b.f32(0.9);
    let i = b.i32(-3);
    for &op in ArithOp::ALL {
        if op.operands() == 1 {
            b.arith_unary(op, a)
        } else {
            b.arith(op, a, a)
        };
    }
    for &op in BitOp::ALL {
        b.bit(op, i, i);
    }
    for &op in BitUnary::ALL {
        b.bit_unary(op, i);
    }
    for &op in CompareOp::ALL {
        b.compare(op, a, a);
    }
    for &op in MathOp::ALL {
        b.math(op, a, a);
    }
    for &op in MathUnary::ALL {
        b.math_unary(op, a);
    }
    for &op in ConvertOp::ALL {
        b.op(OpKind::Convert(op), [i], [Scalar::U32.into()], []);
    }
    let c = b.compare(CompareOp::Lt, i, n);
    b.select(c, a, a);
    let t = b.tensor(vec3, [a, a, a]);
    b.splat(vec3, a);
    b.tensor_get(t, &[i]);
    let t = b.tensor_set(t, &[i], a);
    assert_eq!(TensorOp::ALL.len(), 4);
    let s = b.struct_new(ray, [t, a]);
    let s = b.struct_set(s, 0, t);
    b.struct_get(s, 1);
    b.struct_new(outer, [s]);
    let local = b.local(Scalar::I32.into());
    let tensor = b.local(vec3);
    let temp = b.temp(Scalar::F32.into());
    let loaded = b.load(m, &[i, i]);
    b.store(m, &[i, i], loaded);
    let entry = b.load(m, &[i, i, i, i]);
    b.store(m, &[i, i, i, i], entry);
    b.op(OpKind::VolatileLoad, [x, i], [Type::F32], []);
    let first = b.load(field, &[i, i]);
    b.store(field, &[i, i], first);
    b.store(cell, &[], t);
    b.store(tensor, &[], t);
    b.store(temp, &[], a);
    for &op in AtomicOp::ALL {
        b.atomic(op, local, &[], i);
        b.atomic(op, x, &[i], a);
    }
    b.atomic_cas(local, &[], i, i);
    b.extent(m, 1);
    b.address(field, &[i, i]);
    b.address(cell, &[]);
    b.if_else(c, |_| vec![], |_| vec![]);
    b.if_else(
        c,
        |_| vec![],
        |b| {
            b.i32(7);
            vec![]
        },
    );
    let yielded = b.if_else(c, |_| vec![a, i], |_| vec![a, i]);
    b.for_range(i, n, &[], |_, _, _| vec![]);
    b.for_range(i, n, &yielded, |b, _, p| vec![b.arith_unary(ArithOp::Neg, p[0]), p[1]]);
    b.while_loop(&[], |_, _| (c, vec![]), |_, _| vec![]);
    b.while_loop(&[i], |_, p| (c, p.to_vec()), |_, p| p.to_vec());
    b.parallel_for(&[(i, n)], ParallelFor::default(), |b, p| b.store(x, &[p[0]], a));
    let body = b.region_of(&[Type::I32, Type::I32, Type::F32, Type::F32], |_, p| p[2..].to_vec());
    let reductions =
        vec![Reduction { op: AtomicOp::Add, operands: 1 }, Reduction { op: AtomicOp::Max, operands: 2 }];
    let attributes = ParallelFor {
        domain: Domain::Ranges,
        axes: 2,
        reductions,
        block_dim: Some(64),
        max_threads: Some(1),
        in_order: true,
        brief: true,
        staged: vec![1],
        name: Some("sum".into()),
    };
    b.op(OpKind::ParallelFor(Box::new(attributes)), [i, n, n, i, temp, x, i], [], [body]);
    let body = b.region_of(&[], |b, _| {
        b.op(OpKind::StoreResult(0), [a], [], []);
        vec![]
    });
    b.op(OpKind::Serial, [], [], [body]);
    b.op(OpKind::Assert(AssertKind::Bounds, "i is {}, \\ \"n\" {}".into()), [c, i, n], [], []);
    b.op(OpKind::Assert(AssertKind::Condition, "no".into()), [c], [], []);
    b.returns(&[a, c]);
    k
}

#[test]
fn every_op_and_type_round_trips() {
    assert_round_trip(&everything());
}

#[test]
fn constants_keep_their_bits() {
    let kernel = everything();
    let again = parse(&print(&kernel)).unwrap();
    let constants = |k: &Kernel| -> Vec<Const> {
        k.regions[k.body]
            .ops
            .iter()
            .filter_map(|&op| match k.ops[op].kind {
                OpKind::Const(c) => Some(c),
                _ => None,
            })
            .collect()
    };
    assert_eq!(constants(&kernel), constants(&again));
}

#[test]
fn locations_keep_file_span_function_and_callers() {
    let again = parse(&print_with_locations(&everything())).unwrap();
    let op = *again.regions[again.body].ops.last().unwrap();
    let loc = &again.locs[again.ops[op].loc];
    assert_eq!((loc.span, loc.function.as_deref()), (Some(Span::new(FileId(1), 40, 90)), Some("f")));
    assert_eq!(again.locs[loc.caller.unwrap()].span, Some(Span::new(FileId(0), 4, 9)));
}

#[test]
fn names_are_free_and_printing_numbers_them() {
    let text = "kernel @f(%n \"n\": i32) -> (i32) {\n  %zero: i32 = const 0 ; none\n  \
                %sum: i32 = for %i: i32 in %zero..%n carry (%acc: i32 = %zero) {\n    %next: i32 = add %acc, %i\n    \
                yield %next\n  }\n  return %sum\n}\n";
    let printed = "kernel @f(%0 \"n\": i32) -> (i32) {\n  %1: i32 = const 0\n  \
                   %2: i32 = for %3: i32 in %1..%0 carry (%4: i32 = %1) {\n    %5: i32 = add %4, %3\n    yield %5\n  \
                   }\n  return %2\n}\n";
    assert_eq!(print(&parse(text).unwrap()), printed);
}

#[test]
fn wrong_text_is_refused_where_it_is_wrong() {
    let cases = [
        ("", "1:1: expected `kernel`, found the end of the text"),
        ("kernel @f() {\n  return", "2:9: expected an op or `}`, found the end of the text"),
        ("kernel @f() {\n  %a: i32 = frob %a\n}", "2:13: `frob` is no op"),
        ("kernel @f() {\n  return %x\n}", "2:10: %x is never defined"),
        ("kernel @f() {\n  %a: i32 = const 1\n  %a: i32 = const 1\n}", "3:3: %a is defined before, at 2:3"),
        ("kernel @f() {\n  %a: i8 = const 128\n}", "2:18: 128 is no constant of i8"),
        ("kernel @f() {\n  %a: f32 = const x\n}", "2:19: expected a constant of f32, found `x`"),
        ("kernel @f(%a \"a\": i33) {\n}", "1:19: `i33` is no type"),
        ("kernel @f(%a \"a: i32) {\n}", "2:1: the string does not end on its line"),
        ("kernel @f(%a \"a\": struct0) {\n}", "1:19: struct0 is not declared above"),
        ("kernel @f(%a \"a\": field<f32, layout0>) {\n}", "1:30: layout0 is not declared above"),
        ("layout1 = layout [] { }", "1:1: layouts are numbered from 0: layout0 is expected here"),
        ("layout0 = layout [2] { dance () }", "1:24: `dance` is no kind of node"),
        ("kernel @f() {\n  return loc3\n}", "2:10: loc3 is no location of the table above"),
        ("kernel @f() {\n  return $\n}", "2:10: the character '$' means nothing here"),
        (
            "kernel @f() {\n  return\n}\nkernel",
            "4:1: expected the end of the text after the kernel, found `kernel`",
        ),
        ("kernel @f(%a \"a\": i32) {\n  parallel_for (%i: i32) in () {}\n}", "2:30: 1 indices, but 0 ranges"),
    ];
    for (text, message) in cases {
        assert_eq!(parse(text).unwrap_err().to_string(), message, "{text}");
    }
}
