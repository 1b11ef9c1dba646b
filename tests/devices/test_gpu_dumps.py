"""The code for NVIDIA's GPUs as text, which every machine shows."""

import importlib.util
import shutil
from pathlib import Path

import numpy as np
import pytest

import octants as oc

pytestmark = pytest.mark.no_device


def has_tools():
    packages = importlib.util.find_spec("nvidia")
    folders = (
        [str(path) for place in packages.submodule_search_locations for path in Path(place).glob("*/bin")]
        if packages
        else []
    )
    return all(
        shutil.which(name) or any(shutil.which(name, path=one) for one in folders) for name in ("ptxas", "nvdisasm")
    )


def compiled(**options):
    oc.init(arch=oc.cpu, log_level="error", **options)

    @oc.kernel
    def scale(x: oc.types.ndarray(dtype=oc.f32, ndim=1), a: oc.f32) -> oc.f32:
        total = 0.0
        for i in x:
            x[i] = a / oc.sin(x[i])
            total += x[i]
        return total

    scale(np.ones(4, dtype=np.float32), 2.0)
    return scale


def test_ptx_is_complete_and_for_the_capability():
    scale = compiled()
    text = scale.dump("ptx", capability=80)
    assert ".target sm_80" in text
    assert "scale_t0(" in text
    assert ".extern" not in text
    assert ".target sm_90" in scale.dump("ptx")


def test_a_capability_that_llvm_does_not_know_is_shown_as_an_older_one():
    assert ".target sm_90" in compiled().dump("ptx", capability=120)


@pytest.mark.parametrize("fast_math", [True, False])
def test_quotients_in_ptx_are_correctly_rounded(fast_math):
    text = compiled(fast_math=fast_math).dump("ptx")
    assert "div.rn.f32" in text and "div.full" not in text


@pytest.mark.parametrize("limit", [None, 1 << 20])
def test_the_code_of_a_gradient_that_keeps_values_is_shown(limit):
    """Whether the session's device has memory for them in its threads or in arrays."""
    oc.init(arch=oc.cpu, log_level="error", **({} if limit is None else {"tape_memory_limit": limit}))

    @oc.kernel
    def iterate(x: oc.types.ndarray(dtype=oc.f32, ndim=1), y: oc.types.ndarray(dtype=oc.f32, ndim=1)):
        for i in x:
            v = x[i]
            for _ in range(9):
                v = v * v
            y[i] = v

    x, y = (oc.ndarray(oc.f32, 4, needs_grad=True) for _ in range(2))
    iterate.grad(x, y)
    assert "tape<f32>" in iterate.dump("ir", grad=True)
    text = iterate.dump("ptx", grad=True)
    assert "iterate_grad_t0(" in text and "iterate_t0(" not in text


def test_wrong_questions_are_refused():
    scale = compiled()
    with pytest.raises(RuntimeError, match=r"compute capability 7\.0"):
        scale.dump("ptx", capability=60)
    with pytest.raises(TypeError, match="ptx and sass alone"):
        scale.dump("llvm", capability=90)
    with pytest.raises(ValueError, match="ptx and sass"):
        scale.dump("cubin")


def test_machine_code_is_shown():
    if not has_tools():
        pytest.skip("ptxas and nvdisasm are not installed")
    assert "EXIT" in compiled().dump("sass", capability=90)


def test_machine_code_without_the_tools_names_them(monkeypatch):
    scale = compiled()
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr("sys.path", [])
    with pytest.raises(RuntimeError, match="nvidia-cuda-nvdisasm"):
        scale.dump("sass")


def test_a_cpu_has_no_resources_to_count():
    scale = compiled()
    assert scale.resources() == []


ONE, TWO = oc.types.ndarray(dtype=oc.f32, ndim=1), oc.types.ndarray(dtype=oc.f32, ndim=2)


def ptx_of_gradient(kernel, shape):
    """The PTX of each task of the reverse kernel."""
    x, y = (oc.ndarray(oc.f32, shape, needs_grad=True) for _ in range(2))
    kernel(x, y)
    kernel.grad(x, y)
    return kernel.dump("ptx", capability=90, grad=True).split(".version")[1:]


def accesses(text):
    """Loads and stores of four elements each on the way that whole groups of points take."""
    return text.count("ld.global.nc.v4.f32") + text.count("ld.global.v4.f32"), text.count("st.global.v4.f32")


def test_points_of_a_body_that_branches_have_wide_accesses():
    oc.init(arch=oc.cpu, log_level="error")

    @oc.kernel
    def branches(x: ONE, y: ONE):
        for i in x:
            v = x[i] * 2.0
            if v > 1.0:
                v = oc.sin(v) * x[i]
            else:
                v = oc.exp(-v) / x[i]
            y[i] = v

    # `x`, `x.grad` and `y.grad` are loaded once each, and both gradients stored.
    (text,) = ptx_of_gradient(branches, 64)
    assert accesses(text) == (3, 2)
    assert accesses(branches.dump("ptx", capability=90)) == (1, 1)


def test_the_gradient_of_a_stencil_has_two_tasks():
    oc.init(arch=oc.cpu, log_level="error")

    @oc.kernel
    def stencil(x: TWO, y: TWO):
        for i, j in oc.ndrange((1, x.shape[0] - 1), (1, x.shape[1] - 1)):
            y[i, j] = x[i, j] * (x[i - 1, j] + x[i + 1, j] + x[i, j - 1] + x[i, j + 1])

    collecting, clearing = ptx_of_gradient(stencil, (64, 64))
    # Two rows of a thread: `y.grad` and `x` of four rows each, the sums of two.
    assert accesses(collecting) == (10, 2)
    assert "atom." not in collecting
    assert accesses(clearing) == (0, 1)
    assert ".shared" not in clearing
