"""A fixed slice of the random programs with derivatives: reverse mode, forward mode and differences agree on compiled code."""

import gradient_generator
import pytest

#: Seeds that once failed, and what they found.
FOUND: dict[int, str] = {}


@pytest.mark.parametrize("seed", [*range(24), *FOUND])
def test_derivatives_of_a_generated_program_agree(seed, fresh_session, tmp_path):
    assert gradient_generator.check(seed, tmp_path, fresh_session) in ("agrees", "kink", "refused")
