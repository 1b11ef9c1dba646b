# raises OctantsAssertionError
import octants as oc


@oc.real_func
def down(n: oc.i32) -> oc.i32:
    return n * down(n - 1)


@oc.kernel
def f() -> oc.i32:
    return down(3)


f()
