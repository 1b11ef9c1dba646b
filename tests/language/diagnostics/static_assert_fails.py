# raises OctantsCompilationError
import octants as oc

WIDTH = 3

@oc.kernel
def f():
    oc.static_assert(WIDTH % 2 == 0, "the width must be even")

f()
