"""Builds and steps one scene in this process, and prints what it saw and how long it took as one line of JSON.

Run it as it is for quadrants, and by ``octants run --as quadrants`` for Octants.
"""

from __future__ import annotations

import argparse
import json
import time

import genesis as gs
import numpy as np
import quadrants as qd

#: As many times the steps are timed; the fastest counts.
BATCHES = 3


def numbers(value) -> list:
    """What a probe saw, as plain numbers."""
    array = value.detach().cpu().numpy() if hasattr(value, "detach") else np.asarray(value)
    return array.astype(float).reshape(-1).tolist()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("scene")
    parser.add_argument("--performance-mode", action="store_true", help="fields in place of arrays")
    parser.add_argument("--precision", default="32", choices=["32", "64"])
    parser.add_argument("--timed-steps", type=int, help="how many steps are timed")
    options = parser.parse_args()
    gs.init(
        backend=gs.cpu,
        precision=options.precision,
        logging_level="warning",
        seed=0,
        performance_mode=options.performance_mode,
    )
    from scenes import SCENES

    make, steps, timed = SCENES[options.scene]
    if options.timed_steps is not None:
        timed = options.timed_steps
    # Other programs on the machine do not count in the time of this process.
    wall, cpu = time.perf_counter(), time.process_time()
    built = make()
    built.step(0)
    build = {"build_s": time.perf_counter() - wall, "build_cpu_s": time.process_time() - cpu}
    for n in range(1, steps):
        built.step(n)
    probes = {name: numbers(value) for name, value in built.probes().items()}
    speed = {"steps": timed, "steps_s": float("inf"), "steps_cpu_s": float("inf")}
    for _ in range(BATCHES):
        wall, cpu = time.perf_counter(), time.process_time()
        for n in range(steps, steps + timed):
            built.step(n)
        speed["steps_s"] = min(speed["steps_s"], time.perf_counter() - wall)
        speed["steps_cpu_s"] = min(speed["steps_cpu_s"], time.process_time() - cpu)
        steps += timed
    print(
        "RESULT " + json.dumps({"scene": options.scene, "system": qd.__name__, **build, **speed, "probes": probes}),
        flush=True,
    )


if __name__ == "__main__":
    main()
