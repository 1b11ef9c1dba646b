# raises OctantsCompilationError
import octants as oc


@oc.kernel
def f(i: oc.i32) -> oc.f32:
    table = {1: 2.0, 2: 3.0}
    return table[i]


f(1)
