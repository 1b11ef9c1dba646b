"""The electric field of charges in a grounded box: Poisson's equation by conjugate gradients with multigrid.

    python examples/poisson.py [--frames N] [--size NODES] [--out DIR] [--arch NAME]

-Δu = f on the unit square, u = 0 on its border. One V-cycle of multigrid is the preconditioner: an error is smoothed on
the grid where its wavelength is short, so the number of iterations does not grow with the grid. Each picture is one
solve, which starts from the potential of the picture before; the texture follows the lines of the electric field.
"""

import math

import numpy as np
import png
from command_line import options
from pictures import Pixels, as_byte, mix, rgb, smooth_step
from progress import progress

import octants as oc

COARSEST = 3  # nodes along a side of the last grid, which a few sweeps solve
RED, BLACK = 0, 1  # the two colours of a chessboard


def grid(nodes: int):
    """A field of nodes x nodes inside a rim of zeros, at index -1 and at index `nodes`: the border of the domain."""
    return oc.field(oc.f64, shape=(nodes + 2, nodes + 2), offset=(-1, -1))


@oc.func
def around(a: oc.template(), i, j):
    return a[i - 1, j] + a[i + 1, j] + a[i, j - 1] + a[i, j + 1]


@oc.kernel
def sweep(u: oc.template(), f: oc.template(), colour: oc.i32):
    """Solves every node of one colour, given those of the other: half a sweep of Gauss and Seidel."""
    for i, j in oc.ndrange(u.shape[0] - 2, u.shape[1] - 2):
        if (i + j) % 2 == colour:
            u[i, j] = 0.25 * (f[i, j] + around(u, i, j))


@oc.kernel
def find_defect(u: oc.template(), f: oc.template(), defect: oc.template()):
    for i, j in oc.ndrange(u.shape[0] - 2, u.shape[1] - 2):
        defect[i, j] = f[i, j] - (4.0 * u[i, j] - around(u, i, j))


@oc.kernel
def coarsen(fine: oc.template(), coarse: oc.template()):
    """Every coarse node gathers from the nine fine nodes around its place, half as much for each step aside."""
    for i, j in oc.ndrange(coarse.shape[0] - 2, coarse.shape[1] - 2):
        total = oc.f64(0.0)
        for a, b in oc.static(oc.ndrange((-1, 2), (-1, 2))):
            total += 0.5 ** (abs(a) + abs(b)) * fine[2 * i + 1 + a, 2 * j + 1 + b]
        coarse[i, j] = total


@oc.kernel
def refine(coarse: oc.template(), fine: oc.template()):
    """Adds the coarse grid to the fine one, interpolated: the transpose of `coarsen`."""
    for i, j in oc.ndrange(fine.shape[0] - 2, fine.shape[1] - 2):
        up, down, left, right = (i - 1) // 2, i // 2, (j - 1) // 2, j // 2  # the same where a coarse node lies
        fine[i, j] += 0.25 * (coarse[up, left] + coarse[up, right] + coarse[down, left] + coarse[down, right])


@oc.kernel
def dot(a: oc.template(), b: oc.template()) -> oc.f64:
    total = oc.f64(0.0)
    for node in oc.grouped(a):
        total += a[node] * b[node]
    return total


@oc.kernel
def apply(u: oc.template(), result: oc.template()) -> oc.f64:
    """The operator of the finest grid; gives u · result, which conjugate gradients ask for next."""
    total = oc.f64(0.0)
    for i, j in oc.ndrange(u.shape[0] - 2, u.shape[1] - 2):
        value = 4.0 * u[i, j] - around(u, i, j)
        result[i, j] = value
        total += u[i, j] * value
    return total


@oc.kernel
def add_scaled(y: oc.template(), factor: oc.f64, x: oc.template()):
    for node in oc.grouped(y):
        y[node] += factor * x[node]


@oc.kernel
def turn(direction: oc.template(), factor: oc.f64, correction: oc.template()):
    for node in oc.grouped(direction):
        direction[node] = correction[node] + factor * direction[node]


class Poisson:
    """A solver on `nodes` x `nodes` interior nodes, where nodes + 1 is a power of two."""

    def __init__(self, nodes: int):
        if nodes < COARSEST or nodes & (nodes + 1):
            raise ValueError(f"nodes + 1 must be a power of two, but nodes is {nodes}")
        self.nodes = nodes
        self.levels = nodes.bit_length() - COARSEST.bit_length() + 1
        sizes = [(nodes + 1 >> level) - 1 for level in range(self.levels)]
        self.residual = [grid(size) for size in sizes]
        self.correction = [grid(size) for size in sizes]
        self.defect = [grid(size) for size in sizes[:-1]]
        self.solution, self.direction, self.applied = grid(nodes), grid(nodes), grid(nodes)

    def v_cycle(self, level: int = 0) -> None:
        """Sets `correction` of a level to roughly the solution for its `residual`. It is symmetric, as CG needs."""
        u, f = self.correction[level], self.residual[level]
        u.fill(0.0)
        sweeps = 2 if level + 1 < self.levels else 8
        for _ in range(sweeps):
            sweep(u, f, RED)
            sweep(u, f, BLACK)
        if level + 1 < self.levels:
            find_defect(u, f, self.defect[level])
            coarsen(self.defect[level], self.residual[level + 1])
            self.v_cycle(level + 1)
            refine(self.correction[level + 1], u)
        for _ in range(sweeps):
            sweep(u, f, BLACK)
            sweep(u, f, RED)

    def set_source(self, f: np.ndarray) -> None:
        """Begins a problem: the residual is what f (nodes x nodes) leaves over the present solution."""
        spacing = 1 / (self.nodes + 1)
        self.residual[0].from_numpy(np.pad(f.astype(np.float64) * spacing**2, 1))
        self.source_size = math.sqrt(dot(self.residual[0], self.residual[0]))
        apply(self.solution, self.applied)
        add_scaled(self.residual[0], -1.0, self.applied)

    def residual_norm(self) -> float:
        """The residual's size, as a part of the source's."""
        return math.sqrt(dot(self.residual[0], self.residual[0])) / self.source_size

    def solve(self, f: np.ndarray, tolerance: float = 1e-10, most: int = 50) -> list[float]:
        """Solves to a relative residual of `tolerance`; gives the residuals after 0, 1, 2, … iterations."""
        self.set_source(f)
        residual, correction = self.residual[0], self.correction[0]
        history = [self.residual_norm()]
        self.direction.fill(0.0)
        last = math.inf
        while history[-1] > tolerance and len(history) <= most:
            self.v_cycle()
            product = dot(residual, correction)
            turn(self.direction, product / last, correction)
            last = product
            step = product / apply(self.direction, self.applied)
            add_scaled(self.solution, step, self.direction)
            add_scaled(residual, -step, self.applied)
            history.append(self.residual_norm())
        return history

    def potential(self) -> np.ndarray:
        """The solution at the interior nodes."""
        return self.solution.to_numpy()[1:-1, 1:-1]


@oc.func
def grain(i: oc.i32, j: oc.i32) -> oc.f32:
    """Noise: a number in [0, 1) for every place of the plane."""
    bits = oc.cast(i, oc.u32) * oc.u32(0x9E3779B1) ^ oc.cast(j, oc.u32) * oc.u32(0x85EBCA77)
    bits = (bits ^ oc.bit_shr(bits, 15)) * oc.u32(0x2C1B3C6D)
    bits = (bits ^ oc.bit_shr(bits, 12)) * oc.u32(0x297A2D39)
    return oc.cast(oc.bit_shr(bits ^ oc.bit_shr(bits, 15), 8), oc.f32) / 16777216.0


@oc.func
def sample(u: oc.template(), at) -> oc.f32:
    """The potential between the nodes; `at` counts nodes and may lie on the rim."""
    last = u.shape[0] - 3
    i = oc.min(oc.max(oc.cast(oc.floor(at[0]), oc.i32), -1), last)
    j = oc.min(oc.max(oc.cast(oc.floor(at[1]), oc.i32), -1), last)
    above = mix(u[i, j], u[i, j + 1], at[1] - j)
    return oc.cast(mix(above, mix(u[i + 1, j], u[i + 1, j + 1], at[1] - j), at[0] - i), oc.f32)


@oc.func
def slope(u: oc.template(), at):
    down = oc.Vector([1.0, 0.0])
    right = oc.Vector([0.0, 1.0])
    return oc.Vector([sample(u, at + down) - sample(u, at - down), sample(u, at + right) - sample(u, at - right)]) * 0.5


@oc.kernel
def draw(u: oc.template(), image: Pixels, strongest: oc.f32):
    """Warm where positive, cool where negative, lines of equal potential, and noise smeared along the field."""
    pixels = image.shape[0]
    for row, column in oc.ndrange(pixels, pixels):
        scale = (u.shape[0] - 1.0) / pixels
        at = (oc.Vector([row, column]) + 0.5) * scale - 1.0
        total = 0.0
        weights = 0.0
        for way in range(2):
            place = at
            for step in range(24):
                weight = 1.0 - step / 24.0
                cell = oc.cast(oc.floor((place + 1.0) / scale), oc.i32)
                total += weight * grain(cell[0], cell[1])
                weights += weight
                force = slope(u, place)
                place += (2 * way - 1) * 0.8 * scale * force / (force.norm() + 1e-12)
        texture = 0.5 + 2.2 * (total / weights - 0.5)
        value = sample(u, at) / strongest
        strength = oc.abs(value) ** 0.6
        colour = mix(NEUTRAL, WARM if value > 0.0 else COOL, oc.min(strength, 1.0))
        colour = mix(colour, BRIGHT, smooth_step(0.75, 1.3, strength))
        colour *= 0.55 + 0.75 * texture
        # Ten lines of equal potential per unit of strength; their distance in pixels comes from the slope.
        steepness = slope(u, at).norm() * scale / strongest
        level = value * 10.0
        pixels_away = oc.abs(level - oc.round(level)) / (10.0 * steepness + 1e-9)
        if oc.abs(level) > 0.5:
            colour = mix(colour, BRIGHT, 0.55 * (1.0 - smooth_step(0.3, 1.3, pixels_away)))
        for channel in oc.static(range(3)):
            image[row, column, channel] = as_byte(colour[channel])


NEUTRAL, WARM, COOL, BRIGHT = rgb("#1c1b2e"), rgb("#f26b3a"), rgb("#2f7fd6"), rgb("#fff6e0")


def charges(nodes: int, time: float) -> np.ndarray:
    """Three positive and three negative soft charges that go round in rings, one turn per unit of time."""
    at = np.arange(1, nodes + 1) / (nodes + 1)
    f = np.zeros((nodes, nodes))
    for number in range(6):
        inner = number % 2
        angle = 2 * math.pi * (number / 6 + (time if inner else -time))
        radius = 0.16 if inner else 0.33
        x, y = 0.5 + radius * math.cos(angle), 0.5 + radius * math.sin(angle)
        squared = (at[:, None] - y) ** 2 + (at[None, :] - x) ** 2
        f += (1 if inner else -1) * np.exp(-squared / (2 * 0.018**2))
    return f / (2 * math.pi * 0.018**2)


def main() -> None:
    chosen = options(__doc__, smallest=COARSEST, frames=48, size=511)
    nodes = (1 << (chosen.size + 1).bit_length() - 1) - 1  # the next one below that can be halved to the end
    solver = Poisson(nodes)
    print(f"{nodes} x {nodes} nodes on {solver.levels} grids")
    history = solver.solve(charges(nodes, 0.0))
    print("  residual of the first solve: " + " ".join(f"{size:.0e}" for size in history))
    image = np.zeros((448, 448, 3), np.uint8)
    film = []
    iterations = 0
    for frame in progress("solving", chosen.frames, "unknowns", nodes**2):
        iterations += len(solver.solve(charges(nodes, frame / chosen.frames / 3), tolerance=1e-6)) - 1
        draw(solver.solution, image, 0.28)
        film.append(image.copy())
    png.save_animation(chosen.out / "poisson.png", film, seconds_per_frame=1 / 20)
    print(f"  {iterations / chosen.frames:.1f} iterations per picture; wrote {chosen.out / 'poisson.png'} (animated)")


if __name__ == "__main__":
    main()
