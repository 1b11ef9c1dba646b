# raises OctantsRuntimeError
import octants as oc


@oc.kernel(graph=True)
def go(x: oc.types.NDArray[oc.i32, 1]):
    for i in x:
        x[i] += 1


go(oc.ndarray(oc.i32, 3), qd_stream=oc.create_stream())
