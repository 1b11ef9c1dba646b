"""A wave runs through an archipelago: the shallow-water equations on a staggered grid.

    python examples/shallow_water.py [--frames N] [--steps N] [--size CELLS] [--out DIR] [--arch NAME]

Depths live in the middles of cells, speeds on the faces between them: what leaves one cell through a face enters the
next, so no water is lost. Cells may fall dry, and the shore moves with the water.
"""

import numpy as np
import png
from command_line import options
from pictures import Pixels, as_byte, mix, rgb, smooth_step
from progress import progress

import octants as oc

GRAVITY = 9.81
DRY = 1e-3  # a shallower film is not pushed
DOWN, RIGHT = (1, 0), (0, 1)  # the two axes of the grid


@oc.data_oriented
class Sea:
    """Water over a bed, in a basin `width` wide whose walls reflect; lengths in metres, times in seconds."""

    def __init__(self, bed: np.ndarray, level: np.ndarray, width: float, friction: float = 0.0):
        """`bed` and `level` are heights in cells; there is no water where the bed is above the level."""
        self.rows, self.columns = bed.shape
        self.spacing = width / self.columns
        self.friction = friction
        self.bed, self.depth = oc.field(oc.f32), oc.field(oc.f32)
        oc.root.dense(oc.ij, bed.shape).place(self.bed, self.depth)
        # Face (i, j) lies before cell (i, j) on its own axis. The outermost faces are walls: nothing moves there.
        self.down, self.carried_down, self.flow_down = (oc.field(oc.f32) for _ in range(3))
        oc.root.dense(oc.ij, (self.rows + 1, self.columns)).place(self.down, self.carried_down, self.flow_down)
        self.right, self.carried_right, self.flow_right = (oc.field(oc.f32) for _ in range(3))
        oc.root.dense(oc.ij, (self.rows, self.columns + 1)).place(self.right, self.carried_right, self.flow_right)
        self.bed.from_numpy(bed.astype(np.float32))
        self.depth.from_numpy(np.maximum(level - bed, 0.0).astype(np.float32))
        self.time_step = 0.25 * self.spacing / float(np.sqrt(GRAVITY * np.max(level - bed)))

    @oc.func
    def carry(self, along: oc.template(), across: oc.template(), axis: oc.template(), face):
        """A face's speed after the water has carried its own motion along for one step, upwind."""
        step, side = oc.Vector(axis), oc.Vector([axis[1], axis[0]])
        speed = along[face]
        sideways = 0.25 * (across[face] + across[face - step] + across[face + side] + across[face + side - step])
        before = speed - along[face - step] if speed > 0.0 else along[face + step] - speed
        beside = 0.0  # the walls are smooth: nothing changes across them
        last = oc.Vector([self.rows, self.columns]).dot(side) - 1
        if sideways > 0.0 and face.dot(side) > 0:
            beside = speed - along[face - side]
        if sideways < 0.0 and face.dot(side) < last:
            beside = along[face + side] - speed
        return speed - self.time_step / self.spacing * (speed * before + sideways * beside)

    @oc.func
    def push(self, speed, behind, ahead):
        """The new speed through the face between two cells, from the slope of the surface."""
        surface_behind = self.bed[behind] + self.depth[behind]
        surface_ahead = self.bed[ahead] + self.depth[ahead]
        result = 0.0
        # Water climbs onto a dry cell only if it stands above that cell's bed.
        open_behind = self.depth[behind] > DRY and surface_behind > self.bed[ahead]
        open_ahead = self.depth[ahead] > DRY and surface_ahead > self.bed[behind]
        if open_behind or open_ahead:
            result = speed - self.time_step * GRAVITY * (surface_ahead - surface_behind) / self.spacing
            thickness = oc.max(self.depth[behind], self.depth[ahead])
            result /= 1.0 + self.time_step * self.friction * oc.abs(result) / thickness
            # Through each of its four faces a cell loses at most a quarter of its water.
            fastest = 0.25 * self.spacing / self.time_step
            result = oc.min(oc.max(result, -fastest), fastest)
        return result

    @oc.func
    def pour(self, speed, behind, ahead):
        """What flows through a face: its speed times the depth where the water comes from."""
        depth = self.depth[behind] if speed > 0.0 else self.depth[ahead]
        return speed * depth

    @oc.kernel
    def step(self):
        for face in oc.grouped(self.down):
            if 0 < face[0] < self.rows:
                self.carried_down[face] = self.carry(self.down, self.right, DOWN, face)
        for face in oc.grouped(self.right):
            if 0 < face[1] < self.columns:
                self.carried_right[face] = self.carry(self.right, self.down, RIGHT, face)
        for face in oc.grouped(self.down):
            if 0 < face[0] < self.rows:
                behind = face - oc.Vector(DOWN)
                self.down[face] = self.push(self.carried_down[face], behind, face)
                self.flow_down[face] = self.pour(self.down[face], behind, face)
        for face in oc.grouped(self.right):
            if 0 < face[1] < self.columns:
                behind = face - oc.Vector(RIGHT)
                self.right[face] = self.push(self.carried_right[face], behind, face)
                self.flow_right[face] = self.pour(self.right[face], behind, face)
        for i, j in self.depth:
            lost = self.flow_down[i + 1, j] - self.flow_down[i, j] + self.flow_right[i, j + 1] - self.flow_right[i, j]
            self.depth[i, j] -= self.time_step / self.spacing * lost

    @oc.kernel
    def energy(self) -> oc.f64:
        """Potential above the bed's zero and kinetic, per unit of density."""
        total = oc.f64(0.0)
        for i, j in self.depth:
            surface = self.bed[i, j] + self.depth[i, j]
            potential = 0.5 * GRAVITY * (surface * surface - self.bed[i, j] * self.bed[i, j])
            squares = self.down[i, j] ** 2 + self.down[i + 1, j] ** 2
            squares += self.right[i, j] ** 2 + self.right[i, j + 1] ** 2
            total += oc.cast(potential + 0.25 * self.depth[i, j] * squares, oc.f64)
        return total * self.spacing * self.spacing

    @oc.func
    def sample(self, values: oc.template(), row: oc.f32, column: oc.f32) -> oc.f32:
        """A field of cells between its values, smoothly; (0, 0) is the middle of the first cell."""
        i = oc.min(oc.max(oc.cast(oc.floor(row), oc.i32), 0), self.rows - 2)
        j = oc.min(oc.max(oc.cast(oc.floor(column), oc.i32), 0), self.columns - 2)
        down, right = row - i, column - j
        upper = mix(values[i, j], values[i, j + 1], right)
        return mix(upper, mix(values[i + 1, j], values[i + 1, j + 1], right), down)

    @oc.func
    def height(self, row: oc.f32, column: oc.f32, water: oc.template()) -> oc.f32:
        result = self.sample(self.bed, row, column)
        if oc.static(water):
            result += self.sample(self.depth, row, column)
        return result

    @oc.func
    def slope(self, row: oc.f32, column: oc.f32, water: oc.template()):
        """How steep the bed or the surface is, downwards and to the right."""
        down = self.height(row + 1.0, column, water) - self.height(row - 1.0, column, water)
        right = self.height(row, column + 1.0, water) - self.height(row, column - 1.0, water)
        return oc.Vector([down, right]) / (2.0 * self.spacing)

    @oc.kernel
    def draw(self, image: Pixels):
        """The sea from above in the light of a low sun."""
        for row, column in oc.ndrange(image.shape[0], image.shape[1]):
            i = (row + 0.5) * self.rows / image.shape[0] - 0.5
            j = (column + 0.5) * self.columns / image.shape[1] - 0.5
            bed = self.sample(self.bed, i, j)
            depth = self.sample(self.depth, i, j)
            ground_light = 1.0 + 0.9 * self.slope(i, j, False).sum()
            ground = mix(SAND, GRASS, smooth_step(0.8, 2.0, bed))
            ground = mix(ground, ROCK, smooth_step(3.5, 6.0, bed)) * oc.min(oc.max(ground_light, 0.45), 1.4)
            slope = self.slope(i, j, True)
            clear = oc.exp(-0.55 * depth)
            water = mix(mix(DEEP, SHALLOW, oc.exp(-0.25 * depth)), ground, 0.7 * clear)
            water *= 1.0 + oc.min(oc.max(5.0 * slope.sum(), -0.5), 0.9)
            foam = smooth_step(0.10, 0.30, slope.norm()) * smooth_step(0.02, 0.1, depth)
            water = mix(water, FOAM, 0.75 * foam)
            colour = mix(ground, water, smooth_step(0.01, 0.08, depth))
            for channel in oc.static(range(3)):
                image[row, column, channel] = as_byte(colour[channel])


DEEP, SHALLOW, FOAM = rgb("#0a3a66"), rgb("#2fb5c0"), rgb("#f6fbfb")
SAND, GRASS, ROCK = rgb("#e2cf9c"), rgb("#6f9a4a"), rgb("#8d8577")


def archipelago(cells: int, seed: int = 11) -> np.ndarray:
    """Hills and hollows at all scales, most of them under water; open sea on the left."""
    rng = np.random.default_rng(seed)
    wave_numbers = np.hypot(*np.meshgrid(np.fft.fftfreq(256) * 256, np.fft.rfftfreq(256) * 256, indexing="ij"))
    spectrum = np.fft.rfft2(rng.standard_normal((256, 256))) / (2.0 + wave_numbers) ** 2.2
    hills = np.fft.irfft2(spectrum)
    at = (np.arange(cells) + 0.5) / cells * 256
    low = np.minimum(at.astype(int), 254)
    part = at - low
    hills = hills[low] * (1 - part)[:, None] + hills[low + 1] * part[:, None]
    hills = hills[:, low] * (1 - part) + hills[:, low + 1] * part
    hills = (hills - hills.mean()) / hills.std()
    open_sea = 1.0 / (1.0 + np.exp((np.linspace(0, 1, cells) - 0.22) * 30))
    return -3.2 + 3.6 * hills - (3.6 * hills + 3.0) * open_sea


def main() -> None:
    chosen = options(__doc__, smallest=16, frames=90, steps=12, size=256)
    bed = archipelago(chosen.size)
    level = np.zeros_like(bed)
    level += 2.2 * np.exp(-((np.arange(chosen.size) / chosen.size / 0.07) ** 2))
    sea = Sea(bed, np.where(bed < 0, level, 0), width=256.0, friction=0.01)
    volume, energy = sea.depth.to_numpy().sum(dtype=np.float64), sea.energy()
    print(f"{chosen.size} x {chosen.size} cells, {chosen.frames * chosen.steps} steps of {sea.time_step * 1e3:.0f} ms")
    image = np.zeros((448, 448, 3), np.uint8)
    film = []
    for frame in progress("rolling", chosen.frames, "cell steps", chosen.steps * chosen.size**2):
        sea.draw(image)
        film.append(image.copy())
        for _ in range(chosen.steps):
            sea.step()
    png.save_animation(chosen.out / "shallow_water.png", film, seconds_per_frame=1 / 30)
    lost = 1 - sea.depth.to_numpy().sum(dtype=np.float64) / volume
    print(f"  water lost: {lost:.1e} of it; energy spent on friction and breaking: {energy - sea.energy():.3g} m⁵/s²")
    print(f"  wrote {chosen.out / 'shallow_water.png'} (animated)")


if __name__ == "__main__":
    main()
