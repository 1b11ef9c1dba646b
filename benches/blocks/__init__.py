"""The programs of `benches/simt.py`, and who runs them."""
