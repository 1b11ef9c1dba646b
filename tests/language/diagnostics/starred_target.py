# raises OctantsSyntaxError
import octants as oc


@oc.kernel
def f() -> int:
    first, *rest = 1, 2, 3
    return first


f()
