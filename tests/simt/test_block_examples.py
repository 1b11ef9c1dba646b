"""The programs of `examples/` whose threads work together: each against numpy, or what must hold for any number of blocks."""

import importlib
import subprocess
import sys

import numpy as np
import pytest

pytestmark = pytest.mark.usefixtures("examples_on_path")


def loaded(name):
    sys.modules.pop(name, None)
    return importlib.import_module(name)


# ---- path_tracer ---------------------------------------------------------------------------------------------------------


def test_any_number_of_blocks_traces_the_same_paths(arch, examples_on_path):
    program = loaded("path_tracer")
    size = 16 if arch == "reference" else 40
    first, one = program.render(size, 1, 1)
    second, several = program.render(size, 1, 3)
    tiles = (size // program.SIDE) ** 2
    assert one.sum() == several.sum() == tiles, "every tile is claimed once"
    assert (first == second).all() and first.max() > 0.1


def test_a_furnace_is_as_bright_as_what_bounces(arch, examples_on_path, monkeypatch):
    """Dull walls of one colour c around a lamp of everywhere the same light: what a surface sends back is c times the lamp's light."""
    program = loaded("path_tracer")
    light, colour = 2.0, 0.5
    spheres = np.array(
        [[[0, 0, 0, 50.0], [1, 1, 1, -light]], [[0, 0, 0, 1.5], [colour, colour, colour, 0.0]]], np.float32
    )
    monkeypatch.setattr(program, "SPHERES", spheres)
    size, samples = 16, 2 if arch == "reference" else 64
    image, _ = program.render(size, samples, 2)
    # The eye looks at the ball in the middle, which no other surface shades.
    np.testing.assert_allclose(image[6:10, 6:10], light * colour, rtol=1e-5)
    np.testing.assert_allclose(image[0, 0], light, rtol=1e-5)


# ---- cosines -------------------------------------------------------------------------------------------------------------


def test_products_are_those_of_numpy(arch, examples_on_path):
    program = loaded("cosines")
    rows, depth, columns = (64, 16, 64) if arch == "reference" else (192, 80, 128)
    random = np.random.default_rng(5)
    a, b = random.uniform(-1, 1, (rows, depth)), random.uniform(-1, 1, (depth, columns))
    c = program.product(a.astype(np.float32), b.astype(np.float32))
    np.testing.assert_allclose(c, a @ b, atol=2e-5)


def test_all_cosines_give_the_picture_back(arch, examples_on_path, monkeypatch):
    if arch == "reference":
        pytest.skip("four products of matrices take the interpreter a minute")
    program = loaded("cosines")
    monkeypatch.setattr(program, "KEPT", (0.01, 0.9999))
    image, (few, all_but_none) = program.compressed(128)
    np.testing.assert_allclose(all_but_none, image, atol=2e-3)
    assert np.abs(few - image).mean() > 5 * np.abs(all_but_none - image).mean()


# ---- scattered_data ------------------------------------------------------------------------------------------------------


def test_the_function_is_that_of_the_nearest_known_pixels(arch, examples_on_path):
    program = loaded("scattered_data")
    size, share = (32, 0.1) if arch == "reference" else (64, 0.06)
    picture = program.flower(size)
    image, seen = program.reconstruct(picture, share)
    rows, columns = np.nonzero(seen.any(axis=2))
    places = np.stack([rows + 0.5, columns + 0.5], axis=1)
    for tile in [(0, 0), (size // 8 - 1, 2), (1, size // 8 - 1)]:
        top, left = tile[0] * 8, tile[1] * 8
        centre = np.array([top + 4, left + 4])
        cell = (centre // 16).astype(int)
        within = (np.abs(places // 16 - cell) <= 1).all(axis=1)
        distances = np.where(within, np.linalg.norm(places - centre, axis=1), np.inf)
        nearest = np.argsort(distances, kind="stable")[:32]
        nearest = nearest[np.isfinite(distances[nearest])]
        edge = np.sort(distances)[31:33] if within.sum() > 32 else [0, 1]
        if edge[1] - edge[0] < 1e-4:
            continue  # which of two is nearer is a matter of rounding

        def influence(a, b):
            distance = np.linalg.norm(a[:, None] - b[None], axis=2) / program.REACH
            return (1 + distance) * np.exp(-distance)

        known = places[nearest]
        system = influence(known, known) + 1e-4 * np.eye(len(known))
        weights = np.linalg.solve(system, picture[rows[nearest], columns[nearest]].astype(np.float64))
        pixels = np.stack(np.meshgrid(np.arange(top, top + 8), np.arange(left, left + 8), indexing="ij"), axis=2)
        wanted = influence(pixels.reshape(-1, 2) + 0.5, known) @ weights
        np.testing.assert_allclose(image[top : top + 8, left : left + 8].reshape(-1, 3), wanted, atol=2e-2)


@pytest.mark.parametrize("name, size", [("path_tracer", 16), ("cosines", 64), ("scattered_data", 32)])
def test_a_program_writes_its_picture(name, size, arch, request, tmp_path):
    if arch == "reference":
        pytest.skip("the interpreter takes a minute")
    command = [sys.executable, str(request.config.rootpath / "examples" / f"{name}.py"), "--size", str(size)]
    steps = ["--steps", "2"] if name == "path_tracer" else []
    done = subprocess.run(
        [*command, *steps, "--out", str(tmp_path), "--arch", arch], capture_output=True, text=True, timeout=240
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / f"{name}.png").read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
