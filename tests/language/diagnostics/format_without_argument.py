# raises OctantsSyntaxError
import octants as oc


@oc.kernel
def k(x: oc.f32):
    print("{} {}".format(x))


k(1.0)
