"""Conway's game of life in a kaleidoscope: a random corner, mirrored, on a board without borders.

    python examples/game_of_life.py [--frames N] [--steps N] [--size CELLS] [--out DIR] [--arch NAME]

A cell with three living neighbours lives on or is born, one with two stays as it is, any other is empty. The board is
stored in blocks of 16 x 16 cells that lie together in memory; the rules below do not notice.
"""

import numpy as np
import png
from command_line import options
from pictures import Pixels, as_byte, mix, rgb, smooth_step, vec3
from progress import progress

import octants as oc

BLOCK = 16
PIXELS = 5  # along a side of a cell


def make_board(rows: int, columns: int) -> None:
    """Makes the fields, which the kernels read as globals: once, before the first of them runs."""
    global alive, neighbours, age
    alive = oc.field(oc.u8)
    neighbours = oc.field(oc.u8)
    age = oc.field(oc.i32)  # generations since birth, or minus those since death
    blocks = oc.root.dense(oc.ij, (rows // BLOCK, columns // BLOCK))
    blocks.dense(oc.ij, (BLOCK, BLOCK)).place(alive, neighbours)
    blocks.dense(oc.ij, (BLOCK, BLOCK)).place(age)


def set_board(cells: np.ndarray) -> None:
    alive.from_numpy(cells.astype(np.uint8))
    age.from_numpy(np.where(cells, 1, -1000).astype(np.int32))


@oc.kernel
def generation():
    for i, j in alive:
        count = 0
        for down, right in oc.static(oc.ndrange((-1, 2), (-1, 2))):
            if oc.static(down != 0 or right != 0):
                # One more turn around the board keeps the remainder's operands positive.
                above = (i + down + alive.shape[0]) % alive.shape[0]
                beside = (j + right + alive.shape[1]) % alive.shape[1]
                count += alive[above, beside]
        neighbours[i, j] = oc.cast(count, oc.u8)
    for cell in oc.grouped(alive):
        before = alive[cell]
        after = neighbours[cell] == 3 or (neighbours[cell] == 2 and before == 1)
        alive[cell] = oc.cast(after, oc.u8)
        if after:
            age[cell] = oc.max(age[cell], 0) + 1
        else:
            age[cell] = oc.min(age[cell], 0) - 1


@oc.func
def colour_of(years: oc.i32) -> vec3:
    """Bright at birth, settling into blue; the dead leave a fading shade."""
    colour = EMPTY
    if years > 0:
        settled = 1.0 - oc.exp(-0.12 * (years - 1))
        colour = mix(mix(NEWBORN, GROWN, oc.min(2.0 * settled, 1.0)), OLD, oc.max(2.0 * settled - 1.0, 0.0))
    else:
        colour = mix(EMPTY, SHADE, oc.exp(0.08 * years))
    return colour


@oc.kernel
def draw(image: Pixels):
    """Every cell as a disc with a soft edge."""
    for row, column in oc.ndrange(image.shape[0], image.shape[1]):
        years = age[row // PIXELS, column // PIXELS]
        down = (row % PIXELS + 0.5) / PIXELS - 0.5
        right = (column % PIXELS + 0.5) / PIXELS - 0.5
        radius = 0.48 if years > 0 else 0.36
        inside = 1.0 - smooth_step(radius - 0.1, radius + 0.1, oc.sqrt(down * down + right * right))
        colour = mix(EMPTY, colour_of(years), inside)
        for channel in oc.static(range(3)):
            image[row, column, channel] = as_byte(colour[channel])


EMPTY, SHADE = rgb("#10111c"), rgb("#5b2a5e")
NEWBORN, GROWN, OLD = rgb("#fff3b0"), rgb("#f2994a"), rgb("#3f7cac")


def kaleidoscope(size: int, seed: int = 1970) -> np.ndarray:
    """A random triangle near the middle, mirrored seven times."""
    corner = np.triu(np.random.default_rng(seed).random((size // 2, size // 2)) < 0.34)
    corner |= corner.T
    corner[: size // 5] = False
    corner[:, : size // 5] = False
    half = np.concatenate([corner, corner[::-1]])
    return np.concatenate([half, half[:, ::-1]], axis=1)


def main() -> None:
    chosen = options(__doc__, smallest=32, frames=120, steps=1, size=128)
    size = chosen.size // BLOCK * BLOCK
    make_board(size, size)
    set_board(kaleidoscope(size))
    print(f"{size} x {size} cells, {chosen.frames * chosen.steps} generations")
    image = np.zeros((size * PIXELS, size * PIXELS, 3), np.uint8)
    film = []
    for frame in progress("living", chosen.frames, "cells", chosen.steps * size**2):
        draw(image)
        film.append(image.copy())
        for _ in range(chosen.steps):
            generation()
    png.save_animation(chosen.out / "game_of_life.png", film, seconds_per_frame=1 / 12)
    print(f"  wrote {chosen.out / 'game_of_life.png'} (animated)")


if __name__ == "__main__":
    main()
