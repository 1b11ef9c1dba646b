"""Builds one scene in this process and prints what it saw and how long that took as one line of JSON. Then steps as often as a line of its input says, and
prints how long that took, until the input ends.

Run it as it is for quadrants, and by ``octants run --as quadrants`` for Octants.
"""

from __future__ import annotations

import argparse
import functools
import json
import sys
import time

import genesis as gs
import numpy as np
import quadrants as qd


class Clock:
    """Seconds since it was made: of the wall, and of this process, in whose time other programs on the machine do not count."""

    def __init__(self) -> None:
        self.wall, self.cpu = time.perf_counter(), time.process_time()

    def seconds(self) -> dict[str, float]:
        return {"wall_s": time.perf_counter() - self.wall, "cpu_s": time.process_time() - self.cpu}


def numbers(value) -> list:
    """What a probe saw, as plain numbers."""
    array = value.detach().cpu().numpy() if hasattr(value, "detach") else np.asarray(value)
    return array.astype(float).reshape(-1).tolist()


def init_exactly(init, *args, **kwargs):
    return init(*args, **(kwargs | {"fast_math": False}))


def say(what: dict) -> None:
    print("RESULT " + json.dumps(what), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("scene")
    parser.add_argument("--performance-mode", action="store_true", help="fields in place of arrays")
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--precision", default="32", choices=["32", "64"])
    parser.add_argument("--exact", action="store_true", help="without fast mathematics, which Genesis asks for")
    options = parser.parse_args()
    if options.exact:
        qd.init = functools.partial(init_exactly, qd.init)
    gs.init(
        backend=getattr(gs, options.device),
        precision=options.precision,
        logging_level="warning",
        seed=0,
        performance_mode=options.performance_mode,
    )
    from scenes import SCENES

    make, steps, timed = SCENES[options.scene]
    build = Clock()
    built = make()
    built.step(0)
    qd.sync()
    result = {"scene": options.scene, "system": qd.__name__, "timed": timed, "build": build.seconds()}
    for n in range(1, steps):
        built.step(n)
    say(result | {"probes": {name: numbers(value) for name, value in built.probes().items()}})
    for line in sys.stdin:
        count, batch = int(line), Clock()
        for n in range(steps, steps + count):
            built.step(n)
        qd.sync()
        say({"steps": count, **batch.seconds()})
        steps += count


if __name__ == "__main__":
    main()
