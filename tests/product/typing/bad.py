"""Mistakes that a type checker finds: each line that ends with `# error` has one, and no other line has."""

import numpy as np

import octants as oc


@oc.kernel
def scale(x: oc.types.NDArray[oc.f32, 2], by: oc.f32) -> oc.f32:
    return by * x[0, 0]


@oc.data_oriented
class Simulation:
    @oc.kernel
    def step(self, dt: oc.f32) -> oc.i32:
        return 1


numbers = np.ones((2, 3), np.float32)
scale(numbers)  # error
scale(3, 2.0)  # error
scale(numbers, "fast")  # error
scale(numbers, 2.0, 3.0)  # error
scale(numbers, time=2.0)  # error
name: str = scale(numbers, 2.0)  # error
Simulation().step("fast")  # error
Simulation().step()  # error
oc.init(arch="cpu")  # error
oc.init(default_fp="f32")  # error
oc.field(oc.f32, shape="8")  # error
oc.field("f32", shape=8)  # error
oc.ndarray(oc.f32)  # error
oc.field(oc.f32, shape=8).values()  # error
oc.kernle  # error
oc.math.cosine(1.0)  # error
oc.sync(3)  # error
oc.types.NDarray  # error
oc.create_event().time()  # error
