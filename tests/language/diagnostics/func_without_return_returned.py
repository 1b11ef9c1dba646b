# raises OctantsTypeError
import octants as oc


@oc.func
def shift(a):
    b = a + 1


@oc.kernel
def f() -> oc.i32:
    return shift(1)


f()
