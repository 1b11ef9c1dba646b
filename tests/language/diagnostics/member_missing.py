# raises OctantsCompilationError
import octants as oc

@oc.data_oriented
class Solver:
    def __init__(self):
        self.count = 3

    @oc.kernel
    def step(self) -> oc.i32:
        return self.counts

Solver().step()
