# raises OctantsTypeError
import octants as oc


@oc.kernel
def f():
    oc.loop_config(threads=2)
    for i in range(3):
        pass


f()
