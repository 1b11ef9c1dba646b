# raises OctantsSyntaxError
import octants as oc

@oc.data_oriented(template_primitives=False)
class Solver:
    def __init__(self):
        self.n = 3

    @oc.kernel
    def step(self):
        for i in oc.static(range(self.n)):
            pass

Solver().step()
