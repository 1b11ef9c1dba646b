"""`oc.profiler`: what it counts, what it shows, and that recording changes nothing else."""

import json
import os
import re
import shutil
import subprocess
import sys
import threading
import time
import xml.dom.minidom
from pathlib import Path

import numpy as np
import pytest
from devices import INTERPRETED

import octants as oc

Floats = oc.types.ndarray(dtype=oc.f32, ndim=1)


@oc.kernel
def scale_and_shift(x: Floats, a: oc.f32):
    for i in x:
        x[i] = x[i] * a
    for i in x:
        x[i] = x[i] + 1.0


@oc.kernel
def first(x: Floats) -> oc.f32:
    return x[0]


@oc.kernel
def named(x: Floats):
    oc.loop_config(name="blur")
    for i in x:
        x[i] = 0.5 * x[i]


@pytest.fixture
def profiled(arch, monkeypatch):
    """A session that records, and an array in it."""
    # What is recorded of a compilation is all of it.
    monkeypatch.setenv("OC_OFFLINE_CACHE", "0")
    oc.init(arch=getattr(oc, arch), kernel_profiler=True, log_level="error")
    return oc.ndarray(oc.f32, 1000)


def tables(capsys):
    capsys.readouterr()
    oc.profiler.print_kernel_profiler_info()
    count = capsys.readouterr().out
    oc.profiler.print_kernel_profiler_info("trace")
    return count, capsys.readouterr().out


def events(tmp_path, kind="X"):
    """The events of the trace so far, each with its track's name."""
    path = tmp_path / "trace.json"
    oc.profiler.export_trace(path)
    return events_of(path, kind)


def events_of(path, kind="X"):
    text = json.loads(Path(path).read_text(encoding="utf-8"))["traceEvents"]
    tracks = {(e["pid"], e["tid"]): e["args"]["name"] for e in text if e["name"] == "thread_name"}
    return [e | {"track": tracks[e["pid"], e["tid"]]} for e in text if e["ph"] == kind]


def end(event):
    return event["ts"] + event["dur"]


def test_launches_are_counted_by_kernel(profiled):
    for _ in range(5):
        scale_and_shift(profiled, 2.0)
    first(profiled)
    counted = oc.profiler.query_kernel_profiler_info("scale_and_shift")
    assert counted.counter == 5
    assert 0 < counted.min <= counted.avg <= counted.max
    assert tuple(counted) == (counted.counter, counted.min, counted.max, counted.avg)
    assert oc.profiler.query_kernel_profiler_info("first").counter == 1
    assert oc.profiler.query_kernel_profiler_info("scale") == (0, 0.0, 0.0, 0.0)
    other = oc.profiler.query_kernel_profiler_info("first")
    together = (5 * counted.avg + other.avg) / 1e3
    assert oc.profiler.get_kernel_profiler_total_time() == pytest.approx(together, rel=1e-6)


def test_the_tables_name_every_task(profiled, arch, capsys):
    scale_and_shift(profiled, 2.0)
    scale_and_shift(profiled, 2.0)
    named(profiled)
    count, trace = tables(capsys)
    if arch == "reference":
        tasks = {"scale_and_shift_0_serial": 2, "named_0_serial": 1}
    else:
        tasks = {"scale_and_shift_0_range_for": 2, "scale_and_shift_1_range_for": 2, "named_0_range_for_blur": 1}
    rows = re.findall(r"^ *[\d.]+% +[\d.]+ s +(\d+)x \|.*\| (\w+)$", count, re.MULTILINE)
    assert {name: int(number) for number, name in rows} == tasks
    assert f"{sum(tasks.values())} tasks" in trace
    for name, number in tasks.items():
        assert len(re.findall(rf"\| {name}$", trace, re.MULTILINE)) == number
    shares = [float(share) for share in re.findall(r"^ *([\d.]+)% .*x \|", count, re.MULTILINE)]
    assert sum(shares) == pytest.approx(100, abs=0.1)
    assert shares == sorted(shares, reverse=True)


def test_kernels_are_known_by_their_functions_names(profiled, capsys):
    @oc.data_oriented
    class Solver:
        @oc.kernel
        def step(self, x: Floats):
            for i in x:
                x[i] += 1.0

    @oc.kernel
    def step(x: Floats):
        for i in x:
            x[i] += 2.0

    Solver().step(profiled)
    step(profiled)
    assert oc.profiler.query_kernel_profiler_info("Solver.step").counter == 1
    assert oc.profiler.query_kernel_profiler_info("step").counter == 2
    assert oc.profiler.query_kernel_profiler_info("ep").counter == 0
    count, _ = tables(capsys)
    assert re.search(r"\| Solver\.step_0_", count) and re.search(r"\| step_0_", count)


def test_a_mode_that_does_not_exist_is_refused(profiled):
    with pytest.raises(ValueError, match='"count" or "trace", not \'all\''):
        oc.profiler.print_kernel_profiler_info("all")


def test_what_was_recorded_can_be_forgotten(profiled):
    scale_and_shift(profiled, 2.0)
    oc.profiler.clear_kernel_profiler_info()
    assert oc.profiler.query_kernel_profiler_info("scale_and_shift").counter == 0
    assert oc.profiler.get_kernel_profiler_total_time() == 0.0
    scale_and_shift(profiled, 2.0)
    assert oc.profiler.query_kernel_profiler_info("scale_and_shift").counter == 1


def test_a_new_session_begins_anew(profiled, arch):
    first(profiled)
    oc.init(arch=getattr(oc, arch), kernel_profiler=True, log_level="error")
    assert oc.profiler.query_kernel_profiler_info("first").counter == 0


def test_a_session_that_does_not_record_says_so_and_gives_defaults(arch, capsys):
    x = oc.ndarray(oc.f32, 8)
    first(x)
    calls = {
        oc.profiler.print_kernel_profiler_info: None,
        oc.profiler.clear_kernel_profiler_info: None,
        oc.profiler.get_kernel_profiler_total_time: 0.0,
        oc.profiler.print_summary: None,
        oc.profiler.set_kernel_profiler_toolkit: False,
        oc.profiler.set_kernel_profiler_metrics: None,
    }
    for call, default in calls.items():
        with pytest.warns(UserWarning, match=rf"{call.__name__}: .*kernel_profiler=True"):
            assert call() == default
    with pytest.warns(UserWarning, match="kernel_profiler=True"):
        assert oc.profiler.query_kernel_profiler_info("first") == (0, 0.0, 0.0, 0.0)
    assert capsys.readouterr().out == ""


def test_times_of_a_kernel_grow_with_its_work(profiled, arch):
    @oc.kernel
    def spin(x: Floats, n: oc.i32):
        for i in range(4):
            v = x[i]
            for _ in range(n):
                v = v * 0.5 + 1.0
            x[i] = v

    spin(profiled, 1)
    oc.profiler.clear_kernel_profiler_info()
    # The least of several: others may be at work on the device.
    for _ in range(5):
        spin(profiled, 10)
    few = oc.profiler.query_kernel_profiler_info("spin").min
    # A GPU takes ten microseconds for nothing.
    spin(profiled, 200_000 if arch in INTERPRETED else 4_000_000)
    assert oc.profiler.query_kernel_profiler_info("spin").max > 3 * few


def test_the_trace_has_launches_tasks_and_compilations_on_one_clock(profiled, arch, tmp_path):
    for _ in range(3):
        scale_and_shift(profiled, 2.0)
    spans = events(tmp_path)
    launches = [span for span in spans if span["cat"] == "launch"]
    tasks = [span for span in spans if span["cat"] == "task"]
    assert [span["name"] for span in launches] == 3 * ["scale_and_shift"]
    assert len(tasks) == (3 if arch == "reference" else 6)
    starts = {span["args"]["launch"]: span for span in launches}
    for task in tasks:
        launch = starts[task["args"]["launch"]]
        # Two clocks agree to some microseconds; what a GPU does comes later.
        assert task["ts"] >= launch["ts"] - 50
        assert task["track"] == "default stream"
    in_order = sorted(tasks, key=lambda task: task["ts"])
    assert all(end(a) <= b["ts"] + 0.002 for a, b in zip(in_order, in_order[1:])), "one stream does one thing at a time"
    compiled = {span["name"]: span for span in spans if span["track"] == "compile"}
    whole = compiled.pop("scale_and_shift")
    assert {"front end", "load"} <= set(compiled)
    if arch != "reference":
        assert {"passes", "emit", "LLVM", "split_tasks"} <= set(compiled)
        assert end(compiled["passes"]) <= compiled["emit"]["ts"] + 0.002
        assert end(compiled["emit"]) <= compiled["LLVM"]["ts"] + 0.002
        workers = [span for span in spans if span["track"].startswith("compile tasks ")]
        assert sorted(span["name"] for span in workers if span["name"].startswith("scale")) == [
            "scale_and_shift_t0",
            "scale_and_shift_t1",
        ]
        assert {"parse", "optimise", "generate"} <= {span["name"] for span in workers}
        for span in workers:
            assert compiled["LLVM"]["ts"] <= span["ts"] + 100 and end(span) <= end(compiled["LLVM"]) + 100
    for phase in compiled.values():
        assert whole["ts"] <= phase["ts"] + 0.002 and end(phase) <= end(whole) + 0.002
    assert end(whole) <= launches[0]["ts"]
    arrows = [(e["ph"], e["id"]) for kind in "sf" for e in events(tmp_path, kind)]
    assert len([a for a in arrows if a[0] == "s"]) == 3 and len([a for a in arrows if a[0] == "f"]) == len(tasks)


@pytest.mark.host_access
def test_copies_are_recorded_with_their_bytes(arch, tmp_path, capsys):
    oc.init(arch=getattr(oc, arch), kernel_profiler=True, log_level="error")
    x = oc.ndarray(oc.f32, 1000)
    x.fill(2.0)
    x.from_numpy(np.ones(1000, dtype=np.float32))
    assert x.to_numpy().sum() == 1000
    copies = [(span["name"], span["args"]["bytes"]) for span in events(tmp_path) if span["cat"] == "copy"]
    assert ("fill", 4000) in copies
    assert ("copy to device", 4000) in copies
    assert ("copy to host", 4000) in copies
    oc.profiler.print_summary()
    assert re.search(r"1x +4000 \|.* copy to host", capsys.readouterr().out)


def test_scopes_name_parts_of_the_hosts_time(profiled, tmp_path):
    with oc.profiler.scope('a "step"'):
        with oc.profiler.scope("inner"):
            first(profiled)
    with pytest.raises(KeyError), oc.profiler.scope("fails"):
        raise KeyError
    spans = {span["name"]: span for span in events(tmp_path)}
    outer, inner = spans['a "step"'], spans["inner"]
    assert outer["track"] == inner["track"] == spans["fails"]["track"] == "scopes"
    assert outer["ts"] <= inner["ts"] and end(inner) <= end(outer)
    assert inner["ts"] <= spans["first"]["ts"]


def test_a_scope_does_nothing_where_nothing_is_recorded(arch, tmp_path):
    with oc.profiler.scope("step"):
        assert first(oc.ndarray(oc.f32, 8)) == 0.0
    with pytest.warns(UserWarning, match="nothing is recorded"):
        assert events(tmp_path) == []
    oc.reset()
    with oc.profiler.scope("step"):
        assert oc.profiler.runtime.arch is None  # no session begins


def test_recording_changes_no_result(arch):
    def run():
        x = oc.ndarray(oc.f32, 1000)
        x.from_numpy(np.arange(1000, dtype=np.float32))
        for _ in range(100):
            scale_and_shift(x, 0.5)
        named(x)
        return first(x), x.to_numpy()

    plain = run()
    oc.init(arch=getattr(oc, arch), kernel_profiler=True, log_level="error")
    recorded = run()
    assert plain[0] == recorded[0]
    assert (plain[1] == recorded[1]).all()


def test_launches_of_several_threads_are_all_counted(profiled, tmp_path):
    arrays = [oc.ndarray(oc.f32, 64) for _ in range(4)]
    scale_and_shift(arrays[0], 1.0)
    oc.profiler.clear_kernel_profiler_info()

    def work(x):
        for _ in range(200):
            scale_and_shift(x, 1.0)

    threads = [threading.Thread(target=work, args=(x,)) for x in arrays]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert oc.profiler.query_kernel_profiler_info("scale_and_shift").counter == 800
    spans = events(tmp_path)
    launches = [span for span in spans if span["cat"] == "launch"]
    assert len({span["args"]["launch"] for span in launches}) == 800
    assert len({span["track"] for span in launches}) == 4


def test_a_kernel_that_fails_is_recorded_too(arch):
    oc.init(arch=getattr(oc, arch), kernel_profiler=True, debug=True, log_level="error")

    @oc.kernel
    def fails(x: Floats):
        for i in x:
            assert x[i] > 0

    with pytest.raises(oc.OctantsAssertionError):
        fails(oc.ndarray(oc.f32, 8))
    assert oc.profiler.query_kernel_profiler_info("fails").counter == 1


def test_the_summary_says_what_a_person_wants_to_know(profiled, arch, capsys):
    scale_and_shift(profiled, 2.0)
    first(profiled)
    oc.profiler.print_summary()
    text = capsys.readouterr().out
    assert "compiled 2 times in" in text and "front end" in text
    assert "launched 2 kernels 2 times" in text
    assert "the device was busy for" in text


def test_compilations_are_counted_in_every_session(arch, capsys):
    first(oc.ndarray(oc.f32, 8))
    oc.profiler.print_scoped_profiler_info()
    text = capsys.readouterr().out
    assert re.search(r"\| +1 \|.*\| front end", text)
    oc.profiler.clear_scoped_profiler_info()
    oc.profiler.print_scoped_profiler_info()
    assert "front end" not in capsys.readouterr().out


def test_memory_is_counted(arch, capsys):
    x = oc.ndarray(oc.f32, 1000)
    y = oc.field(oc.f32, 500)
    oc.profiler.print_memory_profiler_info()
    text = capsys.readouterr().out
    assert re.search(r"2 allocations, 6.000 kB now, \d+.\d+ kB at most", text)
    del x, y
    oc.reset()
    with pytest.raises(oc.OctantsRuntimeError, match=r"oc\.init\(\)"):
        oc.profiler.print_memory_profiler_info()


def test_hardware_counters_are_refused_with_a_word(profiled):
    assert oc.profiler.set_kernel_profiler_toolkit() is True
    with pytest.warns(UserWarning, match="'cupti' is not available"):
        assert oc.profiler.set_kernel_profiler_toolkit("cupti") is False
    metrics = oc.profiler.get_predefined_cupti_metrics("cache_hit_rate")
    assert [metric.name for metric in metrics] == ["l1tex__t_sector_hit_rate.pct", "lts__t_sector_hit_rate.pct"]
    with pytest.warns(UserWarning, match="there are no predefined metrics 'speed'"):
        assert oc.profiler.get_predefined_cupti_metrics("speed") is None
    first(profiled)
    with pytest.warns(UserWarning, match=r"only times: lts__x"):
        with oc.profiler.collect_kernel_profiler_metrics([oc.profiler.CuptiMetric("lts__x")]):
            first(profiled)
    assert oc.profiler.query_kernel_profiler_info("first").counter == 1


def test_a_kernel_does_not_ask_the_profiler(profiled):
    @oc.kernel
    def asks():
        oc.profiler.print_kernel_profiler_info()

    with pytest.raises(oc.OctantsCompilationError):
        asks()


@oc.kernel
def forked(x: oc.types.ndarray(dtype=oc.f32, ndim=2)):
    for branch in oc.static(range(3)):
        with oc.stream_parallel():
            for i in range(x.shape[1]):
                x[branch, i] = x[branch, i] + branch


@oc.kernel
def fill_with_ones(x: oc.types.ndarray(dtype=oc.f32, ndim=2)):
    for i, j in x:
        x[i, j] = 1.0


def test_branches_are_recorded_where_they_run(profiled, arch, tmp_path):
    if arch == "reference":
        pytest.skip("the interpreter runs a kernel as one task")
    x = oc.ndarray(oc.f32, (3, 1000))
    for _ in range(2):
        fill_with_ones(x)
        forked(x)
    assert (x.to_numpy().sum(axis=1) == [1000, 2000, 3000]).all()
    tasks = [span for span in events(tmp_path) if span["cat"] == "task"]
    by_launch = {n: [span for span in tasks if span["args"]["launch"] == n] for n in (1, 2, 3, 4)}
    assert [len(own) for own in by_launch.values()] == [1, 3, 1, 3]
    assert sorted(span["name"] for span in by_launch[2]) == [f"forked_{n}_range_for" for n in range(3)]
    # Events are a microsecond apart at least; times of a GPU's have a grain of half of one.
    for branches, before in ((by_launch[2], by_launch[1]), (by_launch[4], by_launch[3])):
        assert before[0]["track"] == "default stream"
        assert all(end(before[0]) <= branch["ts"] + 2 for branch in branches), "a branch begins behind what was before"
    assert all(end(branch) <= by_launch[3][0]["ts"] + 2 for branch in by_launch[2]), "and is joined before the next one"
    for track in {span["track"] for span in tasks}:
        own = sorted((span for span in tasks if span["track"] == track), key=lambda span: span["ts"])
        assert all(end(a) <= b["ts"] + 2 for a, b in zip(own, own[1:])), "a stream does one thing at a time"


@oc.func
def busy(seed, steps):
    v = 1e-3 * seed
    for _ in range(steps):
        v = oc.sin(v) * 0.9 + 0.1
    return v


@oc.kernel
def keep_busy(x: Floats, steps: oc.i32):
    for i in range(4):
        x[i] = busy(i, steps)


@oc.kernel
def keep_two_busy(x: Floats, y: Floats, steps: oc.i32):
    with oc.stream_parallel():
        for _ in range(1):
            x[0] = busy(1.0, steps)
    with oc.stream_parallel():
        for _ in range(1):
            y[0] = busy(2.0, steps)


def test_a_kernel_on_a_stream_of_its_own_has_its_time(profiled, arch, tmp_path):
    steps = 300 if arch == "reference" else 300_000
    keep_busy(profiled, 1)
    oc.profiler.clear_kernel_profiler_info()
    with oc.create_stream() as stream:
        begin = time.perf_counter()
        keep_busy(profiled, steps, qd_stream=stream)
        stream.synchronize()
        waited = time.perf_counter() - begin
    counted = oc.profiler.query_kernel_profiler_info("keep_busy")
    assert counted.counter == 1
    assert 0.2 * waited < counted.max / 1e3 < 1.01 * waited
    (task,) = [span for span in events(tmp_path) if span["cat"] == "task"]
    if arch != "reference":
        assert task["track"] == "stream 1"


@pytest.mark.parametrize("how", ["branches", "streams"])
def test_what_overlaps_still_does_so_while_it_is_recorded(profiled, arch, tmp_path, how):
    if arch == "reference":
        pytest.skip("the interpreter does one thing after another")
    if arch == "cpu" and len(os.sched_getaffinity(0)) < 2:
        pytest.skip("one core does one thing after another")
    y = oc.ndarray(oc.f32, 4)
    streams = [oc.create_stream(), oc.create_stream()]
    overlapped = []
    for _ in range(10):
        oc.profiler.clear_kernel_profiler_info()
        if how == "branches":
            keep_two_busy(profiled, y, 300_000)
        else:
            keep_busy(profiled, 100_000, qd_stream=streams[0])
            keep_busy(y, 100_000, qd_stream=streams[1])
        a, b = (span for span in events(tmp_path) if span["cat"] == "task")
        assert a["track"] != b["track"]
        overlapped.append((min(end(a), end(b)) - max(a["ts"], b["ts"])) / min(a["dur"], b["dur"]))
        # Other processes may take the cores: one of ten is enough.
        if overlapped[-1] > 0.5:
            return
    pytest.fail(f"shares of the shorter one that overlap: {overlapped}")


def test_times_may_be_asked_for_while_kernels_run(profiled, arch):
    stream = oc.create_stream()
    for number in range(1, 4):
        keep_busy(profiled, 100 if arch == "reference" else 30_000, qd_stream=stream)
        assert oc.profiler.query_kernel_profiler_info("keep_busy").counter == number


ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.no_device
def test_the_program_that_shows_overlap_makes_a_picture(tmp_path):
    program = [sys.executable, str(ROOT / "examples" / "overlap.py"), "--steps", "1000", "--out", str(tmp_path)]
    subprocess.run(program, check=True, capture_output=True, timeout=240)
    picture = tmp_path / "overlap.svg"
    script = [sys.executable, str(ROOT / "scripts" / "draw_timeline.py"), str(tmp_path / "overlap.json"), str(picture)]
    subprocess.run([*script, "--title", "1 < 2", "--launches=-1:"], check=True, timeout=60)
    drawn = picture.read_text(encoding="utf-8")
    assert drawn.count("<title>side_by_side_") == 4 and "one_after_another" not in drawn
    assert "1 &lt; 2" in drawn
    xml.dom.minidom.parseString(drawn)
    (tmp_path / "empty.json").write_text('{"traceEvents": []}', encoding="utf-8")
    script[-2] = str(tmp_path / "empty.json")
    assert subprocess.run(script, capture_output=True, timeout=60).returncode == 2


PROGRAM = """
import sys
import octants as oc

oc.init(arch=oc.cpu, log_level="error")


@oc.kernel
def twice(x: oc.types.ndarray(dtype=oc.f32, ndim=1)):
    for i in x:
        x[i] = 2.0 * x[i]


twice(oc.ndarray(oc.f32, 100))
oc.init(arch=oc.reference, log_level="error")
twice(oc.ndarray(oc.f32, 100))
print("arguments:", sys.argv[1:], __name__)
if "fail" in sys.argv:
    raise RuntimeError("as asked")
sys.exit(7)
"""


def run(arguments, tmp_path, **environment):
    (tmp_path / "program.py").write_text(PROGRAM, encoding="utf-8")
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=tmp_path,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=240,
    )


@pytest.mark.no_device
def test_the_command_traces_a_program(tmp_path):
    done = run(["-m", "octants", "trace", "program.py", "a", "-b"], tmp_path)
    assert done.returncode == 7, done.stderr
    assert done.stdout == "arguments: ['a', '-b'] __main__\n"
    assert "Octants profile @ cpu" in done.stderr and "Octants profile @ reference" in done.stderr
    assert "wrote trace.json" in done.stderr
    tasks = [span for span in events_of(tmp_path / "trace.json") if span["cat"] == "task"]
    assert [task["name"] for task in tasks] == ["twice_0_range_for", "twice_0_serial"]
    assert end(tasks[0]) <= tasks[1]["ts"], "sessions are on one clock"
    assert tasks[0]["pid"] != tasks[1]["pid"]


@pytest.mark.no_device
def test_the_command_keeps_the_trace_of_a_program_that_fails(tmp_path):
    done = run(["-m", "octants", "trace", "-o", "other.json", "-m", "program", "fail"], tmp_path)
    assert done.returncode == 1
    assert "RuntimeError: as asked" in done.stderr
    assert len([span for span in events_of(tmp_path / "other.json") if span["cat"] == "task"]) == 2
    assert run(["-m", "octants", "trace"], tmp_path).returncode == 2


@pytest.mark.no_device
def test_compile_times_are_printed_if_the_environment_asks(tmp_path):
    done = run(["program.py"], tmp_path, OC_TIME="1", OC_OFFLINE_CACHE="0")
    lines = [line for line in done.stderr.splitlines() if line.startswith("[Octants] compiled twice in")]
    assert len(lines) == 2, done.stderr
    number = r"\d+\.\d\d"
    assert re.search(
        rf"in {number} ms: front end {number}, passes {number}, emit {number}, LLVM {number}, load {number} \(1 tasks,",
        lines[0],
    )
    assert run(["program.py"], tmp_path).stderr == ""


NVTX = """
#include <stdio.h>
int nvtxRangePushA(const char *name) { fprintf(stderr, "push %s\\n", name); return 0; }
int nvtxRangePop(void) { fprintf(stderr, "pop\\n"); return 0; }
"""


@pytest.mark.no_device
@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
def test_launches_are_ranges_of_the_tools_extension_where_there_is_one(tmp_path):
    (tmp_path / "nvtx.c").write_text(NVTX, encoding="utf-8")
    library = str(tmp_path / "libnvToolsExt.so.1")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, str(tmp_path / "nvtx.c")], check=True)
    done = run(["program.py"], tmp_path, LD_LIBRARY_PATH=str(tmp_path), OC_KERNEL_PROFILER="1")
    assert done.stderr == "push twice\npop\n" * 2
    assert run(["program.py"], tmp_path, LD_LIBRARY_PATH=str(tmp_path)).stderr == ""
