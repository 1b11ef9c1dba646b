"""How long are the springs of a chain? Found from the way it hangs: gradients through hundreds of steps.

    python examples/springs.py [--iterations N] [--steps N] [--size POINTS] [--out DIR] [--arch NAME]

Masses hang between two nails and come to rest in the air. All steps use the same arrays: `oc.ad.checkpoint` keeps some states
and computes the others again on the way back.
"""

import numpy as np
import plots
from command_line import options
from progress import progress

import octants as oc

GRAVITY, STIFFNESS, DRAG, MASS = 9.8, 400.0, 4.0, 0.05
TIME_STEP = 4e-3


@oc.data_oriented
class Chain:
    """`points` masses between nails at both ends of a line of one metre."""

    def __init__(self, points: int):
        self.points = points
        fields = ("position", "velocity", "next_position", "next_velocity")
        for name in fields:
            setattr(self, name, oc.Vector.field(2, oc.f64, points, needs_grad=True))
        self.rest = oc.field(oc.f64, points - 1, needs_grad=True)
        self.target = oc.Vector.field(2, oc.f64, points)
        self.loss = oc.field(oc.f64, (), needs_grad=True)
        self.rest.fill(1.0 / (points - 1))

    @oc.kernel
    def hang(self):
        for i in self.position:
            self.position[i] = oc.Vector([i / (self.points - 1), 0.0], oc.f64)
            self.velocity[i] = oc.Vector([0.0, 0.0], oc.f64)

    @oc.func
    def pull(self, i, j, spring):
        """The force on one mass by the spring to another."""
        along = self.position[j] - self.position[i]
        length = along.norm()
        return STIFFNESS * (length - self.rest[spring]) * along / length

    @oc.kernel
    def step(self):
        for i in self.position:
            force = oc.Vector([0.0, -GRAVITY * MASS], oc.f64) - DRAG * MASS * self.velocity[i]
            if i > 0:
                force += self.pull(i, i - 1, i - 1)
            if i < self.points - 1:
                force += self.pull(i, i + 1, i)
            velocity = self.velocity[i] + TIME_STEP / MASS * force
            if i == 0 or i == self.points - 1:
                velocity *= 0.0
            self.next_velocity[i] = velocity
            self.next_position[i] = self.position[i] + TIME_STEP * velocity

    @oc.kernel
    def measure(self):
        for i in self.position:
            self.loss[None] += (self.position[i] - self.target[i]).norm_sqr() / self.points

    def settle(self, steps: int) -> None:
        """Lets the chain fall and come to rest."""
        self.hang()
        pairs = [(self.position, self.next_position), (self.velocity, self.next_velocity)]
        oc.ad.checkpoint(lambda number: self.step(), steps, pairs)

    def learn(self, steps: int) -> float:
        """One step of the rest lengths along their gradient. The fewer springs, the more each of them moves the chain."""
        rate = min(0.3, 0.0008 * self.points**2)
        with oc.ad.Tape(self.loss):
            self.settle(steps)
            self.measure()
        self.rest.from_numpy(self.rest.to_numpy() - rate * self.rest.grad.to_numpy())
        return self.loss[None]


def chain(points: int, steps: int) -> tuple[Chain, np.ndarray]:
    """A chain of equal springs, whose target is how one of unequal springs hangs; and the lengths of these at rest."""
    made = Chain(points)
    lengths = (1.15 + 0.5 * np.sin(2 * np.pi * np.linspace(0, 1, points - 1))) / (points - 1)
    made.rest.from_numpy(lengths)
    made.settle(steps)
    made.target.from_numpy(made.position.to_numpy())
    made.rest.fill(1.0 / (points - 1))
    return made, lengths


def main() -> None:
    chosen = options(__doc__, smallest=8, iterations=60, steps=300, size=16)
    hanging, lengths = chain(chosen.size, chosen.steps)
    hanging.settle(chosen.steps)
    before = hanging.position.to_numpy()
    steps = progress("learning", chosen.iterations, "mass steps", chosen.steps * chosen.size)
    losses = [hanging.learn(chosen.steps) for _ in steps]
    hanging.settle(chosen.steps)
    after, target = hanging.position.to_numpy(), hanging.target.to_numpy()
    shape = plots.Plot("The chain at rest", "metres", "metres")
    shape.curve(before[:, 1], before[:, 0], "before", dashed=True).curve(after[:, 1], after[:, 0], "after")
    shape.points(target[:, 0], target[:, 1], "target")
    found = plots.Plot("Lengths of the springs at rest", "number of the spring", "metres")
    found.curve(hanging.rest.to_numpy(), label="found").points(np.arange(chosen.size - 1), lengths, "true")
    loss = plots.Plot("Loss", "step of gradient descent", "mean square distance", logarithmic=True).curve(losses)
    plots.save(chosen.out / "springs.svg", shape, found, loss)
    print(f"  mean square distance {losses[0]:.1e} m², then {losses[-1]:.1e} m²")
    print(f"  wrote {chosen.out / 'springs.svg'}")


if __name__ == "__main__":
    main()
