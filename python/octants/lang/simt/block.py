"""Names of ``octants.simt.block``, where programs for Quadrants import them from. Nothing is defined here."""

from ...simt import block


def __getattr__(name: str):
    return getattr(block, name)
