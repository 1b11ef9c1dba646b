# raises OctantsTypeError
import octants as oc


@oc.func
def shift(a):
    b = a + 1


@oc.kernel
def f() -> oc.i32:
    x = shift(1)
    return x + 2


f()
