# Written by scripts/write_stubs.py from the package and from scripts/stub_templates.
from typing import Any, TypeAlias

from .. import Matrix as Matrix
from .. import Vector as Vector
from .. import i32 as i32
from .. import u32 as u32
from .._matrix.types import MatrixType as MatrixType
from .._matrix.types import VectorType as VectorType

vec2: TypeAlias = Vector
vec3: TypeAlias = Vector
vec4: TypeAlias = Vector
ivec2: TypeAlias = Vector
ivec3: TypeAlias = Vector
ivec4: TypeAlias = Vector
uvec2: TypeAlias = Vector
uvec3: TypeAlias = Vector
uvec4: TypeAlias = Vector
mat2: TypeAlias = Matrix
mat3: TypeAlias = Matrix
mat4: TypeAlias = Matrix

def acos(x: Any) -> Any:
    """Arccosine of a real."""

def asin(x: Any) -> Any:
    """Arcsine of a real."""

def atan2(x1: Any, x2: Any) -> Any:
    """The angle of the point ``(x2, x1)``."""

def cast(x: Any, dtype: Any) -> Any:
    """``x`` converted by value to ``dtype``."""

def cconj(z: Any) -> Any:
    """The complex conjugate."""

def cdiv(z1: Any, z2: Any) -> Any:
    """The quotient of two complex numbers."""

def ceil(x: Any, dtype: Any = ...) -> Any:
    """The least integer not below ``x``, as a real or as ``dtype``."""

def cexp(z: Any) -> Any:
    """e to a complex power."""

def cinv(z: Any) -> Any:
    """One over a complex number."""

def clamp(x: Any, xmin: Any, xmax: Any) -> Any:
    """``x``, or the bound that it is beyond."""

def clog(z: Any) -> Any:
    """The logarithm whose imaginary part is the angle from -π to π."""

def clz(x: Any) -> Any:
    """How many leading zero bits an integer has."""

def cmul(z1: Any, z2: Any) -> Any:
    """The product of two complex numbers."""

def cos(x: Any) -> Any:
    """Cosine of a real."""

def cpow(z: Any, n: Any) -> Any:
    """A complex number to a real power."""

def cross(x: Any, y: Any) -> Any:
    """The vector product of two vectors of 3 entries; of 2 entries, its third component."""

def csqrt(z: Any) -> Any:
    """The root with a real part that is not negative."""

def degrees(x: Any) -> Any:
    """Radians to degrees."""

def determinant(m: Any) -> Any:
    """The determinant, for sizes up to 4."""

def distance(x: Any, y: Any) -> Any:
    """The length of the difference of two vectors."""

def dot(x: Any, y: Any) -> Any:
    """The scalar product of two vectors."""

e: float

def erf(x: Any) -> Any:
    """The error function of a real."""

def exp(x: Any) -> Any:
    """e to the power of ``x``."""

def eye(n: Any) -> Any:
    """The unit matrix of size ``n``, of the default real type."""

def ffs(x: Any) -> Any:
    """One plus the position of the lowest set bit; 0 for 0."""

def floor(x: Any, dtype: Any = ...) -> Any:
    """The greatest integer not above ``x``, as a real or as ``dtype``."""

def fns(mask: Any, base: Any, offset: Any) -> Any:
    """The position of the ``offset``-th set bit of ``mask``, counted upward from bit ``base`` on, or downward if ``offset`` is negative.

    ``offset = 0`` asks for bit ``base`` itself. ``0xFFFFFFFF`` says that there is none."""

def fract(x: Any) -> Any:
    """How far ``x`` is above the greatest integer below it."""

def identity(dt: Any, n: Any) -> Any:
    """The unit matrix of size ``n``."""

inf: float

def inverse(mat: Any) -> Any:
    """The inverse, for sizes up to 12."""

def isinf(x: Any) -> Any:
    """Whether ``x`` is an infinity; by its bits, so it holds under ``fast_math`` too."""

def isnan(x: Any) -> Any:
    """Whether ``x`` is a NaN; by its bits, so it holds under ``fast_math`` too."""

def length(x: Any) -> Any:
    """The length of a vector."""

def log(x: Any) -> Any:
    """Natural logarithm."""

def log2(x: Any) -> Any:
    """Logarithm to base 2."""

def max(x: Any, *others: Any) -> Any:
    """The greatest of its arguments."""

def min(x: Any, *others: Any) -> Any:
    """The least of its arguments."""

def mix(x: Any, y: Any, a: Any) -> Any:
    """The value between ``x`` (at ``a = 0``) and ``y`` (at ``a = 1``)."""

def mod(x: Any, y: Any) -> Any:
    """``x - y * floor(x / y)``"""

nan: float

def normalize(v: Any) -> Any:
    """The vector divided by its length."""

def of_common_type(text: Any, *args: Any, **kwargs: Any) -> Any:
    """The text's result, with entries of the arguments' common type; of the default real where integers gave reals."""

def on_host(form: Any) -> Any:
    """Lets the host call ``form(text, *arguments)``, where ``text`` is the decorated function, which kernels compile.

    Values that are known only when a kernel runs are for the text."""

pi: float

def popcnt(x: Any) -> Any:
    """How many bits of an integer are set."""

def pow(base: Any, exponent: Any) -> Any:
    """``base ** exponent``."""

def pyfunc(fn: Any) -> Any:
    """Marks a function that may be called from ordinary Python and from kernels.

    Its body must be written in the kernel language: what it does is what Python does with it."""

def radians(x: Any) -> Any:
    """Degrees to radians."""

def reflect(x: Any, n: Any) -> Any:
    """The direction ``x`` after a bounce on a plane with the unit normal ``n``."""

def refract(x: Any, n: Any, eta: Any) -> Any:
    """The direction ``x`` behind a plane with the unit normal ``n``, ``eta`` being the ratio of indices of refraction.

    Total internal reflection gives the zero vector."""

def rot_by_axis(axis: Any, ang: Any) -> Any:
    """The matrix that turns a row vector ``(x, y, z, 1)`` about an axis (``v @ M``; a column vector turns the other way)."""

def rot_yaw_pitch_roll(yaw: Any, pitch: Any, roll: Any) -> Any:
    """The matrix that turns a row vector by roll about z, then pitch about x, then yaw about y (``v @ M``)."""

def rotation2d(ang: Any) -> Any:
    """The matrix that turns a point ``(x, y)`` counterclockwise."""

def rotation3d(ang_x: Any, ang_y: Any, ang_z: Any) -> Any:
    """Rotation by three angles: ``rot_yaw_pitch_roll(ang_z, ang_x, ang_y)``."""

def round(x: Any, dtype: Any = ...) -> Any:
    """The nearest integer, halves away from zero, as a real or as ``dtype``."""

def scale(sx: Any, sy: Any, sz: Any) -> Any:
    """The matrix that stretches a point ``(x, y, z, 1)``."""

def sign(x: Any) -> Any:
    """-1, 0 or 1 as a real, as ``x`` is negative, zero or positive."""

def sin(x: Any) -> Any:
    """Sine of a real."""

def smoothstep(edge0: Any, edge1: Any, x: Any) -> Any:
    """0 below ``edge0``, 1 above ``edge1``, and a smooth curve between them."""

def sqrt(x: Any) -> Any:
    """Square root."""

def step(edge: Any, x: Any) -> Any:
    """0 below ``edge``, else 1."""

def tan(x: Any) -> Any:
    """Tangent of a real."""

def tanh(x: Any) -> Any:
    """Hyperbolic tangent of a real."""

def translate(dx: Any, dy: Any, dz: Any) -> Any:
    """The matrix that moves a point ``(x, y, z, 1)``."""

def vdir(ang: Any) -> Any:
    """The unit vector of two entries at an angle."""

def zero(x: Any) -> Any:
    """Zero of the type of ``x``."""
