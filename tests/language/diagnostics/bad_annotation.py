# raises OctantsSyntaxError
import octants as oc

@oc.kernel
def f(n: "hello".upper):
    pass
