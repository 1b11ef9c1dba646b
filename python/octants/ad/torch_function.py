"""Kernels as functions of torch's autograd.

Law: **what goes back is the derivative of what ran, or is refused.** The way back compares what it needs with what there was, by torch's count of operations in
place and by running a function again; it hands on the gradients of what outputs held before; and it has no derivative of its own.
"""

from __future__ import annotations

import functools
import sys

from .._octants import BoundKernel, Kernel, StepCheck, WriteLog, host_only, refusal
from ..exceptions import OctantsRuntimeError
from .arrays import arrays_in, is_torch
from .tape import Tape, add_in_any_order, watchers

#: How far results of a function that runs again may be from the first ones, in parts of their size, where sums come in another order each time. Chosen, not measured.
_SAME_RESULT = 1e-3


def torch_function(function, outputs):
    """A function of tensors that torch differentiates, made of a kernel or of a function that calls kernels.

    ``outputs`` is called with the arguments and gives the tensors that the results are written to, one or a tuple; ``function`` is called with
    the arguments and then these. On the way back, a kernel's ``grad`` is called; a function runs again in a ``Tape``, so that what it keeps in fields or
    ndarrays is its own, and only has to be a function of its arguments. Arguments that are no tensors are handed on.

    Outputs may hold something: ``lambda x: x.clone()`` for a kernel that adds to it. They share no memory with the arguments, which are not written.
    Derivatives of gradients, torch's forward mode, and the transforms of ``torch.func`` (``vmap``, ``grad``, ``jvp``) are refused;
    ``torch.compile`` calls the function as it is, between what it compiles.

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
        _require_no_transform(torch, args)
        _require_no_hidden_tensors(args)
        made = outputs(*args)
        results = made if isinstance(made, tuple) else (made,)
        for result in results:
            if not isinstance(result, torch.Tensor):
                raise TypeError(f"outputs gives a tensor or a tuple of tensors, not {type(result).__name__}")
        _require_apart(args, results)
        found = _autograd().apply(function, run, len(results), *args, *results)
        return found if isinstance(made, tuple) else found[0]

    run = _Runs(function)
    torch = sys.modules.get("torch")
    # What torch compiles is cut there.
    disable = getattr(getattr(torch, "compiler", None), "disable", None)
    return call if disable is None else disable(call)


@functools.cache
def _autograd():
    import torch  # pyright: ignore[reportMissingImports]

    class OctantsFunction(torch.autograd.Function):
        @staticmethod
        def forward(ctx, function, run, count, *args):
            args, results = args[:-count], tuple(result.detach() for result in args[-count:])
            needs = any(ctx.needs_input_grad)
            # The derivative of a kernel of tensors and numbers takes what it has written; what runs again takes what was there before.
            held = [result.clone() for result in results] if needs and run.again(args) else []
            before = [_version(arg) for arg in args]
            log = WriteLog()
            log.open()
            try:
                run(*(arg.detach() if isinstance(arg, torch.Tensor) else arg for arg in args), *results)
            finally:
                log.close()
            if needs and before != [_version(arg) for arg in args]:
                raise _refused(
                    "the function of a torch_function has written one of its arguments by an operation of torch",
                    _INPUT_HELP,
                )
            if needs and any(isinstance(arg, torch.Tensor) and log.writer_since(arg, 0) for arg in args):
                raise _refused("the function of a torch_function has written one of its arguments", _INPUT_HELP)
            for result in results:
                _count_write(result)
            if not (needs and run.again(args)):
                held = []
            ctx.function, ctx.count, ctx.held = function, count, len(held)
            ctx.others = [None if isinstance(arg, torch.Tensor) else arg for arg in args]
            ctx.is_tensor = [isinstance(arg, torch.Tensor) for arg in args]
            ctx.save_for_backward(*(arg for arg in args if isinstance(arg, torch.Tensor)), *results, *held)
            ctx.mark_non_differentiable(*(result for result in results if not result.is_floating_point()))
            return results

        @staticmethod
        def backward(ctx, *adjoints):
            _require_no_transform(torch, adjoints)
            saved = ctx.saved_tensors
            found = _WayBack.apply(ctx, len(saved), *saved, *adjoints)
            return (None, None, None, *found)

        @staticmethod
        def jvp(ctx, *tangents):
            raise _refused(
                "a torch_function has no derivatives in torch's forward mode (jvp)",
                "use backward, or oc.ad.FwdMode with fields or ndarrays",
            )

    class _WayBack(torch.autograd.Function):
        """What goes back. It has no derivative, and says so to who asks for one."""

        @staticmethod
        def forward(ctx, of, count, *tensors):
            saved, adjoints = tensors[:count], tensors[count:]
            inputs = len(saved) - of.count - of.held
            tensors, results, held = saved[:inputs], saved[inputs : inputs + of.count], saved[inputs + of.count :]
            needed = of.needs_input_grad[3 : 3 + len(of.others)]
            remaining, args = iter(tensors), []
            for other, is_tensor, needs in zip(of.others, of.is_tensor, needed, strict=True):
                arg = next(remaining).detach() if is_tensor else other
                args.append(arg.requires_grad_() if is_tensor and needs else arg)
            with torch.no_grad():
                if not of.held:
                    outputs = [_seeded(result, adjoint) for result, adjoint in zip(results, adjoints, strict=True)]
                    of.function.grad(*args, *outputs)
                else:
                    outputs = _go_back(of.function, args, held, results, adjoints)
            return tuple(
                one.grad if isinstance(one, torch.Tensor) and one.requires_grad else None for one in (*args, *outputs)
            )

        @staticmethod
        def backward(ctx, *_):
            raise _refused(
                "a torch_function has no second derivatives: its gradients were to be differentiated",
                "leave create_graph=True out, or take the gradients as constants by detach(); oc.ad.hessian_vector_product has second derivatives of "
                "fields and ndarrays",
            )

    return OctantsFunction


class _Runs:
    """Runs a kernel or a function, and knows whether it is to run again on the way back."""

    def __init__(self, function):
        self.function = function
        self.is_kernel = isinstance(function, (Kernel, BoundKernel))
        #: Of a kernel: whether it uses nothing but what it is given, as far as is known. None before the first run.
        self.is_of_arguments: bool | None = None

    def again(self, args) -> bool:
        """Whether the way back has to see that all is as it was: a function may keep anything, and a kernel may read what others change."""
        plain = all(arg is None or isinstance(arg, (bool, int, float, str)) or is_torch(arg) for arg in args)
        return not (self.is_kernel and plain and self.is_of_arguments is True)

    def __call__(self, *args) -> None:
        if not self.is_kernel:
            self.function(*args)
            return
        check, bound = StepCheck(), isinstance(self.function, BoundKernel)
        kernel = self.function.__func__ if bound else self.function
        kernel._launch((self.function.__self__, *args) if bound else args, None, False, check)
        self.is_of_arguments = not (bound or check.uses_session)


_INPUT_HELP = "write to outputs, or to a copy: torch goes back with the arguments as they were"


def _refused(text: str, help: str) -> Exception:
    return refusal("OC1104", text, help)


def _require_no_transform(torch, args) -> None:
    """Refuses what torch transforms: vmap, and its own derivatives of functions."""
    active = getattr(torch._C, "_are_functorch_transforms_active", None)
    if (active is not None and active()) or any(is_torch(one) and _is_batched(one) for one in args):
        raise _refused(
            "a torch_function does not take part in torch.func's transforms (vmap, grad, jvp, jacrev) or in batched gradients",
            "call it once for each item, or give the kernel an axis for the batch; use backward or torch.autograd.grad for gradients",
        )


def _is_batched(tensor) -> bool:
    """Whether it stands for one tensor of many."""
    try:
        tensor.data_ptr()
    except (RuntimeError, NotImplementedError):
        return True
    return False


def _require_no_hidden_tensors(args) -> None:
    """Refuses tensors with gradients that torch does not see as arguments."""
    for arg in args:
        inside = arg.values() if isinstance(arg, dict) else arg if isinstance(arg, (list, tuple)) else ()
        if any(is_torch(one) and one.requires_grad for one in inside):
            raise _refused(
                f"an argument of a torch_function is a {type(arg).__name__} with tensors that require gradients, which torch does not look into",
                "pass each tensor as an argument of its own",
            )


def _require_apart(args, results) -> None:
    """Refuses outputs that lie where arguments or other outputs do."""
    for number, result in enumerate(results):
        for other in (*args, *results[:number]):
            if is_torch(other) and other.device == result.device and _overlap(other, result):
                raise _refused(
                    "an output of a torch_function shares memory with an argument or with another output",
                    "let `outputs` make new tensors: torch.zeros_like(x), or x.clone() if the kernel goes on from what is there",
                )


def _overlap(one, other) -> bool:
    (begin, end), (first, last) = _range(one), _range(other)
    if not (begin < last and first < end):
        return False
    log = WriteLog()
    log.note(one, "")
    return log.writer_since(other, 0) is not None


def _range(tensor) -> tuple[int, int]:
    """The lowest byte, and the end of the highest."""
    try:
        begin = tensor.data_ptr()
    except (RuntimeError, NotImplementedError):
        # One that is nowhere is refused where the kernel takes it.
        begin = 0
    if not begin or not tensor.numel():
        return begin, begin
    reach = sum(stride * (extent - 1) for stride, extent in zip(tensor.stride(), tensor.shape, strict=True))
    return begin, begin + (reach + 1) * tensor.element_size()


def _version(arg) -> int:
    """How many operations in place torch has counted."""
    return arg._version if is_torch(arg) and not (hasattr(arg, "is_inference") and arg.is_inference()) else 0


def _count_write(tensor) -> None:
    """Lets torch count a write of a kernel, so that who has saved what was there finds out."""
    if not (hasattr(tensor, "is_inference") and tensor.is_inference()):
        # An operation in place of another tensor of the same memory, which moves nothing.
        tensor.detach().unsqueeze_(0)


def _seeded(result, adjoint):
    """An output with its gradients."""
    result = result.detach()
    if result.is_floating_point():
        from .._arrays.torch_tensors import gradients_of

        gradients = gradients_of(result.requires_grad_())
        if gradients is not None and adjoint is not None:
            gradients.copy_(adjoint)
    return result


def _go_back(function, args: list, held, results, adjoints) -> list:
    """Runs a function again in a tape, and back."""
    outputs = [one.clone().requires_grad_(one.is_floating_point()) for one in held]
    import torch  # pyright: ignore[reportMissingImports]

    known = (*args, *outputs)
    # What torch computes of arguments requires gradients, too.
    with torch.enable_grad(), _Again(known) as tape:
        function(*args, *outputs)
    _require_same(function, args, held, results, outputs, tape)
    tape._clear_arrays()
    tape.clear_gradients = False
    for output, adjoint in zip(outputs, adjoints, strict=True):
        _seeded_in_place(output, adjoint)
    tape.grad()
    return outputs


def _seeded_in_place(output, adjoint) -> None:
    if output.requires_grad:
        from .._arrays.torch_tensors import gradients_of

        gradients = gradients_of(output)
        if gradients is not None and adjoint is not None:
            gradients.copy_(adjoint)


def _require_same(function, args: list, held, results, outputs, tape: Tape) -> None:
    """Refuses a function that gives something else when it runs again."""
    import torch  # pyright: ignore[reportMissingImports]

    def same(ones, others) -> bool:
        pairs = zip(ones, others, strict=True)
        return all(torch.equal(one.detach().nan_to_num(), other.detach().nan_to_num()) for one, other in pairs)

    if same(results, outputs):
        return
    again = [one.clone() for one in held]
    function(*(arg.detach() if is_torch(arg) else arg for arg in args), *again)
    is_close = all(
        torch.allclose(one.detach().double(), other.detach().double(), rtol=_SAME_RESULT, atol=1e-6, equal_nan=True)
        for one, other in zip(results, outputs, strict=True)
    )
    kernels = [call.called for call in tape.calls if isinstance(call.called, Kernel)]
    kernels += [kernel for call in tape.calls for kernel in call.kernels.values()]
    # The same twice, and not what it was: something has changed. Another one each time, or one that has sums, and close: sums in another order.
    if (same(again, outputs) and not add_in_any_order(kernels)) or not is_close:
        raise refusal(
            "OC1105",
            "the function of a torch_function has come to other results when it ran again on the way back: it reads what the host or another kernel has changed "
            "since, or draws random numbers",
            "pass as arguments what the function depends on, and draw random numbers before",
        )


class _Again(Tape):
    """A function that runs again. Gradients go to its arguments alone."""

    def __init__(self, known):
        super().__init__()
        self._known = {id(one) for one in known}

    def _call(self, kernel, args: tuple, kwargs: dict | None):
        import torch  # pyright: ignore[reportMissingImports]

        self._require_known(arrays_in((*args, *(kwargs or {}).values())))
        with torch.no_grad():
            result = super()._call(kernel, args, kwargs)
        record = self.calls[-1].record
        self._require_known(record.arrays if record is not None else ())
        return result

    def _require_known(self, arrays) -> None:
        if any(is_torch(one) and one.requires_grad and id(one) not in self._known for one in arrays):
            raise _refused(
                "a kernel of a torch_function took a tensor that requires gradients and is no argument of the function, but a view of one, or computed by torch, or none at all",
                "pass the tensor as an argument, views and all, or its detach() as a constant",
            )
