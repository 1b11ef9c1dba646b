"""Water, jelly and snow fall onto each other: three materials by one material point method.

    python examples/mpm99.py [--frames N] [--steps N] [--size CELLS] [--out DIR] [--arch NAME]

A particle remembers how it has been deformed. Its material says what that means: water resists compression alone,
jelly springs back, and snow yields where it is stretched or squeezed too much, and hardens as it is packed.
"""

import numpy as np
import png
from command_line import options
from mpm88 import BORDER, block, weights
from pictures import ParticlePicture, mix, rgb
from progress import progress

import octants as oc

WATER, JELLY, SNOW = 0, 1, 2
COLOURS = ((rgb("#1769aa"), rgb("#4fb3e8")), (rgb("#d6336c"), rgb("#f783ac")), (rgb("#c9d6e4"), rgb("#ffffff")))

DENSITY = 1.0
YOUNG, POISSON = 1.0e3, 0.2
SHEAR = YOUNG / (2 * (1 + POISSON))
BULK = YOUNG * POISSON / ((1 + POISSON) * (1 - 2 * POISSON))
SNOW_SQUEEZE, SNOW_STRETCH = 0.975, 1.0045  # how far snow is elastic
JELLY_SOFTNESS = 0.15

vec2 = oc.types.vector(2, oc.f32)
mat2 = oc.types.matrix(2, 2, oc.f32)


@oc.dataclass
class Particle:
    position: vec2
    velocity: vec2
    gradient: mat2  # of the velocity
    deformation: mat2  # elastic
    packing: oc.f32  # how much snow has been squeezed for good: below 1 where it is denser
    material: oc.i32


@oc.func
def yield_like_snow(stretch: oc.f32) -> oc.f32:
    return oc.min(oc.max(stretch, SNOW_SQUEEZE), SNOW_STRETCH)


@oc.data_oriented
class Mixture:
    """Particles of three materials in the unit square, over a grid of `cells` x `cells`."""

    def __init__(self, positions: np.ndarray, materials: np.ndarray, cells: int, gravity: float = 30.0):
        count = len(positions)
        self.cells = cells
        self.gravity = gravity
        self.time_step = 0.0154 / cells
        self.particle_volume = (0.5 / cells) ** 2
        self.particle_mass = self.particle_volume * DENSITY
        self.particles = Particle.field(shape=count)
        self.grid_velocity = oc.Vector.field(2, oc.f32)
        self.grid_mass = oc.field(oc.f32)
        # One cell's mass and momentum side by side: a particle reaches both in one place.
        oc.root.dense(oc.ij, (cells, cells)).place(self.grid_velocity, self.grid_mass)
        self.particles.position.from_numpy(positions.astype(np.float32))
        self.particles.material.from_numpy(materials.astype(np.int32))
        self.particles.packing.fill(1.0)
        self.particles.deformation.from_numpy(np.tile(np.eye(2, dtype=np.float32), (count, 1, 1)))

    @oc.func
    def pressed(self, p):
        """Moves a particle's deformation one step on, lets it yield, and gives the stress that remains."""
        deformation = self.particles[p].deformation
        deformation += self.time_step * self.particles[p].gradient @ deformation
        hardness = JELLY_SOFTNESS
        if self.particles[p].material == SNOW:
            hardness = oc.min(oc.exp(10.0 * (1.0 - self.particles[p].packing)), 6.0)
        elif self.particles[p].material == WATER:
            hardness = 1.0
        shear, bulk = SHEAR * hardness, BULK * hardness
        left, stretch, right = oc.svd(deformation)
        if self.particles[p].material == SNOW:
            for axis in oc.static(range(2)):
                yielded = yield_like_snow(stretch[axis, axis])
                self.particles[p].packing *= stretch[axis, axis] / yielded
                stretch[axis, axis] = yielded
            deformation = left @ stretch @ right.transpose()
        volume = stretch[0, 0] * stretch[1, 1]
        if self.particles[p].material == WATER:
            shear = 0.0
            deformation = oc.sqrt(volume) * oc.Matrix.identity(oc.f32, 2)
        self.particles[p].deformation = deformation
        turned = left @ right.transpose()
        away_from_turned = (deformation - turned) @ deformation.transpose()
        return 2.0 * shear * away_from_turned + bulk * volume * (volume - 1.0) * oc.Matrix.identity(oc.f32, 2)

    @oc.kernel
    def step(self):
        for cell in oc.grouped(self.grid_mass):
            self.grid_velocity[cell] = [0.0, 0.0]
            self.grid_mass[cell] = 0.0

        for p in self.particles:
            scaled = self.particles[p].position * self.cells
            base = oc.cast(scaled - 0.5, oc.i32)
            inside = scaled - base
            w = weights(inside)
            push = -4.0 * self.time_step * self.particle_volume * self.cells**2 * self.pressed(p)
            affine = push + self.particle_mass * self.particles[p].gradient
            momentum = self.particle_mass * self.particles[p].velocity
            for i, j in oc.static(oc.ndrange(3, 3)):
                away = (oc.Vector([i, j]) - inside) / self.cells
                weight = w[i][0] * w[j][1]
                self.grid_velocity[base + oc.Vector([i, j])] += weight * (momentum + affine @ away)
                self.grid_mass[base + oc.Vector([i, j])] += weight * self.particle_mass

        for i, j in self.grid_mass:
            if self.grid_mass[i, j] > 0.0:
                v = self.grid_velocity[i, j] / self.grid_mass[i, j]
                v.y -= self.time_step * self.gravity
                if (i < BORDER and v.x < 0.0) or (i >= self.cells - BORDER and v.x > 0.0):
                    v.x = 0.0
                if (j < BORDER and v.y < 0.0) or (j >= self.cells - BORDER and v.y > 0.0):
                    v.y = 0.0
                self.grid_velocity[i, j] = v

        for p in self.particles:
            scaled = self.particles[p].position * self.cells
            base = oc.cast(scaled - 0.5, oc.i32)
            inside = scaled - base
            w = weights(inside)
            velocity = vec2(0.0)
            gradient = mat2(0.0)
            for i, j in oc.static(oc.ndrange(3, 3)):
                here = w[i][0] * w[j][1] * self.grid_velocity[base + oc.Vector([i, j])]
                velocity += here
                gradient += 4.0 * self.cells * here.outer_product(oc.Vector([i, j]) - inside)
            self.particles[p].velocity = velocity
            self.particles[p].gradient = gradient
            self.particles[p].position += self.time_step * velocity

    @oc.kernel
    def colour(self, colours: oc.template()):
        """Each material in its own colour, paler where it moves fast."""
        for p in colours:
            fast = oc.min(self.particles[p].velocity.norm() / 3.0, 1.0)
            for material in oc.static(range(3)):
                if self.particles[p].material == material:
                    colours[p] = mix(COLOURS[material][0], COLOURS[material][1], fast)


def three_blocks(cells: int) -> tuple[np.ndarray, np.ndarray]:
    """A pool of water, a cube of jelly above it, and a ball of snow that will land on both."""
    wall = BORDER / cells
    water = block(cells, wall, wall, 1.0 - 2 * wall, 0.1)
    jelly = block(cells, 0.3, 0.2, 0.3, 0.3, seed=1)
    square = block(cells, 0.42, 0.64, 0.28, 0.28, seed=2)
    snow = square[np.hypot(*(square - (0.56, 0.78)).T) < 0.14]
    parts = {WATER: water, JELLY: jelly, SNOW: snow}
    return np.concatenate(list(parts.values())), np.repeat(list(parts), [len(part) for part in parts.values()])


def main() -> None:
    chosen = options(__doc__, smallest=16, frames=100, steps=100, size=128)
    mixture = Mixture(*three_blocks(chosen.size), chosen.size)
    count = mixture.particles.shape[0]
    print(f"{count} particles, {chosen.size} x {chosen.size} cells, {chosen.frames * chosen.steps} steps")
    pixels = 512
    picture = ParticlePicture(pixels, reach=1.6 * pixels / chosen.size, background=("#31405a", "#1d2536"))
    colours = oc.Vector.field(3, oc.f32, shape=count)
    film = []
    for frame in progress("falling", chosen.frames, "particle steps", chosen.steps * count):
        mixture.colour(colours)
        film.append(picture.draw(mixture.particles.position, colours, full=10.7))
        for _ in range(chosen.steps):
            mixture.step()
    png.save_animation(chosen.out / "mpm99.png", film, seconds_per_frame=1 / 30)
    print(f"  wrote {chosen.out / 'mpm99.png'} (animated)")


if __name__ == "__main__":
    main()
