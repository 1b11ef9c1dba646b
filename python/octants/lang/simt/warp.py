"""Names of ``octants.simt.warp``, where programs for Quadrants import them from. Nothing is defined here."""

from ...simt import warp


def __getattr__(name: str):
    return getattr(warp, name)
