"""Small programs whose meaning was settled by running them elsewhere too."""

import numpy as np
import pytest

import octants as oc

OUT = oc.types.ndarray(dtype=oc.f32, ndim=1)


def test_a_number_fills_a_slice_or_a_swizzle(arch):
    @oc.kernel
    def k(out: OUT):
        v = oc.Vector([1.0, 2.0, 3.0])
        m = oc.Matrix([[1.0, 2.0], [3.0, 4.0]])
        v.xz = 7
        m[:, 1] = 5.0
        for i in oc.static(range(3)):
            out[i] = v[i]
        for i, j in oc.static(oc.ndrange(2, 2)):
            out[3 + 2 * i + j] = m[i, j]

    out = np.zeros(7, dtype=np.float32)
    k(out)
    assert out.tolist() == [7, 2, 7, 1, 5, 3, 5]


@pytest.mark.parametrize("at", [-1, 3])
def test_debug_mode_checks_indices_of_vectors(arch, at):
    oc.init(arch=getattr(oc, arch), debug=True, log_level="error")

    @oc.kernel
    def k(out: OUT, i: oc.i32):
        v = oc.Vector([1.0, 2.0, 3.0])
        v[i] += 1
        out[0] = v[i]

    out = np.zeros(1, dtype=np.float32)
    k(out, 2)
    assert out[0] == 4
    with pytest.raises(AssertionError, match=f"index {at} is out of bounds of an axis with 3 entries"):
        k(out, at)
