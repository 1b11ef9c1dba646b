"""Sessions: options, defaults, the environment, interruption, where kernels may be defined."""

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest

import octants as oc

pytestmark = pytest.mark.no_device


def run(program: str, *, timeout=60, **environment) -> subprocess.CompletedProcess:
    env = {k: v for k, v in os.environ.items() if not k.startswith("OC_")} | environment
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, timeout=timeout, env=env
    )


def test_unknown_options():
    with pytest.raises(KeyError, match="did you mean fast_math"):
        oc.init(fast_maht=True)
    with pytest.raises(KeyError, match="derived"):
        oc.init(default_up=oc.u32)
    with pytest.raises(ValueError, match="default_fp"):
        oc.init(default_fp=oc.i32)
    with pytest.raises(TypeError, match="arch"):
        oc.init(arch="cpu")


def test_default_types():
    @oc.kernel
    def third() -> float:
        return 1 / 3

    oc.init(default_fp=oc.f64, log_level="error")
    assert third() == 1 / 3
    assert oc.cfg.default_fp is oc.f64
    oc.init(default_fp=oc.f32, log_level="error")
    assert third() == float(np.float32(1) / np.float32(3))
    assert oc.ndarray(float, 2).dtype is oc.f32


@pytest.mark.parametrize(
    "version", [oc.__version_str__, "0.1", "1.3.3", "1.0.0", "1.7.4", "v1.2", "1.3.0b1", "1.3.0.dev4+g1a2b3c"]
)
def test_versions_that_a_program_may_require(version):
    oc.init(require_version=version, default_fp=oc.f64, log_level="error")
    assert oc.cfg.default_fp is oc.f64


@pytest.mark.parametrize("version", [f"0.{oc.__version__[1] + 1}.0", "1.7.5", "1.8", "2.0.0", "0.1.99"])
def test_required_versions_that_this_is_not(version):
    with pytest.raises(Exception, match=f"requires version {version}"):
        oc.init(require_version=version)


@pytest.mark.parametrize("version", ["", "1", "new", "1.x", 1.3, (1, 3, 0)])
def test_required_versions_that_are_none(version):
    with pytest.raises(ValueError, match="require_version is a text such as"):
        oc.init(require_version=version)


def test_environment_variables():
    program = """
        import octants as oc
        oc.init()
        print(oc.cfg.arch, oc.cfg.debug, oc.cfg.default_ip)
    """
    done = run(program, OC_ARCH="reference", OC_DEBUG="1", OC_DEFAULT_IP="64")
    assert done.stdout.splitlines()[-1] == "oc.reference True i64", done.stderr
    assert "ValueError" in run(program, OC_DEFAULT_FP="16").stderr


def test_kernels_start_a_session_by_themselves():
    oc.reset()

    @oc.kernel
    def one() -> int:
        return 1

    assert one() == 1


def test_kernels_survive_a_reset():
    @oc.kernel
    def one() -> int:
        return 1

    assert one() == 1
    oc.reset()
    assert one() == 1


@pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="counts threads as Linux shows them")
def test_sessions_leave_no_threads_behind(tmp_path):
    """Kernels that were called in many sessions hold on to none of them, and kernels that nothing refers to are collected."""
    import gc
    import runpy
    import weakref

    module = tmp_path / "kernels.py"
    module.write_text(
        "import octants as oc\n\n\n@oc.kernel\ndef one() -> int:\n    total = 0\n"
        "    for i in range(100000):\n        total += 1\n    return total\n"
    )
    kept, dropped = [], []
    oc.init(cpu_max_num_threads=2, log_level="error")
    before = len(os.listdir("/proc/self/task"))
    for _ in range(20):
        oc.init(cpu_max_num_threads=2, log_level="error")
        kernel = runpy.run_path(str(module))["one"]
        assert kernel() == 100000
        kept.append(kernel)
        kernel = runpy.run_path(str(module))["one"]
        dropped.append(weakref.ref(kernel))
    del kernel
    gc.collect()
    assert not any(ref() for ref in dropped)
    assert len(os.listdir("/proc/self/task")) <= before + 8


def executable_mappings():
    """How many pieces of generated code are loaded: executable memory that belongs to no file."""
    with open("/proc/self/maps") as maps:
        return sum(1 for line in maps if " r-xp " in line and len(line.split()) == 5)


@pytest.mark.skipif(not os.path.exists("/proc/self/maps"), reason="counts mappings as Linux shows them")
def test_the_code_of_collected_kernels_is_freed(tmp_path):
    import gc
    import importlib.util

    kernels = "".join(f"@oc.kernel\ndef k{n}() -> oc.i32:\n    return {n} + START\n\n\n" for n in range(100))
    held = []
    before = executable_mappings()
    for generation in range(4):
        module = tmp_path / f"kernels{generation}.py"
        module.write_text(f"import octants as oc\n\nSTART = {1000 * generation}\n\n\n{kernels}")
        spec = importlib.util.spec_from_file_location(module.stem, module)
        loaded = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(loaded)
        assert [getattr(loaded, f"k{n}")() for n in range(100)] == [1000 * generation + n for n in range(100)]
        held.append(loaded.k0)
        del loaded
        gc.collect()
    # A few that were called last are kept, so that a function that defines a kernel can be called again.
    assert executable_mappings() - before <= 64 + 2 * len(held)
    assert [kernel() for kernel in held] == [0, 1000, 2000, 3000]


def test_a_kernel_that_is_defined_again_and_again_is_compiled_once():
    def call():
        @oc.kernel
        def seven() -> oc.i32:
            return 7

        assert seven() == 7
        return seven.compile_statistics()[0]

    first = call()
    assert all(call() == {**first, "lower_ms": first["lower_ms"]} for _ in range(3))


def test_threads_that_start_and_reset_sessions():
    """Every call works, or says that a session was reset under it."""

    @oc.kernel
    def add(a: oc.types.ndarray(ndim=1)):
        for i in a:
            a[i] += 1

    unexpected = []
    end = time.monotonic() + 1.5

    def use():
        while time.monotonic() < end:
            try:
                add(np.zeros(4, np.float32))
                array = oc.ndarray(oc.f32, 3)
                add(array)
                assert array.to_numpy().tolist() == [1, 1, 1]
            except oc.OctantsRuntimeError as error:
                if "reset" not in str(error):
                    unexpected.append(error)
            except Exception as error:
                unexpected.append(error)

    def restart():
        while time.monotonic() < end:
            oc.init(cpu_max_num_threads=2, log_level="error")
            time.sleep(0.001)
            oc.reset()

    threads = [threading.Thread(target=target) for target in (use, use, restart, restart)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not unexpected
    oc.init(log_level="error")
    array = np.zeros(4, np.float32)
    for _ in range(2):
        add(array)
    assert array.tolist() == [2, 2, 2, 2]
    assert len(add.compile_statistics()) == 1


def test_source_that_cannot_be_found():
    namespace = {"oc": oc}
    with pytest.raises(oc.OctantsSyntaxError, match="cannot be found"):
        exec("@oc.kernel\ndef f():\n    pass", namespace)


def test_kernels_typed_at_the_prompt():
    done = subprocess.run(
        [sys.executable, "-i"],
        input="import readline\nfor line in ['@oc.kernel', 'def two() -> int:', '    return 2']: readline.add_history(line)\n\n"
        "import octants as oc\n@oc.kernel\ndef two() -> int:\n    return 2\n\nprint('result', two())\n",
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert "result 2" in done.stdout, done.stderr


ENDLESS = {
    "parallel": "for i in range(2_000_000_000):\n        for j in range(1_000_000):\n            x[i % 4] += j % 3",
    "while": "n = 1\n    while n > 0:\n        n = n % 7 + 1\n    x[0] = n",
}


@pytest.mark.parametrize("kind", sorted(ENDLESS))
def test_ctrl_c_stops_an_endless_kernel(kind, tmp_path):
    program = tmp_path / "endless.py"
    program.write_text(
        # A process started in the background by a shell ignores the signal.
        "import signal\nimport octants as oc\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "oc.init(log_level='error')\n\n\n@oc.kernel\n"
        f"def endless(x: oc.types.ndarray(dtype=oc.i32, ndim=1)):\n    {ENDLESS[kind]}\n\n\n"
        "x = oc.ndarray(oc.i32, 4)\nprint('ready', flush=True)\ntry:\n    endless(x)\nexcept KeyboardInterrupt:\n"
        "    print('interrupted', x.shape, flush=True)\n"
    )
    child = subprocess.Popen([sys.executable, str(program)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert child.stdout.readline() == "ready\n"
        import time

        time.sleep(1.0)
        child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=30)
    finally:
        child.kill()
    assert "interrupted (4,)" in out, err


def test_import_does_not_import_large_modules():
    done = run("import octants as oc, sys; oc.init(); print({'numpy', 'hashlib', 'typing'} & {*sys.modules})")
    assert done.stdout.splitlines()[-1] == "set()", done.stderr


def test_explain_on_the_command_line():
    done = subprocess.run([sys.executable, "-m", "octants", "explain", "OC0201"], capture_output=True, text=True)
    assert done.returncode == 0 and "not defined" in done.stdout
    done = subprocess.run([sys.executable, "-m", "octants", "explain", "OC9999"], capture_output=True, text=True)
    assert done.returncode == 1


def test_the_collector_may_run_while_a_kernel_is_made():
    import gc

    def double(x: oc.i32) -> oc.i32:
        return 2 * x

    thresholds = gc.get_threshold()
    held, kernels = [], []
    try:
        for often in range(1, 60):
            gc.set_threshold(0)
            # Python keeps dicts for later: without any, a kernel's own is allocated anew, and the collector may run.
            held.append([{} for _ in range(100)])
            gc.set_threshold(often)
            kernels.append(oc.kernel(double))
    finally:
        gc.set_threshold(*thresholds)
    assert kernels[0](4) == 8
