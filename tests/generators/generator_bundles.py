"""Parameters of kernels that are gathered: members of a dataclass that is an argument, or of the object whose method the kernel is."""

from __future__ import annotations

import re
from dataclasses import dataclass

from generator_quantised import Quantised


@dataclass(frozen=True)
class Bundle:
    """How a kernel is called: the class that holds members, and the dataclass of those that lie one deeper."""

    #: "dataclass": the kernel has a parameter of the class; "object": it is a method of the class.
    kind: str
    cls: str
    inner_cls: str
    members: tuple[str, ...]
    inner: tuple[str, ...]

    @property
    def variable(self) -> str:
        return "self" if self.kind == "object" else "dc"

    def arguments(self, names: dict, given: dict, size: int) -> tuple[object, dict]:
        """The object that holds the members, and the arguments that are left."""
        members = {name: given[name] for name in self.members} | {"n": size}
        if self.inner:
            members["inner"] = names[self.inner_cls](**{name: given[name] for name in self.inner})
        rest = {name: value for name, value in given.items() if name not in (*self.members, *self.inner)}
        return names[self.cls](**members), rest


class Bundles(Quantised):
    """Writes a kernel with its parameters in a class. It is written as any other, then what it names is reached through the class."""

    def __init__(self, seed: int):
        super().__init__(seed)
        #: The kernels that are called so.
        self.bundles: dict[str, Bundle] = {}

    def choose_bundle(self, parameters: dict[str, str]) -> Bundle | None:
        """Writes the classes that hold some of a kernel's parameters, or leaves all as they are."""
        r = self.random
        if r.random() < 0.65:
            return None
        kind = self.pick("dataclass", "object")
        free = list(parameters)
        if kind == "object":
            # What it leads to has the types of the values: numbers are constants of the default types, numpy arrays hold scalars.
            free = [n for n in free if n not in ("p", "q", "st") and not self.is_tensor_array(parameters[n])]
        members = tuple(name for name in free if r.random() < 0.4)
        if kind == "object":
            # Only an annotation, such as one of the dataclass that lies one deeper, says that a view is clamped.
            members = tuple(name for name in members if name not in self.clamped)
        inner = tuple(name for name in free if name not in members and r.random() < 0.3) if r.random() < 0.5 else ()
        made = Bundle(kind, self.fresh("B"), self.fresh("B"), members, inner)
        if inner:
            self.member_class(made.inner_cls, {name: parameters[name] for name in inner})
        if kind == "dataclass":
            types = {name: parameters[name] for name in members} | {"n": self.pick("oc.i32", "oc.template()")}
            self.member_class(made.cls, types | ({"inner": made.inner_cls} if inner else {}))
        return made

    @staticmethod
    def is_tensor_array(type_: str) -> bool:
        return type_.startswith("oc.types.ndarray(dtype=oc.types")

    def member_class(self, name: str, types: dict[str, str]) -> None:
        for text in ("", "", "@dataclasses.dataclass(frozen=True)", f"class {name}:"):
            self.emit(0, text)
        for member, type_ in types.items():
            self.emit(1, f"{member}: {type_}")

    def bundled_header(self, name: str, parameters: dict[str, str], returns: str, bundle: Bundle | None) -> None:
        """The first lines of a kernel."""
        left = [f"{n}: {t}" for n, t in parameters.items() if not bundle or n not in (*bundle.members, *bundle.inner)]
        indent = 0
        if bundle and bundle.kind == "object":
            indent, left = 1, ["self", *left]
            for at, text in ((0, ""), (0, ""), (0, "@oc.data_oriented"), (0, f"class {bundle.cls}:")):
                self.emit(at, text)
            self.emit(1, "def __init__(self, **members):")
            self.emit(2, "self.__dict__.update(members)")
            self.emit(0, "")
        else:
            left = [*([f"dc: {bundle.cls}"] if bundle else []), *left]
            self.emit(0, "")
            self.emit(0, "")
        self.emit(indent, "@oc.kernel")
        self.emit(indent, f"def {name}({', '.join(left)}) -> {returns}:")

    def reach_members(self, first: int, bundle: Bundle) -> None:
        """Lets the lines of a kernel's body from one on name members."""
        variable = bundle.variable
        paths = {name: f"{variable}.{name}" for name in bundle.members}
        paths |= {name: f"{variable}.inner.{name}" for name in bundle.inner}
        names = "|".join(map(re.escape, paths)) or "(?!)"
        pattern = re.compile(rf"(?<![\w.])({names})(?!\w)")
        indent = "    " if bundle.kind == "object" else ""

        def reached(line: str) -> str:
            line = pattern.sub(lambda found: paths[found[1]], line)
            return indent + line.replace(f"range({self.size})", f"range({variable}.n)")

        self.lines[first:] = [(reached(text), reached(model)) for text, model in self.lines[first:]]

    def launch(self, names: dict, kernel: str, given: dict):
        """Calls a kernel of the program or of its model."""
        bundle = self.bundles.get(kernel)
        if bundle is None:
            return names[kernel](**given)
        held, rest = bundle.arguments(names, given, self.size)
        return names[kernel](dc=held, **rest) if bundle.kind == "dataclass" else getattr(held, kernel)(**rest)
