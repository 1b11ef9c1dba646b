"""A fixed slice of the random programs: Python, the interpreter, and native code at two levels agree."""

import generator
import pytest


@pytest.mark.parametrize("seed", range(200))
def test_generated_program(seed, tmp_path):
    generator.check(seed, tmp_path)
