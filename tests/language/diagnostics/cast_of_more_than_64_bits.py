# raises OctantsTypeError
import octants as oc

oc.init(arch=oc.cpu, log_level="error")

BITS = 2**64


@oc.kernel
def f() -> oc.u64:
    return oc.u64(BITS)


f()
