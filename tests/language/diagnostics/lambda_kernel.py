# raises OctantsSyntaxError
import octants as oc

f = oc.kernel(lambda: 1)
