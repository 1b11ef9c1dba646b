"""Members are looked up at each launch wherever they lie in the dictionary of their object by then."""

import pytest

import octants as oc


@oc.data_oriented
class Numbers:
    def __init__(self):
        self.first = 1
        self.second = 20
        self.third = 300

    @oc.kernel
    def total(self) -> oc.i32:
        return self.first + 2 * self.second + 3 * self.third


def moved_to_the_end(numbers):
    value = numbers.first
    del numbers.first
    numbers.first = value + 1


def exchanged(numbers):
    items = list(vars(numbers).items())
    vars(numbers).clear()
    vars(numbers).update({name: value + 7 for name, value in reversed(items)})


def under_another_string(numbers):
    name = "".join(["sec", "ond"])
    del numbers.second
    vars(numbers)[name] = 21


def behind_many(numbers):
    del numbers.third
    for n in range(100):
        setattr(numbers, f"other{n}", n)
    numbers.third = 301


def in_a_new_dictionary(numbers):
    numbers.__dict__ = {"third": 5, "unused": 6, "second": 7, "first": 8}


@pytest.mark.parametrize(
    "change", [moved_to_the_end, exchanged, under_another_string, behind_many, in_a_new_dictionary]
)
def test_a_member_that_moved_in_its_dictionary_is_found(change):
    oc.init(arch=oc.cpu)
    numbers = Numbers()

    def check():
        assert numbers.total() == numbers.first + 2 * numbers.second + 3 * numbers.third

    for _ in range(5):  # what they were is kept after some
        check()
    for _ in range(30):
        change(numbers)
        for _ in range(3):
            check()


def test_a_member_that_is_gone_is_the_one_of_the_class():
    oc.init(arch=oc.cpu)
    numbers = Numbers()
    for _ in range(5):
        assert numbers.total() == 941
    Numbers.first = 4
    try:
        del numbers.first
        assert [numbers.total() for _ in range(3)] == [944] * 3
    finally:
        del Numbers.first
