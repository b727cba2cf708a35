"""Facts about games and pictures: spellings of names, actions, players, colors, resizing."""
