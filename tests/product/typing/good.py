"""A program that a type checker has nothing to say against. It also runs."""

import dataclasses

import numpy as np

import octants as oc

vec3 = oc.Vector[3, oc.f32]
mat2 = oc.Matrix[2, 2, oc.f32]

oc.init(arch=oc.cpu, log_level="error")


@oc.func
def weight(x: oc.f32) -> oc.f32:
    return oc.exp(-x * x) * oc.math.clamp(x, 0.0, 1.0)


@oc.kernel
def scale(x: oc.types.NDArray[oc.f32, 2], by: oc.f32, mode: oc.Template) -> oc.f32:
    total = oc.f32(0.0)
    for i, j in oc.ndrange(x.shape[0], x.shape[1]):
        if oc.static(mode):
            x[i, j] *= by
        total += x[i, j] + weight(x[i, j])
    return total


@oc.kernel(fastcache=True)
def turn(direction: vec3, by: mat2, views: oc.BufferView[oc.f32]) -> oc.f32:
    views[0] = direction.norm()
    flat = by @ direction.xy + direction.normalized().xy
    return flat.dot(flat) + oc.math.length(direction + direction * 2.0)


@oc.kernel
def over_fields():
    for i, j in heights:
        heights[i, j] = i + 0.5 * j
    for index in oc.grouped(velocities):
        velocities[index] = oc.Vector([1.0, 2.0, 3.0]) * index.x
        velocities[index].y += 1.0


@oc.data_oriented
class Simulation:
    def __init__(self, n: int):
        self.x = oc.field(oc.f32, shape=n)

    @oc.kernel
    def step(self, dt: oc.f32) -> oc.i32:
        for i in self.x:
            self.x[i] += dt
        return self.x.shape[0]


@dataclasses.dataclass
class State:
    heat: oc.types.NDArray[oc.f32, 1]
    count: oc.i32


@oc.kernel
def warm(state: State):
    for i in range(state.count):
        state.heat[i] += 1.0


@oc.dataclass
class Particle:
    position: vec3
    mass: oc.f32


heights = oc.field(oc.f32, shape=(4, 8))
velocities = oc.Vector.field(3, oc.f32, shape=(4, 8))
particles = oc.field(Particle, shape=16)
array = oc.ndarray(oc.f32, (2, 3))
vectors = oc.ndarray(vec3, 5)
numbers = np.ones((2, 3), np.float32)

total: float = scale(numbers, 2.0, True)
total += scale(array, by=2, mode=False, qd_stream=None)
length: float = turn(vec3(1.0, 2.0, 2.0), mat2(1, 0, 0, 1), oc.BufferView(oc.ndarray(oc.f32, 4), 0, 4))
over_fields()
simulation = Simulation(4)
count: int = simulation.step(0.5)
simulation.step(dt=0.5, qd_stream=None)
warm(State(oc.ndarray(oc.f32, 3), 3))

heights[1, 2] = 5
height: float = heights[1, 2]
velocities[0, 0] = [1, 2, 3]
speed = velocities[0, 0].norm() + oc.Vector([3.0, 4.0]).norm()
image = velocities.to_numpy()
heights.from_numpy(np.zeros((4, 8), np.float32))
heights.fill(1.0)
block = oc.root.dense(oc.ij, (4, 4))
scalar = oc.field(oc.i32)
block.place(scalar)
particles[3].mass = 2.0
with oc.create_stream() as stream:
    over_fields(qd_stream=stream)
oc.sync()
with oc.ad.Tape(oc.field(oc.f32, shape=(), needs_grad=True)):
    pass
