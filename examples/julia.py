"""A zoom into a Julia set that never ends.

Near a repelling fixed point of z -> z² + c the Julia set looks the same at every scale: z -> z² + c itself carries a
small neighbourhood onto a larger, turned one, and adds one to the escape count. So zooming in by a whole number of
such steps while turning with them, with colours that repeat after the same number, gives a film without a seam.
"""

import cmath
import math
import time
from pathlib import Path

import png
from progress import progress

import octants as oc

C = complex(0.2855, 0.0115)
FIXED_POINT = (1 - cmath.sqrt(1 - 4 * C)) / 2
MULTIPLIER = 2 * FIXED_POINT  # what one step does to a small neighbourhood: enlarge and turn

MAX_STEPS = 1200
COLOUR_PERIOD = 160  # steps until the colours repeat


@oc.func
def wave(t: oc.f32, shift: oc.f32) -> oc.f32:
    """A smooth wave between 0 and 1, of period 1."""
    return 0.5 + 0.5 * oc.cos(6.2831853 * (t - shift))


@oc.kernel
def julia(
    image: oc.types.ndarray(dtype=oc.u8, ndim=3),
    samples: oc.i32,
    centre_x: oc.f32,
    centre_y: oc.f32,
    scale_x: oc.f32,
    scale_y: oc.f32,
) -> oc.i64:
    """Draws the set with samples² points per pixel; one pixel spans the complex number (scale_x, scale_y).

    Returns how many steps z -> z² + c were taken in all.
    """
    height = image.shape[0]
    width = image.shape[1]
    total = oc.i64(0)
    # The light comes from the lower right of the picture, however the picture is turned.
    scale = 0.45 * oc.rsqrt(2.0 * (scale_x * scale_x + scale_y * scale_y))
    light_x = (scale_x - scale_y) * scale
    light_y = (scale_x + scale_y) * scale
    for row, column in oc.ndrange(height, width):
        red = 0.0
        green = 0.0
        blue = 0.0
        for sample in range(samples * samples):
            u = column + (sample % samples + 0.5) / samples - 0.5 * width
            v = row + (sample // samples + 0.5) / samples - 0.5 * height
            x = centre_x + u * scale_x - v * scale_y
            y = centre_y + u * scale_y + v * scale_x
            # (dx, dy) is the derivative of z with respect to where it started.
            dx = 1.0
            dy = 0.0
            steps = 0
            while steps < MAX_STEPS and x * x + y * y < 1e4:
                dx, dy = 2.0 * (x * dx - y * dy), 2.0 * (x * dy + y * dx)
                x, y = x * x - y * y + C.real, 2.0 * x * y + C.imag
                steps += 1
            total += steps
            if steps < MAX_STEPS:
                # The escape count, made continuous by how far beyond the radius the last step went.
                t = (steps - oc.log(oc.log(x * x + y * y)) / 0.6931472) / COLOUR_PERIOD
                # Seen as a landscape, the escape time has a slope, z / dz, on which the light falls.
                slope_x = x * dx + y * dy
                slope_y = y * dx - x * dy
                steepness = oc.rsqrt(slope_x * slope_x + slope_y * slope_y + 1e-30)
                light = 0.55 + (slope_x * light_x + slope_y * light_y) * steepness
                red += light * (0.12 + 0.88 * wave(t, 0.50))
                green += light * (0.06 + 0.82 * wave(t, 0.62))
                blue += light * (0.18 + 0.82 * wave(t, 0.78))
        weight = 255.0 / (samples * samples)
        image[row, column, 0] = oc.cast(red * weight, oc.u8)
        image[row, column, 1] = oc.cast(green * weight, oc.u8)
        image[row, column, 2] = oc.cast(blue * weight, oc.u8)
    return total


def draw(image, samples: int, width_in_plane: float, turn: float) -> int:
    """Draws the neighbourhood of the fixed point, `width_in_plane` wide and turned by `turn` radians."""
    scale = cmath.rect(width_in_plane / image.shape[1], turn)
    return julia(image, samples, FIXED_POINT.real, FIXED_POINT.imag, scale.real, scale.imag)


def main(out: Path, frames: int = 60) -> None:
    print("\nJulia set: one kernel, a while loop in every pixel")
    start = time.perf_counter()
    draw(oc.ndarray(oc.u8, shape=(1, 1, 3)), 1, 1.0, 0.0)
    print(f"  compiled julia() in {(time.perf_counter() - start) * 1e3:.0f} ms")

    image = oc.ndarray(oc.u8, shape=(1080, 1920, 3))
    start = time.perf_counter()
    steps = draw(image, samples=3, width_in_plane=0.6, turn=0.3)
    seconds = time.perf_counter() - start
    print(
        f"  still: 1920 x 1080 pixels, 9 samples each, in {seconds:.2f} s: "
        f"{1920 * 1080 / seconds / 1e6:.2f} M pixels/s, {steps / seconds / 1e6:.0f} M steps/s"
    )
    png.save(out / "julia.png", image.to_numpy())

    image = oc.ndarray(oc.u8, shape=(270, 480, 3))
    zoom = abs(MULTIPLIER) ** COLOUR_PERIOD
    turn = math.remainder(cmath.phase(MULTIPLIER) * COLOUR_PERIOD, 2 * math.pi)
    film = []
    for frame in progress("zooming", frames, "pixels", 270 * 480):
        part = frame / frames
        draw(image, samples=2, width_in_plane=0.3 / zoom**part, turn=0.3 - turn * part)
        film.append(image.to_numpy())
    png.save_animation(out / "julia_zoom.png", film, seconds_per_frame=1 / 15)
    print(f"  wrote {out / 'julia.png'} and {out / 'julia_zoom.png'} (animated)")


if __name__ == "__main__":
    oc.init(arch=oc.cpu)
    main(Path("out"))
