"""What the current device can do beyond the core of the language."""

from __future__ import annotations


class Extension:
    """A part of the language that not every device has."""

    __slots__ = ("name",)

    def __init__(self, name: str):
        self.name = name

    def __repr__(self):
        return f"oc.extension.{self.name}"


class _Extensions:
    sparse = Extension("sparse")
    quant = Extension("quant")
    quant_basic = Extension("quant_basic")
    data64 = Extension("data64")
    adstack = Extension("adstack")
    bls = Extension("bls")
    assertion = Extension("assertion")
    extfunc = Extension("extfunc")
    mesh = Extension("mesh")


extension = _Extensions()

#: What processors of the host have in this version.
_HOST = ("data64", "assertion", "adstack", "sparse", "quant", "quant_basic")


def is_extension_enabled(ext: Extension) -> bool:
    """Whether the current session's device has an extension."""
    if not isinstance(ext, Extension):
        raise TypeError(f"an extension is one of oc.extension, not {ext!r}")
    return ext.name in _HOST
