"""MPM-88: one substep of {particles:,} particles of a liquid on a {cells} x {cells} grid, arrays of vectors and matrices."""

import numpy as np
from harness.programs import Tolerance
from harness.targets import TimesBetter

TITLE = "MPM-88 substep"
GROUP = "throughput"
ORDER = 10
SIZES = {
    "full": {"particles": 20_000, "cells": 128},
    "quick": {"particles": 20_000, "cells": 128},
    "compile": {"particles": 16, "cells": 16},
}
OUTPUTS = ("x", "v", "C", "J", "grid_v", "grid_m")
ELEMENTS = {"x": (2,), "v": (2,), "C": (2, 2), "grid_v": (2,)}
# Sums of many particles in any order; positions move little, so the grid and C are what a wrong step shows in.
TOLERANCE = Tolerance(rtol=2e-3, atol=2e-3)
FAST_MATH = True
TARGETS = (TimesBetter(2.5, "quadrants"),)
COMPILE = True
COMPILE_TARGETS = (TimesBetter(4, "quadrants"),)

_density, _stiffness, _gravity = 1.0, 400.0, 9.8
_border = 3


def _step(cells):
    """Seconds of a substep: sound may not cross a cell in one."""
    return min(2e-4, 0.0256 / cells)


def inputs(particles, cells):
    rng = np.random.default_rng(88)

    def around(middle, width, *shape):
        return (middle + width * (rng.random((particles, *shape)) - 0.5)).astype(np.float32)

    data = {"x": around(0.5, 0.4, 2), "v": around(0.0, 1.0, 2), "C": around(0.0, 10.0, 2, 2), "J": around(1.0, 0.02)}
    return data | {"grid_v": np.zeros((cells, cells, 2), np.float32), "grid_m": np.zeros((cells, cells), np.float32)}


def reference(data):
    x, v, affine, volume = (data[name].astype(np.float64) for name in ("x", "v", "C", "J"))
    cells = data["grid_m"].shape[0]
    dx, dt = 1.0 / cells, _step(cells)
    particle_volume = (dx * 0.5) ** 2
    mass = particle_volume * _density
    base = (x / dx - 0.5).astype(int)
    inside = x / dx - base
    weights = np.stack([0.5 * (1.5 - inside) ** 2, 0.75 - (inside - 1) ** 2, 0.5 * (inside - 0.5) ** 2])
    stress = -dt * 4 * _stiffness * particle_volume * (volume - 1) / dx**2
    momentum = stress[:, None, None] * np.eye(2) + mass * affine
    neighbours = [(i, j, weights[i, :, 0] * weights[j, :, 1]) for i in range(3) for j in range(3)]
    grid_v, grid_m = np.zeros((cells, cells, 2)), np.zeros((cells, cells))
    for i, j, weight in neighbours:
        cell = (base[:, 0] + i, base[:, 1] + j)
        distance = ((i, j) - inside) * dx
        np.add.at(grid_v, cell, weight[:, None] * (mass * v + np.einsum("pij,pj->pi", momentum, distance)))
        np.add.at(grid_m, cell, weight * mass)
    grid_v[grid_m > 0] /= grid_m[grid_m > 0][:, None]
    grid_v[..., 1] -= dt * _gravity
    for axis in range(2):
        along = np.moveaxis(grid_v, axis, 0)[..., axis]
        along[:_border] = np.maximum(along[:_border], 0)
        along[cells - _border :] = np.minimum(along[cells - _border :], 0)
    new_v, new_c = np.zeros_like(v), np.zeros_like(affine)
    for i, j, weight in neighbours:
        here = weight[:, None] * grid_v[base[:, 0] + i, base[:, 1] + j]
        new_v += here
        new_c += 4 * np.einsum("pi,pj->pij", here, ((i, j) - inside) * dx) / dx**2
    new_j = volume * (1 + dt * np.trace(new_c, axis1=1, axis2=2))
    moved = {"x": x + dt * new_v, "v": new_v, "C": new_c, "J": new_j, "grid_v": grid_v, "grid_m": grid_m / mass}
    return moved | {"mass": np.float64(len(x))}


def compared(outputs):
    """Masses in particles: each particle gives exactly one, wherever it is."""
    cells = outputs["grid_m"].shape[0]
    in_particles = outputs["grid_m"].astype(np.float64) * (2 * cells) ** 2 / _density
    return outputs | {"grid_m": in_particles, "mass": in_particles.sum()}
