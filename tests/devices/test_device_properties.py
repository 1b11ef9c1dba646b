"""What a device says of itself."""

import os
import threading

import numpy as np
import pytest

import octants as oc
from octants.simt import block


def test_a_device_says_what_it_is(arch):
    of = oc.device_properties()
    assert isinstance(of, oc.DeviceProperties) and of.arch is oc.cfg.arch
    assert of.name and of.subgroup_size == 32 and of.max_threads_per_block == 1024
    assert 1 <= of.cores and 1 <= of.max_blocks_per_core and 1 <= of.max_threads_per_core
    assert 48 << 10 <= of.shared_bytes_per_block <= of.max_shared_bytes_per_block <= of.shared_bytes_per_core
    assert 0 < of.free_memory_bytes <= of.total_memory_bytes
    if arch == "cuda":
        assert of.compute_capability >= (7, 0) and of.driver_version >= (11, 8)
        assert of.registers_per_block > 0 and of.registers_per_core > 0 and of.l2_bytes > 0
    else:
        assert of.compute_capability is None and of.driver_version is None
        assert of.registers_per_block == of.registers_per_core == 0


@pytest.mark.no_device
def test_the_cores_of_a_cpu_are_the_threads_that_run_loops():
    oc.init(arch=oc.cpu, cpu_max_num_threads=3)
    assert oc.device_properties().cores == 3


@pytest.mark.no_device
def test_asking_for_the_device_starts_a_session():
    oc.reset()
    assert oc.cfg is None
    assert oc.device_properties().arch is oc.cfg.arch
    oc.reset()
    oc.lang.impl.get_max_shared_memory_bytes(is_lowerbound_ok=True)
    assert oc.cfg is not None


@pytest.mark.no_device
def test_another_thread_resets_the_session_meanwhile():
    """The properties are those of one session, or it is said that it ended."""
    outcomes = []

    def ask():
        try:
            outcomes.append(oc.device_properties().arch.name)
        except oc.OctantsRuntimeError as error:
            outcomes.append("OC0804" if "OC0804" in str(error) else str(error))
        except BaseException as error:
            outcomes.append(repr(error))

    for _ in range(200):
        oc.init(arch=oc.cpu, log_level="error")
        thread = threading.Thread(target=ask)
        thread.start()
        oc.reset()
        thread.join()
    assert len(outcomes) == 200 and set(outcomes) <= {"cpu", "OC0804"}


@pytest.mark.no_device
def test_a_device_of_another_process_says_the_same():
    oc.init(arch=oc.remote)
    here = oc.device_properties()
    oc.init(arch=oc.remote, device_process=True)
    there = oc.device_properties()
    assert here._replace(free_memory_bytes=0) == there._replace(free_memory_bytes=0)


@pytest.mark.no_device
def test_memory_that_is_used_is_not_free():
    total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGESIZE")
    of = oc.device_properties()
    assert of.free_memory_bytes < of.total_memory_bytes and of.free_memory_bytes < 2 * total


def test_shared_arrays_may_take_what_the_device_says(arch):
    most = oc.device_properties().max_shared_bytes_per_block

    def kernel_of(words):
        @oc.kernel
        def last_of_block(x: oc.types.NDArray[oc.i32, 1]):
            oc.loop_config(block_dim=64)
            for i in range(128):
                shared = block.SharedArray(words, oc.i32)
                shared[words - 1 - i % 64] = i
                block.sync()
                x[i] = shared[words - 64 + i % 64]

        return last_of_block

    x = np.zeros(128, np.int32)
    kernel_of(most // 4)(x)
    assert (x == [63 - i % 64 + i // 64 * 64 for i in range(128)]).all()
    with pytest.raises(oc.OctantsCompilationError, match=f"a block has {most} bytes of shared memory"):
        kernel_of(most // 4 + 1)(x)
