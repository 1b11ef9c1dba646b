# raises OctantsTypeError
import octants as oc


@oc.kernel
def f(n: int) -> bool:
    return (oc.Vector([n, 1]), 1) < (oc.Vector([n, 2]), 2)


f(1)
