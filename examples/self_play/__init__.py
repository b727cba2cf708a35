"""Self-play: PPO for both players of a game, and a table of Elo ratings."""
