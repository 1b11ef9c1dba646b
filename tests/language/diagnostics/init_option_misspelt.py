# raises KeyError
import octants as oc

oc.init(defualt_fp=oc.f64)
