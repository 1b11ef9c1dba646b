"""What a signal's handler raises while a launch fails, or while its results are written out, is raised; the launch's own error is its context."""

import os
import signal
import sys

import numpy as np
import pytest

import octants as oc

pytestmark = pytest.mark.host_devices("signals and arrays of the host")


class Rang(Exception):
    pass


@pytest.fixture
def ring():
    """Sends a signal to this process, whose handler raises."""

    def handler(*_):
        raise Rang

    def send():
        os.kill(os.getpid(), signal.SIGALRM)
        # Handlers run between two instructions of Python.
        for _ in range(1000):
            pass

    before = signal.signal(signal.SIGALRM, handler)
    yield send
    signal.signal(signal.SIGALRM, before)


@pytest.fixture
def debug(arch):
    oc.init(arch=oc.cfg.arch, debug=True, log_level="error")


def test_in_what_takes_the_printed_text(debug, ring, monkeypatch):
    @oc.kernel
    def k(n: oc.i32):
        for i in range(4):
            print(i)
            assert i < n

    class Out:
        def write(self, text):
            ring()
            return len(text)

        def flush(self):
            pass

    with pytest.raises(Rang) as raised, monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", Out())
        k(0)
    assert isinstance(raised.value.__context__, oc.OctantsAssertionError)
    with pytest.raises(Rang) as raised, monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", Out())
        k(4)
    assert raised.value.__context__ is None


def test_while_a_copy_of_an_argument_is_copied_back(debug, ring, monkeypatch):
    @oc.kernel
    def k(a: oc.types.ndarray(oc.i32, 1), n: oc.i32):
        for i in a:
            a[i] = i
            assert i < n

    copied = []

    def copyto(*arguments):
        copied.append(arguments)
        ring()

    unaligned = np.frombuffer(bytearray(17), np.int32, 4, offset=1)
    k(unaligned, 9)
    assert unaligned.tolist() == [0, 1, 2, 3]
    with pytest.raises(Rang) as raised, monkeypatch.context() as patch:
        patch.setattr(np, "copyto", copyto)
        k(unaligned, 0)
    assert copied
    assert isinstance(raised.value.__context__, oc.OctantsAssertionError)
