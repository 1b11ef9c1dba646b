"""A picture from one in twenty of its pixels: around each tile of pixels a smooth function goes through the nearest of them.

For each tile a subgroup of 32 lanes finds the 32 known pixels that are nearest, writes down how much each of them has to do with each other one, and solves that system by
Cholesky's decomposition. The matrix is a tile in the registers of the subgroup, a row on each lane.
"""

from __future__ import annotations

import time

import numpy as np
import png
from command_line import options

import octants as oc
from octants.simt import Tile32x32, block, subgroup

LANES = 32
SIDE = 8  # pixels along a side of a tile
REACH = 9.0  # pixels over which a known pixel has an influence
CELL = 16  # pixels along a side of the cells by which known pixels are found
MOST = 32  # known pixels of a cell

vec2 = oc.types.vector(2, oc.f32)


@oc.func
def influence(a, b):
    """How much two places have to do with each other."""
    distance = (a - b).norm() / REACH
    return (1.0 + distance) * oc.exp(-distance)


@oc.kernel
def fill_in(
    places: oc.types.NDArray[vec2, 1],
    values: oc.types.NDArray[oc.f32, 2],
    cells: oc.types.NDArray[oc.i32, 3],
    image: oc.types.NDArray[oc.f32, 3],
):
    """Places and values of known pixels, and the numbers of those in each cell; -1 where there are no more."""
    tiles = image.shape[0] // SIDE
    oc.loop_config(block_dim=LANES)
    for i in range(tiles * tiles * LANES):
        tile, lane = i // LANES, i % LANES
        top, left = tile // tiles * SIDE, tile % tiles * SIDE
        centre = oc.Vector([top + 0.5 * SIDE, left + 0.5 * SIDE])
        # A lane keeps one of the nearest; whoever has the farthest gives it away for a nearer one.
        own, own_distance = -1, oc.math.inf
        cell_row, cell_column = oc.cast(centre[0], oc.i32) // CELL, oc.cast(centre[1], oc.i32) // CELL
        for row in range(oc.max(cell_row - 1, 0), oc.min(cell_row + 2, cells.shape[0])):
            for column in range(oc.max(cell_column - 1, 0), oc.min(cell_column + 2, cells.shape[1])):
                for k in range(MOST):
                    known = cells[row, column, k]
                    if known < 0:
                        break
                    distance = (places[known] - centre).norm()
                    farthest = subgroup.reduce_all_max(own_distance)
                    if distance < farthest:
                        holders = subgroup.ballot(own_distance == farthest)
                        if lane == oc.math.ffs(oc.cast(holders, oc.u32)) - 1:
                            own, own_distance = known, distance
        place = oc.Vector([-1e6 * (lane + 1), 0.0])  # too few: far from everything, with no influence
        if own >= 0:
            place = places[own]
        system = block.SharedArray((LANES, LANES + 1), oc.f32)
        others = block.SharedArray(LANES, vec2)
        weights = block.SharedArray((3, LANES), oc.f32)
        others[lane] = place
        block.sync()
        for k in range(LANES):
            system[lane, k] = influence(place, others[k])
        system[lane, lane] += 1e-4
        block.sync()
        lower = Tile32x32.zeros(dtype=oc.f32)
        lower[:] = system[0:LANES, 0:LANES]
        lower.cholesky_(1e-6)
        inverse = Tile32x32.eye(dtype=oc.f32)
        lower.solve_triangular_(inverse)  # of its transpose: the system's inverse is this one times its transpose
        block.sync()
        system[0:LANES, 0:LANES] = inverse
        for colour in oc.static(range(3)):
            weights[colour, lane] = 0.0
            if own >= 0:
                weights[colour, lane] = values[own, colour]
        block.sync()
        for colour in oc.static(range(3)):
            half = 0.0
            for k in range(LANES):
                half += system[k, lane] * weights[colour, k]
            block.sync()
            weights[colour, lane] = half
            block.sync()
            whole = 0.0
            for k in range(LANES):
                whole += system[lane, k] * weights[colour, k]
            block.sync()
            weights[colour, lane] = whole
        block.sync()
        for part in range(SIDE * SIDE // LANES):
            pixel = part * LANES + lane
            row, column = top + pixel // SIDE, left + pixel % SIDE
            light = oc.Vector([0.0, 0.0, 0.0])
            for k in range(LANES):
                near = influence(oc.Vector([row + 0.5, column + 0.5]), others[k])
                light += near * oc.Vector([weights[0, k], weights[1, k], weights[2, k]])
            for colour in oc.static(range(3)):
                image[row, column, colour] = light[colour]


def cells_of(places: np.ndarray, size: int) -> np.ndarray:
    """The numbers of the places in each cell."""
    across = -(-size // CELL)
    cells = np.full((across, across, MOST), -1, np.int32)
    used = np.zeros((across, across), int)
    for number, (row, column) in enumerate((places // CELL).astype(int)):
        if used[row, column] < MOST:
            cells[row, column, used[row, column]] = number
            used[row, column] += 1
    return cells


def flower(size: int) -> np.ndarray:
    """Something to look at: petals in bands of colour."""
    x = np.linspace(-1.25, 1.25, size, dtype=np.float32)
    x, y = np.meshgrid(x, x)
    radius, turn = np.hypot(x, y), np.arctan2(y, x)
    petals = 0.62 + 0.24 * np.cos(7 * turn + 2.2 * radius)
    inside = 1 / (1 + np.exp((radius - petals) * 26))
    bands = 0.5 + 0.5 * np.cos(9 * radius - 0.6)
    heart = np.exp(-((radius / 0.16) ** 4))
    petal = np.stack([0.88 + 0.1 * bands, 0.25 + 0.45 * bands, 0.45 - 0.2 * bands], axis=2)
    leaf = np.stack([0.09 + 0.1 * bands, 0.28 + 0.1 * bands, 0.22 + 0.06 * bands], axis=2)
    picture = inside[..., None] * petal + (1 - inside[..., None]) * leaf
    return (heart[..., None] * np.array([0.98, 0.85, 0.3]) + (1 - heart[..., None]) * picture).astype(np.float32)


def reconstruct(picture: np.ndarray, share: float, seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """The picture from a share of its pixels, and what was known of it."""
    size = len(picture)
    random = np.random.default_rng(seed)
    known = random.permutation(size * size)[: int(share * size * size)]
    rows, columns = known // size, known % size
    places = np.stack([rows + 0.5, columns + 0.5], axis=1).astype(np.float32)
    image = np.zeros_like(picture)
    fill_in(places, picture[rows, columns], cells_of(places, size), image)
    seen = np.zeros_like(picture)
    seen[rows, columns] = picture[rows, columns]
    return image, seen


def main() -> None:
    chosen = options(__doc__ or "", smallest=32, size=512)
    size = chosen.size // SIDE * SIDE
    reconstruct(flower(32), 0.05)
    picture = flower(size)
    start = time.perf_counter()
    image, seen = reconstruct(picture, 0.05)
    passed = time.perf_counter() - start
    path = chosen.out / "scattered_data.png"
    png.save(path, (255 * np.clip(np.hstack([seen, image]), 0, 1)).astype(np.uint8))
    off = np.abs(image - picture).mean()
    print(f"{(size // SIDE) ** 2} systems of 32 unknowns in {passed:.2f} s, off by {off:.4f} on average: {path}")


if __name__ == "__main__":
    main()
