"""How values of the host are compared with numpy's, for the tests of vectors, matrices and `oc.math` there."""

import numpy as np

import octants as oc

EPS = {"f32": 2.0**-23, "f64": 2.0**-52}


def same(value, expected, tolerance=0.0):
    array = value.to_numpy() if isinstance(value, oc.Matrix) else np.asarray(value)
    expected = np.asarray(expected)
    assert array.shape == expected.shape
    np.testing.assert_allclose(array.astype(float), expected.astype(float), rtol=tolerance, atol=tolerance)
