"""Tensors of torch, from arrays and fields and back. Torch is imported when one is first asked for."""

from __future__ import annotations

import warnings

from .._matrix.promotion import numpy_type
from .._octants import host_only, tell_of_write
from ..exceptions import OctantsRuntimeError


def has_pytorch() -> bool:
    """Whether torch is there to be imported."""
    import importlib.util

    return importlib.util.find_spec("torch") is not None


def torch_type(dtype):
    """The torch type of an Octants type."""
    import torch  # pyright: ignore[reportMissingImports]

    return getattr(torch, numpy_type(dtype).name)


def torch_of(source, array, device, copy: bool | None, qd_stream=None):
    """The elements of an array or field as a tensor of torch's.

    ``array(copy)`` gives them as a numpy array, as ``to_numpy`` does, in the order of ``qd_stream``. ``copy=True`` gives a tensor of its own, ``None`` one that shares
    the memory if it can, ``False`` shares it or refuses.
    """
    import torch  # pyright: ignore[reportMissingImports]

    host_only("to_torch")
    wanted = None if device is None else torch.device(device)
    on_gpu = _gpu_of(source)
    if on_gpu is None:
        tensor = torch.from_numpy(array(copy))
    elif copy is True and (wanted is None or wanted.type != "cuda" or qd_stream is not None):
        tensor = torch.from_numpy(array(True))
    else:
        tensor = _on_gpu(torch, source, array, copy, wanted)
    if wanted is None or _same_device(tensor.device, wanted):
        return tensor
    if copy is False:
        raise ValueError(
            f"Zero-copy not available: the memory is on {tensor.device}, and the tensor is asked for on {wanted}"
        )
    return tensor.to(wanted)


def torch_alias(field):
    """A tensor that shares the memory of a field with one leaf, if it is the host's and dense, else ``None``."""
    import torch  # pyright: ignore[reportMissingImports]

    alias = field._alias()
    return None if alias is None or not alias.ndim else torch.from_numpy(alias)


def shared_on_host(array):
    """A tensor that shares the memory of an array, if that is the host's, else ``None``."""
    import torch  # pyright: ignore[reportMissingImports]

    try:
        kind, _ = array.__dlpack_device__()
    except BufferError:
        return None
    return torch.from_numpy(array.to_numpy(copy=False)) if kind == 1 else None


def _same_device(device, wanted) -> bool:
    """Whether a tensor's device is the one that was asked for; ``cuda`` without a number is any."""
    return device.type == wanted.type and wanted.index in (None, device.index)


def _on_gpu(torch, source, array, copy: bool | None, wanted):
    try:
        shared = torch.from_dlpack(source)
    except BufferError as error:
        if copy is False:
            raise ValueError(f"Zero-copy not available: {error}") from None
        return torch.from_numpy(array(True))
    return shared.clone() if copy is True else shared


def _gpu_of(source) -> int | None:
    """The number of the GPU that the memory is on, if it is on one that torch knows."""
    try:
        kind, number = source.__dlpack_device__()
    except BufferError:
        return None
    return number if kind == 2 else None


def set_from_torch(target, tensor, set_from_numpy, qd_stream=None) -> None:
    """Sets all elements from a tensor, from whichever device; its gradients are left behind."""
    import torch  # pyright: ignore[reportMissingImports]

    host_only("from_torch")
    if not isinstance(tensor, torch.Tensor):
        raise TypeError(f"from_torch takes a torch tensor, not {type(tensor).__name__}")
    tensor = tensor.detach()
    if qd_stream is None and tensor.is_cuda and _gpu_of(target) == tensor.device.index:
        shared = torch.from_dlpack(target)
        # Of reals that an integer has no room for, torch makes something else.
        is_cut_off = tensor.is_floating_point() and not shared.is_floating_point()
        if shared.shape == tensor.shape and not is_cut_off:
            tell_of_write(target, "from_torch")
            shared.copy_(tensor)
            torch.cuda.current_stream(tensor.device).synchronize()
            return
    tensor = tensor.cpu().resolve_conj().resolve_neg()
    # numpy has no such numbers.
    set_from_numpy((tensor.float() if tensor.dtype == torch.bfloat16 else tensor).numpy())


def give_gradients(tensor) -> None:
    """Gives a tensor that requires gradients some, which are zeros, if it has none and no two of its elements share memory."""
    if _known_gradients(tensor) is None and not _shares_elements(tensor):
        _set_zeros(tensor)
        if not tensor.is_leaf:
            # Kernels do not add to them by themselves: who passes the tensor to a derivative may take them for torch's.
            _known_gradients(tensor)._octants_made = True


def gradients_of(tensor):
    """The gradients of a tensor that requires some, zeros at first; ``None`` of another one. They lie in memory as its elements do."""
    if not tensor.requires_grad:
        return None
    gradients = _known_gradients(tensor)
    are_ours = gradients is None or getattr(gradients, "_octants_made", False)
    if are_ours and not tensor.is_leaf and not tensor.retains_grad and not _in_backward_pass():
        raise OctantsRuntimeError(
            "gradients of a tensor that torch has computed go back through torch: use oc.ad.torch_function, or pass tensor.detach() "
            "to take it as a constant, or set its grad to zeros to have them there"
        )
    if gradients is None:
        if _shares_elements(tensor):
            raise OctantsRuntimeError(
                "gradients of a tensor whose elements share memory (expand) would be sums: call contiguous() first"
            )
        _set_zeros(tensor)
        gradients = _known_gradients(tensor)
    if gradients.stride() != tensor.stride() and any(
        extent > 1 and one != other
        for extent, one, other in zip(tensor.shape, gradients.stride(), tensor.stride(), strict=True)
    ):
        raise ValueError(
            f"a tensor with strides {tensor.stride()} has gradients with strides {gradients.stride()}: make both contiguous, "
            "or set its grad to None"
        )
    return gradients.detach()


def _known_gradients(tensor):
    """``tensor.grad``, without torch's warning that it does not write there itself if the tensor is a result of its own."""
    if tensor.is_leaf:
        return tensor.grad
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return tensor.grad


def _in_backward_pass() -> bool:
    """Whether torch calls this while it computes gradients: what becomes of them is then up to a function of the user's own."""
    import torch  # pyright: ignore[reportMissingImports]

    if hasattr(torch._C, "_current_graph_task_id"):
        return torch._C._current_graph_task_id() != -1
    # Before torch 2: a function of the user's own runs without recording.
    return not torch.is_grad_enabled()


def _shares_elements(tensor) -> bool:
    """Whether elements of a tensor lie in the same place."""
    return any(extent > 1 and stride == 0 for extent, stride in zip(tensor.shape, tensor.stride(), strict=True))


def _set_zeros(tensor) -> None:
    """Sets the gradients of a tensor to zeros that lie in memory as its elements do."""
    import torch  # pyright: ignore[reportMissingImports]

    with torch.no_grad():
        tensor.grad = torch.empty_strided(
            tensor.size(), tensor.stride(), dtype=tensor.dtype, device=tensor.device
        ).zero_()
