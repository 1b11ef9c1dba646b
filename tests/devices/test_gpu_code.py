"""GPU code of the benchmarks and the examples, assembled by NVIDIA's assembler where it is installed. No GPU is needed.

What the assembler says of the benchmarks' kernels is kept in gpu_registers.txt: registers of a thread, bytes of its stack and of spills, and bytes of
a block's shared memory. `OCTANTS_BLESS=1` rewrites it; read the difference.
"""

import functools
import importlib.util
import os
import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import octants as oc

pytestmark = pytest.mark.no_device

ROOT = Path(__file__).resolve().parents[2]
EXPECTED = Path(__file__).with_name("gpu_registers.txt")
CAPABILITIES = (75, 80, 90)

# The release whose register counts are kept, and the capability.
RELEASE, COUNTED = "13.4", 90

BENCHMARKS = (
    "fill", "saxpy", "sum_array", "sum_return", "stencil", "stencil_fields", "nbody", "lcg", "julia", "mpm88", "mpm88_fields",
    "svd3", "histogram",
)  # fmt: skip


@functools.cache
def program(name):
    """Where one of NVIDIA's programs is."""
    packages = importlib.util.find_spec("nvidia")
    places = packages.submodule_search_locations if packages else []
    folders = [str(folder) for place in places for folder in sorted(Path(place).glob("*/bin"))]
    return shutil.which(name, path=os.pathsep.join([*folders, os.environ.get("PATH", "")]))


@pytest.fixture
def ptxas():
    if program("ptxas") is None:
        pytest.skip("ptxas is not installed (Python package nvidia-cuda-nvcc)")
    return program("ptxas")


@pytest.fixture
def nvdisasm():
    if program("nvdisasm") is None:
        pytest.skip("nvdisasm is not installed (Python package nvidia-cuda-nvdisasm)")
    return program("nvdisasm")


@pytest.fixture
def kernels(monkeypatch):
    """Every kernel that is made from now on."""
    made, make = [], oc.kernel

    def recording(fn=None, **options):
        if fn is None:
            return lambda fn: recording(fn, **options)
        kernel = make(fn, **options)
        made.append(kernel)
        return kernel

    monkeypatch.setattr(oc, "kernel", recording)
    return made


def texts(kernels, capability):
    """The PTX modules of kernels that were compiled. A kernel has one for each task, joined."""
    dumps = [kernel.dump("ptx", capability=capability) for kernel in kernels]
    return [module for dump in dumps if dump for module in re.split(r"(?=^\.version)", dump, flags=re.M)[1:]]


def assemble(ptxas, folder, capability, modules, *options):
    """What the assembler says. Entries and the library's tables get names of their own, as several modules may have the same."""
    files = []
    for number, text in enumerate(modules):
        file = folder / f"{number}.ptx"
        file.write_text(re.sub(r"\.entry |\b(?=__cudart_)", rf"\g<0>e{number}_", text))
        files.append(file)
    command = [ptxas, f"-arch=sm_{capability}", *options, "-o", folder / "out.cubin", *files]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stderr


def nothing(*_, **__):
    pass


# --- examples --------------------------------------------------------------------------------------------------------

EXAMPLES = {
    "mpm88": ("--frames", "1", "--steps", "1", "--size", "32"),
    "mpm99": ("--frames", "1", "--steps", "1", "--size", "32"),
    "shallow_water": ("--frames", "1", "--steps", "1", "--size", "32"),
    "poisson": ("--frames", "1", "--size", "31"),
    "game_of_life": ("--frames", "1", "--steps", "1", "--size", "32"),
    "cloth": ("--frames", "1", "--steps", "1", "--size", "16"),
    "sparse_mpm": ("--frames", "1", "--steps", "1", "--size", "32"),
    "endless_life": ("--frames", "1", "--steps", "1", "--size", "64"),
    "voxels": ("--frames", "1", "--size", "32"),
    "quantised_fluid": ("--frames", "1", "--steps", "1", "--size", "32"),
    "billiards": ("--iterations", "1"),
    "inverse_heat": ("--iterations", "1"),
    "springs": ("--iterations", "1"),
    "throw_jelly": ("--iterations", "1"),
    "overlap": ("--steps", "10"),
    "bifurcation": ("--size", "16", "--steps", "10"),
    "path_tracer": ("--size", "16", "--steps", "1"),
    "cosines": ("--size", "64"),
    "scattered_data": ("--size", "32"),
    "first_program": (),
}


def test_every_example_is_here():
    folder = ROOT / "examples"
    programs = {path.stem for path in folder.glob("*.py") if "__main__" in path.read_text()}
    # The first program runs two of them, two are for several processes, with packages of others, and one needs torch.
    assert programs == {*EXAMPLES, "julia", "galaxies", "halo_exchange", "parameter_sweep", "learned_controller"}


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_assembler_takes_the_kernels_of_an_example(name, ptxas, kernels, monkeypatch, tmp_path):
    folder = ROOT / "examples"
    monkeypatch.syspath_prepend(str(folder))
    for module in folder.glob("*.py"):
        monkeypatch.delitem(sys.modules, module.stem, raising=False)
    # Kernels are compiled by the first pictures; the galaxies' still is one of the last.
    short = SimpleNamespace(progress=lambda title, total, *_: range(total if title == "colliding" else 1))
    monkeypatch.setitem(sys.modules, "progress", short)
    monkeypatch.setitem(sys.modules, "png", SimpleNamespace(save=nothing, save_animation=nothing))
    out = [str(tmp_path)] if name == "first_program" else ["--out", str(tmp_path), *EXAMPLES[name]]
    monkeypatch.setattr(sys, "argv", [name, *out])
    runpy.run_path(str(folder / f"{name}.py"), run_name="__main__")
    for capability in CAPABILITIES:
        modules = texts(kernels, capability)
        assert modules
        assemble(ptxas, tmp_path, capability, modules, "-O1")


# --- the package's own kernels -----------------------------------------------------------------------------------------


def test_the_assembler_takes_the_algorithms(ptxas, tmp_path):
    n, levels = 70_000, 3

    @oc.kernel
    def go(
        x: oc.types.NDArray,
        y: oc.types.NDArray,
        flags: oc.types.NDArray,
        count: oc.types.NDArray,
        scratch: oc.types.NDArray,
    ):
        oc.algorithms.reduce_add(x, y, scratch, n, oc.f32, levels)
        oc.algorithms.exclusive_scan_max(x, y, scratch, n, oc.f32, levels)
        oc.algorithms.select(x, flags, y, count, scratch, n, levels)
        oc.algorithms.reduce_by_key_add(flags, x, flags, y, count, scratch, n, oc.f32, levels)

    reals, flags = (oc.ndarray(oc.f32, n), oc.ndarray(oc.f32, n)), oc.ndarray(oc.i32, n)
    slots = oc.algorithms.reduce_by_key_scratch_slots(n)
    go(*reals, flags, oc.ndarray(oc.i32, 1), oc.ndarray(oc.u32, slots))
    for capability in CAPABILITIES:
        modules = texts([go], capability)
        assert len(modules) > 10
        assemble(ptxas, tmp_path, capability, modules, "-O1")


def test_a_kernel_that_waits_for_memory_looks_whether_it_is_to_stop(ptxas, tmp_path):
    x, y = oc.field(oc.i32), oc.field(oc.i32)
    blocks = oc.root.pointer(oc.i, 4096)
    blocks.place(x)
    lists = oc.root.dense(oc.i, 64).dynamic(oc.j, 1 << 14, chunk_size=4)
    lists.place(y)

    @oc.kernel
    def churn():
        for i in range(4096):
            x[i] = i
        for i in range(4096):
            y[i % 64].append(i)
        for i in range(4096):
            oc.deactivate(blocks, [i])
        for i in range(64):
            y[i].deactivate()

    churn()
    for capability in CAPABILITIES:
        modules = texts([churn], capability)
        # Those that make cells.
        assert sum("ld.volatile.global.u8" in text for text in modules) == 2
        assemble(ptxas, tmp_path, capability, modules, "-O1")


def test_the_assembler_takes_linear_algebra(ptxas, tmp_path):
    from octants.linalg import _products

    builder = oc.linalg.SparseMatrixBuilder(4, 4, max_num_triplets=8)

    @oc.kernel
    def fill(A: oc.types.sparse_matrix_builder()):
        for i in range(4):
            A[i, i] += i + 2.0
            A[i, 3 - i] -= 1.0

    @oc.kernel
    def double(x: oc.template(), out: oc.template()):
        for i in x:
            out[i] = 2 * x[i]

    fill(builder)
    b, x = oc.field(oc.f32, 4), oc.field(oc.f32, 4)
    b.from_numpy(np.arange(4, dtype=np.float32))
    assert oc.linalg.SparseCG(builder.build(), b.to_numpy()).solve()[1]
    assert oc.linalg.MatrixFreeBICGSTAB(oc.linalg.LinearOperator(double), b, x)
    kernels = [fill, *(kernel for kernel in vars(_products).values() if isinstance(kernel, type(fill)))]
    assert len(kernels) == 6
    for capability in CAPABILITIES:
        modules = texts(kernels, capability)
        assert all(texts([kernel], capability) for kernel in kernels)
        assemble(ptxas, tmp_path, capability, modules, "-O1")


# --- benchmarks ------------------------------------------------------------------------------------------------------


def compile_benchmark(name, monkeypatch, folder):
    """Runs a benchmark's kernel once, on little data."""
    monkeypatch.syspath_prepend(str(ROOT / "benches"))
    from harness.bindings import bind_language
    from harness.programs import load

    described = load(name)
    sizes = described.sizes.get("compile") or {key: min(value, 4096) for key, value in described.sizes["quick"].items()}
    oc.init(arch=oc.cpu, fast_math=True, log_level="error")
    bound = bind_language(
        "octants", described, described.source("language", "octants"), described.inputs(**sizes), folder, False
    )
    bound.call(*bound.arguments)


def counts(report):
    """`{entry: (registers, stack, spilled, shared)}` of a verbose report."""
    found = {}
    for part in report.split("Compiling entry function ")[1:]:
        entry = re.match(r"'e\d+_(\w+)'", part)[1]
        number = lambda unit: int(match[1]) if (match := re.search(rf"(\d+) {unit}", part)) else 0  # noqa: E731
        spilled = number("bytes spill stores") + number("bytes spill loads")
        found[entry] = number("registers"), number("bytes stack frame"), spilled, number("bytes smem")
    return dict(sorted(found.items()))


def release(ptxas):
    return re.search(r"release ([\d.]+)", subprocess.run([ptxas, "--version"], capture_output=True, text=True).stdout)[
        1
    ]


@pytest.mark.parametrize("name", BENCHMARKS)
def test_the_assembler_takes_a_benchmark_without_spills(name, ptxas, kernels, monkeypatch, tmp_path):
    compile_benchmark(name, monkeypatch, tmp_path)
    for capability in CAPABILITIES:
        report = assemble(ptxas, tmp_path, capability, texts(kernels, capability), "-O3", "-v")
        for entry, (_, _, spilled, _) in counts(report).items():
            assert spilled == 0, (entry, capability, report)


def test_register_counts_of_the_benchmarks_are_the_kept_ones(ptxas, kernels, monkeypatch, tmp_path):
    if release(ptxas) != RELEASE:
        pytest.skip(f"the counts are those of ptxas {RELEASE}")
    lines = [
        f"What ptxas {RELEASE} says of the benchmarks' tasks for compute capability {COUNTED // 10}.{COUNTED % 10}, for each thread but for",
        "the shared memory of a block. tests/devices/test_gpu_code.py compares; OCTANTS_BLESS=1 rewrites this.",
        "",
        f"{'benchmark':16} {'task':10} {'registers':>9} {'stack':>6} {'spilled':>8} {'shared':>7}",
    ]
    for name in BENCHMARKS:
        kernels.clear()
        compile_benchmark(name, monkeypatch, tmp_path)
        report = assemble(ptxas, tmp_path, COUNTED, texts(kernels, COUNTED), "-O3", "-v")
        for entry, (registers, stack, spilled, shared) in counts(report).items():
            lines.append(f"{name:16} {entry:10} {registers:9} {stack:6} {spilled:8} {shared:7}")
    text = "\n".join(lines) + "\n"
    if os.environ.get("OCTANTS_BLESS") == "1":
        EXPECTED.write_text(text)
    assert text == EXPECTED.read_text(), "OCTANTS_BLESS=1 writes the new counts"


# --- the order of launches -------------------------------------------------------------------------------------------


def check_waits(ptxas, nvdisasm, folder, kernels):
    """Every kernel waits for the launch before it, and touches no memory before that."""
    modules = texts(kernels, 90)
    assert all(module.count(".visible .entry") == module.count("griddepcontrol.wait") == 1 for module in modules)
    for module in modules:
        assemble(ptxas, folder, 90, [module], "-O3")
        code = subprocess.run([nvdisasm, "-c", folder / "out.cubin"], capture_output=True, text=True, check=True).stdout
        entry = code[code.index(".text.e0_") :]
        before, wait, after = entry.partition("ACQBULK")
        assert wait and re.search(r"\b(LDG|STG|LD|ST|RED|REDG|ATOM|ATOMG)\b", after), code
        assert not re.search(r"\b(LDG|STG|LD|ST|RED|REDG|ATOM|ATOMG)\b", before), code


@pytest.mark.parametrize("name", BENCHMARKS)
def test_a_benchmark_waits_before_it_touches_memory(name, ptxas, nvdisasm, kernels, monkeypatch, tmp_path):
    compile_benchmark(name, monkeypatch, tmp_path)
    check_waits(ptxas, nvdisasm, tmp_path, kernels)


def test_loads_of_what_a_kernel_does_not_write_stay_behind_the_wait(ptxas, nvdisasm, kernels, tmp_path):
    floats = oc.types.ndarray(dtype=oc.f32, ndim=1)

    @oc.kernel
    def serial(x: floats, y: floats):
        y[0] = x[5] * x[7] + x[9]

    @oc.kernel
    def parallel(x: floats, y: floats):
        for i in range(1024):
            y[i] = x[3] * x[i]

    serial(oc.ndarray(oc.f32, 16), oc.ndarray(oc.f32, 16))
    parallel(oc.ndarray(oc.f32, 1024), oc.ndarray(oc.f32, 1024))
    assert "ld.global.nc" in "".join(texts(kernels, 90))
    check_waits(ptxas, nvdisasm, tmp_path, kernels)


def test_devices_that_cannot_wait_have_no_such_instruction(kernels, monkeypatch, tmp_path):
    compile_benchmark("saxpy", monkeypatch, tmp_path)
    assert "griddepcontrol" not in "".join(texts(kernels, 80))


def test_a_loop_that_waits_for_other_threads_is_not_unrolled(kernels):
    x = oc.field(oc.f32)
    oc.root.pointer(oc.i, 64).dense(oc.i, 16).place(x)

    @oc.kernel
    def fill():
        for i in range(1024):
            x[i] = i

    fill()
    (text,) = texts(kernels, 90)
    # Of the reference, twice of what the pool has (before the wait and in it), and of the word that ends the wait.
    assert text.count("ld.volatile.global") == 6


# --- tiles -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("size,name", [(16, "f32"), (32, "f32"), (16, "f64")])
def test_tiles_are_in_registers(ptxas, tmp_path, size, name, shared):
    tile, dtype = oc.simt.Tile16x16 if size == 16 else oc.simt.Tile32x32, getattr(oc, name)

    @oc.func
    def solve(a: oc.template(), b: oc.template(), r0, r1, eps):
        t = tile.eye(dtype=dtype)
        t[:] = a[r0:r1, r0:r1]
        for c in range(r0):
            v = a[r0:r1, c]
            t -= oc.outer(v, v)
        t.cholesky_(eps)
        u = tile.zeros(dtype=dtype)
        u[:] = b[0:size, r0:r1]
        u -= oc.outer(b[0:size, 0], a[r0:r1, 0])
        t.solve_triangular_(u)
        a[r0:r1, r0:r1] = t
        b[0:size, r0:r1] = u

    @oc.kernel
    def go(a: oc.types.NDArray[dtype, 2], b: oc.types.NDArray[dtype, 2], r0: oc.i32, r1: oc.i32):
        oc.loop_config(block_dim=size)
        for i in range(size):
            if oc.static(shared):
                sh = oc.simt.block.SharedArray((64, 65), dtype)
                for j in range(64):
                    sh[j, i] = a[j, i]
                oc.simt.block.sync()
                solve(sh, b, r0, r1, a[i, i])
                oc.simt.block.sync()
                a[0, i] = sh[i, 0]
            else:
                solve(a, b, r0, r1, a[i, i])

    go(oc.ndarray(dtype, (64, 64)), oc.ndarray(dtype, (64, 64)), 0, size)
    found = counts(assemble(ptxas, tmp_path, 90, texts([go], 90), "-v"))
    assert found and all(stack == spilled == 0 for _, stack, spilled, _ in found.values()), found


def test_lanes_come_to_barriers_one_by_one(ptxas, tmp_path):
    """`bar` without more says that a warp comes to it as one. The assembler believes it of loops behind it, too, which lanes may leave one by one."""

    @oc.kernel
    def claim(counter: oc.types.NDArray[oc.i32, 1], y: oc.types.NDArray[oc.i32, 1]):
        oc.loop_config(block_dim=64)
        for i in range(64):
            claimed = oc.simt.block.SharedArray(1, oc.i32)
            while True:
                if i == 0:
                    claimed[0] = oc.atomic_add(counter[0], 1)
                oc.simt.block.sync()
                if oc.simt.block.sync_any_nonzero(oc.cast(claimed[0] > 8, oc.i32)):
                    break
                y[i] += claimed[0]
                oc.simt.block.sync()

    claim(np.array([9], np.int32), np.zeros(64, np.int32))
    text = claim.dump("ptx", capability=90)
    assert "barrier.sync" in text and "barrier.red.popc" in text
    assert not re.search(r"\bbar\.(sync|red)\b", text)
    assemble(ptxas, tmp_path, 90, [text], "-O3")
