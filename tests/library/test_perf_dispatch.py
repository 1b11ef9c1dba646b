"""``oc.perf_dispatch``: several implementations under one name."""

import time

import pytest

import octants as oc


def dispatcher(**options):
    @oc.perf_dispatch(get_geometry_hash=lambda x: x.shape, **options)
    def fill(x): ...

    return fill


def record(fill, calls, name, seconds, **options):
    def implementation(x):
        calls.append(name)
        time.sleep(seconds)
        return name

    implementation.__name__ = name
    return fill.register(implementation, **options)


def test_the_fastest_kernel_is_chosen(arch):
    fill = dispatcher()

    @fill.register
    @oc.kernel
    def quick(x: oc.types.NDArray[oc.i32, 1]):
        for i in x:
            x[i] += 1

    @fill.register(is_compatible=lambda x: x.shape[0] > 2)
    @oc.kernel
    def slow(x: oc.types.NDArray[oc.i32, 1]):
        oc.loop_config(serialize=True)
        for _ in range(200):
            for i in range(x.shape[0]):
                x[i] += 1
                x[i] -= 1
        for i in x:
            x[i] += 1

    x, y = oc.ndarray(oc.i32, 400), oc.ndarray(oc.i32, 2)
    for _ in range(6):
        fill(x)
    fill(y)
    assert x[399] == 6 and y[1] == 1


@pytest.mark.no_device
def test_turns_then_the_choice_and_anew_after_some_calls():
    calls = []
    fill = dispatcher(first_warmup=1, warmup=0, active=2, repeat_after_count=3)
    record(fill, calls, "slow", 0.02)
    record(fill, calls, "quick", 0.0)
    x = oc.ndarray(oc.i32, 4)
    assert [fill(x) for _ in range(6)] == ["slow", "quick"] * 3
    assert [fill(x) for _ in range(2)] == ["quick"] * 2
    # The third call since the choice begins anew, without warming up.
    assert [fill(x) for _ in range(4)] == ["slow", "quick"] * 2
    assert fill(x) == "quick"
    other = oc.ndarray(oc.i32, 5)
    assert [fill(other) for _ in range(2)] == ["slow", "quick"], "another geometry has turns of its own"


@pytest.mark.no_device
def test_the_only_compatible_one_is_called_at_once():
    calls = []
    fill = dispatcher(repeat_after_seconds=0)
    record(fill, calls, "small", 0.0, is_compatible=lambda x: x.shape[0] < 3)
    record(fill, calls, "large", 0.0, is_compatible=lambda x: x.shape[0] > 5)
    small, large = oc.ndarray(oc.i32, 2), oc.ndarray(oc.i32, 6)
    assert [fill(small), fill(large), fill(large), fill(x=small), fill(small)] == [
        "small",
        "large",
        "large",
        "small",
        "small",
    ]
    with pytest.raises(oc.OctantsRuntimeError, match="No suitable functions were found"):
        fill(oc.ndarray(oc.i32, 4))


@pytest.mark.no_device
def test_other_parameters_than_the_prototypes_are_refused():
    fill = dispatcher()
    with pytest.raises(oc.OctantsSyntaxError, match="PERFDISPATCH_ANNOTATION_SEQUENCE_MISMATCH"):

        @fill.register
        def other(y): ...

    with pytest.raises(oc.OctantsSyntaxError, match="PERFDISPATCH_ANNOTATION_SEQUENCE_MISMATCH"):

        @fill.register
        def more(x, y): ...

    with pytest.raises(oc.OctantsSyntaxError, match="KERNEL_ANNOTATION_ORDER"):

        @oc.kernel
        @fill.register
        def upside_down(x: oc.types.ndarray()): ...


@pytest.mark.no_device
def test_the_environment_forces_an_implementation(monkeypatch, capsys):
    monkeypatch.setenv("OC_PERFDISPATCH_FORCE", "other:one, fill:slow")
    calls = []
    fill = dispatcher()
    record(fill, calls, "quick", 0.0)
    record(fill, calls, "slow", 0.0)
    x = oc.ndarray(oc.i32, 4)
    assert [fill(x) for _ in range(3)] == ["slow"] * 3
    assert "registered quick" in capsys.readouterr().out
    monkeypatch.delenv("OC_PERFDISPATCH_FORCE")
    monkeypatch.setenv("QD_PERFDISPATCH_FORCE", "fill:missing")
    fill = dispatcher()
    record(fill, calls, "quick", 0.0)
    assert fill(x) == "quick" and "there are quick" in capsys.readouterr().out
