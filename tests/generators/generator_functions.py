"""Functions: inlined ones, ones that are compiled on their own, templates and references."""

from __future__ import annotations

import contextlib

from generator_expressions import Scope
from generator_slices import Slices
from generator_types import REALS, StructType, annotation, scalar_of


class Functions(Slices):
    """Writes functions, and calls those that are written already."""

    def __init__(self, seed: int):
        super().__init__(seed)
        #: Functions that change an argument: name, arrays, other parameters, types of the results, type of the argument.
        self.changing: list[tuple[str, list[str], list, list, str]] = []
        #: What the function that is being written returns, if it may return anywhere, and the parameter that it changes.
        self.returned: list | None = None
        #: Functions that store to an array at an index: name, that array, arrays, other parameters, type of the result.
        self.storing: list[tuple[str, str, list[str], list, str]] = []
        #: Fields that functions reach as globals of the program.
        self.global_fields: set[str] = set()
        self.reference = ""
        self.special += [self.changing_call, self.early_return]

    def start(self) -> Scope:
        """What every function sees: the arrays that are only read."""
        scope = Scope()
        for name, (element, shape) in self.inputs.items():
            scope.arrays.setdefault(element, []).append((name, shape[0]))
            scope.add(element, f"{name}[{self.random.randrange(shape[0])}]", assignable=False)
        return scope

    def param_type(self):
        if self.struct_types and self.random.random() < 0.2:
            return self.pick(*self.struct_types)
        return self.any_type()

    def take(self, names: list[str], params: list, scope: Scope) -> None:
        """Copies the parameters into variables, reals in bounds."""
        for param, t in zip(names, params, strict=True):
            local = self.fresh("v")
            if isinstance(t, StructType):
                self.emit(1, f"{local} = {param}")
                bounds = [(place, member) for member, place in t.leaves(local) if scalar_of(member) in REALS]
                for place, member in bounds:
                    self.emit(1, f"{place} = {self.bounded(place, scalar_of(member))}")
            else:
                scalar = scalar_of(t)
                text = self.bounded(param, scalar) if scalar in REALS else param
                self.emit(1, f"{local} = oc.cast({text}, oc.{scalar})")
            scope.add(t, local)

    def give(self, indent: int, results: list, scope: Scope) -> None:
        values = ", ".join(self.with_digest(t, self.settled(t, scope)) for t in results)
        self.emit(indent, f"return {values}", f"return ({values}), {self.reference}" if self.reference else None)

    # ---- inlined functions ----------------------------------------------------------------------------------------------

    def func(self) -> None:
        name = self.fresh("f")
        params = [self.param_type() for _ in range(self.random.randint(1, 3))]
        scope = self.start()
        names = [self.fresh("p") for _ in params]
        declared = [
            f"{n}: {annotation(t)}" if self.random.random() < 0.3 else n for n, t in zip(names, params, strict=True)
        ]
        templates = []
        if self.random.random() < 0.3:
            templates.append("n")
            declared.append("n: oc.template()")
            scope.indices.append("n")
        changed = self.pick(*self.palette) if self.random.random() < 0.3 else None
        if changed:
            self.reference = self.fresh("r")
            declared.append(f"{self.reference}: oc.template()")
            scope.add(changed, self.reference)
        arrays = self.array_names
        for text in ("", "", "@oc.func", f"def {name}({', '.join([*arrays, *declared])}):"):
            self.emit(0, text)
        self.take(names, params, scope)
        self.emit(1, "acc = oc.cast(0, oc.i32)")
        # Not a block: what it defines may be returned.
        for _ in range(self.random.randint(1, 3)):
            self.statement(scope, 1, [])
        self.digest(Scope(), scope, 1)
        results = [self.pick(*self.palette) for _ in range(self.pick(1, 1, 2))]
        self.give(1, results, scope)
        taken = [*params, *("template" for _ in templates)]
        if changed:
            self.changing.append((name, arrays, taken, results, changed))
            self.reference = ""
        else:
            self.funcs.append((name, arrays, taken, results))

    # ---- functions that are compiled on their own -----------------------------------------------------------------------

    def real_func(self) -> None:
        """May call itself: its last parameter says how often."""
        name, scope = self.fresh("f"), Scope()
        used = [a for a in self.inputs if self.random.random() < 0.5]
        arrays = self.passed(used)
        for array in used:
            element, shape = self.inputs[array]
            scope.arrays.setdefault(element, []).append((array, shape[0]))
        params = [self.param_type() for _ in range(self.random.randint(1, 2))]
        names = [self.fresh("p") for _ in params]
        declared = [f"{a}: {self.array_parameter(a)}" for a in arrays]
        declared += [f"{n}: {annotation(t)}" for n, t in zip(names, params, strict=True)]
        declared.append("n: oc.i32")
        changed = self.pick(*self.palette) if self.random.random() < 0.3 else None
        if changed:
            self.reference = self.fresh("r")
            declared.append(f"{self.reference}: oc.ref({annotation(changed)})")
            scope.add(changed, self.reference)
        results = [self.pick(*self.palette) for _ in range(self.pick(1, 1, 2))]
        types = ", ".join(f"oc.{t}" for t in results)
        returns = types if len(results) == 1 else f"({types})"
        for text in ("", "", "@oc.real_func", f"def {name}({', '.join(declared)}) -> {returns}:"):
            self.emit(0, text)
        scope.indices.append("n")
        # Other functions see arrays that this one does not have.
        self.returned, earlier, self.funcs = results, self.funcs, []
        self.take(names, params, scope)
        self.emit(1, "acc = oc.cast(0, oc.i32)")
        self.emit(1, "if n <= 0:")
        self.give(2, results, scope)
        for _ in range(self.random.randint(1, 2)):
            self.statement(scope, 1, [])
        if self.random.random() < 0.6:
            self.again(name, [*arrays, *(self.of(t, scope, 1) for t in params), "n - 1"], results, changed, scope)
        for _ in range(self.random.randint(0, 2)):
            self.statement(scope, 1, [])
        self.digest(Scope(), scope, 1)
        self.give(1, results, scope)
        self.returned, self.funcs, self.reference = None, earlier, ""
        if changed:
            self.changing.append((name, arrays, [*params, "fuel"], results, changed))
        else:
            self.funcs.append((name, arrays, [*params, "fuel"], results))

    def passed(self, arrays: list[str]) -> list[str]:
        """Which of the arrays that a function uses are its parameters: some fields are globals."""
        found = [a for a in arrays if a not in self.fields or self.random.random() < 0.5]
        self.global_fields |= set(arrays) - set(found)
        return found

    def storing_func(self) -> None:
        """Changes an element of an array or a field, and of the field of structs, at an index that is given."""
        name, scope, r = self.fresh("f"), Scope(), self.random
        targets = [a for a in self.outputs if a.startswith("o_")]
        target = self.pick(*([a for a in targets if a in self.fields] or targets))
        element, _ = self.outputs[target]
        with_struct = self.struct_field is not None and r.random() < 0.7
        used = [target, *(a for a in self.inputs if r.random() < 0.3)]
        for array in used[1:]:
            scope.arrays.setdefault(self.inputs[array][0], []).append((array, self.inputs[array][1][0]))
        arrays = self.passed(used)
        declared = [f"{a}: {self.array_parameter(a)}" for a in arrays]
        if with_struct and r.random() < 0.5:
            arrays.append("sf")
            declared.append("sf: oc.template()")
        elif with_struct:
            self.global_fields.add("sf")
        params = [self.param_type() for _ in range(r.randint(1, 2))]
        names = [self.fresh("p") for _ in params]
        declared += ["at: oc.i32", *(f"{n}: {annotation(t)}" for n, t in zip(names, params, strict=True)), "n: oc.i32"]
        result = self.pick(*self.palette)
        for text in ("", "", "@oc.real_func", f"def {name}({', '.join(declared)}) -> oc.{result}:"):
            self.emit(0, text)
        scope.indices += ["at", "n"]
        scope.add(element, f"{target}[at]", assignable=False)
        if with_struct:
            scope.add(self.struct_field, "sf[at]")
        self.returned, earlier, self.funcs = [result], self.funcs, []
        self.take(names, params, scope)
        self.emit(1, "acc = oc.cast(0, oc.i32)")
        self.statement(scope, 1, [])
        self.emit(1, f"{target}[at] = {self.settled(element, scope)}")
        self.emit(1, "if n <= 0:")
        self.give(2, [result], scope)
        if r.random() < 0.4:
            self.again(name, [*arrays, "at", *(self.of(t, scope, 1) for t in params), "n - 1"], [result], None, scope)
        self.statement(scope, 1, [])
        self.emit(1, f"{target}[at] = {self.settled(element, scope)}")
        self.digest(Scope(), scope, 1)
        self.give(1, [result], scope)
        self.returned, self.funcs = None, earlier
        self.storing.append((name, target, arrays, params, result))

    def storing_call(self, scope: Scope, indent: int) -> None:
        """Lets a function store to the elements that are the iteration's own."""
        fitting = [f for f in self.storing if f[1] in self.mine]
        if not fitting:
            return
        name, _, arrays, params, result = self.pick(*fitting)
        value = self.fresh("v")
        text = ", ".join([*arrays, f"oc.cast({self.target}, oc.i32)", *self.given([*params, "fuel"], scope, 1)])
        self.emit(indent, f"{value} = {name}({text})")
        scope.add(result, value)

    def again(self, name: str, given: list[str], results: list, changed: str | None, scope: Scope) -> None:
        """The function calls itself."""
        made = [self.fresh("v") for _ in results]
        text = ", ".join(made)
        if changed:
            self.emit(
                1,
                f"{text} = {name}({', '.join([*given, self.reference])})",
                f"({text}), {self.reference} = {name}({', '.join([*given, self.reference])})",
            )
        else:
            self.emit(1, f"{text} = {name}({', '.join(given)})")
        for variable, t in zip(made, results, strict=True):
            self.emit(1, f"{variable} = {self.bounded(variable, t) if t in REALS else variable}")
            scope.add(t, variable)

    def early_return(self, scope: Scope, indent: int, loops: list[str]) -> bool:
        if self.returned is None or "static" in loops:
            return False
        self.emit(indent, f"if {self.condition(scope)}:")
        self.give(indent + 1, self.returned, scope)
        return True

    @contextlib.contextmanager
    def at_top_level(self):
        """Where a loop of an inlined function would be parallel, only others are called."""
        earlier, self.funcs = self.funcs, [func for func in self.funcs if "fuel" in func[2]]
        yield
        self.funcs = earlier

    # ---- calls ----------------------------------------------------------------------------------------------------------

    def given(self, params: list, scope: Scope, depth: int) -> list[str]:
        special = {"template": "4", "fuel": f"oc.cast({self.random.randint(1, 3)}, oc.i32)"}
        return [special[p] if p in ("template", "fuel") else self.of(p, scope, depth + 1) for p in params]

    def call(self, t: str, scope: Scope, depth: int) -> str | None:
        fitting = [func for func in self.funcs if t in func[3]]
        if not fitting or depth > 2:
            return None
        name, arrays, params, results = self.random.choice(fitting)
        text = f"{name}({', '.join([*arrays, *self.given(params, scope, depth)])})"
        return text if len(results) == 1 else f"{text}[{results.index(t)}]"

    def changing_call(self, scope: Scope, indent: int, _loops: list[str]) -> bool:
        """A call of a function that changes a variable of its caller."""
        fitting = [f for f in self.changing if scope.assignable.get(f[4])] if self.returned is None else []
        if not fitting:
            return False
        name, arrays, params, results, changed = self.pick(*fitting)
        if any(array not in self.visible(scope) for array in arrays):
            return False
        variable = self.pick(*scope.assignable[changed])
        text = ", ".join([*arrays, *self.given(params, scope, 1), variable])
        made = [self.fresh("v") for _ in results]
        self.emit(indent, f"{', '.join(made)} = {name}({text})", f"({', '.join(made)}), {variable} = {name}({text})")
        for value, t in zip(made, results, strict=True):
            scope.add(t, value)
        if changed in REALS:
            self.emit(indent, f"{variable} = {self.bounded(variable, changed)}")
        return True

    @staticmethod
    def visible(scope: Scope) -> set[str]:
        return {name for found in scope.arrays.values() for name, _ in found}
