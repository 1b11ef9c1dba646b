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
