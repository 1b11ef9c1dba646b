"""Number types, under the name that programs for Quadrants import them by."""

from .._primitive_types import *  # noqa: F403
from .._primitive_types import (
    all_types,  # noqa: F401
    integer_type_ids,  # noqa: F401
    integer_types,  # noqa: F401
    real_type_ids,  # noqa: F401
    real_types,  # noqa: F401
    type_ids,  # noqa: F401
)
