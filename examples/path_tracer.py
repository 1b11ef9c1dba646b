"""Spheres in a room, lit by a lamp in the ceiling: light is followed backwards from the eye, from one surface to the next.

Threads persist: there are a few blocks for each core of the device, however large the picture is. A block claims the next tile of pixels from a counter until no tile is
left, so that tiles whose paths are long keep nobody else waiting. The spheres lie in the memory that the threads of a block share.
"""

from __future__ import annotations

import os
import time

import numpy as np
import png
from command_line import options

import octants as oc
from octants.simt import block

SIDE = 8  # pixels along a side of a tile: a block has a thread for each
THREADS = SIDE * SIDE
BOUNCES = 8  # surfaces that a path meets at most
FAR = 1e9
WALL = 1e3  # the radius of spheres that are walls: numbers of 32 bits know a place on them to a tenth of a millimetre
OFF = 2e-3  # metres that a path begins off a surface

vec3 = oc.types.vector(3, oc.f32)
vec4 = oc.types.vector(4, oc.f32)

#: Centre and radius; colour and how much a surface mirrors, or for the lamp how much light it sends out as a negative number.
SPHERES = np.array(
    [
        [[-WALL - 2, 0, 0, WALL], [0.75, 0.22, 0.20, 0.0]],  # walls are spheres, too: large ones
        [[WALL + 2, 0, 0, WALL], [0.22, 0.42, 0.75, 0.0]],
        [[0, 0, -WALL - 2.5, WALL], [0.75, 0.75, 0.72, 0.0]],
        [[0, -WALL - 1.5, 0, WALL], [0.75, 0.75, 0.72, 0.0]],
        [[0, WALL + 2, 0, WALL], [0.75, 0.75, 0.72, 0.0]],
        [[0, 3.85, -0.6, 2.0], [1.0, 0.9, 0.75, -7.0]],  # the lamp
        [[-1.0, -0.7, -1.2, 0.8], [0.95, 0.93, 0.88, 1.0]],
        [[0.85, -0.85, -0.1, 0.65], [0.95, 0.75, 0.35, 0.6]],
        [[-0.35, -1.15, 0.6, 0.35], [0.35, 0.70, 0.45, 0.0]],
        [[1.25, -1.25, -1.6, 0.25], [0.80, 0.35, 0.60, 0.0]],
    ],
    np.float32,
)


@oc.func
def scrambled(state: oc.u32) -> oc.u32:
    """Another number for each number, without an order that one could see."""
    word = ((state >> ((state >> oc.u32(28)) + oc.u32(4))) ^ state) * oc.u32(277803737)
    return (word >> oc.u32(22)) ^ word


@oc.func
def drawn(state):
    """A number in [0, 1), and the state for the next one."""
    following = state * oc.u32(747796405) + oc.u32(2891336453)
    return oc.cast(scrambled(following) >> oc.u32(8), oc.f32) * (1.0 / (1 << 24)), following


@oc.func
def nearest(spheres, origin, direction):
    """How far it is to the nearest sphere, and which one it is."""
    distance, hit = FAR, -1
    for number in range(spheres.shape[0]):
        sphere = spheres[number, 0]
        to_centre = oc.Vector([sphere[0], sphere[1], sphere[2]]) - origin
        along = to_centre.dot(direction)
        # From the nearest point of the line, not from the origin: walls are large.
        aside = to_centre - along * direction
        under_root = (sphere[3] - aside.norm()) * (sphere[3] + aside.norm())
        if under_root > 0:
            root = oc.sqrt(under_root)
            here = along - root if along > root else along + root
            if 0 < here < distance:
                distance, hit = here, number
    return distance, hit


@oc.func
def scattered(normal, state):
    """A direction off a dull surface, more often near its normal."""
    u, state = drawn(state)
    v, state = drawn(state)
    height, turn = 1.0 - 2.0 * u, 2.0 * oc.math.pi * v
    across = oc.sqrt(oc.max(0.0, 1.0 - height * height))
    towards = normal + oc.Vector([across * oc.cos(turn), across * oc.sin(turn), height])
    return towards.normalized(1e-6), state


@oc.func
def light_along(spheres, origin, direction, state):
    """What comes to the origin from this direction on one path."""
    light, share = vec3(0.0), vec3(1.0)
    for _ in range(BOUNCES):
        distance, hit = nearest(spheres, origin, direction)
        if hit < 0:
            break
        sphere, surface = spheres[hit, 0], spheres[hit, 1]
        colour = oc.Vector([surface[0], surface[1], surface[2]])
        if surface[3] < 0:
            light += share * colour * -surface[3]
            break
        origin += distance * direction
        normal = ((origin - oc.Vector([sphere[0], sphere[1], sphere[2]])) / sphere[3]).normalized()
        if normal.dot(direction) > 0:
            normal = -normal
        origin += OFF * normal
        share *= colour
        chance, state = drawn(state)
        if chance < surface[3]:
            direction = (direction - 2.0 * direction.dot(normal) * normal).normalized()
        else:
            direction, state = scattered(normal, state)
    return light, state


@oc.kernel
def trace(
    spheres_of: oc.types.NDArray[vec4, 2],
    image: oc.types.NDArray[oc.f32, 3],
    claimed_by: oc.types.NDArray[oc.i32, 1],
    blocks: oc.i32,
    samples: oc.i32,
    count: oc.template(),
):
    """Adds up the light of so many paths for each pixel. `claimed_by[0]` is the next tile that nobody has; further elements count the tiles of each block."""
    tiles = image.shape[0] // SIDE
    oc.loop_config(block_dim=THREADS)
    for i in range(blocks * THREADS):
        thread = i % THREADS
        spheres = block.SharedArray((count, 2), vec4)
        claimed = block.SharedArray(1, oc.i32)
        if thread < count:
            spheres[thread, 0] = spheres_of[thread, 0]
            spheres[thread, 1] = spheres_of[thread, 1]
        while True:
            if thread == 0:
                claimed[0] = oc.atomic_add(claimed_by[0], 1)
            block.sync()
            tile = claimed[0]
            block.sync()  # nobody claims the next one before all have read this one
            if tile >= tiles * tiles:
                break
            row, column = tile // tiles * SIDE + thread // SIDE, tile % tiles * SIDE + thread % SIDE
            light = vec3(0.0)
            for sample in range(samples):
                state = scrambled(oc.cast(sample * image.shape[0] + row, oc.u32)) * oc.u32(9781) + oc.cast(
                    column, oc.u32
                )
                state = scrambled(state)
                dx, state = drawn(state)
                dy, state = drawn(state)
                x = 2.0 * (column + dx) / image.shape[0] - 1.0
                y = 1.0 - 2.0 * (row + dy) / image.shape[0]
                direction = oc.Vector([x, y, -2.2]).normalized()
                of_path, state = light_along(spheres, oc.Vector([0.0, 0.2, 5.4]), direction, state)
                light += of_path
            for colour in oc.static(range(3)):
                image[row, column, colour] = light[colour] / samples
            if thread == 0:
                claimed_by[1 + i // THREADS] += 1


def render(size: int, samples: int, blocks: int) -> tuple[np.ndarray, np.ndarray]:
    """The light of the pixels, and how many tiles each block took."""
    image, claimed_by = np.zeros((size, size, 3), np.float32), np.zeros(1 + blocks, np.int32)
    trace(SPHERES, image, claimed_by, blocks, samples, len(SPHERES))
    return image, claimed_by[1:]


def main() -> None:
    chosen = options(__doc__ or "", smallest=SIDE, size=512, steps=64)
    size = chosen.size // SIDE * SIDE
    blocks = 4 * (os.cpu_count() or 1) if chosen.arch == "cpu" else 1024
    render(SIDE, 1, 1)
    start = time.perf_counter()
    image, taken = render(size, chosen.steps, blocks)
    passed = time.perf_counter() - start
    path = chosen.out / "path_tracer.png"
    png.save(path, (255 * np.clip(image, 0, 1) ** (1 / 2.2)).astype(np.uint8))
    print(
        f"{size * size * chosen.steps / passed / 1e6:.1f} million paths a second; {taken.sum()} tiles by {blocks} blocks, "
        f"{taken.min()} to {taken.max()} each: {path}"
    )


if __name__ == "__main__":
    main()
