"""A cloth falls over a ball: masses and springs.

    python examples/cloth.py [--frames N] [--steps N] [--size POINTS] [--out DIR] [--arch NAME]

Every point of the cloth is tied to twelve others: its neighbours, those across a diagonal, and those two away, which
resist bending. Forces are summed point by point, so that all points can be moved at once.
"""

import math

import png
from command_line import options
from progress import progress
from rendering import Stage

import octants as oc

vec3 = oc.types.vector(3, oc.f32)

GRAVITY = 9.8
AREA_DENSITY = 0.25  # kg per square metre
# (down, right, stiffness as a part of the cloth's): each spring is felt at both ends, so half of them are listed.
TIES = [(1, 0, 1.0), (0, 1, 1.0), (1, 1, 0.4), (1, -1, 0.4), (2, 0, 0.1), (0, 2, 0.1)]
TIES += [(-down, -right, stiffness) for down, right, stiffness in TIES]


@oc.data_oriented
class Cloth:
    """A square cloth of `points` x `points`, `side` metres wide; it starts level at a height."""

    def __init__(self, points: int, side: float, height: float, stiffness: float = 100.0, drag: float = 0.6):
        self.points = points
        self.spacing = side / (points - 1)
        self.mass = AREA_DENSITY * side**2 / points**2
        self.stiffness = stiffness
        self.drag = drag  # of the air, per second
        self.damping = 0.12 * math.sqrt(stiffness * self.mass)  # of a spring's change of length
        # Well inside what the stiffest oscillation of a point tied to all its neighbours allows.
        self.time_step = 0.35 * math.sqrt(self.mass / stiffness)
        self.point = oc.Struct.field(
            {"position": vec3, "velocity": vec3, "force": vec3, "free": oc.f32}, shape=(points, points)
        )
        self.ball = oc.Vector.field(4, oc.f32, shape=())  # its centre and radius
        self.ball[None] = [0.0, 0.0, 0.0, 0.0]
        self.floor = -1e9
        self.spread(side, height)

    @oc.kernel
    def spread(self, side: oc.f32, height: oc.f32):
        for i, j in self.point:
            self.point[i, j].position = [j * self.spacing - 0.5 * side, height, i * self.spacing - 0.5 * side]
            self.point[i, j].velocity = [0.0, 0.0, 0.0]
            self.point[i, j].free = 1.0

    @oc.func
    def on_cloth(self, at) -> oc.i32:
        return 0 <= at[0] < self.points and 0 <= at[1] < self.points

    @oc.kernel
    def step(self):
        for at in oc.grouped(self.point):
            here = self.point[at]
            force = oc.Vector([0.0, -GRAVITY * self.mass, 0.0]) - self.drag * self.mass * here.velocity
            for tie in oc.static(TIES):
                other = at + oc.Vector([tie[0], tie[1]])
                if self.on_cloth(other):
                    there = self.point[other]
                    along = there.position - here.position
                    length = along.norm() + 1e-9
                    along /= length
                    rest = self.spacing * oc.static(math.hypot(tie[0], tie[1]))
                    closing = (there.velocity - here.velocity).dot(along)
                    pull = tie[2] * (self.stiffness * (length - rest) + self.damping * closing)
                    force += pull * along
            self.point[at].force = force
        for at in oc.grouped(self.point):
            velocity = self.point[at].velocity
            position = self.point[at].position
            velocity += self.time_step / self.mass * self.point[at].free * self.point[at].force
            # Cloth does not enter the ball, and rubs on it; the same on the floor.
            from_ball = position - self.ball[None].xyz
            distance = from_ball.norm()
            radius = self.ball[None].w
            if distance < radius:
                normal = from_ball / distance
                position += normal * (radius - distance)
                inward = oc.min(velocity.dot(normal), 0.0)
                velocity = (velocity - inward * normal) * (1.0 - oc.min(60.0 * self.time_step, 1.0))
            if position.y < self.floor:
                position.y = self.floor
                velocity *= 1.0 - oc.min(30.0 * self.time_step, 1.0)
                velocity.y = oc.max(velocity.y, 0.0)
            self.point[at].velocity = velocity
            self.point[at].position = position + self.time_step * velocity

    @oc.kernel
    def energy(self) -> oc.f64:
        """Of motion, of height and of the springs."""
        total = oc.f64(0.0)
        for at in oc.grouped(self.point):
            here = self.point[at]
            joules = self.mass * (0.5 * here.velocity.norm_sqr() + GRAVITY * here.position.y)
            for tie in oc.static(TIES[: len(TIES) // 2]):
                other = at + oc.Vector([tie[0], tie[1]])
                if self.on_cloth(other):
                    length = (self.point[other].position - here.position).norm()
                    rest = self.spacing * oc.static(math.hypot(tie[0], tie[1]))
                    joules += 0.5 * tie[2] * self.stiffness * (length - rest) ** 2
            total += oc.cast(joules, oc.f64)
        return total

    @oc.kernel
    def stretch(self) -> oc.f32:
        """The longest spring between neighbours, in rest lengths."""
        longest = oc.f32(0.0)
        for i, j in self.point:
            if i + 1 < self.points:
                oc.atomic_max(longest, (self.point[i + 1, j].position - self.point[i, j].position).norm())
            if j + 1 < self.points:
                oc.atomic_max(longest, (self.point[i, j + 1].position - self.point[i, j].position).norm())
        return longest / self.spacing


def over_a_ball(points: int) -> Cloth:
    cloth = Cloth(points, side=2.1, height=1.25)
    cloth.ball[None] = [0.05, 0.55, 0.02, 0.55]
    cloth.floor = 0.01
    return cloth


def main() -> None:
    chosen = options(__doc__, smallest=8, frames=90, steps=100, size=128)
    cloth = over_a_ball(chosen.size)
    stage = Stage(chosen.size, 640, 480, ball=(0.05, 0.55 - 0.015, 0.02, 0.55 - 0.015))
    print(f"{chosen.size}² points, {chosen.frames * chosen.steps} steps of {cloth.time_step * 1e3:.2f} ms")
    film = []
    for frame in progress("falling", chosen.frames, "points", chosen.steps * chosen.size**2):
        film.append(stage.draw(cloth.point.position))
        for _ in range(chosen.steps):
            cloth.step()
    png.save_animation(chosen.out / "cloth.png", film, seconds_per_frame=1 / 30)
    print(f"  longest thread: {cloth.stretch():.2f} of its rest length; wrote {chosen.out / 'cloth.png'} (animated)")


if __name__ == "__main__":
    main()
