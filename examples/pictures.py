"""Draws what the simulations compute: particles that flow into smooth bodies, and fields of cells in colours.

All of it happens in kernels on fields; `png` writes the result.
"""

from __future__ import annotations

import numpy as np

import octants as oc

vec3 = oc.types.vector(3, oc.f32)
vec4 = oc.types.vector(4, oc.f32)
Pixels = oc.types.ndarray(dtype=oc.u8, ndim=3)


def rgb(code: str) -> vec3:
    """A colour as it is written on the web, "#3a86ff", as three numbers between 0 and 1."""
    return vec3(*(int(code[at : at + 2], 16) / 255 for at in (1, 3, 5)))


@oc.func
def smooth_step(low: oc.f32, high: oc.f32, value: oc.f32) -> oc.f32:
    """From 0 below `low` to 1 above `high` without a kink."""
    t = oc.min(oc.max((value - low) / (high - low), 0.0), 1.0)
    return t * t * (3.0 - 2.0 * t)


@oc.func
def mix(a, b, part):
    return a + part * (b - a)


@oc.func
def as_byte(value: oc.f32) -> oc.u8:
    return oc.cast(oc.min(oc.max(value, 0.0), 1.0) * 255.0 + 0.5, oc.u8)


@oc.data_oriented
class ParticlePicture:
    """A square picture in which particles that lie close together become one body with a smooth, lit edge.

    Every particle adds its colour to the pixels around it, weighted by nearness. Where the weights add up to enough,
    there is a body, whose colour is the weighted mean; where they begin to fall, there is its edge.
    """

    def __init__(self, pixels: int, reach: float, background: tuple[str, str]):
        """`reach` is how far a particle is felt, in pixels; the background goes from a lower to an upper colour."""
        self.pixels = pixels
        self.reach = reach
        self.lower, self.upper = rgb(background[0]), rgb(background[1])
        self.paint = oc.Vector.field(4, oc.f32, shape=(pixels, pixels))  # colour times weight, and the weight
        self.image = np.zeros((pixels, pixels, 3), np.uint8)

    def draw(self, positions, colours, full: float) -> np.ndarray:
        """Draws particles at `positions` in the unit square in their `colours`; `full` is the weight of a full body."""
        self.paint.fill(0.0)
        self.add(positions, colours)
        self.develop(self.image, full)
        return self.image.copy()

    @oc.kernel
    def add(self, positions: oc.template(), colours: oc.template()):
        for p in positions:
            # Rows count from the top.
            at = oc.Vector([(1.0 - positions[p][1]) * self.pixels, positions[p][0] * self.pixels])
            first = oc.max(oc.cast(oc.floor(at - self.reach), oc.i32), 0)
            end = oc.min(oc.cast(oc.ceil(at + self.reach), oc.i32), self.pixels)
            colour = colours[p]
            for row in range(first[0], end[0]):
                for column in range(first[1], end[1]):
                    away = oc.Vector([row + 0.5, column + 0.5]) - at
                    near = 1.0 - away.dot(away) / (self.reach * self.reach)
                    if near > 0.0:
                        weight = near * near
                        self.paint[row, column] += weight * oc.Vector([colour[0], colour[1], colour[2], 1.0])

    @oc.kernel
    def develop(self, image: Pixels, full: oc.f32):
        for row, column in self.paint:
            paint = self.paint[row, column]
            weight = paint[3] / full
            colour = mix(self.upper, self.lower, row / self.pixels)
            if weight > 0.0:
                # The weight is seen as a height that falls off at the edge; the light comes from the upper left.
                above = self.paint[oc.max(row - 1, 0), column][3] / full
                left = self.paint[row, oc.max(column - 1, 0)][3] / full
                light = 1.0
                if weight < 0.9:
                    light += 0.9 * (weight - 0.5 * (above + left)) * (0.9 - weight) * self.reach
                body = paint.xyz / paint[3] * oc.min(oc.max(light, 0.6), 1.5)
                colour = mix(colour, body, smooth_step(0.16, 0.34, weight))
            for channel in oc.static(range(3)):
                image[row, column, channel] = as_byte(colour[channel])
