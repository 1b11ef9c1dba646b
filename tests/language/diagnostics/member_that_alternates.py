# raises OctantsRuntimeTypeError
import itertools

import numpy as np

import octants as oc

kinds = itertools.cycle([np.int32, np.float32])


@oc.data_oriented
class Box:
    @property
    def numbers(self):
        return np.zeros(3, dtype=next(kinds))

    @oc.kernel
    def first(self) -> oc.f32:
        return self.numbers[0]


Box().first()
