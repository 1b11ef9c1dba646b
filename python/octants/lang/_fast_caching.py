"""Names of other modules, where programs for Quadrants import them from. Nothing is defined here."""

from .._peer.inside import FIELD_METADATA_CACHE_VALUE

__all__ = ["FIELD_METADATA_CACHE_VALUE"]
