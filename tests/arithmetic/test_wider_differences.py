"""Sums and differences of 64 bits, one of whose operands was computed in 32, and has words that are zero.

An assembler of NVIDIA's lost the carry of a difference from the upper half of a product, which divisions by constants are made of.
"""

import numpy as np
import pytest

import octants as oc

N = 96


@pytest.mark.parametrize("wide", [np.int64, np.uint64])
def test_differences_of_64_bits_from_what_32_bits_computed(arch, wide):
    w = {np.int64: oc.i64, np.uint64: oc.u64}[wide]
    divisors = (3, 7, 31, 641, 1000003)

    @oc.kernel
    def go(
        u: oc.types.NDArray[oc.u32, 1],
        s: oc.types.NDArray[oc.i32, 1],
        y: oc.types.NDArray[w, 1],
        m: oc.u32,
        found: oc.types.NDArray[w, 2],
    ):
        for i in u:
            for k, d in oc.static(enumerate(divisors)):
                found[i, 8 * k] = oc.cast(u[i] // oc.u32(d), w) - y[i]
                found[i, 8 * k + 1] = y[i] - oc.cast(u[i] // oc.u32(d), w)
                found[i, 8 * k + 2] = oc.cast(s[i] // d, w) - y[i]
                found[i, 8 * k + 3] = oc.cast(oc.cast(s[i] // d, oc.u32), w) - y[i]
                found[i, 8 * k + 4] = oc.cast(u[i] // oc.u32(d), w) + y[i]
                found[i, 8 * k + 5] = oc.cast(u[i] // oc.u32(d), w) - (y[i] & oc.cast(1, w))
                found[i, 8 * k + 6] = oc.cast(u[i] % oc.u32(d), w) - y[i]
                upper = oc.cast(oc.cast(u[i], oc.u64) * oc.cast(m + oc.u32(d), oc.u64) >> oc.u64(32), w)
                found[i, 8 * k + 7] = upper - y[i]

    rng = np.random.default_rng(5)
    u = rng.integers(0, 2**32, N, np.uint32)
    u[:6] = 0, 1, 30, 31, 2**31, 2**32 - 1
    s = u.view(np.int32)
    y = rng.integers(0, 2, N).astype(wide) << wide(32)
    y[::3] += rng.integers(0, 3, len(y[::3])).astype(wide)
    found = np.zeros((N, 8 * len(divisors)), wide)
    m = 12345
    go(u, s, y, m, found)

    for k, d in enumerate(divisors):
        quotient, signed = u // np.uint32(d), s.astype(np.int64) // d
        upper = (u.astype(np.uint64) * np.uint64(m + d)) >> np.uint64(32)
        wanted = [
            quotient.astype(wide) - y,
            y - quotient.astype(wide),
            signed.astype(wide) - y,
            signed.astype(np.uint32).astype(wide) - y,
            quotient.astype(wide) + y,
            quotient.astype(wide) - (y & wide(1)),
            (u % np.uint32(d)).astype(wide) - y,
            upper.astype(wide) - y,
        ]
        for form, values in enumerate(wanted):
            np.testing.assert_array_equal(found[:, 8 * k + form], values, err_msg=f"form {form}, divided by {d}")
