"""Learning by self-play: games, replay, targets, updates, checkpoints."""
