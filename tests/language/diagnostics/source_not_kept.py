# raises OctantsSyntaxError
import octants as oc


exec("@oc.kernel\ndef f():\n    pass\n", {"oc": oc})
