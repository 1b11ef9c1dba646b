# raises OctantsNameError
import octants as oc


@oc.kernel
def f(x: float) -> float:
    return vec3(x).norm()  # noqa: F821


f(1.0)
