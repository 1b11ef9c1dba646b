"""The kernels whose text a model runs under every interleaving (`crates/octants_interp/tests/allocator_model.rs`) are those that the compiler makes.

``OCTANTS_BLESS=1`` writes the text anew.
"""

import os
from pathlib import Path

import pytest

import octants as oc
from octants._language.fields import deactivate_all

pytestmark = pytest.mark.no_device

FOLDER = Path(__file__).resolve().parents[2] / "crates" / "octants_interp" / "tests" / "allocator"


def kernels():
    x, y = oc.field(oc.i32), oc.field(oc.i32)
    first, second = oc.FieldsBuilder(), oc.FieldsBuilder()
    cells, lists = first.pointer(oc.i, 4), second.dynamic(oc.i, 7, chunk_size=1)
    cells.place(x)
    lists.place(y)
    first.finalize()
    second.finalize()

    @oc.kernel
    def make(begin: oc.i32, end: oc.i32):
        for n in range(begin, end):
            x[n // 2] += 1

    @oc.kernel
    def give_up(begin: oc.i32, end: oc.i32):
        for n in range(begin, end):
            oc.deactivate(cells, n)

    @oc.kernel
    def give_up_all():
        deactivate_all(cells)

    @oc.kernel
    def append(begin: oc.i32, end: oc.i32):
        for n in range(begin, end):
            oc.append(lists, [], n + 1)

    @oc.kernel
    def empty():
        oc.deactivate(lists, [])

    return [(make, (0, 0)), (give_up, (0, 0)), (give_up_all, ()), (append, (0, 0)), (empty, ())]


def test_the_text_of_the_model_is_what_the_compiler_makes():
    oc.init(arch=oc.reference, log_level="error")
    for kernel, arguments in kernels():
        kernel(*arguments)
        path = FOLDER / f"{kernel.__name__}.oir"
        if os.environ.get("OCTANTS_BLESS"):
            path.write_text(kernel.dump("ir"))
        assert path.read_text() == kernel.dump("ir"), (
            f"{path.name} is not what the compiler makes: OCTANTS_BLESS=1 writes it"
        )
