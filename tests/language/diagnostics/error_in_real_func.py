# raises OctantsCompilationError
import octants as oc


@oc.real_func
def length(n: oc.i32) -> oc.i32:
    return n.size


@oc.kernel
def f() -> oc.i32:
    return length(3)


f()
