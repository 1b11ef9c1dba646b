# raises ValueError
import octants as oc

oc.ndarray(oc.f32, (1,) * 13)
