"""A picture as a sum of cosines, of which only the strongest are kept: four products of matrices.

A block of threads computes a tile of a product. It brings tiles of both factors into the memory that its threads share, since each of their elements is used as often as a
tile has rows, and each thread keeps a small matrix of sums in its registers.
"""

from __future__ import annotations

import time

import numpy as np
import png
from command_line import options

import octants as oc
from octants.simt import block

SIDE = 64  # rows and columns of a tile
DEPTH = 16  # columns of the left factor, and rows of the right one, that are in shared memory
OWN = 4  # rows and columns of the tile that a thread computes
ACROSS = SIDE // OWN  # threads along a side of the tile
THREADS = ACROSS * ACROSS

Matrix = oc.types.NDArray[oc.f32, 2]
KEPT = (0.002, 0.01, 0.05)  # shares of the cosines that the pictures are made of


@oc.kernel
def multiply(a: Matrix, b: Matrix, c: Matrix):
    """c = a·b, for matrices whose sides are multiples of a tile's."""
    down, right, parts = c.shape[0] // SIDE, c.shape[1] // SIDE, a.shape[1] // DEPTH
    oc.loop_config(block_dim=THREADS)
    for i in range(down * right * THREADS):
        tile, thread = i // THREADS, i % THREADS
        first_row, first_column = tile // right * SIDE, tile % right * SIDE
        row, column = thread // ACROSS * OWN, thread % ACROSS * OWN
        left = block.SharedArray(
            (DEPTH, SIDE), oc.f32
        )  # the columns of a's tile are its rows: a thread reads neighbours
        above = block.SharedArray((DEPTH, SIDE), oc.f32)
        sums = oc.Matrix.zero(oc.f32, OWN, OWN)
        for part in range(parts):
            for k in oc.static(range(SIDE * DEPTH // THREADS)):
                at = k * THREADS + thread
                left[at % DEPTH, at // DEPTH] = a[first_row + at // DEPTH, part * DEPTH + at % DEPTH]
                above[at // SIDE, at % SIDE] = b[part * DEPTH + at // SIDE, first_column + at % SIDE]
            block.sync()
            for k in range(DEPTH):
                for r in oc.static(range(OWN)):
                    for s in oc.static(range(OWN)):
                        sums[r, s] += left[k, row + r] * above[k, column + s]
            block.sync()
        for r in oc.static(range(OWN)):
            for s in oc.static(range(OWN)):
                c[first_row + row + r, first_column + column + s] = sums[r, s]


def cosines(size: int) -> np.ndarray:
    """The matrix whose rows are cosines, each as long as one: its product with its transpose is the identity."""
    k, x = np.arange(size)[:, None], np.arange(size)[None, :]
    rows = np.cos(np.pi * k * (2 * x + 1) / (2 * size)) * np.sqrt(2 / size)
    rows[0] *= np.sqrt(0.5)
    return rows.astype(np.float32)


def product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    c = np.zeros((a.shape[0], b.shape[1]), np.float32)
    multiply(np.ascontiguousarray(a), np.ascontiguousarray(b), c)
    return c


@oc.kernel
def draw_hills(image: Matrix):
    """Something to look at: ridges, one behind the other, under a sun."""
    size = image.shape[0]
    for row, column in image:
        x, y = column / size, 1.0 - row / size
        distance = oc.sqrt((x - 0.7) ** 2 + (y - 0.78) ** 2)
        light = 0.45 + 0.35 * y + 0.4 * oc.exp(-30.0 * distance * distance)
        if distance < 0.07:
            light = 1.0
        for ridge in range(7):
            near = ridge / 6.0
            height = 0.62 - 0.09 * ridge
            for octave in oc.static(range(6)):
                wave = (2.0**octave) * (1.6 + 0.5 * near)
                height += 0.09 * oc.sin(6.2832 * wave * x + 12.9 * ridge + 3.7 * octave) / (1.9**octave)
            if y < height:
                light = 0.42 - 0.34 * near + 0.08 * (height - y) + 0.03 * oc.sin(700.0 * (height - y) * (1.0 + x))
        image[row, column] = light


def compressed(size: int) -> tuple[np.ndarray, list[np.ndarray]]:
    """The picture, and what it is with some of its cosines."""
    image = np.zeros((size, size), np.float32)
    draw_hills(image)
    basis = cosines(size)
    spectrum = product(product(basis, image), basis.T)
    strength = np.sort(np.abs(spectrum), axis=None)[::-1]
    pictures = []
    for share in KEPT:
        kept = np.where(np.abs(spectrum) >= strength[int(share * strength.size)], spectrum, 0).astype(np.float32)
        pictures.append(product(product(basis.T, kept), basis))
    return image, pictures


def main() -> None:
    chosen = options(__doc__ or "", smallest=SIDE, size=512)
    size = chosen.size // SIDE * SIDE
    compressed(SIDE)
    start = time.perf_counter()
    image, pictures = compressed(size)
    passed = time.perf_counter() - start
    path = chosen.out / "cosines.png"
    rows = [np.hstack(pictures[:2]), np.hstack([pictures[2], image])]
    grey = (255 * np.clip(np.vstack(rows), 0, 1)).astype(np.uint8)
    png.save(path, np.repeat(grey[:, :, None], 3, axis=2))
    products = 2 + 2 * len(KEPT)
    print(f"{products} products of {size} × {size} matrices and the rest in {passed:.2f} s: {path}")


if __name__ == "__main__":
    main()
