"""A fixed slice of the random whole programs under a tape: what a tape gives is what differences of the same program in Python are."""

import pytest
import tape_generator
from tape_programs import TapeProgram

#: Seeds that once failed, and what they found.
FOUND: dict[int, str] = {}


@pytest.mark.parametrize("seed", sorted({*range(30), *FOUND}))
def test_a_tape_gives_the_differences_of_the_program(seed, fresh_session, tmp_path):
    assert tape_generator.check(seed, tmp_path, fresh_session) in ("agrees", "kink", "refused")


def test_programs_have_of_everything():
    """Most shapes of kernels and deeds of a host are in some dozens of programs."""
    features = set().union(*(TapeProgram(seed).features for seed in range(200)))
    wanted = "checkpoint no_grad replaced swap stream held large object gains time pair vector data table global flag link order count struct argument"
    assert set(wanted.split()) <= features
