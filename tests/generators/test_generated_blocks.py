"""A fixed slice of the random programs for blocks: the model, the interpreter and the devices agree; faults are reported with their lines."""

import collections

import pytest
import simt_generator
from simt_program import Program

#: Seeds that once failed, and what they found.
FOUND: dict[int, str] = {}


@pytest.mark.parametrize("seed", sorted({*range(60), *FOUND}))
def test_blocks_come_to_what_the_model_says(seed, fresh_session, tmp_path):
    simt_generator.check(seed, tmp_path, [fresh_session])


@pytest.mark.no_device
@pytest.mark.parametrize("seed", range(30))
def test_faults_are_reported_with_their_lines(seed, tmp_path):
    assert simt_generator.check_wrong(seed, tmp_path, ["cpu"]) in ("race", "parted", "left", "outside")


@pytest.mark.no_device
def test_programs_have_of_everything():
    """Most of what blocks can do is in some dozens of programs."""
    words = collections.Counter()
    wanted = {
        "block.sync()", "block.sync_any_nonzero", "block.sync_count_nonzero", "block.SharedArray", "block.reduce_all_add", "block.inclusive_", "block.exclusive_scan",
        "block.radix_rank_match_atomic_or", "subgroup.shuffle(", "subgroup.shuffle_up", "subgroup.shuffle_down", "subgroup.shuffle_xor", "subgroup.broadcast(", "subgroup.ballot(",
        "subgroup.all_true_tiled", "subgroup.reduce_add", "subgroup.segmented_reduce_min", "subgroup.exclusive_xor", "subgroup.bitonic_sort_kv_tiled", "subgroup.sync()",
        "oc.atomic_add(k0[0], 1)", "oc.static(", "break", "continue", "while True", "oc.f16", "oc.u8", "oc.ndrange", "return",
    }  # fmt: skip
    for seed in range(150):
        text = Program(seed).text
        words.update(word for word in wanted if word in text)
    assert not wanted - set(words)
