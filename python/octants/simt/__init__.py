"""Names of blocks, subgroups and tiles, so that programs which do not compile the branches that use them run. Compiling one is refused."""

from __future__ import annotations

from .._peer.not_yet import Unbuilt

_INSTEAD = "use oc.loop_config(block_dim=...), and reductions as plain sums"

block = Unbuilt("simt.block", _INSTEAD)
grid = Unbuilt("simt.grid", _INSTEAD)
subgroup = Unbuilt("simt.subgroup", _INSTEAD)
warp = Unbuilt("simt.warp", _INSTEAD)
Tile16x16 = Unbuilt("simt.Tile16x16", _INSTEAD)
Tile32x32 = Unbuilt("simt.Tile32x32", _INSTEAD)
