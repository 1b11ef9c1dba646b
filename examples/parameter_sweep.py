"""Patterns of two substances that react and diffuse (Gray and Scott), for many parameters at once, on the workers of a Dask cluster.

    python examples/parameter_sweep.py [--size CELLS] [--steps N] [--workers N] [--out FILE] [--scheduler ADDRESS]

Kernels and fields travel: the function below goes to the workers with the kernel that it calls, and each worker compiles it once.
Without `--scheduler` the workers are processes of this machine; with one they are wherever the cluster has them. It needs the package
`distributed`, on the workers too.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import png

import octants as oc

FEEDS = np.linspace(0.02, 0.05, 4)
KILLS = np.linspace(0.056, 0.064, 4)


@oc.kernel
def react(
    u: oc.types.NDArray[oc.f32, 2],
    v: oc.types.NDArray[oc.f32, 2],
    next_u: oc.types.NDArray[oc.f32, 2],
    next_v: oc.types.NDArray[oc.f32, 2],
    feed: oc.f32,
    kill: oc.f32,
):
    """One step on a square whose opposite sides meet."""
    n = u.shape[0]
    for i, j in oc.ndrange(n, n):
        above, below, left, right = (i - 1) % n, (i + 1) % n, (j - 1) % n, (j + 1) % n
        spread_u = u[above, j] + u[below, j] + u[i, left] + u[i, right] - 4.0 * u[i, j]
        spread_v = v[above, j] + v[below, j] + v[i, left] + v[i, right] - 4.0 * v[i, j]
        reaction = u[i, j] * v[i, j] * v[i, j]
        next_u[i, j] = u[i, j] + 0.16 * spread_u - reaction + feed * (1.0 - u[i, j])
        next_v[i, j] = v[i, j] + 0.08 * spread_v + reaction - (feed + kill) * v[i, j]


def pattern(feed: float, kill: float, size: int, steps: int) -> np.ndarray:
    """How much of the second substance is where after some steps. This is what runs on a worker."""
    if oc.cfg is None:
        # Once in each process; workers on one machine share its cores.
        oc.init(arch=oc.cpu, cpu_max_num_threads=1, log_level="error")
    middle = slice(size // 2 - size // 10, size // 2 + size // 10)
    u, v = np.ones((size, size), np.float32), np.zeros((size, size), np.float32)
    u[middle, middle], v[middle, middle] = 0.5, 0.25
    next_u, next_v = np.empty_like(u), np.empty_like(v)
    for _ in range(steps):
        react(u, v, next_u, next_v, feed, kill)
        u, v, next_u, next_v = next_u, next_v, u, v
    return v


def sweep(client, size: int, steps: int) -> np.ndarray:
    """Patterns for all parameters, from all workers: an array of FEEDS x KILLS squares."""
    futures = [client.submit(pattern, feed, kill, size, steps) for feed in FEEDS for kill in KILLS]
    return np.array(client.gather(futures)).reshape(len(FEEDS), len(KILLS), size, size)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--size", type=int, default=128, help="cells along a side of each square")
    parser.add_argument("--steps", type=int, default=4000, help="steps of each simulation")
    parser.add_argument("--workers", type=int, default=2, help="processes to start here")
    parser.add_argument("--scheduler", help="address of a cluster that is there")
    parser.add_argument("--out", type=Path, default=Path("out/parameter_sweep.png"), help="the picture")
    chosen = parser.parse_args()
    from distributed import Client, LocalCluster

    if chosen.scheduler:
        client = Client(chosen.scheduler)
    else:
        client = Client(LocalCluster(n_workers=chosen.workers, threads_per_worker=1, dashboard_address=None))
    with client:
        found = sweep(client, chosen.size, chosen.steps)
    picture = found.transpose(0, 2, 1, 3).reshape(len(FEEDS) * chosen.size, len(KILLS) * chosen.size)
    chosen.out.parent.mkdir(parents=True, exist_ok=True)
    grey = (255 * np.clip(picture / 0.4, 0, 1)).astype(np.uint8)
    png.save(chosen.out, np.repeat(grey[:, :, None], 3, axis=2))
    print(f"{found.shape[0] * found.shape[1]} simulations: {chosen.out}")


if __name__ == "__main__":
    main()
