"""Measuring play: players, matches, solved positions, sweeps, comparisons."""
