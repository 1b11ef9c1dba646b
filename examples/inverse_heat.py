"""Where was it hot? The temperatures of a while ago are found from those of now: gradients through sparse rows.

    python examples/inverse_heat.py [--iterations N] [--steps N] [--size NODES] [--out DIR] [--arch NAME]

Heat spreads over a net of nodes that are linked to their neighbours, a sparse matrix by rows. The kernel loops over the entries of a row, whose number
differs from row to row. Only some nodes have a thermometer. Every step has a row of an array of its own, so that nothing is overwritten.
"""

import numpy as np
import plots
from command_line import options
from progress import progress

import octants as oc

States = oc.types.ndarray(dtype=oc.f64, ndim=2)
Reals = oc.types.ndarray(dtype=oc.f64, ndim=1)
Integers = oc.types.ndarray(dtype=oc.i32, ndim=1)


@oc.kernel
def spread(heat: States, t: oc.i32, first: Integers, column: Integers, weight: Reals):
    """One step: each node takes the weighted sum of its row."""
    for i in range(heat.shape[1]):
        total = oc.cast(0.0, oc.f64)
        for k in range(first[i], first[i + 1]):
            total += weight[k] * heat[t, column[k]]
        heat[t + 1, i] = total


@oc.kernel
def misfit(heat: States, t: oc.i32, node: Integers, seen: Reals, loss: Reals):
    """How far the temperatures are from what the thermometers show."""
    for k in node:
        loss[0] += (heat[t, node[k]] - seen[k]) ** 2


def net(nodes: int, seed: int = 0):
    """Random points, each linked to those near it: rows of a matrix whose sums are 1."""
    rng = np.random.default_rng(seed)
    points = rng.random((nodes, 2))
    near = np.linalg.norm(points[:, None] - points[None], axis=2) < 1.6 / np.sqrt(nodes)
    first, column, weight = [0], [], []
    for i in range(nodes):
        links = [j for j in np.flatnonzero(near[i]) if j != i]
        column += [i, *links]
        weight += [1.0 - 0.06 * len(links), *(0.06 for _ in links)]
        first.append(len(column))
    return points, np.array(first, np.int32), np.array(column, np.int32), np.array(weight)


class Inverse:
    """A net whose temperatures after some steps are known at some nodes."""

    def __init__(self, nodes: int, steps: int):
        self.steps = steps
        self.points, first, column, weight = net(nodes)
        self.matrix = [oc.ndarray(oc.i32, len(first)), oc.ndarray(oc.i32, len(column)), oc.ndarray(oc.f64, len(weight))]
        for array, values in zip(self.matrix, (first, column, weight), strict=True):
            array.from_numpy(values)
        self.heat = oc.ndarray(oc.f64, (steps + 1, nodes), needs_grad=True)
        self.loss = oc.ndarray(oc.f64, 1, needs_grad=True)
        self.truth = sum(np.exp(-60 * ((self.points - at) ** 2).sum(1)) for at in ([0.3, 0.3], [0.7, 0.6]))
        read = np.arange(0, nodes, 2, dtype=np.int32)
        self.node, self.seen = oc.ndarray(oc.i32, len(read)), oc.ndarray(oc.f64, len(read))
        self.node.from_numpy(read)
        self.seen.from_numpy(self.forward(self.truth)[read])

    def forward(self, start: np.ndarray) -> np.ndarray:
        """The temperatures after all steps."""
        self.set_start(start)
        for t in range(self.steps):
            spread(self.heat, t, *self.matrix)
        return self.heat.to_numpy()[self.steps]

    def set_start(self, start: np.ndarray) -> None:
        values = np.zeros(self.heat.shape)
        values[0] = start
        self.heat.from_numpy(values)

    def gradient(self, start: np.ndarray):
        """The loss, and its gradient by the temperatures of the start."""
        self.set_start(start)
        with oc.ad.Tape(self.loss):
            for t in range(self.steps):
                spread(self.heat, t, *self.matrix)
            misfit(self.heat, self.steps, self.node, self.seen, self.loss)
        return self.loss[0], self.heat.grad.to_numpy()[0]


def solve(problem: Inverse, iterations, rate: float = 0.4, momentum: float = 0.9):
    """Gradient descent with momentum from all cold, a step for each of `iterations`; temperatures are not negative."""
    guess = np.zeros(len(problem.truth))
    velocity = np.zeros_like(guess)
    losses = []
    for _ in iterations:
        loss, gradient = problem.gradient(guess)
        velocity = momentum * velocity - rate * gradient
        guess = np.maximum(guess + velocity, 0.0)
        losses.append(loss)
    return guess, losses


def main() -> None:
    chosen = options(__doc__, smallest=16, iterations=200, steps=12, size=400)
    problem = Inverse(chosen.size, chosen.steps)
    steps = progress("cooling", chosen.iterations, "node steps", chosen.steps * chosen.size)
    guess, losses = solve(problem, steps)
    found = plots.Plot("Temperatures of the start", "true", "found")
    found.points(problem.truth, problem.forward(problem.truth), "seen now", radius=1.5)
    found.points(problem.truth, guess, "found", radius=2).curve([0, 1], [0, 1], "exact", dashed=True)
    loss = plots.Plot("Loss", "step of gradient descent", "square of the misfit", logarithmic=True).curve(losses)
    plots.save(chosen.out / "inverse_heat.svg", found, loss)
    error = np.linalg.norm(guess - problem.truth) / np.linalg.norm(problem.truth)
    print(f"  misfit {losses[0]:.1e}, then {losses[-1]:.1e}; the start is found within {100 * error:.0f} %")
    print(f"  wrote {chosen.out / 'inverse_heat.svg'}")


if __name__ == "__main__":
    main()
