"""Names of other modules, where programs for Quadrants import them from. Nothing is defined here."""

from .._complex import cconj, cdiv, cexp, cinv, clog, cmul, cpow, csqrt

__all__ = ["cconj", "cdiv", "cexp", "cinv", "clog", "cmul", "cpow", "csqrt"]
