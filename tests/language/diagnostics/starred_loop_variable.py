# raises OctantsSyntaxError
import octants as oc


@oc.kernel
def f():
    for i, *rest in oc.ndrange(2, 3, 4):
        pass


f()
