"""What a class comes to say of its objects' attributes holds from the next launch on, and no longer than the class says so."""

import dataclasses

import pytest

import octants as oc


def makes_a_property(cls):
    cls.number = property(lambda self: 50)
    return lambda: delattr(cls, "number")


def computes_attributes(cls):
    cls.__getattribute__ = lambda self, name: 60 if name == "number" else object.__getattribute__(self, name)
    return lambda: delattr(cls, "__getattribute__")


def gets_another_base(cls):
    class Other(cls.__base__):
        number = property(lambda self: 70)

    before, cls.__bases__ = cls.__bases__, (Other,)
    return lambda: setattr(cls, "__bases__", before)


def changes_a_base(cls):
    return makes_a_property(cls.__base__)


CHANGES = [makes_a_property, computes_attributes, gets_another_base, changes_a_base]


def holder():
    """A class whose launches read a number of their own object, and of one inside of it."""

    class Root:
        pass

    class Base(Root):
        pass

    @oc.data_oriented
    class Holder(Base):
        def __init__(self):
            self.number = 1
            self.part = part()()

        @property
        def doubled(self):
            return self.number * 2

        @oc.kernel
        def run(self) -> oc.i32:
            return self.number + 1000 * self.doubled + 1000000 * self.part.number

        def expected(self):
            return self.number + 1000 * self.doubled + 1000000 * self.part.number

    return Holder


def part():
    class Root:
        pass

    class Base(Root):
        pass

    class Part(Base):
        def __init__(self):
            self.number = 3

    return Part


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("inner", [False, True])
def test_objects_of_a_changed_class(change, inner):
    oc.init(arch=oc.cpu)
    one = holder()()
    cls = type(one.part) if inner else type(one)
    for _ in range(2):
        before = one.expected()
        assert [one.run() for _ in range(6)] == [before] * 6
        undo = change(cls)
        assert one.expected() != before
        assert [one.run() for _ in range(6)] == [one.expected()] * 6
        undo()
        assert one.expected() == before


def test_what_a_changed_class_computes_may_change_at_each_launch():
    oc.init(arch=oc.cpu)
    one = holder()()
    one.run(), one.run(), one.run()
    now = 0
    type(one).number = property(lambda self: now)
    for now in range(10):
        assert one.run() == one.expected()


@pytest.mark.parametrize("change", CHANGES)
def test_frozen_dataclasses_of_a_changed_class(change):
    class Root:
        pass

    class Base(Root):
        pass

    @dataclasses.dataclass(frozen=True)
    class Frozen(Base):
        number: int

    @oc.data_oriented
    class Holder:
        def __init__(self):
            self.frozen = Frozen(4)

        @oc.kernel
        def run(self) -> oc.i32:
            return self.frozen.number

    oc.init(arch=oc.cpu)
    one = Holder()
    for _ in range(2):
        assert [one.run() for _ in range(6)] == [4] * 6
        undo = change(Frozen)
        assert [one.run() for _ in range(6)] == [one.frozen.number] * 6 != [4] * 6
        undo()
