"""What tests of the programs of `examples/` share: loading one, and a step of the material point method in numpy."""

import importlib.util
from pathlib import Path

import numpy as np

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def fresh(name):
    """A program's module, loaded anew: its kernels and global fields belong to this test's session."""
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def numpy_step(x, v, gradient, push, mass, cells, dt):
    """One step without gravity and away from walls, in f64: `push` is what the stress adds to mass · gradient."""
    base = (x * cells - 0.5).astype(int)
    inside = x * cells - base
    w = np.stack([0.5 * (1.5 - inside) ** 2, 0.75 - (inside - 1) ** 2, 0.5 * (inside - 0.5) ** 2])
    blocks = [(i, j, (w[i, :, 0] * w[j, :, 1])[:, None], ([i, j] - inside) / cells) for i in range(3) for j in range(3)]
    grid_v, grid_m = np.zeros((cells, cells, 2)), np.zeros((cells, cells, 1))
    for i, j, weight, away in blocks:
        at = (base[:, 0] + i, base[:, 1] + j)
        np.add.at(grid_v, at, weight * (mass * v + np.einsum("pij,pj->pi", push + mass * gradient, away)))
        np.add.at(grid_m, at, weight * mass)
    grid_v /= np.where(grid_m > 0, grid_m, 1)
    new_v, new_gradient = np.zeros_like(v), np.zeros_like(gradient)
    for i, j, weight, away in blocks:
        here = weight * grid_v[base[:, 0] + i, base[:, 1] + j]
        new_v += here
        new_gradient += 4 * cells**2 * np.einsum("pi,pj->pij", here, away)
    return x + dt * new_v, new_v, new_gradient
