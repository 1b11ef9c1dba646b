"""Draws a surface of points and a ball on a floor, with soft shadows.

Triangles are drawn twice, as the camera and as the light see them. A pixel of either picture keeps one number: the
nearness of the nearest triangle in its upper half, which triangle that is in its lower half; so that one atomic
maximum decides who is seen. Colours are found afterwards, pixel by pixel.
"""

from __future__ import annotations

import numpy as np
from pictures import Pixels, as_byte, mix, rgb, smooth_step, vec3

import octants as oc

SAMPLES = 2  # along each side of a pixel
SHADOW_SIZE, SHADOW_REACH = (
    512,
    2.2,
)  # texels along a side of the light's picture, and how many metres half of it covers
SKY, FLOOR, BALL = rgb("#eceff1"), rgb("#cfd4d6"), rgb("#f2b632")
CLOTH, STRIPE, REVERSE = rgb("#9c2f3b"), rgb("#f2e3c6"), rgb("#7a2430")


def unit(*coordinates: float) -> np.ndarray:
    vector = np.array(coordinates, dtype=np.float64)
    return vector / np.linalg.norm(vector)


@oc.func
def edge(a, b, p):
    """Twice the area of the triangle a, b, p in the plane; its sign says on which side of a-b p lies."""
    return (b[0] - a[0]) * (p[1] - a[1]) - (b[1] - a[1]) * (p[0] - a[0])


@oc.data_oriented
class Stage:
    def __init__(self, points: int, width: int, height: int, ball: tuple[float, float, float, float]):
        self.points = points
        self.width, self.height = width, height
        self.ball, self.radius = vec3(*ball[:3]), ball[3]
        eye, target = np.array([0.0, 1.9, 3.3]), np.array([0.0, 0.42, 0.0])
        forward = unit(*(target - eye))
        right = unit(*np.cross(forward, (0, 1, 0)))
        self.eye, self.forward, self.right = vec3(*eye), vec3(*forward), vec3(*right)
        self.up = vec3(*np.cross(right, forward))
        self.zoom = 2.3 * height * SAMPLES / 2  # pixels per unit of slope
        light = unit(-0.55, 1.0, 0.35)
        light_right = unit(*np.cross(light, (0, 0, 1)))
        self.light, self.light_right = vec3(*light), vec3(*light_right)
        self.light_up = vec3(*np.cross(light_right, light))
        self.normal = oc.Vector.field(3, oc.f32, shape=(points, points))
        self.on_screen = oc.Vector.field(3, oc.f32, shape=(points, points))  # row, column, nearness up to 1
        self.in_light = oc.Vector.field(3, oc.f32, shape=(points, points))
        self.seen = oc.field(oc.i64, shape=(height * SAMPLES, width * SAMPLES))
        self.lit = oc.field(oc.i64, shape=(SHADOW_SIZE, SHADOW_SIZE))
        self.image = np.zeros((height, width, 3), np.uint8)

    def draw(self, positions) -> np.ndarray:
        self.seen.fill(0)
        self.lit.fill(0)
        self.place(positions)
        self.cover(self.on_screen, self.seen)
        self.cover(self.in_light, self.lit)
        self.shade(positions, self.image)
        return self.image.copy()

    @oc.func
    def light_place(self, position):
        """Where the light sees a position: row, column and nearness between 0 and 1."""
        texel = 0.5 * SHADOW_SIZE / SHADOW_REACH
        row = 0.5 * SHADOW_SIZE - position.dot(self.light_up) * texel
        column = 0.5 * SHADOW_SIZE + position.dot(self.light_right) * texel
        return oc.Vector([row, column, 0.5 + 0.1 * position.dot(self.light)])

    @oc.kernel
    def place(self, positions: oc.template()):
        """Projects all points, and finds the normals from their neighbours."""
        for i, j in positions:
            position = positions[i, j]
            away = position - self.eye
            distance = away.dot(self.forward)
            row = 0.5 * self.height * SAMPLES - away.dot(self.up) / distance * self.zoom
            column = 0.5 * self.width * SAMPLES + away.dot(self.right) / distance * self.zoom
            self.on_screen[i, j] = [row, column, 1.0 / distance]
            self.in_light[i, j] = self.light_place(position)
            last = self.points - 1
            down = positions[oc.min(i + 1, last), j] - positions[oc.max(i - 1, 0), j]
            right = positions[i, oc.min(j + 1, last)] - positions[i, oc.max(j - 1, 0)]
            self.normal[i, j] = down.cross(right).normalized(1e-9)

    @oc.func
    def corner(self, triangle: oc.i32, which: oc.template()):
        """The index of a triangle's corner: two triangles fill each square of the surface."""
        square = triangle // 2
        at = oc.Vector([square // (self.points - 1), square % (self.points - 1)])
        result = at
        if triangle % 2 == 0:
            result = at + oc.Vector(oc.static([(0, 0), (1, 0), (0, 1)][which]))
        else:
            result = at + oc.Vector(oc.static([(1, 1), (0, 1), (1, 0)][which]))
        return result

    @oc.kernel
    def cover(self, placed: oc.template(), target: oc.template()):
        """Enters every triangle into the pixels whose middle it covers, unless something nearer is there."""
        for triangle in range(2 * (self.points - 1) ** 2):
            a = placed[self.corner(triangle, 0)]
            b = placed[self.corner(triangle, 1)]
            c = placed[self.corner(triangle, 2)]
            area = edge(a, b, c)
            if oc.abs(area) > 1e-9:
                first = oc.max(oc.cast(oc.floor(oc.min(a, b, c)), oc.i32), 0)
                last = oc.cast(oc.floor(oc.max(a, b, c)), oc.i32)
                for row in range(first[0], oc.min(last[0] + 1, target.shape[0])):
                    for column in range(first[1], oc.min(last[1] + 1, target.shape[1])):
                        middle = oc.Vector([row + 0.5, column + 0.5])
                        wa = edge(b, c, middle) / area
                        wb = edge(c, a, middle) / area
                        wc = 1.0 - wa - wb
                        if wa >= 0.0 and wb >= 0.0 and wc >= 0.0:
                            nearness = wa * a[2] + wb * b[2] + wc * c[2]
                            steps = oc.cast(oc.min(nearness, 1.0) * 1073741824.0, oc.i64)
                            oc.atomic_max(target[row, column], (steps << 32) + triangle + 1)

    @oc.func
    def daylight(self, position):
        """The part of the light that reaches a position: 0 behind the ball or the cloth, between at their edges."""
        from_ball = position - self.ball
        along = -from_ball.dot(self.light)
        reached = 1.0
        if along > 0.0:
            aside = (from_ball + along * self.light).norm()
            reached = smooth_step(self.radius - 0.04, self.radius + 0.04, aside)
        place = self.light_place(position)
        free = 0.0
        for i, j in oc.static(oc.ndrange((-2, 3), (-2, 3))):
            row = oc.min(oc.max(oc.cast(place[0], oc.i32) + 2 * i, 0), SHADOW_SIZE - 1)
            column = oc.min(oc.max(oc.cast(place[1], oc.i32) + 2 * j, 0), SHADOW_SIZE - 1)
            nearest = oc.cast(self.lit[row, column] >> 32, oc.f32) / 1073741824.0
            free += 1.0 if nearest < place[2] + 0.004 else 0.0
        return reached * free / 25.0

    @oc.func
    def lighten(self, colour, position, normal, towards_eye, gloss):
        """Light from the sky and from the lamp, and the lamp's reflection."""
        facing = oc.max(normal.dot(self.light), 0.0)
        half = (self.light + towards_eye).normalized()
        shine = gloss * oc.max(normal.dot(half), 0.0) ** 40
        sky = 0.48 + 0.14 * normal.y
        return colour * (sky + (0.56 * facing + shine) * self.daylight(position))

    @oc.func
    def backdrop(self, ray):
        """The ball, the floor or the sky in the direction of a ray."""
        colour = SKY
        to_ball = self.ball - self.eye
        along = to_ball.dot(ray)
        inside = self.radius**2 - (to_ball.norm_sqr() - along * along)
        if inside > 0.0:
            position = self.eye + (along - oc.sqrt(inside)) * ray
            colour = self.lighten(BALL, position, (position - self.ball) / self.radius, -ray, 0.7)
        elif ray.y < 0.0:
            position = self.eye - self.eye.y / ray.y * ray
            upwards = oc.Vector([0.0, 1.0, 0.0])
            near = oc.exp(-0.05 * (position.x * position.x + position.z * position.z))
            # The ball stands on the floor and keeps the sky's light from it.
            under = position - self.ball
            open_sky = 1.0 - 0.5 * oc.exp(-2.5 * (under.x * under.x + under.z * under.z) / self.radius**2)
            colour = mix(SKY, self.lighten(FLOOR, position, upwards, -ray, 0.0) * open_sky, near)
        return colour

    @oc.func
    def woven(self, at, outside):
        """The pattern of the cloth at a place in points: two stripes along every edge."""
        from_edge = oc.min(at[0], at[1], self.points - 1 - at[0], self.points - 1 - at[1]) / (self.points - 1)
        stripe = smooth_step(0.05, 0.055, from_edge) - smooth_step(0.09, 0.095, from_edge)
        stripe += smooth_step(0.105, 0.11, from_edge) - smooth_step(0.12, 0.125, from_edge)
        ground = CLOTH
        if not outside:
            ground = REVERSE
        return mix(ground, STRIPE, stripe)

    @oc.func
    def surface(self, positions: oc.template(), triangle: oc.i32, ray):
        """The cloth where a ray from the eye meets one of its triangles."""
        ia, ib, ic = self.corner(triangle, 0), self.corner(triangle, 1), self.corner(triangle, 2)
        a = positions[ia]
        ab, ac, ae = positions[ib] - a, positions[ic] - a, self.eye - a
        across = ray.cross(ac)
        scale = ab.dot(across)
        scale = oc.math.sign(scale) * oc.max(oc.abs(scale), 1e-12)
        wb = ae.dot(across) / scale
        wc = ray.dot(ae.cross(ab)) / scale
        position = a + wb * ab + wc * ac
        normal = ((1.0 - wb - wc) * self.normal[ia] + wb * self.normal[ib] + wc * self.normal[ic]).normalized(1e-9)
        outside = normal.dot(ray) < 0.0
        if not outside:
            normal = -normal
        at = ia + wb * (ib - ia) + wc * (ic - ia)
        return self.lighten(self.woven(at, outside), position + 0.01 * normal, normal, -ray, 0.12)

    @oc.kernel
    def shade(self, positions: oc.template(), image: Pixels):
        for row, column in oc.ndrange(self.height, self.width):
            colour = vec3(0.0)
            for sample in range(SAMPLES * SAMPLES):
                y = row * SAMPLES + sample // SAMPLES
                x = column * SAMPLES + sample % SAMPLES
                up = (0.5 * self.height * SAMPLES - y - 0.5) / self.zoom
                right = (x + 0.5 - 0.5 * self.width * SAMPLES) / self.zoom
                ray = (self.forward + up * self.up + right * self.right).normalized()
                entry = self.seen[y, x]
                nearness = oc.cast(entry >> 32, oc.f32) / 1073741824.0
                visible = entry > 0
                if visible:
                    # The ball may stand before the cloth.
                    to_ball = self.ball - self.eye
                    along = to_ball.dot(ray)
                    inside = self.radius**2 - (to_ball.norm_sqr() - along * along)
                    if inside > 0.0:
                        distance = (along - oc.sqrt(inside)) * ray.dot(self.forward)
                        visible = 1.0 / distance < nearness
                if visible:
                    colour += self.surface(positions, oc.cast(entry, oc.i32) - 1, ray)
                else:
                    colour += self.backdrop(ray)
            colour /= SAMPLES * SAMPLES
            for channel in oc.static(range(3)):
                image[row, column, channel] = as_byte(colour[channel])
