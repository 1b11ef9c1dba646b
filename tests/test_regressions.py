"""Programs that once went wrong, each as small as it can be."""

import numpy as np

import octants as oc


def test_raw_division_and_logical_shift_of_numpy_integers_on_the_host():
    # The host took numpy's integers for reals, and every integer for one of 32 bits.
    quotient = oc.raw_div(np.int32(-7), np.int32(2))
    assert quotient == -3
    assert quotient.dtype == np.int32
    assert oc.raw_mod(np.int32(-7), np.int32(2)) == -1
    assert oc.bit_shr(np.int8(-1), np.int8(1)) == 127
    assert oc.bit_shr(np.int64(-1), 1) == 2**63 - 1
