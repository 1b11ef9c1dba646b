# raises OctantsTypeError
import octants as oc


@oc.data_oriented
class Holder:
    def __init__(self):
        self.part = object()

    @oc.kernel
    def kernel(self) -> oc.i32:
        y = 1
        return y + self.part


Holder().kernel()
