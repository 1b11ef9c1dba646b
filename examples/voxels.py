"""An island of voxels with a tower on it, in a sparse tree through which rays of light are marched.

    python examples/voxels.py [--frames N] [--size VOXELS] [--out DIR] [--arch NAME]

The scene is a cube of `--size` voxels along a side, of which only the surfaces exist: a pointer node makes blocks of 32^3, another one bricks
of 8^3 in them, and a bit says which voxels of a brick there are. A ray asks the coarsest node first: through a block that is not there it takes one
step instead of 32. Each pixel sends a ray to what it sees, one from there to the sun, and some around for the light of the sky.
"""

import numpy as np
import png
from command_line import options
from pictures import Pixels, as_byte, mix, rgb, smooth_step, vec3
from progress import progress

import octants as oc

BRICK, BLOCK = 8, 32
WIDTH, HEIGHT = 560, 400
SKY_RAYS = 8  # per pixel
FAR = 1e9
quant = oc.types.quant


@oc.func
def noise(p):
    """A smooth function of space between -1 and 1, of waves that do not fit each other."""
    a = oc.sin(p[0] * 1.3 + 1.7 * oc.sin(p[2] * 0.7)) * oc.cos(p[2] * 1.1 + 1.3 * oc.sin(p[0] * 0.9))
    b = oc.sin(p[0] * 3.1 + p[2] * 1.9) * oc.cos(p[2] * 3.7 - p[0] * 1.3)
    c = oc.sin(p[0] * 7.3 - p[2] * 5.1 + p[1] * 3.0) * oc.cos(p[2] * 6.7 + p[0] * 4.1)
    return 0.6 * a + 0.28 * b + 0.12 * c


@oc.func
def box(p, half):
    """The distance to a box around the origin, along the axis where it is greatest."""
    q = abs(p) - half
    return oc.max(q[0], oc.max(q[1], q[2]))


@oc.data_oriented
class Scene:
    """Voxels with a material each: 1 grass, 2 rock, 3 sand, 4 water, 5 stone of the tower, 6 gold, 7 leaves, 8 wood."""

    def __init__(self, size: int):
        self.size = size
        self.material = oc.field(quant.int(4, signed=False))
        self.shade = oc.field(quant.int(4, signed=False))  # differs from voxel to voxel, so that surfaces look rough
        word = oc.BitpackedFields(max_num_bits=8)
        word.place(self.material, self.shade)
        self.blocks = oc.root.pointer(oc.ijk, size // BLOCK)
        self.bricks = self.blocks.pointer(oc.ijk, BLOCK // BRICK)
        self.voxels = self.bricks.bitmasked(oc.ijk, BRICK)
        self.voxels.place(word)

    @oc.func
    def height(self, x, z):
        """How high the island is, between -1 and 1; below -0.45 there is water."""
        away = oc.sqrt(x * x + z * z)
        hill = 0.55 * oc.exp(-5.0 * ((x - 0.05) ** 2 + (z + 0.1) ** 2)) + 0.3 * oc.exp(
            -9.0 * ((x + 0.45) ** 2 + (z - 0.2) ** 2)
        )
        rough = noise(oc.Vector([5.0 * x, 0.0, 5.0 * z]))
        return -0.62 + hill * (1.0 + 0.22 * rough) + 0.24 * smooth_step(0.95, 0.4, away) + 0.035 * rough

    @oc.func
    def tree_at(self, p):
        """A material of the trees that stand on a bent grid, or 0."""
        found = 0
        cell = oc.floor(p.xz / 0.13)
        middle = (
            cell
            + 0.5
            + 0.22 * oc.Vector([oc.sin(12.9 * cell[0] + 7.1 * cell[1]), oc.sin(5.3 * cell[0] - 9.7 * cell[1])])
        ) * 0.13
        ground = self.height(middle[0], middle[1])
        grows = oc.sin(17.3 * cell[0] + 31.7 * cell[1]) > -0.5
        if grows and ground > -0.4 and ground < -0.1:
            up = p[1] - ground
            away = (p.xz - middle).norm()
            tall = 0.12 + 0.03 * oc.sin(3.0 * cell[0] + cell[1])
            if (
                up > 0.02
                and up < tall
                and away < 0.055 * (1.0 - (up - 0.02) / (tall - 0.02)) * (0.75 + 0.25 * oc.sin(90.0 * up))
            ):
                found = 7
            elif up >= -0.02 and up < 0.04 and away < 0.01:
                found = 8
        return found

    @oc.func
    def tower_at(self, p):
        """A material of a round tower with windows and a golden roof, or 0."""
        found = 0
        q = p - oc.Vector([0.05, -0.02, -0.1])
        away = q.xz.norm()
        around = oc.atan2(q[2], q[0])
        if q[1] > -0.25 and q[1] < 0.42 and away < 0.13 and away > 0.09:
            window = oc.sin(4.0 * around) > 0.75 and oc.sin(38.0 * q[1]) > 0.35 and q[1] > -0.05
            if not window:
                found = 5
        if (
            q[1] >= 0.36
            and q[1] < 0.47
            and away < 0.165
            and away > 0.12
            and (q[1] < 0.41 or oc.sin(12.0 * around) > 0.0)
        ):
            found = 5
        if q[1] > 0.42 and away < 0.12 * (0.72 - q[1]) / 0.3:
            found = 6
        return found

    @oc.func
    def what_is_at(self, p):
        """The material at a position between -1 and 1, 0 for air."""
        found = 0
        ground = self.height(p[0], p[2])
        # The world is round and hangs in the air, the narrower the deeper.
        deep = oc.min(oc.max((-0.5 - p[1]) / 0.48, 0.0), 1.0)
        if p.xz.norm() > 0.96 * oc.sqrt(1.0 - deep) + 0.03 * noise(9.0 * p) * (deep > 0.0):
            found = 0
        elif p[1] < ground:
            found = 1
            if p[1] < ground - 0.06:
                found = 2
            elif ground < -0.42:
                found = 3
            elif ground > -0.12 or noise(oc.Vector([9.0 * p[0], 9.0 * p[1], 9.0 * p[2]])) > 0.45:
                found = 2
        elif p[1] < -0.45:
            found = 4
        else:
            found = self.tower_at(p)
            if found == 0:
                found = self.tree_at(p)
        return found

    @oc.func
    def place_of(self, cell):
        return (cell + 0.5) * (2.0 / self.size) - 1.0

    @oc.kernel
    def build(self, first: oc.i32, layers: oc.i32):
        """Makes the voxels of some layers that have a face to the air; the inside of things stays empty."""
        for i, j, k in oc.ndrange(self.size, (first, first + layers), self.size):
            cell = oc.Vector([i, j, k])
            here = self.what_is_at(self.place_of(cell))
            if here != 0:
                seen = False
                for axis in oc.static(range(3)):
                    for side in oc.static((-1, 1)):
                        beside = cell
                        beside[axis] += side
                        other = self.what_is_at(self.place_of(beside))
                        if other == 0 or (other == 4) != (here == 4):
                            seen = True
                if seen:
                    grain = oc.sin(12.9898 * i + 78.233 * j + 37.719 * k) * 43758.5453
                    self.material[i, j, k] = here
                    self.shade[i, j, k] = oc.cast((grain - oc.floor(grain)) * 16.0, oc.i32)

    @oc.kernel
    def count(self) -> oc.i32:
        found = 0
        for _, _, _ in self.voxels:
            found += 1
        return found

    @oc.func
    def march(self, origin, direction, most):
        """Where a ray first meets a voxel: how far, the voxel, and the axis of the face; the distance is `FAR` if nowhere.

        Each turn goes to the far side of the largest empty cell that the ray is in: a block, a brick, or a voxel.
        """
        far = FAR
        hit = oc.Vector([0, 0, 0])
        face = 0
        distance = 0.0
        inverse = 1.0 / direction
        for axis in oc.static(range(3)):
            # Where the ray enters the cube, if it begins outside.
            enter = oc.min(-origin[axis] * inverse[axis], (self.size - origin[axis]) * inverse[axis])
            if enter > distance:
                distance, face = enter, axis
        going = True
        turns = 0
        while going and turns < 600:
            turns += 1
            p = origin + (distance + 1e-3) * direction
            cell = oc.cast(oc.floor(p), oc.i32)
            if distance > most or cell.min() < 0 or cell.max() >= self.size:
                going = False
            else:
                extent = BLOCK
                if oc.is_active(self.blocks, cell // BLOCK):
                    extent = BRICK
                    if oc.is_active(self.bricks, cell // BRICK):
                        extent = 1
                        if oc.is_active(self.voxels, cell):
                            far, hit, going = distance, cell, False
                if going:
                    low = oc.cast(cell // extent * extent, oc.f32)
                    nearest = FAR
                    for axis in oc.static(range(3)):
                        edge = low[axis] + (extent if direction[axis] > 0.0 else 0)
                        until = (edge - origin[axis]) * inverse[axis]
                        if until < nearest:
                            nearest, face = until, axis
                    distance = oc.max(nearest, distance + 1e-3)
        return far, hit, face

    @oc.func
    def colour_of(self, cell) -> vec3:
        colour = PALETTE[0]
        here = self.material[cell]
        for known in oc.static(range(1, len(PALETTE))):
            if here == known:
                colour = PALETTE[known]
        return colour * (0.86 + 0.018 * oc.cast(self.shade[cell], oc.f32))

    @oc.func
    def sky(self, direction) -> vec3:
        sun = oc.max(direction.dot(SUN), 0.0)
        return mix(HORIZON, ZENITH, smooth_step(-0.1, 0.6, direction[1])) + 0.5 * sun**200 + 0.12 * sun**12

    @oc.kernel
    def draw(self, image: Pixels, eye: vec3, forward: vec3, right: vec3, up: vec3):
        for row, column in oc.ndrange(HEIGHT, WIDTH):
            x, y = (column + 0.5 - 0.5 * WIDTH) / HEIGHT, (0.5 * HEIGHT - row - 0.5) / HEIGHT
            ray = (forward + 1.1 * (x * right + y * up)).normalized()
            colour = self.sky(ray)
            far, cell, face = self.march(eye, ray, 4.0 * self.size)
            if far < FAR:
                normal = oc.Vector([0.0, 0.0, 0.0])
                for axis in oc.static(range(3)):
                    if face == axis:
                        normal[axis] = -1.0 if ray[axis] > 0.0 else 1.0
                at = eye + far * ray + 0.02 * normal
                sun = oc.max(normal.dot(SUN), 0.0)
                if sun > 0.0:
                    beyond, _, _ = self.march(at, SUN, 1.5 * self.size)
                    if beyond < FAR:
                        sun = 0.0
                light = oc.Vector([0.0, 0.0, 0.0])
                for n in range(SKY_RAYS):
                    # Directions around the normal, most of them near it.
                    z, around = 2.0 * oc.random() - 1.0, 6.2831853 * oc.random()
                    flat = oc.sqrt(oc.max(1.0 - z * z, 0.0))
                    towards = normal * 1.001 + oc.Vector([flat * oc.cos(around), z, flat * oc.sin(around)])
                    towards = towards.normalized()
                    beyond, _, _ = self.march(at, towards, 0.25 * self.size)
                    if beyond >= FAR:
                        light += self.sky(towards)
                light = light / SKY_RAYS + sun * SUNLIGHT
                body = self.colour_of(cell)
                if self.material[cell] == 4:
                    # Water mirrors the sky, the more the flatter it is seen.
                    mirror = ray
                    mirror[1] = -mirror[1]
                    flatness = 0.1 + 0.9 * (1.0 - oc.max(-ray[1], 0.0)) ** 4
                    reached, seen, _ = self.march(at, mirror, 0.7 * self.size)
                    image_there = self.sky(mirror)
                    if reached < FAR:
                        image_there = 0.7 * self.colour_of(seen)
                    colour = mix(body * light, image_there, flatness)
                else:
                    colour = body * light
                colour = mix(colour, HORIZON, 1.0 - oc.exp(-0.12 * oc.max(far / self.size - 0.9, 0.0)))
            for channel in oc.static(range(3)):
                image[row, column, channel] = as_byte(1.0 - oc.exp(-1.35 * colour[channel]))


PALETTE = [rgb(code) for code in (
    "#000000", "#5f9e3a", "#8d8a86", "#d9c48b", "#1f6f93", "#b9aa98", "#e8b23a", "#2f6b34", "#6e4a2c")]  # fmt: skip
ZENITH, HORIZON, SUNLIGHT = rgb("#3f86d8"), rgb("#cfe3f2"), vec3(2.1, 1.75, 1.3)
SUN = vec3(*(np.array([0.55, 0.62, 0.42]) / np.linalg.norm([0.55, 0.62, 0.42])))


def camera(angle: float, size: int) -> list:
    """Eye, forward, right and up of somebody who flies around the island."""
    eye = np.array([0.5 + 1.05 * np.cos(angle), 0.68 + 0.06 * np.sin(2 * angle), 0.5 + 1.05 * np.sin(angle)]) * size
    forward = np.array([0.5, 0.4, 0.5]) * size - eye
    forward /= np.linalg.norm(forward)
    right = np.cross(forward, [0, 1, 0])
    right /= np.linalg.norm(right)
    return [vec3(*part) for part in (eye, forward, right, np.cross(right, forward))]


def main() -> None:
    chosen = options(__doc__, smallest=32, frames=60, size=256)
    size = -(-chosen.size // BLOCK) * BLOCK
    scene = Scene(size)
    layers = BRICK
    for layer in progress("building", size // layers, "voxels", layers * size**2):
        scene.build(layer * layers, layers)
    print(f"{scene.count()} voxels of {size**3} are there")
    image = np.zeros((HEIGHT, WIDTH, 3), np.uint8)
    film = []
    for frame in progress("drawing", chosen.frames, "rays", (2 + SKY_RAYS) * WIDTH * HEIGHT):
        scene.draw(image, *camera(2 * np.pi * frame / chosen.frames + 2.2, size))
        film.append(image.copy())
    png.save_animation(chosen.out / "voxels.png", film, seconds_per_frame=1 / 20)
    print(f"  wrote {chosen.out / 'voxels.png'} (animated)")


if __name__ == "__main__":
    main()
