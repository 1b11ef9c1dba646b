"""Coloured smoke from four nozzles, in 20 bytes a cell instead of 48: velocity, colour and pressure are quantised.

    python examples/quantised_fluid.py [--frames N] [--steps N] [--size CELLS] [--out DIR] [--arch NAME]

What the smoke carries along is looked up where it came from (semi-Lagrangian advection); then a pressure pushes back until as much flows into
every cell as out of it. Both components of a velocity share a word of 32 bits, and so do the three channels of a colour, which have one exponent
together. A pressure is 16 bits. All kernels calculate with f32.
"""

import numpy as np
import png
from command_line import options
from pictures import Pixels, as_byte, mix, rgb
from progress import progress

import octants as oc

quant = oc.types.quant
FASTEST = 8.0  # cells per step
SWEEPS = 24  # of the pressure, in each step
SWIRL = 0.16  # how much of the curl that the grid blurs is given back


@oc.data_oriented
class Smoke:
    """`rows` x `columns` cells. With `plain`, the same in f32."""

    def __init__(self, rows: int, columns: int, plain: bool = False):
        self.rows, self.columns = rows, columns
        shape = (rows, columns)
        speed = oc.f32 if plain else quant.fixed(16, max_value=FASTEST)
        channel = oc.f32 if plain else quant.float(exp=5, frac=9, signed=False)
        push = oc.f32 if plain else quant.fixed(16, max_value=4.0)
        self.velocity, self.carried_velocity = (self.vectors(2, speed, shape) for _ in range(2))
        self.colour, self.carried_colour = (self.vectors(3, channel, shape, shared=True) for _ in range(2))
        # Odd cells are made from even ones and the other way round, so that one field is enough.
        self.pressure = self.scalars(push, shape)
        self.curl = oc.field(oc.f32 if plain else oc.f16, shape=shape)
        self.bytes_per_cell = 2 * 8 + 2 * 12 + 4 + 4 if plain else 2 * 4 + 2 * 4 + 2 + 2

    def vectors(self, n, dtype, shape, shared=False):
        if not isinstance(dtype, type(quant.int(1))):
            return oc.Vector.field(n, dtype, shape=shape)
        made = oc.Vector.field(n, dtype)
        word = oc.BitpackedFields(max_num_bits=32)
        word.place(made, shared_exponent=shared)
        oc.root.dense(oc.ij, shape).place(word)
        return made

    def scalars(self, dtype, shape):
        if not isinstance(dtype, type(quant.int(1))):
            return oc.field(dtype, shape=shape)
        made = oc.field(dtype)
        word = oc.BitpackedFields(max_num_bits=16)
        word.place(made)
        oc.root.dense(oc.ij, shape).place(word)
        return made

    @oc.func
    def inside(self, i, j):
        return oc.Vector([oc.min(oc.max(i, 0), self.rows - 1), oc.min(oc.max(j, 0), self.columns - 1)])

    @oc.func
    def between(self, values: oc.template(), at):
        """What lies at a position that need not be a cell's middle: the mean of four cells, by nearness."""
        low = oc.cast(oc.floor(at), oc.i32)
        part = at - low
        a, b = values[self.inside(low[0], low[1])], values[self.inside(low[0], low[1] + 1)]
        c, d = values[self.inside(low[0] + 1, low[1])], values[self.inside(low[0] + 1, low[1] + 1)]
        return mix(mix(a, b, part[1]), mix(c, d, part[1]), part[0])

    @oc.kernel
    def carry(self):
        """Everything moves with the flow, for the time of one step."""
        for i, j in oc.ndrange(self.rows, self.columns):
            here = oc.Vector([i, j], dt=oc.f32)
            middle = here - 0.5 * self.velocity[i, j]
            origin = here - self.between(self.velocity, middle)
            self.carried_velocity[i, j] = 0.9995 * self.between(self.velocity, origin)
            self.carried_colour[i, j] = 0.9985 * self.between(self.colour, origin)
        for i, j in oc.ndrange(self.rows, self.columns):
            self.velocity[i, j] = self.carried_velocity[i, j]
            self.colour[i, j] = self.carried_colour[i, j]

    @oc.kernel
    def blow(self, nozzles: oc.types.ndarray(dtype=oc.f32, ndim=2)):
        """Nozzles set the speed and colour of the cells around them: row, column, speed down and right, and a colour each."""
        for n in range(nozzles.shape[0]):
            reach = oc.cast(0.03 * self.rows, oc.i32) + 1
            for down, right in oc.ndrange((-reach, reach + 1), (-reach, reach + 1)):
                if down * down + right * right <= reach * reach:
                    i = oc.cast(nozzles[n, 0] * self.rows, oc.i32) + down
                    j = oc.cast(nozzles[n, 1] * self.columns, oc.i32) + right
                    near = 1.0 - (down * down + right * right) / (reach * reach + 1.0)
                    speed = oc.Vector([nozzles[n, 2], nozzles[n, 3]])
                    colour = oc.Vector([nozzles[n, 4], nozzles[n, 5], nozzles[n, 6]])
                    self.velocity[i, j] = mix(self.velocity[i, j], speed, near)
                    self.colour[i, j] = mix(self.colour[i, j], 1.6 * colour, 0.5 * near)

    @oc.kernel
    def turn(self):
        """Gives small whirls back what the grid took from them: a push along the rim of every whirl."""
        for i, j in self.curl:
            across = self.velocity[self.inside(i, j + 1)][0] - self.velocity[self.inside(i, j - 1)][0]
            along = self.velocity[self.inside(i + 1, j)][1] - self.velocity[self.inside(i - 1, j)][1]
            self.curl[i, j] = oc.cast(0.5 * (across - along), self.curl.dtype)
        for i, j in oc.ndrange((1, self.rows - 1), (1, self.columns - 1)):
            rise = oc.Vector(
                [
                    abs(self.curl[i + 1, j]) - abs(self.curl[i - 1, j]),
                    abs(self.curl[i, j + 1]) - abs(self.curl[i, j - 1]),
                ],
                dt=oc.f32,
            )
            size = rise.norm() + 1e-4
            whirl = self.curl[i, j] * SWIRL / size
            self.velocity[i, j] = self.velocity[i, j] + oc.Vector([-rise[1], rise[0]]) * whirl

    @oc.func
    def outflow(self, i, j):
        """How much more leaves a cell than enters. Nothing passes the walls."""
        here = self.velocity[i, j]
        below = self.velocity[self.inside(i + 1, j)][0] if i < self.rows - 1 else -here[0]
        above = self.velocity[self.inside(i - 1, j)][0] if i > 0 else -here[0]
        right = self.velocity[self.inside(i, j + 1)][1] if j < self.columns - 1 else -here[1]
        left = self.velocity[self.inside(i, j - 1)][1] if j > 0 else -here[1]
        return 0.5 * (below - above + right - left)

    @oc.func
    def around(self, i, j):
        return (
            self.pressure[self.inside(i + 1, j)]
            + self.pressure[self.inside(i - 1, j)]
            + self.pressure[self.inside(i, j + 1)]
            + self.pressure[self.inside(i, j - 1)]
        )

    @oc.kernel
    def press(self, colour: oc.i32):
        """One sweep over the black or the white cells of a chessboard, further than needed (successive over-relaxation)."""
        for i, half in oc.ndrange(self.rows, self.columns // 2):
            j = 2 * half + (i + colour) % 2
            wanted = 0.25 * (self.around(i, j) - self.outflow(i, j))
            self.pressure[i, j] = mix(self.pressure[i, j], wanted, 1.7)

    @oc.kernel
    def release(self):
        for i, j in oc.ndrange(self.rows, self.columns):
            down = self.pressure[self.inside(i + 1, j)] - self.pressure[self.inside(i - 1, j)]
            right = self.pressure[self.inside(i, j + 1)] - self.pressure[self.inside(i, j - 1)]
            self.velocity[i, j] = self.velocity[i, j] - 0.5 * oc.Vector([down, right])

    def step(self, nozzles: np.ndarray) -> None:
        self.carry()
        self.blow(nozzles)
        self.turn()
        for sweep in range(2 * SWEEPS):
            self.press(sweep % 2)
        self.release()

    @oc.kernel
    def draw(self, image: Pixels):
        """Light through smoke: the more there is, the less of the background is left."""
        for row, column in oc.ndrange(image.shape[0], image.shape[1]):
            at = oc.Vector([row, column]) * (self.rows / image.shape[0])
            smoke = self.between(self.colour, at)
            thick = smoke[0] + smoke[1] + smoke[2]
            colour = mix(BACKGROUND, smoke / oc.max(thick, 1e-6) * 1.9, 1.0 - oc.exp(-1.3 * thick))
            for channel in oc.static(range(3)):
                image[row, column, channel] = as_byte(colour[channel])


BACKGROUND = rgb("#0d0f1a")
COLOURS = [rgb("#ff5d3b"), rgb("#ffc145"), rgb("#2ec4b6"), rgb("#7b5cff")]


def nozzles_at(time: float, rows: int) -> np.ndarray:
    """Four nozzles on a circle that blow inward, swaying; speeds are in cells per step."""
    found = []
    for n, colour in enumerate(COLOURS):
        around = np.pi / 2 * n + np.pi / 4
        towards = around + np.pi + 0.5 * np.sin(0.9 * time + 1.7 * n)
        speed = 2.2 * rows / 256
        found.append([0.5 + 0.38 * np.sin(around), 0.5 + 0.38 * np.cos(around),
                      speed * np.sin(towards), speed * np.cos(towards), *colour])  # fmt: skip
    return np.array(found, np.float32)


def main() -> None:
    chosen = options(__doc__, smallest=32, frames=90, steps=8, size=320)
    size = chosen.size // 2 * 2
    smoke = Smoke(size, size)
    print(f"{size} x {size} cells of {smoke.bytes_per_cell} bytes, {chosen.frames * chosen.steps} steps")
    image = np.zeros((480, 480, 3), np.uint8)
    film = []
    for frame in progress("smoking", chosen.frames, "cells", chosen.steps * size**2):
        for step in range(chosen.steps):
            smoke.step(nozzles_at((frame + step / chosen.steps) / 10, size))
        smoke.draw(image)
        film.append(image.copy())
    png.save_animation(chosen.out / "quantised_fluid.png", film, seconds_per_frame=1 / 24)
    print(f"  wrote {chosen.out / 'quantised_fluid.png'} (animated)")


if __name__ == "__main__":
    main()
