# raises OctantsSyntaxError
import octants as oc

from contextlib import contextmanager

@contextmanager
def stream_parallel():
    yield

@oc.kernel
def f(x: oc.types.ndarray(dtype=oc.i32, ndim=1)):
    with stream_parallel():
        x[0] = 1

f(oc.ndarray(oc.i32, 4))
