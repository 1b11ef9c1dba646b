# raises OctantsSyntaxError
import octants as oc

@oc.func
def square(a):
    return a * a

square(3)
