# raises OctantsSyntaxError
from contextlib import suppress

import octants as oc

@oc.kernel
def f():
    with suppress(ValueError):
        pass

f()
