"""Names of other modules, where programs for Quadrants import them from. Nothing is defined here."""

from .forward import FwdMode
from .replaced import grad_for, grad_replaced, no_grad
from .tape import Tape, clear_all_gradients

__all__ = ["FwdMode", "Tape", "clear_all_gradients", "grad_for", "grad_replaced", "no_grad"]
