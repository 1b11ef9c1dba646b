# raises OctantsRuntimeTypeError
import itertools

import octants as oc

count = itertools.count()


@oc.kernel
def f() -> oc.i32:
    return oc.static(next(count))


f()
