# raises OctantsRuntimeError
import octants as oc

oc.axes(0, 12)
