"""A kernel is compiled from the text that Python imported, whatever becomes of the file."""

import importlib
import os
import sys
import time

import pytest

import octants as oc

pytestmark = pytest.mark.no_device

TEXT = """
import octants as oc

@oc.func
def helper(v):
    return v + 1

@oc.kernel
def first(v: oc.template()) -> oc.i32:
    return helper(v)

def make():
    @oc.kernel
    def inner(v: oc.template()) -> oc.i32:
        return v * 3
    return inner
"""


@pytest.fixture
def module(tmp_path, monkeypatch):
    oc.init(arch=oc.cpu, log_level="error")
    name = f"edited_{tmp_path.name}"
    path = tmp_path / f"{name}.py"
    path.write_text(TEXT)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    yield importlib.import_module(name), path
    sys.modules.pop(name, None)


def edit(path, old, new):
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    # A file system's clock may be coarse.
    later = time.time() + 5
    os.utime(path, (later, later))


def test_an_edited_file_changes_nothing_under_a_running_program(module):
    module, path = module
    assert module.first(1) == 2
    edit(path, "v + 1", "v + 7")
    assert module.first(2) == 3
    assert module.make()(2) == 6
    edit(path, "v * 3", "v * 5")
    assert module.first(3) == 4 and module.make()(3) == 9
    path.unlink()
    assert module.first(4) == 5


def test_what_is_imported_again_is_read_again(module):
    module, path = module
    old = module.first
    assert old(1) == 2
    edit(path, "v + 1", "v + 7")
    importlib.invalidate_caches()
    importlib.reload(module)
    assert module.first(1) == 8
    # The old kernel has its text; what its names stand for is the module's.
    assert old(2) == 9


def test_moved_lines_do_not_matter(module):
    module, path = module
    path.write_text("# a line\n\n" + path.read_text())
    assert module.first(1) == 2


def test_a_function_that_is_not_in_its_file_any_more_is_refused(tmp_path, monkeypatch):
    oc.init(arch=oc.cpu, log_level="error")
    path = tmp_path / "replaced_file.py"
    path.write_text("def late(v):\n    return v + 1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    import replaced_file

    path.write_text("def late(v):\n    return v + 2\n")
    with pytest.raises(oc.OctantsCompilationError, match="was changed after Python imported `late`"):
        oc.func(replaced_file.late)
    sys.modules.pop("replaced_file")


def test_a_mark_before_the_text_is_no_change(tmp_path, monkeypatch):
    oc.init(arch=oc.cpu, log_level="error")
    path = tmp_path / "marked_file.py"
    path.write_text(TEXT, encoding="utf-8-sig")
    monkeypatch.syspath_prepend(str(tmp_path))
    import marked_file

    assert marked_file.first(1) == 2 and marked_file.make()(2) == 6
    sys.modules.pop("marked_file")
