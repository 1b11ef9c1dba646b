"""A billiard ball is shot so that it comes to rest at a target: gradients through a `while` loop.

    python examples/billiards.py [--iterations N] [--size BALLS] [--out DIR] [--arch NAME]

Each ball rolls until it has lost its speed; how many steps that takes depends on how it was shot. It bounces off four cushions. Many balls are
aimed at the same time, each by steps along its own gradient.
"""

import numpy as np
import plots
from command_line import options
from progress import progress

import octants as oc

vec2 = oc.types.vector(2, oc.f32)

WIDTH, HEIGHT = 2.0, 1.0  # of the table, metres
FRICTION = 0.35  # speed lost in a second, metres per second
BOUNCE = 0.8  # part of the speed that a cushion leaves
TIME_STEP = 0.01


@oc.data_oriented
class Table:
    """Balls on one table that do not see each other."""

    def __init__(self, start: np.ndarray, target: np.ndarray):
        count = len(start)
        self.start = oc.Vector.field(2, oc.f32, count)
        self.target = oc.Vector.field(2, oc.f32, count)
        self.shot = oc.Vector.field(2, oc.f32, count, needs_grad=True)
        self.rest = oc.Vector.field(2, oc.f32, count, needs_grad=True)
        self.steps = oc.field(oc.i32, count)
        self.loss = oc.field(oc.f32, (), needs_grad=True)
        self.start.from_numpy(start.astype(np.float32))
        self.target.from_numpy(target.astype(np.float32))

    @oc.func
    def bounce(self, place, speed, extent):
        """Where a ball is between two cushions, and how fast.

        It was slower from the moment it met the cushion on: the way behind that is shortened like the speed. With the whole way, results would be as
        good, but the derivative would not know that a faster ball is slowed down earlier.
        """
        if place < 0.0:
            place, speed = -BOUNCE * place, -BOUNCE * speed
        elif place > extent:
            place, speed = extent - BOUNCE * (place - extent), -BOUNCE * speed
        return vec2(place, speed)

    @oc.kernel
    def roll(self):
        for ball in self.shot:
            place, velocity = self.start[ball], self.shot[ball]
            count = 0
            while velocity.norm() > FRICTION * TIME_STEP:
                velocity -= FRICTION * TIME_STEP * velocity / velocity.norm()
                place += TIME_STEP * velocity
                across = self.bounce(place[0], velocity[0], WIDTH)
                along = self.bounce(place[1], velocity[1], HEIGHT)
                place, velocity = vec2(across[0], along[0]), vec2(across[1], along[1])
                count += 1
            self.rest[ball] = place
            self.steps[ball] = count

    @oc.kernel
    def measure(self):
        for ball in self.rest:
            self.loss[None] += (self.rest[ball] - self.target[ball]).norm_sqr()

    def aim(self, rate: float) -> np.ndarray:
        """One step of each shot along its gradient; how far each ball has missed its target."""
        with oc.ad.Tape(self.loss):
            self.roll()
            self.measure()
        missed = np.linalg.norm(self.rest.to_numpy() - self.target.to_numpy(), axis=1)
        self.shot.from_numpy(self.shot.to_numpy() - rate * self.shot.grad.to_numpy())
        return missed

    def path(self, shot: np.ndarray, ball: int) -> np.ndarray:
        """The way of one ball, for the picture."""
        place, velocity = self.start.to_numpy()[ball].copy(), shot[ball].copy()
        way = [place.copy()]
        while np.linalg.norm(velocity) > FRICTION * TIME_STEP:
            velocity = velocity - FRICTION * TIME_STEP * velocity / np.linalg.norm(velocity)
            place = place + TIME_STEP * velocity
            for axis, extent in enumerate((WIDTH, HEIGHT)):
                if not 0 <= place[axis] <= extent:
                    wall = 0 if place[axis] < 0 else extent
                    place[axis] = wall - BOUNCE * (place[axis] - wall)
                    velocity[axis] *= -BOUNCE
            way.append(place.copy())
        return np.array(way)


def table(balls: int, seed: int = 0) -> Table:
    """Balls at the left, targets anywhere, shots to the right."""
    rng = np.random.default_rng(seed)
    start = np.stack([np.full(balls, 0.3), rng.uniform(0.3, 0.7, balls)], axis=1)
    made = Table(start, rng.uniform([0.6, 0.2], [1.7, 0.8], (balls, 2)))
    made.shot.from_numpy((rng.uniform([0.6, -0.5], [1.4, 0.5], (balls, 2))).astype(np.float32))
    return made


def main() -> None:
    chosen = options(__doc__, smallest=1, iterations=100, size=64)
    game = table(chosen.size)
    first = game.shot.to_numpy()
    missed = np.array([game.aim(0.04) for _ in progress("aiming", chosen.iterations, "shots", chosen.size)])
    last = game.shot.to_numpy()
    # The ball whose first shot goes the furthest shows the most.
    ball = int(np.argmax(np.linalg.norm(first, axis=1)))
    path = plots.Plot("A shot before and after", equal=True)
    path.curve([0, 0, HEIGHT, HEIGHT, 0], [0, WIDTH, WIDTH, 0, 0], label="table")
    for shot, label in ((first, "before"), (last, "after")):
        at = game.path(shot, ball)
        path.curve(at[:, 1], at[:, 0], label, dashed=label == "before")
    path.points(*game.target.to_numpy()[ball : ball + 1].T, "target", radius=6)
    loss = plots.Plot("Distance from the target", "step of gradient descent", "metres", logarithmic=True)
    loss.curve(missed.max(axis=1), label=f"worst of {chosen.size} balls").curve(
        np.median(missed, axis=1), label="median"
    )
    plots.save(chosen.out / "billiards.svg", path, loss)
    steps = game.steps.to_numpy()
    print(
        f"  median distance {np.median(missed[0]):.3f} m, then {np.median(missed[-1]):.1e} m; {steps.min()} to {steps.max()} steps"
    )
    print(f"  wrote {chosen.out / 'billiards.svg'}")


if __name__ == "__main__":
    main()
