# raises OctantsNameError
import octants as oc


@oc.kernel
def f(x: float) -> float:
    return sin(x)  # noqa: F821


f(1.0)
