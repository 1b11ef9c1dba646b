"""Kernels as functions of torch's autograd."""

from __future__ import annotations

import functools

from .._octants import BoundKernel, Kernel, host_only
from ..exceptions import OctantsRuntimeError
from .tape import Tape, watchers


def torch_function(function, outputs):
    """A function of tensors that torch differentiates, made of a kernel or of a function that calls kernels.

    ``outputs`` is called with the arguments and gives the tensors that the results are written to, one or a tuple; ``function`` is called with
    the arguments and then these. On the way back, a kernel's ``grad`` is called; a function runs again in a ``Tape``, so that what it keeps in fields or
    ndarrays is its own, and only has to be a function of its arguments. Arguments that are no tensors are handed on.

    >>> layer = oc.ad.torch_function(simulate, lambda x, w: torch.zeros_like(x))
    >>> y = layer(x, w)
    >>> y.sum().backward()
    """
    if not callable(function) or not callable(outputs):
        raise TypeError("torch_function takes a kernel or a function, and a function that makes the outputs")

    @functools.wraps(function)
    def call(*args):
        host_only("torch_function")
        import torch  # pyright: ignore[reportMissingImports]

        if watchers():
            raise OctantsRuntimeError(
                "a function of torch's is not recorded by a Tape: call the kernels themselves in it"
            )
        made = outputs(*args)
        results = made if isinstance(made, tuple) else (made,)
        for result in results:
            if not isinstance(result, torch.Tensor):
                raise TypeError(f"outputs gives a tensor or a tuple of tensors, not {type(result).__name__}")
        found = _autograd().apply(function, outputs, len(results), *args, *results)
        return found if isinstance(made, tuple) else found[0]

    return call


@functools.cache
def _autograd():
    import torch  # pyright: ignore[reportMissingImports]
    from torch.autograd.function import once_differentiable  # pyright: ignore[reportMissingImports]

    class OctantsFunction(torch.autograd.Function):
        @staticmethod
        def forward(ctx, function, outputs, count, *args):
            args, results = args[:-count], args[-count:]
            results = tuple(result.detach() for result in results)
            plain = tuple(arg.detach() if isinstance(arg, torch.Tensor) else arg for arg in args)
            function(*plain, *results)
            ctx.function, ctx.outputs, ctx.count = function, outputs, count
            ctx.others = [None if isinstance(arg, torch.Tensor) else arg for arg in args]
            ctx.is_tensor = [isinstance(arg, torch.Tensor) for arg in args]
            ctx.save_for_backward(*(arg for arg in args if isinstance(arg, torch.Tensor)), *results)
            ctx.mark_non_differentiable(*(result for result in results if not result.is_floating_point()))
            return results

        @staticmethod
        @once_differentiable
        def backward(ctx, *adjoints):
            saved = ctx.saved_tensors
            tensors, results = iter(saved[: -ctx.count]), saved[-ctx.count :]
            needed = ctx.needs_input_grad[3:]
            args = []
            for other, is_tensor, needs in zip(ctx.others, ctx.is_tensor, needed, strict=False):
                arg = next(tensors).detach() if is_tensor else other
                args.append(arg.requires_grad_() if is_tensor and needs else arg)
            function = ctx.function
            if not isinstance(function, (Kernel, BoundKernel)):
                made = ctx.outputs(*(arg.detach() if isinstance(arg, torch.Tensor) else arg for arg in args))
                results = made if isinstance(made, tuple) else (made,)
            results = [_seeded(result, adjoint) for result, adjoint in zip(results, adjoints, strict=True)]
            if isinstance(function, (Kernel, BoundKernel)):
                function.grad(*args, *results)
            else:
                _go_back(function, args, results)
            grads = (arg.grad if isinstance(arg, torch.Tensor) and arg.requires_grad else None for arg in args)
            return (None, None, None, *grads, *(None for _ in results))

    return OctantsFunction


def _seeded(result, adjoint):
    """An output with its gradients."""
    result = result.detach()
    if result.is_floating_point():
        from .._torch import gradients_of

        gradients = gradients_of(result.requires_grad_())
        if gradients is not None and adjoint is not None:
            gradients.copy_(adjoint)
    return result


def _go_back(function, args: list, results: list) -> None:
    adjoints = [result.grad.clone() if result.requires_grad else None for result in results]
    with Tape() as tape:
        function(*args, *results)
    tape._clear_arrays()
    tape.clear_gradients = False
    for result, adjoint in zip(results, adjoints, strict=True):
        if adjoint is not None:
            result.grad.copy_(adjoint)
    tape.grad()
