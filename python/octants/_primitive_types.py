"""The number types and lists of them: ``oc.types.primitive_types``."""

from __future__ import annotations

from ._octants import DataType, dtypes

f16: DataType = dtypes["f16"]
f32: DataType = dtypes["f32"]
f64: DataType = dtypes["f64"]
i8: DataType = dtypes["i8"]
i16: DataType = dtypes["i16"]
i32: DataType = dtypes["i32"]
i64: DataType = dtypes["i64"]
u1: DataType = dtypes["u1"]
u8: DataType = dtypes["u8"]
u16: DataType = dtypes["u16"]
u32: DataType = dtypes["u32"]
u64: DataType = dtypes["u64"]

float16, float32, float64 = f16, f32, f64
int8, int16, int32, int64 = i8, i16, i32, i64
uint1, uint8, uint16, uint32, uint64 = u1, u8, u16, u32, u64

#: The types of reals, as an annotation may name them.
real_types = [f16, f32, f64, float]
#: The types of integers; truth values count.
integer_types = [i8, i16, i32, i64, u1, u8, u16, u32, u64, int, bool]
all_types = real_types + integer_types

real_type_ids = [id(dtype) for dtype in real_types]
integer_type_ids = [id(dtype) for dtype in integer_types]
type_ids = [id(dtype) for dtype in all_types]

#: What ``oc`` and ``oc.types`` have of these.
__all__ = [
    "f16", "f32", "f64", "float16", "float32", "float64", "i16", "i32", "i64", "i8", "int16", "int32", "int64", "int8",
    "u1", "u16", "u32", "u64", "u8", "uint1", "uint16", "uint32", "uint64", "uint8",
]  # fmt: skip
