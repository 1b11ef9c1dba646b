"""Octants for programs that were written for a peer: under the peer's name, with its hooks, and with an answer for each name that is missing.

Names that such programs import from modules of the peer stand at the peer's paths: ``lang``, ``_lib``, ``_snode``, ``_funcs``, ``_tensor_wrapper``,
``_version``. There nothing is defined.
"""
