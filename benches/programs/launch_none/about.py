"""A kernel without arguments that does nothing."""

from harness.targets import Under

TITLE = "launch, no argument"
GROUP = "launch"
ORDER = 1
SIZES = {"full": {}, "quick": {}, "gpu": {}}
OUTPUTS = ()
TARGETS = (Under(1e-6, "1 µs"),)


def inputs():
    return {}


def reference(data):
    return {}
