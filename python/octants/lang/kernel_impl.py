"""Names of other modules, where programs for Quadrants import them from. Nothing is defined here."""

from .._language.data_oriented import data_oriented
from .._language.pyfunc import pyfunc
from .._octants import Func, Kernel
from .._session import func, kernel, real_func

__all__ = ["Func", "Kernel", "data_oriented", "func", "kernel", "pyfunc", "real_func"]
