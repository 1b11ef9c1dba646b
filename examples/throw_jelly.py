"""A jelly is thrown on the floor so that it bounces to a target: gradients through the material point method.

    python examples/throw_jelly.py [--iterations N] [--steps N] [--size CELLS] [--out DIR] [--arch NAME]

Particles hand their momentum to a grid and take motion back, some hundred times. Where the body comes to is differentiated by the velocity
and the spin that it was thrown with. All steps use the same arrays, which `oc.ad.checkpoint` allows.
"""

import numpy as np
import plots
from command_line import options
from progress import progress

import octants as oc

vec2 = oc.types.vector(2, oc.f32)
mat2 = oc.types.matrix(2, 2, oc.f32)

GRAVITY, STIFFNESS, DENSITY = 4.0, 20.0, 1.0
STATE = ("position", "velocity", "affine", "deformation")


@oc.data_oriented
class Jelly:
    """A square of elastic stuff over a grid of `cells` x `cells`."""

    def __init__(self, cells: int):
        self.cells, self.dt = cells, 0.05 / cells
        self.volume = (0.5 / cells) ** 2
        side = np.arange(0.25, 0.35, 0.5 / cells)
        self.start = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2).astype(np.float32)
        self.count = len(self.start)
        for name, kind in zip(STATE, (vec2, vec2, mat2, mat2), strict=True):
            for prefix in ("", "next_"):
                setattr(self, prefix + name, oc.field(kind, self.count, needs_grad=True))
        self.grid_momentum = oc.field(vec2, (cells, cells), needs_grad=True)
        self.grid_mass = oc.field(oc.f32, (cells, cells), needs_grad=True)
        self.grid_velocity = oc.field(vec2, (cells, cells), needs_grad=True)
        self.rest = oc.field(vec2, self.count)
        self.throw = oc.field(oc.f32, 3, needs_grad=True)  # velocity, and spin
        self.target = oc.field(vec2, ())
        self.centre = oc.field(vec2, (), needs_grad=True)
        self.loss = oc.field(oc.f32, (), needs_grad=True)
        self.rest.from_numpy(self.start)

    @oc.kernel
    def begin(self):
        for p in self.position:
            away = self.rest[p] - 0.3
            self.position[p] = self.rest[p]
            self.velocity[p] = vec2(self.throw[0] - self.throw[2] * away[1], self.throw[1] + self.throw[2] * away[0])
            self.affine[p] = mat2([[0.0, -self.throw[2]], [self.throw[2], 0.0]])
            self.deformation[p] = mat2([[1.0, 0.0], [0.0, 1.0]])

    @oc.kernel
    def clear(self):
        for i, j in self.grid_mass:
            self.grid_mass[i, j] = 0.0
            self.grid_momentum[i, j] = vec2(0.0, 0.0)

    @oc.func
    def weights(self, p):
        """The cell to the lower left, and how near the particle is to three cells each way."""
        base = oc.cast(self.position[p] * self.cells - 0.5, oc.i32)
        inside = self.position[p] * self.cells - oc.cast(base, oc.f32)
        return base, inside, [0.5 * (1.5 - inside) ** 2, 0.75 - (inside - 1.0) ** 2, 0.5 * (inside - 0.5) ** 2]

    @oc.kernel
    def to_grid(self):
        for p in self.position:
            base, inside, w = self.weights(p)
            f = (oc.Matrix.identity(oc.f32, 2) + self.dt * self.affine[p]) @ self.deformation[p]
            self.next_deformation[p] = f
            # Neo-Hookean: what resists shear, and what keeps the area.
            area = f[0, 0] * f[1, 1] - f[0, 1] * f[1, 0]
            stress = STIFFNESS * (f @ f.transpose() + oc.Matrix.identity(oc.f32, 2) * (oc.log(area) - 1.0))
            push = -self.dt * 4.0 * self.volume * self.cells**2 * stress + DENSITY * self.volume * self.affine[p]
            for a, b in oc.static(oc.ndrange(3, 3)):
                away = (oc.Vector([a, b]) - inside) / self.cells
                weight = w[a][0] * w[b][1]
                at = base + oc.Vector([a, b])
                self.grid_momentum[at] += weight * (DENSITY * self.volume * self.velocity[p] + push @ away)
                self.grid_mass[at] += weight * DENSITY * self.volume

    @oc.kernel
    def on_grid(self):
        for i, j in self.grid_mass:
            velocity = vec2(0.0, 0.0)
            if self.grid_mass[i, j] > 0.0:
                velocity = self.grid_momentum[i, j] / self.grid_mass[i, j]
                velocity[1] -= self.dt * GRAVITY
            if j < 3:
                velocity = vec2(velocity[0] * 0.9, oc.max(velocity[1], 0.0))
            if (i < 3 and velocity[0] < 0.0) or (i > self.cells - 4 and velocity[0] > 0.0):
                velocity[0] = 0.0
            self.grid_velocity[i, j] = velocity

    @oc.kernel
    def to_particles(self):
        for p in self.position:
            base, inside, w = self.weights(p)
            velocity, affine = vec2(0.0, 0.0), mat2([[0.0, 0.0], [0.0, 0.0]])
            for a, b in oc.static(oc.ndrange(3, 3)):
                away = (oc.Vector([a, b]) - inside) / self.cells
                here = w[a][0] * w[b][1] * self.grid_velocity[base + oc.Vector([a, b])]
                velocity += here
                affine += 4.0 * self.cells**2 * here.outer_product(away)
            self.next_velocity[p] = velocity
            self.next_affine[p] = affine
            self.next_position[p] = self.position[p] + self.dt * velocity

    def step(self, number: int) -> None:
        """One step from the arrays of the state to those of the next."""
        self.clear()
        self.to_grid()
        self.on_grid()
        self.to_particles()

    @oc.kernel
    def find_centre(self):
        for p in self.position:
            self.centre[None] += self.position[p] / self.count

    @oc.kernel
    def measure(self):
        self.loss[None] += (self.centre[None] - self.target[None]).norm_sqr()

    def fly(self, steps: int) -> None:
        """Throws it."""
        self.begin()
        pairs = [(getattr(self, name), getattr(self, "next_" + name)) for name in STATE]
        oc.ad.checkpoint(self.step, steps, pairs)

    def gradient(self, steps: int):
        """The loss, and its gradient by the throw."""
        self.centre.fill(0)
        with oc.ad.Tape(self.loss):
            self.fly(steps)
            self.find_centre()
            self.measure()
        return self.loss[None], self.throw.grad.to_numpy()


def jelly(cells: int) -> Jelly:
    """One that is thrown down, and is to come to a place at the right."""
    made = Jelly(cells)
    made.throw.from_numpy(np.array([0.4, -0.9, 4.0], np.float32))
    made.target[None] = [0.7, 0.4]
    return made


def main() -> None:
    chosen = options(__doc__, smallest=16, iterations=24, steps=384, size=32)
    body = jelly(chosen.size)
    losses, pictures = [], []
    for iteration in progress("throwing", chosen.iterations, "particle steps", chosen.steps * body.count):
        loss, gradient = body.gradient(chosen.steps)
        losses.append(loss)
        if iteration in (0, chosen.iterations - 1):
            pictures.append(body.position.to_numpy())
        body.throw.from_numpy(body.throw.to_numpy() - 2.0 * gradient)
    scene = plots.Plot("Where it comes to", equal=True)
    scene.points(*body.start.T, "thrown from", radius=1.5)
    for at, label in zip(pictures, ("at first", "at last"), strict=False):
        scene.points(*at.T, label, radius=1.5)
    scene.points(*np.array([body.target.to_numpy()]).T, "target", radius=5)
    scene.curve([3 / body.cells] * 2, [0.1, 0.9], "floor")
    loss = plots.Plot("Loss", "step of gradient descent", "square of the distance", logarithmic=True).curve(losses)
    plots.save(chosen.out / "throw_jelly.svg", scene, loss)
    throw = body.throw.to_numpy()
    print(
        f"  distance {losses[0] ** 0.5:.3f}, then {losses[-1] ** 0.5:.1e}; thrown with ({throw[0]:.2f}, {throw[1]:.2f}), spin {throw[2]:.2f}"
    )
    print(f"  wrote {chosen.out / 'throw_jelly.svg'}")


if __name__ == "__main__":
    main()
