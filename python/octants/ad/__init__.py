"""Derivatives of programs: ``oc.ad.Tape`` in reverse mode, ``oc.ad.FwdMode`` in forward mode, and what is built of them.

>>> with oc.ad.Tape(loss):
...     compute_loss()
>>> x.grad  # the derivatives of the loss
"""

from .checkpoint import checkpoint
from .checks import gradcheck, value_and_grad
from .forward import FwdMode, hessian_vector_product
from .replaced import grad_for, grad_replaced, no_grad
from .tape import Tape, clear_all_gradients
from .torch_function import torch_function

__all__ = [
    "FwdMode",
    "Tape",
    "checkpoint",
    "clear_all_gradients",
    "grad_for",
    "grad_replaced",
    "gradcheck",
    "hessian_vector_product",
    "no_grad",
    "torch_function",
    "value_and_grad",
]
