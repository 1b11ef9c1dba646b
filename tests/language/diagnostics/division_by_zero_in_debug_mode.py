# raises OctantsAssertionError
import octants as oc

oc.init(debug=True)


@oc.func
def share(total, parts):
    return total // parts


@oc.kernel
def f(parts: oc.i32) -> oc.i32:
    return share(10, parts)


f(0)
