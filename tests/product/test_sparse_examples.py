"""The programs of `examples/` on sparse and quantised fields: each against numpy, or the same on plain fields."""

import sys

import numpy as np
import pytest
from example_programs import fresh, numpy_step

import octants as oc

pytestmark = pytest.mark.usefixtures("examples_on_path")

# --- the material point method on a sparse grid ------------------------------------------------------------------------


def test_a_step_on_the_sparse_grid_is_one_on_a_dense_grid(arch):
    program = fresh("sparse_mpm")
    rng = np.random.default_rng(5)
    count, cells = (300, 64) if arch in ("cpu", "cuda") else (40, 32)
    x = (0.3 + 0.4 * rng.random((count, 2))).astype(np.float32)
    v = rng.standard_normal((count, 2)).astype(np.float32)
    gradient = rng.standard_normal((count, 2, 2)).astype(np.float32)
    f = (np.eye(2) + 0.05 * rng.standard_normal((count, 2, 2))).astype(np.float32)
    kinds = rng.integers(0, 2, count)
    bodies = program.Bodies(x, v, kinds, cells, gravity=0.0)
    bodies.gradient.from_numpy(gradient)
    bodies.deformation.from_numpy(f)
    bodies.step()
    wide = f.astype(float)
    size = np.linalg.det(wide)[:, None, None]
    stress = program.STIFFNESS * (size - 1) * size * np.eye(2)
    left, _, right = np.linalg.svd(wide)
    strain = (wide - left @ right) @ wide.transpose(0, 2, 1)
    jelly = 0.8 * program.STIFFNESS * strain + 0.3 * stress
    stress = np.where((kinds == program.JELLY)[:, None, None], jelly, stress)
    push = -4 * bodies.time_step * bodies.volume * cells**2 * stress
    new_x, new_v, new_gradient = numpy_step(
        *(a.astype(float) for a in (x, v, gradient)), push, bodies.volume, cells, bodies.time_step
    )
    np.testing.assert_allclose(bodies.position.to_numpy(), new_x, atol=1e-5)
    np.testing.assert_allclose(bodies.velocity.to_numpy(), new_v, atol=2e-3)
    np.testing.assert_allclose(bodies.gradient.to_numpy(), new_gradient, atol=0.2)


def test_every_particle_is_in_the_list_of_its_block_once():
    program = fresh("sparse_mpm")
    positions, velocities, kinds, _ = program.pieces(64)
    bodies = program.Bodies(positions, velocities, kinds, 64)
    for _ in range(3):
        bodies.step()
    before = bodies.velocity.to_numpy().mean(axis=0)
    bodies.lists.deactivate_all()
    bodies.sort()
    listed = bodies.member.to_numpy()
    lengths = np.count_nonzero(listed, axis=2)
    base = (bodies.position.to_numpy() * 64 - 0.5).astype(int) // program.BLOCK
    expected = np.zeros_like(lengths)
    np.add.at(expected, (base[1:, 0], base[1:, 1]), 1)
    np.testing.assert_array_equal(lengths, expected)
    assert sorted(listed[listed != 0].tolist()) == list(range(1, len(positions)))
    bodies.step()
    fallen = bodies.velocity.to_numpy().mean(axis=0) - before
    np.testing.assert_allclose(fallen, [0, -bodies.gravity * bodies.time_step], atol=1e-4)


# --- life on a plane without an end -----------------------------------------------------------------------------------


def numpy_life(board):
    count = sum(np.roll(board, (i, j), (0, 1)) for i in (-1, 0, 1) for j in (-1, 0, 1)) - board
    return ((count == 3) | ((count == 2) & (board == 1))).astype(int)


@oc.kernel
def living_cells(born: oc.template(), cells: oc.types.ndarray(dtype=oc.i32, ndim=2), number: oc.types.ndarray(ndim=1)):
    for i, j in born:
        at = oc.atomic_add(number[0], 1)
        cells[at, 0] = i
        cells[at, 1] = j


def cells_of(plane):
    cells, number = np.zeros((20_000, 2), np.int32), np.zeros(1, np.int32)
    living_cells(plane.born[plane.now], cells, number)
    return cells[: number[0]]


def test_life_on_the_plane_is_numpys(arch):
    program = fresh("endless_life")
    side, steps = (96, 30) if arch in ("cpu", "cuda") else (24, 4)
    board = np.zeros((2 * side, 2 * side), int)
    board[side // 2 : -side // 2, side // 2 : -side // 2] = np.random.default_rng(1).random((side, side)) < 0.4
    plane = program.Plane()
    plane.set(np.argwhere(board) + program.MIDDLE - side)
    for _ in range(steps):
        plane.step()
        board = numpy_life(board)
    got = np.zeros_like(board)
    got[tuple((cells_of(plane) - program.MIDDLE + side).T)] = 1
    np.testing.assert_array_equal(got, board)
    assert plane.population(plane.born[plane.now]) == board.sum()


def test_a_gun_fires_gliders_and_its_plane_stays_small():
    program = fresh("endless_life")
    plane = program.Plane()
    plane.set(program.gun() + program.MIDDLE)
    for _ in range(240):
        plane.step()
    cells = cells_of(plane) - program.MIDDLE
    gun = {tuple(cell) for cell in program.gun().tolist()}
    flying = np.array([cell for cell in cells.tolist() if tuple(cell) not in gun])
    assert len(cells) - len(flying) == len(gun), "the gun is as it was after a multiple of 30 generations"
    assert len(flying) == 5 * 240 // 30, "gliders of five cells each"
    assert plane.blocks[plane.now]._num_dynamically_allocated < 40


# --- rays through voxels ----------------------------------------------------------------------------------------------


@oc.kernel
def shoot(
    scene: oc.template(), rays: oc.types.ndarray(dtype=oc.f32, ndim=2), hits: oc.types.ndarray(dtype=oc.f32, ndim=2)
):
    for n in range(rays.shape[0]):
        origin = oc.Vector([rays[n, 0], rays[n, 1], rays[n, 2]])
        towards = oc.Vector([rays[n, 3], rays[n, 4], rays[n, 5]])
        far, cell, _ = scene.march(origin, towards, 1e6)
        hits[n, 0] = far
        for axis in oc.static(range(3)):
            hits[n, 1 + axis] = cell[axis]


def test_rays_meet_the_first_voxel_on_their_way():
    program = fresh("voxels")
    scene = program.Scene(64)
    rng = np.random.default_rng(9)
    solid = np.zeros((64, 64, 64), bool)
    for _ in range(12):
        corner = rng.integers(0, 52, 3)
        solid[tuple(slice(at, at + int(rng.integers(1, 12))) for at in corner)] = True

    @oc.kernel
    def put(cells: oc.types.ndarray(dtype=oc.i32, ndim=2)):
        for n in range(cells.shape[0]):
            scene.material[cells[n, 0], cells[n, 1], cells[n, 2]] = 1

    put(np.argwhere(solid).astype(np.int32))
    assert scene.count() == solid.sum()
    towards = rng.standard_normal((400, 3))
    towards /= np.linalg.norm(towards, axis=1)[:, None]
    origin = 32 - 60 * towards + 14 * rng.standard_normal((400, 3))
    rays = np.concatenate([origin, towards], axis=1).astype(np.float32)
    hits = np.zeros((400, 4), np.float32)
    shoot(scene, rays, hits)
    met = 0
    for (ox, oy, oz, dx, dy, dz), (far, *cell) in zip(rays.astype(float), hits, strict=True):
        along = np.arange(0, 180, 0.01)
        at = np.floor(np.array([ox, oy, oz]) + along[:, None] * np.array([dx, dy, dz])).astype(int)
        inside = ((at >= 0) & (at < 64)).all(axis=1)
        found = np.flatnonzero(inside & solid[tuple(np.clip(at, 0, 63).T)])
        if not len(found):
            # A corner that is crossed by less than the steps here may be met all the same.
            assert far > 1e8 or solid[tuple(int(c) for c in cell)]
            continue
        met += 1
        assert abs(far - along[found[0]]) < 0.05 or (far < along[found[0]] and solid[tuple(int(c) for c in cell)])
    assert met >= 80


def test_only_surfaces_of_the_island_exist():
    program = fresh("voxels")
    scene = program.Scene(32)
    scene.build(0, 32)
    material = scene.material.to_numpy()
    there = material != 0
    assert scene.count() == there.sum() > 1000
    assert set(np.unique(material)) <= set(range(9)) and {1, 4} <= set(np.unique(material))
    # Deep in the hill and high in the air there is nothing.
    assert not there[16, 4, 14] and not there[:, -1].any() and there[16, :, 14].any()


# --- quantised smoke ---------------------------------------------------------------------------------------------------


def test_quantised_smoke_flows_as_plain_smoke_does(arch):
    program = fresh("quantised_fluid")
    size, steps = (48, 12) if arch in ("cpu", "cuda") else (16, 2)
    if arch not in ("cpu", "cuda"):
        program.SWEEPS = 2
    coarse, plain = program.Smoke(size, size), program.Smoke(size, size, plain=True)
    for step in range(steps):
        for smoke in (coarse, plain):
            smoke.step(program.nozzles_at(step / 10, size))
    fast = np.abs(plain.velocity.to_numpy()).max()
    assert fast > 0.05
    assert np.abs(coarse.velocity.to_numpy() - plain.velocity.to_numpy()).max() < 0.05 * fast
    assert np.abs(coarse.colour.to_numpy() - plain.colour.to_numpy()).max() < 0.05
    assert coarse.bytes_per_cell < 0.45 * plain.bytes_per_cell


def test_pressure_takes_out_what_flows_in_and_not_out():
    program = fresh("quantised_fluid")
    smoke = program.Smoke(32, 32)
    across = 0.3 * np.sin(2 * np.pi * np.arange(32) / 32)
    smoke.velocity.from_numpy(
        np.stack([np.tile(across[:, None], 32), np.tile(across, (32, 1))], axis=-1).astype(np.float32)
    )

    def imbalance():
        v = smoke.velocity.to_numpy()
        inner = v[2:, 1:-1, 0] - v[:-2, 1:-1, 0] + v[1:-1, 2:, 1] - v[1:-1, :-2, 1]
        return np.abs(inner[4:-4, 4:-4]).mean()

    before = imbalance()
    for sweep in range(400):
        smoke.press(sweep % 2)
    smoke.release()
    assert imbalance() < 0.2 * before


# --- the programs ------------------------------------------------------------------------------------------------------

PROGRAMS = {
    "sparse_mpm": ("--steps", "2", "--size", "32"),
    "endless_life": ("--steps", "2", "--size", "64"),
    "voxels": ("--size", "32"),
    "quantised_fluid": ("--steps", "1", "--size", "32"),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_draws_something(name, tmp_path, monkeypatch, capsys):
    films = []
    monkeypatch.setitem(
        sys.modules,
        "png",
        type("png", (), {"save_animation": staticmethod(lambda path, film, **_: films.append(film))}),
    )
    monkeypatch.setattr(
        sys, "argv", [name, "--frames", "2", "--out", str(tmp_path), "--arch", oc.cfg.arch.name, *PROGRAMS[name]]
    )
    program = fresh(name)
    program.main()
    ((first, second),) = films
    assert first.shape == second.shape and first.dtype == np.uint8
    assert (first != second).any() and first.reshape(-1, 3).std(axis=0).max() > 4
    assert "wrote" in capsys.readouterr().out
