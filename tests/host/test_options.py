"""Options of ``oc.init``, ``oc.cfg``, logging levels and dumps."""

import os

import pytest

import octants as oc
from octants._session import options


@pytest.mark.no_device
def test_every_option_is_accepted_and_shown():
    for name, default in (options.MEANINGFUL | options.INERT).items():
        if default is not None and name not in ("offline_cache_file_path",):
            oc.init(arch=oc.cpu, **{"log_level": "error"} | {name: default if name != "log_level" else "error"})
            assert getattr(oc.cfg, name) == (default if name != "log_level" else "error")


@pytest.mark.no_device
def test_the_number_of_threads_is_shown():
    for given, shown in (({}, len(os.sched_getaffinity(0))), ({"cpu_max_num_threads": 3}, 3)):
        oc.init(arch=oc.cpu, log_level="error", **given)
        assert oc.cfg.cpu_max_num_threads == shown


@pytest.mark.no_device
def test_unknown_options():
    with pytest.raises(KeyError, match="did you mean fast_math"):
        oc.init(fast_maths=True)
    with pytest.raises(KeyError, match="derived"):
        oc.init(default_up=oc.u32)


@pytest.mark.no_device
def test_cfg_is_a_live_view(capsys):
    oc.init(arch=oc.cpu, default_fp=oc.f64, random_seed=7, log_level="error")
    assert oc.cfg.default_fp is oc.f64 and oc.cfg.default_up is oc.u32 and oc.cfg.random_seed == 7
    with pytest.raises(AttributeError, match="belongs to the session"):
        oc.cfg.fast_math = False
    assert oc.cfg.raise_on_templated_floats is False

    @oc.kernel
    def read(x: oc.template()) -> oc.f32:
        return x

    assert read(0.5) == 0.5
    oc.cfg.raise_on_templated_floats = True
    with pytest.raises(ValueError, match="raise_on_templated_floats"):
        read(0.5)
    with pytest.raises(AttributeError, match="no option"):
        oc.cfg.fast_maths = False
    oc.dump_compile_config()
    shown = capsys.readouterr().out
    assert "random_seed = 7" in shown and "fast_math = True" in shown
    oc.reset()
    assert oc.cfg is None


@pytest.mark.no_device
def test_the_environment_sets_options(monkeypatch):
    monkeypatch.setenv("OC_UNROLLING_LIMIT", "5")
    oc.init(arch=oc.cpu, log_level="error")
    assert oc.cfg.unrolling_limit == 5
    with pytest.warns(UserWarning, match="OC_UNROLLING_LIMIT"):
        oc.init(arch=oc.cpu, log_level="error", unrolling_limit=9)
    assert oc.cfg.unrolling_limit == 9
    assert "OC_UNROLLING_LIMIT" in os.environ


@pytest.mark.no_device
def test_logging_levels(capsys):
    oc.init(arch=oc.cpu, log_level="warn")
    assert not oc.is_logging_effective(oc.INFO) and oc.is_logging_effective(oc.ERROR)
    assert capsys.readouterr().out == ""
    oc.set_logging_level(oc.TRACE)
    assert oc.is_logging_effective(oc.DEBUG)
    oc.init(arch=oc.cpu, log_level="info")
    assert "arch=cpu" in capsys.readouterr().out
    with pytest.raises(ValueError, match="logging level"):
        oc.set_logging_level("loud")


@pytest.mark.host_devices("the words of native code")
@pytest.mark.parametrize(
    ("option", "sign"),
    [
        ("print_ir", "parallel_for"),
        ("print_kernel_llvm_ir", "define void"),
        ("print_kernel_llvm_ir_optimized", "define"),
        ("print_kernel_asm", "ret"),
    ],
)
def test_dumps(option, sign, capfd):
    oc.init(arch=oc.cpu, log_level="error", **{option: True})

    @oc.kernel
    def dumped(n: oc.i32, x: oc.types.ndarray(dtype=oc.f32, ndim=1)):
        for i in range(n):
            x[i] = 1

    dumped(3, oc.ndarray(oc.f32, 3))
    shown = capfd.readouterr().out
    assert "dumped" in shown and sign in shown
    dumped(3, oc.ndarray(oc.f32, 3))
    assert capfd.readouterr().out == ""


def test_extensions():
    assert oc.is_extension_enabled(oc.extension.data64) and oc.is_extension_enabled(oc.extension.assertion)
    assert oc.is_extension_enabled(oc.extension.quant) and oc.is_extension_enabled(oc.extension.quant_basic)
    assert not oc.is_extension_enabled(oc.extension.bls)
    with pytest.raises(TypeError):
        oc.is_extension_enabled("data64")


def test_checks_of_indices_alone(arch):
    oc.init(arch=getattr(oc, arch), check_out_of_bound=True, log_level="error")

    @oc.kernel
    def run(x: oc.types.ndarray(dtype=oc.i32, ndim=1), i: oc.i32):
        assert i == 0
        x[i] = 1

    x = oc.ndarray(oc.i32, 4)
    run(x, 3)
    assert x[3] == 1
    with pytest.raises(oc.OctantsAssertionError, match="index .*4.* is out of bounds"):
        run(x, 4)
