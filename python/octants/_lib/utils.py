"""Names of other modules, where programs for Quadrants import them from. Nothing is defined here."""

from .._peer.inside import get_os_name, package_root

__all__ = ["get_os_name", "package_root"]
