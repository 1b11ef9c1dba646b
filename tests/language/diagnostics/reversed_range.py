# raises OctantsCompilationError
import octants as oc


@oc.kernel
def f(n: oc.i32) -> oc.i32:
    s = 0
    for i in reversed(range(n)):
        s += i
    return s


f(3)
