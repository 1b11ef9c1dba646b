# raises OctantsRuntimeTypeError
import octants as oc


@oc.kernel
def f(x: oc.Tensor):
    pass


f(3)
