"""Rubber rings, jelly and a jet of water in a box of which only the blocks around them exist.

    python examples/sparse_mpm.py [--frames N] [--steps N] [--size CELLS] [--out DIR] [--arch NAME]

The material point method on a sparse grid: a pointer node makes blocks of 8 x 8 cells where particles are, and each block has a list of its
particles, which a `dynamic` node lets grow. Every step forgets all blocks and makes new ones. Particles are visited block by block, so that
neighbours in memory meet on neighbouring cells. The faint squares of the picture are the blocks that exist.
"""

import numpy as np
import png
from command_line import options
from mpm88 import weights
from pictures import ParticlePicture, as_byte, mix, rgb
from progress import progress

import octants as oc

BLOCK = 8
BORDER = 3  # cells along each wall into which nothing flows
WATER, JELLY = 0, 1
STIFFNESS = 1000.0
MOST = 4096  # particles of one block


@oc.data_oriented
class Bodies:
    """Particles of water and jelly in the unit square, over a grid of `cells` x `cells`."""

    def __init__(
        self, positions: np.ndarray, velocities: np.ndarray, kinds: np.ndarray, cells: int, gravity: float = 6.0
    ):
        particles = len(positions)
        self.cells, self.gravity = cells, gravity
        self.time_step = 0.02 / cells
        self.volume = (0.5 / cells) ** 2
        self.position = oc.Vector.field(2, oc.f32, shape=particles)
        self.velocity = oc.Vector.field(2, oc.f32, shape=particles)
        self.gradient = oc.Matrix.field(2, 2, oc.f32, shape=particles)
        self.deformation = oc.Matrix.field(2, 2, oc.f32, shape=particles)
        self.kind = oc.field(oc.i32, shape=particles)
        self.momentum = oc.Vector.field(2, oc.f32)  # a velocity once the mass is known
        self.mass = oc.field(oc.f32)
        self.blocks = oc.root.pointer(oc.ij, cells // BLOCK)
        self.blocks.dense(oc.ij, BLOCK).place(self.momentum, self.mass)
        self.member = oc.field(oc.i32)  # the particles of a block
        self.lists = oc.root.pointer(oc.ij, cells // BLOCK)
        self.list = self.lists.dynamic(oc.k, MOST, chunk_size=128)
        self.list.place(self.member)
        self.position.from_numpy(positions.astype(np.float32))
        self.velocity.from_numpy(velocities.astype(np.float32))
        self.kind.from_numpy(kinds.astype(np.int32))
        self.deformation.fill([[1.0, 0.0], [0.0, 1.0]])

    @oc.func
    def corner(self, p):
        """The first of the nine cells that a particle meets."""
        return oc.cast(self.position[p] * self.cells - 0.5, oc.i32)

    @oc.kernel
    def sort(self):
        for p in self.position:
            oc.append(self.list, self.corner(p) // BLOCK, p)

    @oc.func
    def stress(self, p):
        """The force per area inside of a particle, times the volume that it has now over that at rest."""
        f = self.deformation[p]
        size = f.determinant()
        found = STIFFNESS * (size - 1.0) * size * oc.Matrix.identity(oc.f32, 2)
        if self.kind[p] == JELLY:
            # The nearest rotation: what is left of a deformation without it is strain.
            a, b = f[0, 0] + f[1, 1], f[1, 0] - f[0, 1]
            r = oc.Matrix([[a, -b], [b, a]]) / oc.max(oc.sqrt(a * a + b * b), 1e-9)
            found = 0.8 * STIFFNESS * (f - r) @ f.transpose() + 0.3 * found
        return found

    @oc.kernel
    def scatter(self):
        for i, j, k in self.member:
            p = self.member[i, j, k]
            base = self.corner(p)
            inside = self.position[p] * self.cells - base
            w = weights(inside)
            push = -4.0 * self.time_step * self.volume * self.cells**2 * self.stress(p)
            affine = push + self.volume * self.gradient[p]
            for down, right in oc.static(oc.ndrange(3, 3)):
                away = (oc.Vector([down, right]) - inside) / self.cells
                weight = w[down][0] * w[right][1]
                cell = base + oc.Vector([down, right])
                self.momentum[cell] += weight * (self.volume * self.velocity[p] + affine @ away)
                self.mass[cell] += weight * self.volume

    @oc.kernel
    def move(self):
        for i, j in self.mass:
            if self.mass[i, j] > 0.0:
                v = self.momentum[i, j] / self.mass[i, j]
                v[1] -= self.time_step * self.gravity
                if (i < BORDER and v[0] < 0.0) or (i >= self.cells - BORDER and v[0] > 0.0):
                    v[0] = 0.0
                if (j < BORDER and v[1] < 0.0) or (j >= self.cells - BORDER and v[1] > 0.0):
                    v[1] = 0.0
                self.momentum[i, j] = v

    @oc.kernel
    def gather(self):
        for i, j, k in self.member:
            p = self.member[i, j, k]
            base = self.corner(p)
            inside = self.position[p] * self.cells - base
            w = weights(inside)
            velocity = oc.Vector.zero(oc.f32, 2)
            gradient = oc.Matrix.zero(oc.f32, 2, 2)
            for down, right in oc.static(oc.ndrange(3, 3)):
                here = w[down][0] * w[right][1] * self.momentum[base + oc.Vector([down, right])]
                velocity += here
                gradient += 4.0 * self.cells * here.outer_product(oc.Vector([down, right]) - inside)
            self.velocity[p] = velocity
            self.gradient[p] = gradient
            self.position[p] += self.time_step * velocity
            f = self.deformation[p] + self.time_step * gradient @ self.deformation[p]
            if self.kind[p] == WATER:
                # Water forgets its shape and keeps its volume.
                side = oc.sqrt(oc.min(oc.max(f.determinant(), 0.6), 1.02))
                f = oc.Matrix([[side, 0.0], [0.0, side]])
            self.deformation[p] = f

    def step(self) -> None:
        self.blocks.deactivate_all()
        self.lists.deactivate_all()
        self.sort()
        self.scatter()
        self.move()
        self.gather()

    @oc.kernel
    def mark_blocks(self, image: oc.types.ndarray(dtype=oc.u8, ndim=3), side: oc.f32):
        """Draws the outline of every block that exists, `side` pixels wide."""
        for i, j in self.blocks:
            left, top = oc.cast(i * side, oc.i32), oc.cast(image.shape[0] - (j + 1) * side, oc.i32)
            extent = oc.cast(side, oc.i32)
            for along in range(extent):
                for channel in oc.static(range(3)):
                    for row, column in oc.static(((0, 1), (1, 0))):
                        y, x = top + row * along, left + column * along
                        if y >= 0 and y < image.shape[0] and x >= 0 and x < image.shape[1]:
                            old = oc.cast(image[y, x, channel], oc.f32) / 255.0
                            image[y, x, channel] = as_byte(mix(old, LINE[channel], 0.16))

    @oc.kernel
    def colour(self, colours: oc.template(), own: oc.types.ndarray(dtype=oc.f32, ndim=2)):
        """Bodies have colours of their own; water is the paler the faster it is."""
        for p in colours:
            colour = oc.Vector([own[p, 0], own[p, 1], own[p, 2]])
            if self.kind[p] == WATER:
                colour = mix(colour, FOAM, oc.min(self.velocity[p].norm() / 4.0, 0.75))
            colours[p] = colour


LINE, FOAM = rgb("#33415c"), rgb("#e8f7ff")


def ring(cells: int, middle, radius: float, hole: float, seed: int) -> np.ndarray:
    """Four particles to a cell in a ring or, without a hole, in a disc."""
    spacing = 0.5 / cells
    count = int(2 * radius / spacing)
    grid = np.stack(np.meshgrid(np.arange(count), np.arange(count), indexing="ij"), axis=-1).reshape(-1, 2)
    points = (grid + 0.25 + 0.5 * np.random.default_rng(seed).random(grid.shape)) * spacing - radius
    away = np.hypot(*points.T)
    return np.asarray(middle) + points[(away < radius) & (away >= hole)]


def pieces(cells: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Positions, velocities, kinds and colours: rings and discs that fall, and a ball of water that is thrown at them."""
    given = [
        ((0.30, 0.80), 0.085, 0.045, (0.0, -1.0), JELLY, "#e4572e"),
        ((0.46, 0.90), 0.060, 0.000, (0.0, -1.5), JELLY, "#f3a712"),
        ((0.38, 0.60), 0.075, 0.035, (0.0, -0.5), JELLY, "#76b041"),
        ((0.26, 0.42), 0.060, 0.000, (0.0, 0.0), JELLY, "#a846a0"),
        ((0.47, 0.38), 0.070, 0.030, (0.0, 0.0), JELLY, "#ff6b81"),
        ((0.33, 0.20), 0.080, 0.040, (0.0, 0.0), JELLY, "#2a9d8f"),
        ((0.80, 0.62), 0.095, 0.000, (-3.2, 1.2), WATER, "#1b6fae"),
        ((0.86, 0.20), 0.090, 0.000, (-2.2, 1.8), WATER, "#1b6fae"),
    ]
    bodies = [ring(cells, middle, radius, hole, n) for n, (middle, radius, hole, *_) in enumerate(given)]
    each = list(zip(bodies, given, strict=True))
    return (
        np.concatenate(bodies),
        np.concatenate([np.tile(one[3], (len(body), 1)) for body, one in each]),
        np.concatenate([np.full(len(body), one[4]) for body, one in each]),
        np.concatenate([np.tile(np.array(list(rgb(one[5])), np.float32), (len(body), 1)) for body, one in each]),
    )


def main() -> None:
    chosen = options(__doc__, smallest=32, frames=100, steps=50, size=192)
    cells = -(-chosen.size // BLOCK) * BLOCK
    positions, velocities, kinds, own = pieces(cells)
    bodies = Bodies(positions, velocities, kinds, cells)
    print(f"{len(positions)} particles, {cells} x {cells} cells, {chosen.frames * chosen.steps} steps")
    pixels = 512
    picture = ParticlePicture(pixels, reach=1.6 * pixels / cells, background=("#f4efe6", "#fffdf8"))
    colours = oc.Vector.field(3, oc.f32, shape=len(positions))
    film = []
    for frame in progress("colliding", chosen.frames, "particle steps", chosen.steps * len(positions)):
        for _ in range(chosen.steps):
            bodies.step()
        bodies.colour(colours, own)
        image = picture.draw(bodies.position, colours, full=10.7)
        bodies.mark_blocks(image, BLOCK * pixels / cells)
        film.append(image)
    print(f"{bodies.blocks._num_dynamically_allocated} blocks of {(cells // BLOCK) ** 2} were ever in use at once")
    png.save_animation(chosen.out / "sparse_mpm.png", film, seconds_per_frame=1 / 30)
    print(f"  wrote {chosen.out / 'sparse_mpm.png'} (animated)")


if __name__ == "__main__":
    main()
