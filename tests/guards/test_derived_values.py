"""Numbers and strings of classes derived from Python's own: compile-time code sees their class, and operators of their own are not passed over."""

import enum

import pytest

import octants as oc


class Mode(str, enum.Enum):
    FAST = "fast"


class Text(str):
    pass


class Level(enum.IntEnum):
    LOW = 1


class Bits(enum.IntFlag):
    A = 1
    B = 4


class Real(float):
    pass


class Saturating(int):
    def __add__(self, other):
        return 1000


class Loud(str):
    def __eq__(self, other):
        return True

    __hash__ = str.__hash__


TEXT = Text("x")


@oc.data_oriented
class Holder:
    def __init__(self):
        self.mode, self.text, self.level, self.real, self.total = Mode.FAST, TEXT, Level.LOW, Real(1.5), Saturating(7)

    @oc.kernel
    def classes(self) -> oc.i32:
        r = 0
        if oc.static(isinstance(self.mode, enum.Enum)):
            r += 1
        if oc.static(isinstance(self.mode, Mode)):
            r += 10
        if oc.static(isinstance(self.text, Text)):
            r += 100
        if oc.static(isinstance(self.level, Level)):
            r += 1000
        if oc.static(isinstance(self.real, Real)):
            r += 10000
        if oc.static(self.mode == "fast" and self.text == "x" and isinstance(TEXT, Text)):
            r += 100000
        return r

    @oc.kernel
    def sum(self) -> oc.i32:
        return self.total + 1

    @oc.kernel
    def sum_with(self, x: oc.i32) -> oc.i32:
        return self.total + x


@oc.kernel
def classes_of_templates(mode: oc.Template, text: oc.Template, level: oc.Template, real: oc.Template) -> oc.i32:
    r = 0
    if oc.static(isinstance(mode, Mode)):
        r += 1
    if oc.static(type(text) is Text):
        r += 10
    if oc.static(isinstance(level, enum.Enum)):
        r += 100
    if oc.static(isinstance(real, Real)):
        r += 1000
    return r


def test_compile_time_code_sees_the_class(arch):
    assert Holder().classes() == 111111
    assert classes_of_templates(Mode.FAST, TEXT, Level.LOW, Real(1.5)) == 1111
    assert classes_of_templates("fast", "x", 1, 1.5) == 0


def test_operators_of_a_class_decide(arch):
    assert Holder().sum() == 1000
    assert Holder().sum_with(3) == 1000


@oc.kernel
def product(a: oc.Template, x: oc.i32) -> oc.i32:
    return a * x


@oc.kernel
def is_any(text: oc.Template) -> oc.i32:
    return 1 if oc.static(text == "other") else 0


@oc.kernel
def flags(x: oc.i32) -> oc.i32:
    return (x & Bits.A) | Bits.B | (Bits.A | Bits.B)


def test_enums_calculate_as_numbers(arch):
    assert flags(3) == 5
    assert product(Level.LOW, 4) == 4


def test_a_number_with_operators_of_its_own_is_no_plain_number(arch):
    with pytest.raises(oc.OctantsCompilationError):
        product(Saturating(3), 4)
    assert product(int(Saturating(3)), 4) == 12
    assert is_any(Loud("x")) == 1
    assert is_any(Text("x")) == 0


class Cyclic(list):
    """Its items go on for ever, and a loop sees each of them twice."""

    def __getitem__(self, at):
        return super().__getitem__(at % list.__len__(self))

    def __len__(self):
        return 2 * super().__len__()

    def __iter__(self):
        return iter([self[at] for at in range(len(self))])


class Hidden(dict):
    def __iter__(self):
        return iter([name for name in self.keys() if not name.startswith("_")])


CYCLIC, HIDDEN = Cyclic([1, 2, 3]), Hidden(a=1, _b=2, c=3)


@oc.data_oriented
class Containers:
    def __init__(self):
        self.cyclic, self.hidden = Cyclic([4, 5]), Hidden(_a=1, b=2)

    @oc.kernel
    def items(self) -> oc.i32:
        s = len(self.cyclic) + self.cyclic[3]
        for item in oc.static(self.cyclic):
            s = s * 3 + item
        for name in oc.static(self.hidden):
            s = s * 3 + self.hidden[name]
        return s

    def expected(self):
        s = len(self.cyclic) + self.cyclic[3]
        for item in self.cyclic:
            s = s * 3 + item
        for name in self.hidden:
            s = s * 3 + self.hidden[name]
        return s


@oc.kernel
def items_of_globals() -> oc.i32:
    s = len(CYCLIC) + CYCLIC[4]
    for item in oc.static(CYCLIC):
        s = s * 3 + item
    for name in oc.static(HIDDEN):
        s = s * 3 + HIDDEN[name]
    return s


def test_containers_say_themselves_what_they_hold(arch):
    def of_globals():
        s = len(CYCLIC) + CYCLIC[4]
        for item in CYCLIC:
            s = s * 3 + item
        for name in HIDDEN:
            s = s * 3 + HIDDEN[name]
        return s

    containers = Containers()
    for change in (
        lambda: None,
        lambda: CYCLIC.__setitem__(0, 7),
        lambda: HIDDEN.update(d=4),
        lambda: containers.cyclic.append(6),
        lambda: containers.hidden.update(b=5),
    ):
        change()
        assert [items_of_globals(), items_of_globals()] == [of_globals()] * 2
        assert [containers.items(), containers.items()] == [containers.expected()] * 2
