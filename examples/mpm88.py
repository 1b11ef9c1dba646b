"""A dam breaks: a liquid by the material point method, as particles that meet on a grid.

    python examples/mpm88.py [--frames N] [--steps N] [--size CELLS] [--out DIR] [--arch NAME]

Particles carry position, velocity, the velocity's local gradient and how much they are compressed. In every step they
hand mass and momentum to the nine cells around them; the grid feels gravity and walls; and they take the new motion back.
A compressed particle pushes its surroundings apart, which is all that this liquid knows of pressure.
"""

import numpy as np
import png
from command_line import options
from pictures import ParticlePicture, mix, rgb
from progress import progress

import octants as oc

DENSITY = 1.0
STIFFNESS = 400.0  # pressure per compression
BORDER = 3  # cells along each wall into which nothing flows


@oc.func
def weights(inside):
    """How much the three cells along each axis count for a particle `inside` the first of them: a smooth bump."""
    return [0.5 * (1.5 - inside) ** 2, 0.75 - (inside - 1.0) ** 2, 0.5 * (inside - 0.5) ** 2]


@oc.data_oriented
class Liquid:
    """Particles in the unit square, over a grid of `cells` x `cells`."""

    def __init__(self, positions: np.ndarray, cells: int, gravity: float = 9.8):
        particles = len(positions)
        self.cells = cells
        self.gravity = gravity
        self.time_step = 0.0256 / cells
        self.particle_volume = (0.5 / cells) ** 2
        self.particle_mass = self.particle_volume * DENSITY
        self.position = oc.Vector.field(2, oc.f32, shape=particles)
        self.velocity = oc.Vector.field(2, oc.f32, shape=particles)
        self.gradient = oc.Matrix.field(2, 2, oc.f32, shape=particles)
        self.expansion = oc.field(oc.f32, shape=particles)  # volume over the volume at rest
        self.grid_velocity = oc.Vector.field(2, oc.f32, shape=(cells, cells))  # momentum while it is gathered
        self.grid_mass = oc.field(oc.f32, shape=(cells, cells))
        self.position.from_numpy(positions.astype(np.float32))
        self.expansion.fill(1.0)

    @oc.kernel
    def step(self):
        for cell in oc.grouped(self.grid_mass):
            self.grid_velocity[cell] = [0.0, 0.0]
            self.grid_mass[cell] = 0.0

        for p in self.position:
            scaled = self.position[p] * self.cells
            base = oc.cast(scaled - 0.5, oc.i32)
            inside = scaled - base
            w = weights(inside)
            pressure = STIFFNESS * (1.0 - self.expansion[p])
            push = 4.0 * self.time_step * self.particle_volume * self.cells**2 * pressure
            affine = push * oc.Matrix.identity(oc.f32, 2) + self.particle_mass * self.gradient[p]
            momentum = self.particle_mass * self.velocity[p]
            for i, j in oc.static(oc.ndrange(3, 3)):
                away = (oc.Vector([i, j]) - inside) / self.cells
                weight = w[i][0] * w[j][1]
                self.grid_velocity[base + oc.Vector([i, j])] += weight * (momentum + affine @ away)
                self.grid_mass[base + oc.Vector([i, j])] += weight * self.particle_mass

        for i, j in self.grid_mass:
            if self.grid_mass[i, j] > 0.0:
                v = self.grid_velocity[i, j] / self.grid_mass[i, j]
                v[1] -= self.time_step * self.gravity
                if (i < BORDER and v[0] < 0.0) or (i >= self.cells - BORDER and v[0] > 0.0):
                    v[0] = 0.0
                if (j < BORDER and v[1] < 0.0) or (j >= self.cells - BORDER and v[1] > 0.0):
                    v[1] = 0.0
                self.grid_velocity[i, j] = v

        for p in self.position:
            scaled = self.position[p] * self.cells
            base = oc.cast(scaled - 0.5, oc.i32)
            inside = scaled - base
            w = weights(inside)
            velocity = oc.Vector.zero(oc.f32, 2)
            gradient = oc.Matrix.zero(oc.f32, 2, 2)
            for i, j in oc.static(oc.ndrange(3, 3)):
                here = w[i][0] * w[j][1] * self.grid_velocity[base + oc.Vector([i, j])]
                velocity += here
                gradient += 4.0 * self.cells * here.outer_product(oc.Vector([i, j]) - inside)
            self.velocity[p] = velocity
            self.gradient[p] = gradient
            self.position[p] += self.time_step * velocity
            self.expansion[p] *= 1.0 + self.time_step * gradient.trace()

    @oc.kernel
    def colour(self, colours: oc.template()):
        """Deep blue where the liquid rests, pale where it is fast, whiter still where it is torn apart."""
        for p in colours:
            speed = oc.min(self.velocity[p].norm() / 3.0, 1.0)
            foam = oc.min(oc.max(8.0 * (self.expansion[p] - 1.02), 0.0), 1.0)
            colours[p] = mix(mix(DEEP, SHALLOW, speed), FOAM, 0.6 * foam)


DEEP, SHALLOW, FOAM = rgb("#0b4f8a"), rgb("#5cc8e8"), rgb("#f3fbff")


def block(cells: int, left: float, bottom: float, width: float, height: float, seed: int = 88) -> np.ndarray:
    """Four particles to a cell, each somewhere in its own quarter of it, so that none is crowded."""
    spacing = 0.5 / cells
    columns, rows = round(width / spacing), round(height / spacing)
    corner = np.stack(np.meshgrid(np.arange(columns), np.arange(rows), indexing="ij"), axis=-1).reshape(-1, 2)
    jitter = np.random.default_rng(seed).random(corner.shape)
    return np.array([left, bottom]) + (corner + 0.25 + 0.5 * jitter) * spacing


def dam_and_drop(cells: int) -> np.ndarray:
    """A column of water against the left wall, and a round drop in the air."""
    wall = BORDER / cells
    square = block(cells, 0.58, 0.58, 0.26, 0.26, seed=89)
    drop = square[np.hypot(*(square - 0.71).T) < 0.13]
    return np.concatenate([block(cells, wall, wall, 0.34, 0.72), drop])


def main() -> None:
    chosen = options(__doc__, smallest=16, frames=90, steps=100, size=128)
    liquid = Liquid(dam_and_drop(chosen.size), chosen.size)
    particles = liquid.position.shape[0]
    print(f"{particles} particles, {chosen.size} x {chosen.size} cells, {chosen.frames * chosen.steps} steps")
    pixels = 512
    picture = ParticlePicture(pixels, reach=1.6 * pixels / chosen.size, background=("#e9eef2", "#fdfefe"))
    colours = oc.Vector.field(3, oc.f32, shape=particles)
    film = []
    for frame in progress("flowing", chosen.frames, "particle steps", chosen.steps * particles):
        liquid.colour(colours)
        film.append(picture.draw(liquid.position, colours, full=10.7))
        for _ in range(chosen.steps):
            liquid.step()
    png.save_animation(chosen.out / "mpm88.png", film, seconds_per_frame=1 / 30)
    print(f"  wrote {chosen.out / 'mpm88.png'} (animated)")


if __name__ == "__main__":
    main()
