# raises OctantsSyntaxError
import octants as oc

@oc.kernel
def f(n: int):
    oc.atomic_add(n + 1, 2)

f(1)
