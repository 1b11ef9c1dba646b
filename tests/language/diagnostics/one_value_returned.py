# raises OctantsSyntaxError
import octants as oc


@oc.kernel
def f(n: int) -> (oc.i32, oc.i32):
    return (n,)


f(1)
