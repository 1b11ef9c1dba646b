Tile16x16 = Tile32x32 = None
