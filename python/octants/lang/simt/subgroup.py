"""Names of ``octants.simt.subgroup``, where programs for Quadrants import them from. Nothing is defined here."""

from ...simt import subgroup


def __getattr__(name: str):
    return getattr(subgroup, name)
