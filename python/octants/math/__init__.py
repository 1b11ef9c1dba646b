# type: ignore  (in the kernel language annotations are values, and what is static decides the types)
"""Constants, types and functions in the manner of GLSL.

The functions are written in the kernel language: they run on the host and are compiled into kernels that call them. Integer literals
stand where a real of any width is meant, because an integer does not widen a real.
"""

from __future__ import annotations

from .._language import (
    _marked,
    _numpy,
    acos,
    asin,
    atan2,
    cast,
    ceil,
    cos,
    erf,
    exp,
    floor,
    log,
    max,  # noqa: A004
    min,  # noqa: A004
    pow,  # noqa: A004
    round,  # noqa: A004
    sin,
    sqrt,
    tan,
    tanh,
    zero,
)
from .._language.pyfunc import pyfunc
from .._matrix import Matrix, Vector
from .._matrix.host_forms import of_common_type, on_host
from .._matrix.methods import identity
from .._matrix.types import SessionMatrixType as _MatrixType
from .._matrix.types import SessionVectorType as _VectorType
from ..types import i32, u32
from ._complex import cconj, cdiv, cexp, cinv, clog, cmul, cpow, csqrt

pi = 3.141592653589793
e = 2.718281828459045
inf = float("inf")
nan = float("nan")

vec2, vec3, vec4 = (_VectorType(f"vec{n}", "real", n) for n in (2, 3, 4))
ivec2, ivec3, ivec4 = (_VectorType(f"ivec{n}", "integer", n) for n in (2, 3, 4))
uvec2, uvec3, uvec4 = (_VectorType(f"uvec{n}", "unsigned", n) for n in (2, 3, 4))
mat2, mat3, mat4 = (_MatrixType(f"mat{n}", "real", n, n) for n in (2, 3, 4))


# ---- numbers; of vectors and matrices, entry by entry ---------------------------------------------------------------------------


@_marked("log2")
def log2(x):
    """Logarithm to base 2."""
    return _numpy().log2(x)


@_marked("isnan")
def isnan(x):
    """Whether ``x`` is a NaN; by its bits, so it holds under ``fast_math`` too."""
    return _numpy().isnan(x)


@_marked("isinf")
def isinf(x):
    """Whether ``x`` is an infinity; by its bits, so it holds under ``fast_math`` too."""
    return _numpy().isinf(x)


@pyfunc
def mix(x, y, a):
    """The value between ``x`` (at ``a = 0``) and ``y`` (at ``a = 1``)."""
    return x * (1 - a) + y * a


@pyfunc
def clamp(x, xmin, xmax):
    """``x``, or the bound that it is beyond."""
    return min(xmax, max(xmin, x))


@pyfunc
def step(edge, x):
    """0 below ``edge``, else 1."""
    return cast(x >= edge, float)


@pyfunc
def smoothstep(edge0, edge1, x):
    """0 below ``edge0``, 1 above ``edge1``, and a smooth curve between them."""
    t = clamp((x - edge0) / (edge1 - edge0), 0, 1)
    return t * t * (3 - 2 * t)


@pyfunc
def fract(x):
    """How far ``x`` is above the greatest integer below it."""
    return x - floor(x)


@pyfunc
def sign(x):
    """-1, 0 or 1 as a real, as ``x`` is negative, zero or positive."""
    return cast(x > 0, float) - cast(x < 0, float)


@pyfunc
def mod(x, y):
    """``x - y * floor(x / y)``"""
    return x - y * floor(x / y)


# A constant in a kernel has the precision of the default real. The rest of it is a second one, so that f64 loses nothing.


@pyfunc
def radians(x):
    """Degrees to radians."""
    return x * 0.01745329238474369 + x * 1.3519960527851425e-10


@pyfunc
def degrees(x):
    """Radians to degrees."""
    return x * 57.295780181884766 - x * 6.688024447482018e-07


# ---- vectors --------------------------------------------------------------------------------------------------------------------


@pyfunc
def length(x):
    """The length of a vector."""
    return x.norm()


@pyfunc
def distance(x, y):
    """The length of the difference of two vectors."""
    return (x - y).norm()


@pyfunc
def dot(x, y):
    """The scalar product of two vectors."""
    return x.dot(y)


@pyfunc
def cross(x, y):
    """The vector product of two vectors of 3 entries; of 2 entries, its third component."""
    return x.cross(y)


@pyfunc
def normalize(v):
    """The vector divided by its length."""
    return v / v.norm()


@pyfunc
def reflect(x, n):
    """The direction ``x`` after a bounce on a plane with the unit normal ``n``."""
    return x - 2 * x.dot(n) * n


@pyfunc
def refract(x, n, eta):
    """The direction ``x`` behind a plane with the unit normal ``n``, ``eta`` being the ratio of indices of refraction.

    Total internal reflection gives the zero vector.
    """
    cosine = x.dot(n)
    squared = 1 - eta * eta * (1 - cosine * cosine)
    result = zero(eta * x)
    if squared >= 0:
        result = eta * x - (eta * cosine + sqrt(squared)) * n
    return result


@pyfunc
def vdir(ang):
    """The unit vector of two entries at an angle."""
    return Vector([cos(ang), sin(ang)])


# ---- matrices -------------------------------------------------------------------------------------------------------------------


def eye(n):
    """The unit matrix of size ``n``, of the default real type."""
    return identity(float, n)


@pyfunc
def determinant(m):
    """The determinant, for sizes up to 4."""
    return m.determinant()


@pyfunc
def inverse(mat):
    """The inverse, for sizes up to 12."""
    return mat.inverse()


@pyfunc
def translate(dx, dy, dz):
    """The matrix that moves a point ``(x, y, z, 1)``."""
    return Matrix([[1.0, 0.0, 0.0, dx], [0.0, 1.0, 0.0, dy], [0.0, 0.0, 1.0, dz], [0.0, 0.0, 0.0, 1.0]])


@pyfunc
def scale(sx, sy, sz):
    """The matrix that stretches a point ``(x, y, z, 1)``."""
    return Matrix([[sx, 0.0, 0.0, 0.0], [0.0, sy, 0.0, 0.0], [0.0, 0.0, sz, 0.0], [0.0, 0.0, 0.0, 1.0]])


@pyfunc
def rotation2d(ang):
    """The matrix that turns a point ``(x, y)`` counterclockwise."""
    return Matrix([[cos(ang), -sin(ang)], [sin(ang), cos(ang)]])


@pyfunc
def rotation3d(ang_x, ang_y, ang_z):
    """Rotation by three angles: ``rot_yaw_pitch_roll(ang_z, ang_x, ang_y)``."""
    return rot_yaw_pitch_roll(ang_z, ang_x, ang_y)


@on_host(of_common_type)
@pyfunc
def rot_by_axis(axis, ang):
    """The matrix that turns a row vector ``(x, y, z, 1)`` about an axis (``v @ M``; a column vector turns the other way)."""
    a = axis / axis.norm()
    c = cos(ang)
    s = sin(ang)
    t = 1 - c
    return Matrix(
        [
            [c + t * a[0] * a[0], t * a[0] * a[1] + s * a[2], t * a[0] * a[2] - s * a[1], 0.0],
            [t * a[0] * a[1] - s * a[2], c + t * a[1] * a[1], t * a[1] * a[2] + s * a[0], 0.0],
            [t * a[0] * a[2] + s * a[1], t * a[1] * a[2] - s * a[0], c + t * a[2] * a[2], 0.0],
            [0.0, 0.0, 0.0, 1.0],
        ]
    )


@pyfunc
def rot_yaw_pitch_roll(yaw, pitch, roll):
    """The matrix that turns a row vector by roll about z, then pitch about x, then yaw about y (``v @ M``)."""
    cy = cos(yaw)
    sy = sin(yaw)
    cp = cos(pitch)
    sp = sin(pitch)
    cr = cos(roll)
    sr = sin(roll)
    return Matrix(
        [
            [cy * cr + sy * sp * sr, cp * sr, cy * sp * sr - sy * cr, 0.0],
            [sy * sp * cr - cy * sr, cp * cr, sy * sr + cy * sp * cr, 0.0],
            [sy * cp, -sp, cy * cp, 0.0],
            [0.0, 0.0, 0.0, 1.0],
        ]
    )


# ---- bits -----------------------------------------------------------------------------------------------------------------------


@_marked("popcnt")
def popcnt(x):
    """How many bits of an integer are set."""
    raise NotImplementedError("oc.math.popcnt runs inside kernels only")


@_marked("clz")
def clz(x):
    """How many leading zero bits an integer has."""
    raise NotImplementedError("oc.math.clz runs inside kernels only")


@_marked("ffs")
def ffs(x):
    """One plus the position of the lowest set bit; 0 for 0."""
    raise NotImplementedError("oc.math.ffs runs inside kernels only")


@pyfunc
def fns(mask: u32, base: u32, offset: i32) -> u32:
    """The position of the ``offset``-th set bit of ``mask``, counted upward from bit ``base`` on, or downward if ``offset`` is negative.

    ``offset = 0`` asks for bit ``base`` itself. ``0xFFFFFFFF`` says that there is none.
    """
    left = cast(offset, i32)
    towards = 1
    if left < 0:
        left = -left
        towards = -1
    if left == 0:
        left = 1
        towards = 32
    position = cast(base, i32)
    found = -1
    while left > 0 and position >= 0 and position < 32:
        if (mask >> cast(position, u32)) & 1 != 0:
            left = left - 1
            if left == 0:
                found = position
        position = position + towards
    return cast(found, u32)


__all__ = [
    "acos", "asin", "atan2", "cconj", "cdiv", "ceil", "cexp", "cinv", "clamp", "clog", "clz", "cmul", "cos", "cpow",
    "cross", "csqrt", "degrees", "determinant", "distance", "dot", "e", "erf", "exp", "eye", "ffs", "floor", "fns", "fract", "inf",
    "inverse", "isinf", "isnan", "ivec2", "ivec3", "ivec4", "length", "log", "log2", "mat2", "mat3", "mat4", "max", "min",
    "mix", "mod", "nan", "normalize", "pi", "popcnt", "pow", "radians", "reflect", "refract", "rot_by_axis",
    "rot_yaw_pitch_roll", "rotation2d", "rotation3d", "round", "scale", "sign", "sin", "smoothstep", "sqrt", "step", "tan",
    "tanh", "translate", "uvec2", "uvec3", "uvec4", "vdir", "vec2", "vec3", "vec4",
]  # fmt: skip
