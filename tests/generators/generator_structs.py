"""Structs with methods: their classes, and the statements that use them."""

from __future__ import annotations

from generator_expressions import Scope
from generator_statements import Statements
from generator_types import REALS, StructType, annotation, scalar_of


class Structs(Statements):
    """Classes of the program, values of them, and calls of their methods."""

    def __init__(self, seed: int):
        super().__init__(seed)
        self.struct_types: list[StructType] = []
        #: The methods of a class: name, types of the parameters, type of the result.
        self.methods: dict[StructType, list[tuple[str, list, str]]] = {}
        self.special += [self.new_struct, self.struct_assignment, self.method_call]

    def of(self, type_, scope: Scope, depth: int = 0) -> str:
        if not isinstance(type_, StructType):
            return super().of(type_, scope, depth)
        known = scope.structs.get(type_)
        if known and self.random.random() < 0.6:
            return self.pick(*known)
        given = [member for member in type_.members if self.random.random() < 0.9]
        return f"{type_.name}({', '.join(f'{name}={self.member(t, scope, depth)}' for name, t in given)})"

    def member(self, t, scope: Scope, depth: int) -> str:
        text = self.of(t, scope, max(depth + 1, self.deepest))
        scalar = None if isinstance(t, StructType) else scalar_of(t)
        return self.bounded(text, scalar) if scalar in REALS else text

    def struct_class(self) -> None:
        """A class with a few members, which may be of an earlier class, and methods that may change them."""
        members: list = [(self.fresh("m"), self.any_type()) for _ in range(self.random.randint(1, 3))]
        if self.struct_types and self.random.random() < 0.5:
            members.append((self.fresh("m"), self.pick(*self.struct_types)))
        members.append((self.fresh("m"), self.pick(*self.integers)))
        self.random.shuffle(members)
        made = StructType(self.fresh("S"), tuple(members))
        for text in ("", "", "@oc.dataclass", f"class {made.name}:"):
            self.emit(0, text)
        for name, t in made.members:
            self.emit(1, f"{name}: {annotation(t)}")
        self.methods[made] = []
        for _ in range(self.random.randint(0, 2)):
            self.method(made)
        self.struct_types.append(made)

    def method(self, made: StructType) -> None:
        name, params = self.fresh("d"), [self.pick(*self.palette) for _ in range(self.random.randint(0, 2))]
        names = [self.fresh("p") for _ in params]
        scope = Scope()
        for member, place in made.leaves("self"):
            scope.add(member, place)
        self.emit(0, "")
        self.emit(1, "@oc.func")
        self.emit(1, f"def {name}({', '.join(['self', *names])}):")
        self.emit(2, "acc = oc.cast(0, oc.i32)")
        for param, t in zip(names, params, strict=True):
            local = self.fresh("v")
            self.emit(2, f"{local} = {self.bounded(param, t) if t in REALS else param}")
            scope.add(t, local)
        before = scope.inner()
        for _ in range(self.random.randint(1, 2)):
            self.statement(scope, 2, [])
        self.digest(before, scope, 2)
        result = self.pick(*self.palette)
        self.emit(2, f"return {self.with_digest(result, self.settled(result, scope))}")
        self.methods[made].append((name, params, result))

    # ---- statements -----------------------------------------------------------------------------------------------------

    def new_struct(self, scope: Scope, indent: int, _loops: list[str]) -> bool:
        if not self.struct_types:
            return False
        made, name = self.pick(*self.struct_types), self.fresh("s")
        self.emit(indent, f"{name} = {self.of(made, scope)}")
        scope.add(made, name)
        return True

    def struct_assignment(self, scope: Scope, indent: int, _loops: list[str]) -> bool:
        """All members at once; a nested struct is a member like others."""
        if not scope.structs:
            return False
        made = self.pick(*scope.structs)
        name = self.pick(*scope.structs[made])
        nested = [(member, t) for member, t in made.members if isinstance(t, StructType)]
        if nested and self.random.random() < 0.5:
            member, t = self.pick(*nested)
            self.emit(indent, f"{name}.{member} = {self.of(t, scope)}")
        else:
            self.emit(indent, f"{name} = {self.of(made, scope)}")
        return True

    def method_call(self, scope: Scope, indent: int, _loops: list[str]) -> bool:
        usable = [made for made in scope.structs if self.methods[made]]
        if not usable:
            return False
        made = self.pick(*usable)
        name, params, result = self.pick(*self.methods[made])
        given = ", ".join(self.of(t, scope, 1) for t in params)
        value = self.fresh("v")
        self.emit(indent, f"{value} = {self.pick(*scope.structs[made])}.{name}({given})")
        scope.add(result, value)
        return True
