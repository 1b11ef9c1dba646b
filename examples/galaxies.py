"""Two disc galaxies pass each other, and their tides draw out the tails that telescopes see.

The stars move in the gravity of the two galaxies' cores; the cores move in each other's, and are slowed by the stars
and the dark matter that they plough through, so that they come back and merge. Every star is one iteration of a
parallel loop. The picture adds up light: atomic additions into the image, then a glow, then a film-like exposure.
"""

import math
import time
from dataclasses import dataclass
from pathlib import Path

import png
from progress import progress

import octants as oc

STARS = 600_000  # in both galaxies together
SOFTENING = 0.15  # the size of a core: nearer than this, gravity no longer grows
TIME_STEP = 0.01

PerStar = oc.types.ndarray(dtype=oc.f32, ndim=1)
Light = oc.types.ndarray(dtype=oc.f32, ndim=3)


@oc.func
def noise(index: oc.i32, channel: oc.i32) -> oc.f32:
    """A number in [0, 1) that looks random, the same at every call with the same arguments."""
    bits = oc.cast(index, oc.u32) * oc.u32(747796405) + oc.cast(channel, oc.u32) * oc.u32(2891336453)
    bits = (bits ^ oc.bit_shr(bits, 16)) * oc.u32(2246822519)
    bits = (bits ^ oc.bit_shr(bits, 13)) * oc.u32(3266489917)
    bits = bits ^ oc.bit_shr(bits, 16)
    return oc.cast(oc.bit_shr(bits, 8), oc.f32) / 16777216.0


@oc.func
def orbit_radius(star: oc.i32) -> oc.f32:
    """How far from its core a star begins: many near, few far."""
    return 0.03 + 1.1 * noise(star, 0) ** 1.6 + 0.25 * noise(star, 6) ** 8


@oc.kernel
def place(
    x: PerStar,
    y: PerStar,
    z: PerStar,
    vx: PerStar,
    vy: PerStar,
    vz: PerStar,
    first: oc.i32,
    end: oc.i32,
    mass: oc.f32,
    tilt: oc.f32,
    node: oc.f32,
    core_x: oc.f32,
    core_y: oc.f32,
    core_vx: oc.f32,
    core_vy: oc.f32,
):
    """Puts stars first..end on circular orbits about a core, in a disc that is tilted about the line of its nodes."""
    for star in range(first, end):
        radius = orbit_radius(star)
        angle = 6.2831853 * noise(star, 1)
        height = 0.05 * (noise(star, 2) + noise(star, 3) - 1.0)
        distance = oc.sqrt(radius * radius + SOFTENING * SOFTENING)
        speed = radius * oc.sqrt(mass / (distance * distance * distance))
        speed *= 1.0 + 0.08 * (noise(star, 4) - 0.5)
        # In the plane of the disc, then tilted, then turned.
        a = radius * oc.cos(angle)
        b = radius * oc.sin(angle)
        va = -speed * oc.sin(angle)
        vb = speed * oc.cos(angle)
        b_level = b * oc.cos(tilt) - height * oc.sin(tilt)
        vb_level = vb * oc.cos(tilt)
        x[star] = core_x + a * oc.cos(node) - b_level * oc.sin(node)
        y[star] = core_y + a * oc.sin(node) + b_level * oc.cos(node)
        z[star] = b * oc.sin(tilt) + height * oc.cos(tilt)
        vx[star] = core_vx + va * oc.cos(node) - vb_level * oc.sin(node)
        vy[star] = core_vy + va * oc.sin(node) + vb_level * oc.cos(node)
        vz[star] = vb * oc.sin(tilt)


@oc.kernel
def advance(
    x: PerStar,
    y: PerStar,
    z: PerStar,
    vx: PerStar,
    vy: PerStar,
    vz: PerStar,
    ax: oc.f32,
    ay: oc.f32,
    a_mass: oc.f32,
    bx: oc.f32,
    by: oc.f32,
    b_mass: oc.f32,
    dt: oc.f32,
):
    """One step of every star in the gravity of cores a and b."""
    for star in range(x.shape[0]):
        px = x[star]
        py = y[star]
        pz = z[star]
        to_ax = ax - px
        to_ay = ay - py
        to_bx = bx - px
        to_by = by - py
        a_near = oc.rsqrt(to_ax * to_ax + to_ay * to_ay + pz * pz + SOFTENING * SOFTENING)
        b_near = oc.rsqrt(to_bx * to_bx + to_by * to_by + pz * pz + SOFTENING * SOFTENING)
        a_pull = dt * a_mass * a_near * a_near * a_near
        b_pull = dt * b_mass * b_near * b_near * b_near
        ux = vx[star] + a_pull * to_ax + b_pull * to_bx
        uy = vy[star] + a_pull * to_ay + b_pull * to_by
        uz = vz[star] - (a_pull + b_pull) * pz
        vx[star] = ux
        vy[star] = uy
        vz[star] = uz
        x[star] = px + dt * ux
        y[star] = py + dt * uy
        z[star] = pz + dt * uz


@oc.kernel
def expose(
    light: Light,
    x: PerStar,
    y: PerStar,
    z: PerStar,
    border: oc.i32,
    centre_x: oc.f32,
    centre_y: oc.f32,
    scale: oc.f32,
    tilt: oc.f32,
    brightness: oc.f32,
):
    """Adds the light of every star to the picture; stars before `border` belong to the first galaxy."""
    for star in range(x.shape[0]):
        across = x[star] - centre_x
        up = (y[star] - centre_y) * oc.cos(tilt) + z[star] * oc.sin(tilt)
        column = oc.cast(oc.floor(0.5 * light.shape[1] + across * scale), oc.i32)
        row = oc.cast(oc.floor(0.5 * light.shape[0] - up * scale), oc.i32)
        if 0 <= row < light.shape[0] and 0 <= column < light.shape[1]:
            # Old and yellow in the middle, young and blue outside; the second galaxy is rosier.
            outside = oc.min(orbit_radius(star) * 1.2, 1.0)
            shine = brightness * (0.3 + 1.4 * noise(star, 5) ** 4)
            red = 1.00 - 0.72 * outside
            green = 0.72 - 0.22 * outside
            blue = 0.38 + 0.62 * outside
            if star >= border:
                red = 1.00 - 0.10 * outside
                green = 0.62 - 0.30 * outside
                blue = 0.30 + 0.42 * outside
            light[row, column, 0] += shine * red
            light[row, column, 1] += shine * green
            light[row, column, 2] += shine * blue


@oc.kernel
def blur(source: Light, target: Light, down: oc.i32, right: oc.i32, reach: oc.i32):
    """Spreads light along one axis: (down, right) is (1, 0) or (0, 1), `reach` is in pixels."""
    height = source.shape[0]
    width = source.shape[1]
    for row, column, channel in oc.ndrange(height, width, 3):
        total = 0.0
        weights = 0.0
        for offset in range(-reach, reach + 1):
            near = 1.0 - (offset / (reach + 1.0)) ** 2
            from_row = oc.min(oc.max(row + offset * down, 0), height - 1)
            from_column = oc.min(oc.max(column + offset * right, 0), width - 1)
            total += near * near * source[from_row, from_column, channel]
            weights += near * near
        target[row, column, channel] = total / weights


@oc.kernel
def develop(light: Light, glow: Light, image: oc.types.ndarray(dtype=oc.u8, ndim=3)):
    """Turns light into a picture: a logarithmic exposure that keeps the colour of bright places."""
    for row, column in oc.ndrange(image.shape[0], image.shape[1]):
        red = light[row, column, 0] + 1.3 * glow[row, column, 0]
        green = light[row, column, 1] + 1.3 * glow[row, column, 1]
        blue = light[row, column, 2] + 1.3 * glow[row, column, 2]
        bright = (red + green + blue) / 3.0 + 1e-6
        gain = oc.log(1.0 + 12.0 * bright) / (4.8 * bright)
        image[row, column, 0] = oc.cast(255.0 * oc.min(1.0, 0.010 + red * gain), oc.u8)
        image[row, column, 1] = oc.cast(255.0 * oc.min(1.0, 0.010 + green * gain), oc.u8)
        image[row, column, 2] = oc.cast(255.0 * oc.min(1.0, 0.022 + blue * gain), oc.u8)


@dataclass
class Core:
    """The middle of a galaxy, which carries its mass."""

    mass: float
    x: float
    y: float
    vx: float
    vy: float


def advance_cores(a: Core, b: Core, dt: float) -> None:
    dx, dy = b.x - a.x, b.y - a.y
    vx, vy = b.vx - a.vx, b.vy - a.vy
    square = dx * dx + dy * dy
    pull = (square + SOFTENING**2) ** -1.5
    drag = 0.10 * math.exp(-square / 1.5)
    for core, other, sign in ((a, b, 1.0), (b, a, -1.0)):
        core.vx += dt * other.mass * sign * (pull * dx + drag * vx)
        core.vy += dt * other.mass * sign * (pull * dy + drag * vy)
    for core in (a, b):
        core.x += dt * core.vx
        core.y += dt * core.vy


class Camera:
    """A picture of a given size, with what is needed to take it."""

    def __init__(self, height: int, width: int, centre: tuple[float, float], span: float, tilt: float):
        self.light = oc.ndarray(oc.f32, shape=(height, width, 3))
        self.half_blurred = oc.ndarray(oc.f32, shape=(height, width, 3))
        self.glow = oc.ndarray(oc.f32, shape=(height, width, 3))
        self.image = oc.ndarray(oc.u8, shape=(height, width, 3))
        self.centre, self.scale, self.tilt = centre, width / span, tilt

    def take(self, x, y, z, border: int):
        height, width, _ = self.image.shape
        brightness = 0.55 * (height * width / 1e6) * (6e5 / STARS)
        self.light.fill(0.0)
        expose(self.light, x, y, z, border, *self.centre, self.scale, self.tilt, brightness)
        reach = width // 160
        blur(self.light, self.half_blurred, 0, 1, reach)
        blur(self.half_blurred, self.glow, 1, 0, reach)
        develop(self.light, self.glow, self.image)
        return self.image.to_numpy()


def main(out: Path, frames: int = 64, steps_per_frame: int = 10) -> None:
    print(f"\nGalaxies: {STARS} stars, one atomic addition per star and colour in every picture")
    a = Core(mass=1.0, x=-1.36, y=-0.72, vx=0.46, vy=0.05)
    b = Core(mass=0.8, x=1.7, y=0.9, vx=-0.575, vy=-0.0625)
    border = STARS * 5 // 9
    stars = [oc.ndarray(oc.f32, shape=(STARS,)) for _ in range(6)]

    start = time.perf_counter()
    place(*stars, 0, border, a.mass, 0.5, 0.4, a.x, a.y, a.vx, a.vy)
    place(*stars, border, STARS, b.mass, -0.6, 1.2, b.x, b.y, b.vx, b.vy)
    advance(*stars, a.x, a.y, a.mass, b.x, b.y, b.mass, 0.0)
    film_camera = Camera(360, 640, (0.1, -0.05), 8.2, 0.5)
    film_camera.take(*stars[:3], border)
    seconds = time.perf_counter() - start
    print(f"  compiled place(), advance(), expose(), blur() and develop() in {seconds * 1e3:.0f} ms")

    film = []
    moving = 0.0
    for _ in progress("colliding", frames, "star steps", STARS * steps_per_frame):
        start = time.perf_counter()
        for _ in range(steps_per_frame):
            advance_cores(a, b, TIME_STEP)
            advance(*stars, a.x, a.y, a.mass, b.x, b.y, b.mass, TIME_STEP)
        oc.sync()
        moving += time.perf_counter() - start
        film.append(film_camera.take(*stars[:3], border))
        if len(film) == frames * 2 // 3:
            still = Camera(1080, 1920, (0.1, -0.05), 8.2, 0.5).take(*stars[:3], border)
    rate = STARS * steps_per_frame * frames / moving
    print(f"  moving the stars alone: {rate / 1e6:.0f} M star steps/s")
    png.save(out / "galaxies.png", still)
    png.save_animation(out / "galaxies_film.png", film, seconds_per_frame=1 / 15)
    print(f"  wrote {out / 'galaxies.png'} and {out / 'galaxies_film.png'} (animated)")


if __name__ == "__main__":
    oc.init(arch=oc.cpu)
    main(Path("out"))
