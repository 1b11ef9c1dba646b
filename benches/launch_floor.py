"""What a launch on NVIDIA's GPUs costs beyond the driver's own call: `python benches/launch_floor.py`.

The driver's `cuLaunchKernel` is called by `ctypes`, with as many arguments as a kernel of ours has; what `ctypes` takes for itself, measured on
a function of the C library that does nothing with as many arguments, is taken off. Beside it stand launches of ours, less what Python takes to call a function of a compiled
module. Both only fill the queue: the GPU is waited for between rounds, and the least of many rounds counts.
"""

import ctypes
import operator
import time
from collections.abc import Callable

import octants as oc

#: Launches of a round: less than a queue of the driver holds, beyond which a launch waits for the GPU.
LAUNCHES = 256
ROUNDS = 300

PTX = b"""
.version 7.0
.target sm_70
.address_size 64
.visible .entry nothing(.param .u64 a, .param .u64 n, .param .f32 s, .param .u64 c)
{
    ret;
}
\0"""


def least(call: Callable[[], object], wait: Callable[[], object]) -> float:
    """Microseconds of one call, in the round that took least."""
    best = float("inf")
    for _ in range(ROUNDS):
        begin = time.perf_counter()
        for _ in range(LAUNCHES):
            call()
        best = min(best, time.perf_counter() - begin)
        wait()
    return best / LAUNCHES * 1e6


def driver_call() -> tuple[float, float]:
    """Microseconds of `cuLaunchKernel`, and of nothing at all, both by `ctypes`."""
    driver = ctypes.CDLL("libcuda.so.1")

    def check(status: int) -> None:
        if status != 0:
            raise SystemExit(f"the driver refuses: {status}")

    check(driver.cuInit(0))
    context, module, function = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
    check(driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0))
    check(driver.cuCtxSetCurrent(context))
    check(driver.cuModuleLoadData(ctypes.byref(module), PTX))
    check(driver.cuModuleGetFunction(ctypes.byref(function), module, b"nothing"))
    values = (ctypes.c_uint64(0), ctypes.c_uint64(64), ctypes.c_float(1.5), ctypes.c_uint64(0))
    pointers = (ctypes.c_void_p * len(values))(*(ctypes.addressof(value) for value in values))
    u32, pointer = ctypes.c_uint32, ctypes.c_void_p
    types = [pointer, u32, u32, u32, u32, u32, u32, u32, pointer, pointer, pointer]
    arguments = (function, 1, 1, 1, 64, 1, 1, 0, None, ctypes.cast(pointers, pointer), None)

    launch, nothing = driver.cuLaunchKernel, ctypes.CDLL(None).abs
    launch.argtypes = nothing.argtypes = types
    launched = least(lambda: launch(*arguments), driver.cuCtxSynchronize)
    empty = least(lambda: nothing(*arguments), lambda: None)
    check(driver.cuCtxSynchronize())
    return launched, empty


def our_calls() -> dict[str, float]:
    array = oc.types.ndarray(dtype=oc.f32, ndim=1)

    field = oc.field(oc.f32, 64)

    @oc.kernel
    def none():
        for i in field:
            field[i] += 1.0

    @oc.kernel
    def one(x: array):
        for i in x:
            x[i] += 1.0

    @oc.kernel
    def four(x: array, y: array, s: oc.f32, n: oc.i32):
        for i in range(n):
            y[i] = x[i] * s

    x, y = oc.ndarray(oc.f32, 64), oc.ndarray(oc.f32, 64)
    calls = {
        "no argument": lambda: none(),
        "one array": lambda: one(x),
        "two arrays, two numbers": lambda: four(x, y, 1.5, 64),
    }
    times = {}
    for name, call in calls.items():
        for _ in range(10):
            call()
        oc.sync()
        times[name] = least(call, oc.sync)
    return times


def main() -> None:
    oc.init(arch=oc.cuda, enable_fallback=False, log_level="error")
    ours = our_calls()
    launched, empty = driver_call()
    python = least(lambda: operator.index(1), lambda: None)
    bare = launched - empty
    print(f"cuLaunchKernel: {bare:.2f} us ({launched:.2f} by ctypes, of which {empty:.2f} are its own)")
    for name, time_of in ours.items():
        print(f"{name:24} {time_of - python:.2f} us, {time_of - python - bare:+.2f} us beside the driver's own")


if __name__ == "__main__":
    main()
