# raises OctantsSyntaxError
import octants as oc

class Solver:
    @oc.kernel
    def step(self, dt: oc.f32):
        pass

Solver().step(0.1)
