"""Writes the stubs by which editors and type checkers know the public API: octants/__init__.pyi, math/__init__.pyi,
types/__init__.pyi and _octants.pyi.

    python scripts/write_stubs.py            writes them
    python scripts/write_stubs.py --check    says whether they are what would be written; exit status 1 if not

What a checker cannot see in the sources is written by hand in stub_templates/: kernels with their parameters, number types, arrays, and
all of the compiled half.
The rest follows from the package as it is when imported: every public name, with its parameters as its source has them, and with its
documentation, which editors show.
"""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys
import types
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TEMPLATES = Path(__file__).with_name("stub_templates")
STUBS = {
    "octants": "__init__.pyi",
    "octants.math": "math/__init__.pyi",
    "octants.types": "types/__init__.pyi",
    "octants._octants": "_octants.pyi",
}
HEADING = "# Written by scripts/write_stubs.py from the package and from scripts/stub_templates.\n"

# Results of the methods of vectors and matrices; those that are not here may be anything.
RESULTS = {
    "Self": """__add__ __radd__ __iadd__ __sub__ __rsub__ __isub__ __mul__ __rmul__ __imul__ __truediv__ __rtruediv__ __itruediv__
        __floordiv__ __rfloordiv__ __ifloordiv__ __mod__ __rmod__ __imod__ __pow__ __rpow__ __ipow__ __and__ __rand__ __iand__ __or__ __ror__
        __ior__ __xor__ __rxor__ __ixor__ __lshift__ __rlshift__ __ilshift__ __rshift__ __rrshift__ __irshift__ __lt__ __le__ __gt__ __ge__
        __neg__ __pos__ __abs__ __invert__ normalized cast cross inverse""",
    "float": "norm norm_inv",
    "Matrix": "transpose outer_product rows cols diag identity",
    "Vector": "unit",
    "MatrixField": "field",
    "Ndarray": "ndarray",
    "Tensor": "tensor",
    "int": "__len__ n m ndim",
    "Iterator[Any]": "__iter__",
    "None": "__setitem__ __setattr__ fill",
}
# Annotations of functions that mean the same in a stub as in the source.
KNOWN_RESULTS = {
    "None",
    "bool",
    "int",
    "float",
    "str",
    "Stream",
    "Event",
    "DeviceProperties",
    "SNode",
    "ScalarField",
    "MatrixField",
    "Ndarray",
    "Tensor",
}
RESULT_OF = {name: result for result, names in RESULTS.items() for name in names.split()}
DUNDERS = {name for name in RESULT_OF if name.startswith("__")} | {"__matmul__", "__rmatmul__", "__getitem__"}


def main() -> None:
    stale = []
    for module_name, file_name in STUBS.items():
        path = ROOT / "python" / "octants" / file_name
        text = formatted(stub_of(module_name))
        if "--check" in sys.argv[1:]:
            if not path.exists() or path.read_text() != text:
                stale.append(file_name)
        else:
            path.write_text(text)
    if stale:
        sys.exit(f"these stubs are not up to date: {', '.join(stale)}; run scripts/write_stubs.py")


def stub_of(module_name: str) -> str:
    """The text of a module's stub: the template with documentation, then every public name that it lacks."""
    module = __import__(module_name, fromlist=["*"])
    template = ast.parse((TEMPLATES / f"{module_name.rpartition('.')[2]}.pyi").read_text())
    written: set[str] = set()
    parts = []
    for statement in template.body:
        written |= bound_names(statement)
        if isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
            document(statement, getattr(module, statement.name, None))
        parts.append(ast.unparse(statement))
    # The compiled half has names for the package alone, too.
    for name in () if module_name == "octants._octants" else sorted(vars(module)):
        if name.startswith("_") or name in written:
            continue
        if text := declaration(module, name, getattr(module, name)):
            parts.append(text)
    lines = [line for part in parts for line in part.splitlines()]
    imports = [line for line in lines if line.startswith(("from ", "import "))]
    rest = [line for line in lines if not line.startswith(("from ", "import "))]
    return HEADING + "\n".join(imports + rest) + "\n"


def bound_names(statement: ast.stmt) -> set[str]:
    if isinstance(statement, (ast.Import, ast.ImportFrom)):
        return {alias.asname or alias.name for alias in statement.names}
    if isinstance(statement, ast.AnnAssign):
        return {statement.target.id} if isinstance(statement.target, ast.Name) else set()
    return {statement.name} if isinstance(statement, (ast.FunctionDef, ast.ClassDef)) else set()


def document(node: ast.FunctionDef | ast.ClassDef, value: object) -> None:
    """Gives a definition, and those inside, the documentation of what they describe."""
    for inner in node.body if isinstance(node, ast.ClassDef) else []:
        if isinstance(inner, ast.FunctionDef) and not inner.name.startswith("_"):
            document(inner, inspect.getattr_static(value, inner.name, None))
    text = own_documentation(value)
    if text is None or ast.get_docstring(node) is not None:
        return
    line = ast.Expr(ast.Constant(text))
    is_empty = len(node.body) == 1 and isinstance(node.body[0], ast.Expr) and isinstance(node, ast.FunctionDef)
    node.body = [line] if is_empty else [line, *node.body]


def own_documentation(value: object) -> str | None:
    text = inspect.getdoc(value)
    return text if text and text != inspect.getdoc(type(value)) else None


def declaration(module: types.ModuleType, name: str, value: object) -> str | None:
    """How a stub declares a name that its template does not."""
    if isinstance(value, types.ModuleType) or type(value).__name__ == "_Feature":
        return None
    if name in ("Matrix", "Vector"):
        assert isinstance(value, type)
        return matrix_class(name, value)
    defined_in = getattr(value, "__module__", None)
    if isinstance(value, type):
        if defined_in == module.__name__ and module.__name__ != "octants":
            raise TypeError(f"{module.__name__}.{name} is a class of the module itself: declare it in the template")
        return imported(module, value, name)
    if callable(value) and defined_in and (definition := function_definition(defined_in, value.__name__)):  # type: ignore[attr-defined]
        return function(definition, name, own_documentation(value))
    if callable(value) and defined_in and hasattr(value, "__name__"):
        return imported(module, value, name)
    if isinstance(value, (bool, int, float, str)):
        return f"{name}: {type(value).__name__}"
    if isinstance(value, list):
        return f"{name}: list[_Arch]"
    if type(value).__module__.startswith("octants."):
        return f"{imported(module, type(value), '_' + type(value).__name__)}\n{name}: _{type(value).__name__}"
    raise TypeError(f"{module.__name__}.{name} is a {type(value).__name__}, which a stub does not know how to declare")


def imported(module: types.ModuleType, value: object, name: str) -> str:
    """Imports a name from where it is defined."""
    source, own = value.__module__, value.__name__  # type: ignore[attr-defined]
    if not source.startswith("octants."):
        source = "octants._octants"  # where classes of the compiled half are
    depth = module.__name__.count(".") + (1 if hasattr(module, "__path__") else 0)
    dots = "." * max(depth, 1)
    line = f"from {dots}{source.removeprefix('octants.')} import {own} as"
    # A stub exports what it imports under the same name, and nothing else that it imports.
    return f"{line} {name}" if name in (own, f"_{own}") else f"{line} {own}\n{name} = {own}"


@cache
def definitions(module_name: str) -> dict[str, ast.FunctionDef]:
    file = Path(inspect.getfile(__import__(module_name, fromlist=["*"])))
    if file.suffix != ".py":
        return {}
    return {node.name: node for node in ast.parse(file.read_text()).body if isinstance(node, ast.FunctionDef)}


def function_definition(module_name: str, name: str) -> ast.FunctionDef | None:
    return definitions(module_name).get(name) if module_name.startswith("octants") else None


def function(definition: ast.FunctionDef, name: str, documentation: str | None, result: str | None = None) -> str:
    """A function with the parameters of its source; annotations of the kernel language, which are values, are left out."""
    arguments = ast.parse(f"def f({ast.unparse(definition.args)}): ...").body[0].args  # type: ignore[attr-defined]
    for number, one in enumerate([*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]):
        is_self = number == 0 and one.arg in ("self", "cls")
        one.annotation = None if is_self else ast.Name("Any")
    for one in (arguments.vararg, arguments.kwarg):
        if one is not None:
            one.annotation = ast.Name("Any")
    arguments.defaults = [ast.Constant(...) for _ in arguments.defaults]
    arguments.kw_defaults = [None if one is None else ast.Constant(...) for one in arguments.kw_defaults]
    if result is None and definition.returns is not None and ast.unparse(definition.returns) in KNOWN_RESULTS:
        result = ast.unparse(definition.returns)
    node = ast.parse(f"def {name}() -> {result or 'Any'}: ...").body[0]
    assert isinstance(node, ast.FunctionDef)
    node.args = arguments
    if documentation:
        node.body = [ast.Expr(ast.Constant(documentation))]
    return ast.unparse(ast.fix_missing_locations(node))


def matrix_class(name: str, cls: type) -> str:
    """Vectors and matrices: their methods are attached when the package is imported, and so not in the source of the class."""
    lines = [f"class {name}({'Matrix' if name == 'Vector' else ''}):", *indented(documented("", cls))]
    # A type of vectors, such as oc.math.vec3, takes the entries themselves.
    lines.append("    def __new__(cls, *entries: Any, dt: Any = None) -> Self: ...")
    lines.append("    def __class_getitem__(cls, item: Any) -> Any: ...")
    if name == "Matrix":
        lines.append("    def __getattr__(self, name: str) -> Any: ...")
        lines += ["    dt: Any", "    n: int", "    m: int", "    ndim: int"]
    for attribute in sorted(vars(cls)):
        if attribute.startswith("_") and attribute not in DUNDERS and attribute != "__setattr__":
            continue
        value = vars(cls)[attribute]
        result = RESULT_OF.get(attribute, "Any")
        if isinstance(value, property) and not value.__doc__:
            # Components by their letters: ``__getattr__`` stands for them.
            continue
        if isinstance(value, property):
            lines += indented("@property\n" + documented(f"def {attribute}(self) -> {result}:", value))
            continue
        is_static = isinstance(value, staticmethod)
        inner = value.__func__ if is_static else value
        if not callable(inner):
            continue
        lines += indented(method(inner, attribute, result, is_static))
    if name == "Matrix":
        for attribute in sorted(DUNDERS - set(vars(cls))):
            value = getattr(cls, attribute, None)
            if value is not None and value is not getattr(object, attribute, None):
                lines += indented(method(value, attribute, RESULT_OF.get(attribute, "Any"), False))
    return "\n".join(lines)


def method(value: object, name: str, result: str, is_static: bool) -> str:
    """A method; one that makes arrays takes the shape alone where a type of vectors is asked for it."""
    if name in ("field", "ndarray", "tensor"):
        return "@staticmethod\n" + documented(f"def {name}(*args: Any, **kwargs: Any) -> {result}:", value)
    definition = function_definition(getattr(value, "__module__", ""), getattr(value, "__name__", ""))
    if definition is not None:
        text = function(definition, name, own_documentation(value), result)
    else:
        names = [one if one == "self" else f"{one}: Any" for one in inspect.signature(value).parameters]  # type: ignore[arg-type]
        text = documented(f"def {name}({', '.join(names)}) -> {result}:", value)
    return f"@staticmethod\n{text}" if is_static else text


def documented(head: str, value: object) -> str:
    """A definition's first line with the documentation of what it describes, or the documentation alone."""
    text = own_documentation(value)
    if text is None or getattr(object, getattr(value, "__name__", ""), None) is not None:
        return f"{head} ..."
    quoted = '"""' + text.replace("\\", "\\\\") + '"""'
    return "\n".join([head, *indented(quoted)]) if head else quoted


def indented(text: str) -> list[str]:
    return [f"    {line}" if line else "" for line in text.splitlines()]


def formatted(text: str) -> str:
    ruff = Path(sys.executable).with_name("ruff")
    command = [ruff, "check", "--quiet", "--fix-only", "--select", "I,UP", "--stdin-filename", "octants.pyi", "-"]
    text = subprocess.run(command, input=text, check=True, capture_output=True, text=True, cwd=ROOT).stdout
    command = [ruff, "format", "--quiet", "--stdin-filename", "octants.pyi", "-"]
    return subprocess.run(command, input=text, check=True, capture_output=True, text=True, cwd=ROOT).stdout


if __name__ == "__main__":
    main()
