"""Names of ``octants.simt.grid``, where programs for Quadrants import them from. Nothing is defined here."""

from ...simt import grid


def __getattr__(name: str):
    return getattr(grid, name)
