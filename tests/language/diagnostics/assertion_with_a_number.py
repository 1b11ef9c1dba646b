# raises OctantsSyntaxError
import octants as oc


@oc.kernel
def f(n: oc.i32):
    assert n > 0, n


f(1)
