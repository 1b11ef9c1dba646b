"""A fixed slice of the random programs: Python, the interpreter, native code at two levels, and other devices agree."""

import generator
import pytest

pytestmark = pytest.mark.host_access


@pytest.mark.parametrize("seed", range(200))
def test_generated_program(seed, fresh_session, tmp_path):
    generator.check(seed, tmp_path, generator.RUNS if fresh_session == "cpu" else [(fresh_session, None)])
