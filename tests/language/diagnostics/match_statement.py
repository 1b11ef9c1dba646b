# raises OctantsSyntaxError
import octants as oc

@oc.kernel
def f():
    match 1:
        case 1:
            pass

f()
