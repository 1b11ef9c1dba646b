# raises OctantsTypeError
import octants as oc


@oc.kernel
def k(x: oc.f32):
    print(f"{x:.2d}")


k(1.0)
