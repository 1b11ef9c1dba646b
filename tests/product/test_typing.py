"""What type checkers and editors know of the public API: stubs, small programs that they accept, mistakes that they find."""

import ast
import functools
import importlib.util
import inspect
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import octants as oc

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = Path(__file__).parent / "typing"
PACKAGE = Path(oc.__file__).parent

pytestmark = pytest.mark.no_device


def diagnosed(program: Path, tmp_path: Path) -> dict[int, str]:
    """What pyright says, by line."""
    if importlib.util.find_spec("pyright") is None:
        pytest.skip("pyright is not installed")
    shutil.copy(program, tmp_path)
    configuration = {"include": ["."], "typeCheckingMode": "standard", "extraPaths": [str(PACKAGE.parent)]}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(configuration))
    command = [sys.executable, "-m", "pyright", "-p", tmp_path, "--pythonpath", sys.executable, "--outputjson"]
    output = json.loads(subprocess.run(command, capture_output=True, text=True).stdout)
    assert output["summary"]["filesAnalyzed"] == 1
    return {said["range"]["start"]["line"] + 1: said["message"] for said in output["generalDiagnostics"]}


def test_a_program_without_mistakes(tmp_path):
    assert diagnosed(PROGRAMS / "good.py", tmp_path) == {}
    subprocess.run([sys.executable, PROGRAMS / "good.py"], check=True)


def test_mistakes_are_found(tmp_path):
    program = PROGRAMS / "bad.py"
    wrong = {number for number, line in enumerate(program.read_text().splitlines(), 1) if line.endswith("# error")}
    found = diagnosed(program, tmp_path)
    assert set(found) == wrong, found


def test_stubs_are_what_the_package_gives():
    script = ROOT / "scripts" / "write_stubs.py"
    if not script.exists() or importlib.util.find_spec("ruff") is None:
        pytest.skip("the scripts of the repository, or ruff, are not here")
    done = subprocess.run([sys.executable, script, "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def parameters_in(stub: Path) -> dict[str, list[str]]:
    """The names of the parameters of functions and methods; of those with several forms, none."""
    found: dict[str, list[str]] = {}
    for node in ast.parse(stub.read_text()).body:
        prefix = f"{node.name}." if isinstance(node, ast.ClassDef) else ""
        for inner in node.body if isinstance(node, ast.ClassDef) else [node]:
            if isinstance(inner, ast.FunctionDef) and not any(
                "overload" in ast.unparse(d) for d in inner.decorator_list
            ):
                args = inner.args
                found[prefix + inner.name] = [one.arg for one in (*args.posonlyargs, *args.args, *args.kwonlyargs)]
    return found


@pytest.mark.parametrize("module, stub", [(oc, "__init__.pyi"), (oc._octants, "_octants.pyi")])
def test_parameters_have_the_names_of_the_stub(module, stub):
    wrong, compared = {}, 0
    for name, expected in parameters_in(PACKAGE / stub).items():
        value = functools.reduce(lambda part, attribute: getattr(part, attribute, None), name.split("."), module)
        if not callable(value) or name.endswith("__"):
            continue
        try:
            own = inspect.signature(value).parameters.values()
        except ValueError:
            continue
        if any(one.kind in (one.VAR_POSITIONAL, one.VAR_KEYWORD) for one in own):
            continue
        compared += 1
        names = [one.name for one in own if one.name not in ("self", "slf", "cls")]
        if names != [one for one in expected if one not in ("self", "cls")] and expected:
            wrong[name] = names, expected
    assert compared > 50 and not wrong, wrong


@pytest.mark.parametrize(
    "module, stub", [(oc, "__init__.pyi"), (oc.math, "math/__init__.pyi"), (oc.types, "types/__init__.pyi")]
)
def test_every_public_name_is_in_the_stub(module, stub):
    text = (PACKAGE / stub).read_text()
    # Modules inside are there once somebody imports them.
    named = {name for name, value in vars(module).items() if not isinstance(value, ModuleType)}
    public = [name for name in named if not name.startswith("_") and name != "annotations"]
    assert len(public) > 30
    missing = [name for name in public if not re.search(rf"\b{name}\b", text)]
    assert missing == []
    # Editors show the documentation of what has some.
    assert text.count('"""') > 20
