# raises OctantsNameError
import octants as oc


COUNT = 1


@oc.kernel
def f():
    COUNT += 5


f()
