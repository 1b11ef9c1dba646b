"""The game of life on a plane of four billion cells, of which only those near life exist.

    python examples/endless_life.py [--frames N] [--steps N] [--size CELLS] [--out DIR] [--arch NAME]

The plane has 65,536 x 65,536 cells: a pointer node makes blocks of 32 x 32 when something is born there, and a bit of each cell says whether it is
active. Living cells are the active ones, so a loop over the plane visits these alone. The camera flies up while glider guns around
a random soup fill the plane: the picture's side is `--size` cells at the end.
"""

import numpy as np
import png
from command_line import options
from pictures import Pixels, as_byte, mix, rgb
from progress import progress

import octants as oc

PLANE, BLOCK = 65536, 32
MIDDLE = PLANE // 2
PIXELS = 512

#: A gun that sends off a glider every 30 generations, down and to the right.
GUN = """
........................O...........
......................O.O...........
............OO......OO............OO
...........O...O....OO............OO
OO........O.....O...OO..............
OO........O...O.OO....O.O...........
..........O.....O.......O...........
...........O...O....................
............OO......................
"""


@oc.data_oriented
class Plane:
    """Two generations, each in a tree of its own, and how many living neighbours cells have."""

    def __init__(self):
        self.born = [oc.field(oc.i32) for _ in range(2)]  # the generation of birth
        self.blocks = [self.place(field) for field in self.born]
        self.count = oc.field(oc.u8)
        self.counted = self.place(self.count)
        self.now = 0
        self.generation = 0
        self.light = oc.Vector.field(3, oc.f32, shape=(PIXELS, PIXELS))

    def place(self, field):
        """Makes room for a field on the plane."""
        blocks = oc.root.pointer(oc.ij, PLANE // BLOCK)
        blocks.bitmasked(oc.ij, BLOCK).place(field)
        return blocks

    def set(self, cells: np.ndarray) -> None:
        """Lets cells live, given as pairs of row and column."""
        self.give_life(self.born[self.now], np.ascontiguousarray(cells, np.int32))

    @oc.kernel
    def give_life(self, born: oc.template(), cells: oc.types.ndarray(dtype=oc.i32, ndim=2)):
        for n in range(cells.shape[0]):
            born[cells[n, 0], cells[n, 1]] = 0

    @oc.kernel
    def tell_neighbours(self, born: oc.template()):
        """A living cell adds 1 to the eight around it, and 16 to itself."""
        for i, j in born:
            for down, right in oc.static(oc.ndrange((-1, 2), (-1, 2))):
                # Too far out there is no plane, and nobody lives.
                if 0 < i and i < PLANE - 1 and 0 < j and j < PLANE - 1:
                    self.count[i + down, j + right] += oc.u8(16 if oc.static(down == 0 and right == 0) else 1)

    @oc.kernel
    def decide(self, before: oc.template(), after: oc.template(), generation: oc.i32):
        for i, j in self.count:
            count = self.count[i, j]
            if count == 18 or count == 19:
                after[i, j] = before[i, j]
            elif count == 3:
                after[i, j] = generation

    def step(self) -> None:
        self.generation += 1
        self.tell_neighbours(self.born[self.now])
        self.decide(self.born[self.now], self.born[1 - self.now], self.generation)
        self.counted.deactivate_all()
        self.blocks[self.now].deactivate_all()
        self.now = 1 - self.now

    @oc.kernel
    def population(self, born: oc.template()) -> oc.i32:
        living = 0
        for _, _ in born:
            living += 1
        return living

    @oc.kernel
    def shine(self, born: oc.template(), side: oc.f32, generation: oc.i32):
        """Every living cell is a light on the pixels that it covers, seen from so high that the picture is `side` cells wide."""
        for at in oc.grouped(self.light):
            self.light[at] = [0.0, 0.0, 0.0]
        for i, j in born:
            scale = PIXELS / side
            row, column = (i - MIDDLE) * scale + 0.5 * PIXELS, (j - MIDDLE) * scale + 0.5 * PIXELS
            young = oc.exp(-0.03 * (generation - born[i, j]))
            colour = mix(OLD, YOUNG, young)
            # From high above a cell is less than a pixel, and still to be seen.
            bright = oc.max(scale * scale, 0.7)
            first = oc.cast(oc.floor(oc.Vector([row, column])), oc.i32)
            reach = oc.cast(oc.ceil(scale), oc.i32)
            for down, right in oc.ndrange(reach + 1, reach + 1):
                # How much of the pixel the cell covers.
                high = oc.min(first[0] + down + 1.0, row + oc.max(scale, 1.0) * 0.92) - oc.max(first[0] + down, row)
                wide = oc.min(first[1] + right + 1.0, column + oc.max(scale, 1.0) * 0.92) - oc.max(
                    first[1] + right, column
                )
                if high > 0.0 and wide > 0.0:
                    y, x = first[0] + down, first[1] + right
                    if y >= 0 and y < PIXELS and x >= 0 and x < PIXELS:
                        self.light[y, x] += colour * (high * wide * oc.min(bright, 1.0))

    @oc.kernel
    def develop(self, image: Pixels):
        """Too much light becomes white, and lights shine a little beside themselves."""
        for row, column in self.light:
            light = self.light[row, column]
            glow = oc.Vector([0.0, 0.0, 0.0])
            for down, right in oc.ndrange((-3, 4), (-3, 4)):
                y, x = oc.min(oc.max(row + down, 0), PIXELS - 1), oc.min(oc.max(column + right, 0), PIXELS - 1)
                glow += self.light[y, x] * oc.exp(-0.35 * (down * down + right * right))
            colour = NIGHT + 0.8 * light + 0.16 * glow
            for channel in oc.static(range(3)):
                image[row, column, channel] = as_byte(1.0 - oc.exp(-1.5 * colour[channel]))


NIGHT, YOUNG, OLD = rgb("#060812"), rgb("#ffb347"), rgb("#2f7fd6")


def gun() -> np.ndarray:
    rows = GUN.strip().splitlines()
    return np.array([(i, j) for i, row in enumerate(rows) for j, cell in enumerate(row) if cell == "O"])


def mandala(rings: int, spacing: int = 58, soup: int = 60, seed: int = 1970) -> np.ndarray:
    """Guns that fire away from the middle along four diagonals, `rings` deep, around a random soup with four mirrors."""
    cells = []
    for ring in range(rings):
        for beside in range(-ring, ring + 1, 2):
            across = np.array([ring + beside, ring - beside]) * spacing // 2
            cells.append(gun() + 75 + across)
    random = np.argwhere(np.random.default_rng(seed).random((soup, soup)) < 0.32)
    cells.append(random)
    corner = np.concatenate(cells)
    mirrored = [corner * signs + (np.array(signs) - 1) // 2 for signs in ([1, 1], [1, -1], [-1, 1], [-1, -1])]
    return np.unique(np.concatenate(mirrored), axis=0) + MIDDLE


def main() -> None:
    chosen = options(__doc__, smallest=64, frames=120, steps=12, size=1600)
    plane = Plane()
    plane.set(mandala(7))
    image = np.zeros((PIXELS, PIXELS, 3), np.uint8)
    film = []
    nearest = min(240, chosen.size)
    for frame in progress("living", chosen.frames, "generations", chosen.steps):
        side = nearest * (chosen.size / nearest) ** (frame / max(chosen.frames - 1, 1))
        plane.shine(plane.born[plane.now], side, plane.generation)
        plane.develop(image)
        film.append(image.copy())
        for _ in range(chosen.steps):
            plane.step()
    living = plane.population(plane.born[plane.now])
    blocks = plane.blocks[plane.now]._num_dynamically_allocated
    print(f"{living} living cells in {blocks} blocks of the plane's {(PLANE // BLOCK) ** 2}")
    png.save_animation(chosen.out / "endless_life.png", film, seconds_per_frame=1 / 24)
    print(f"  wrote {chosen.out / 'endless_life.png'} (animated)")


if __name__ == "__main__":
    main()
