"""Recipes by name: settings that were chosen for a game and a machine.

What each came to stands in docs/recipes.md, or that it has not been run yet.
"""

import difflib
from typing import Any, NamedTuple


class Preset(NamedTuple):
    """Settings in the place of the defaults."""

    hardware: str  # what it is made for
    settings: dict[str, Any]


_CPU, _GPU = "two CPU cores", "one GPU"

PRESETS: dict[str, Preset] = {
    "tic_tac_toe": Preset(
        _CPU,
        {
            "env": "tic_tac_toe",
            "net": "mlp",
            "width": 128,
            "games": 256,
            "plies": 4,
            "batch": 1024,
            "simulations": 32,
            "opening_plies": 8,
            "iterations": 300,
        },
    ),
    "connect_four": Preset(
        _CPU, {"env": "connect_four", "simulations": 8, "minutes": 10.0}
    ),
    "othello_6x6": Preset(
        _CPU, {"env": "othello_6x6", "opening_plies": 12, "minutes": 5.0}
    ),
    "hex_7x7": Preset(_CPU, {"env": "hex_7x7", "opening_plies": 4, "minutes": 5.0}),
    "ultimate_tic_tac_toe": Preset(
        _CPU,
        {"env": "ultimate_tic_tac_toe", "opening_plies": 8, "minutes": 10.0},
    ),
    "othello": Preset(
        _GPU,
        {
            "env": "othello",
            "opening_plies": 12,
            "width": 64,
            "depth": 6,
            "dtype": "bfloat16",
            "games": 1024,
            "batch": 2048,
            "positions": 500_000,
            "simulations": 64,
            "fast_simulations": 16,
            "value_head": "wdl",
            "minutes": 120.0,
        },
    ),
    "go_7x7": Preset(
        _GPU,
        {
            "env": "go_7x7",
            "env_options": ("komi=8.5",),
            "opening_plies": 4,
            "width": 64,
            "depth": 6,
            "dtype": "bfloat16",
            "games": 512,
            "batch": 2048,
            "positions": 500_000,
            "first_positions": 100_000,
            "simulations": 64,
            "fast_simulations": 16,
            "surprise_share": 0.5,
            "resign_value": 0.95,
            "minutes": 120.0,
        },
    ),
    "go_9x9": Preset(
        _GPU,
        {
            "env": "go_9x9",
            "env_options": ("komi=6.5",),
            "opening_plies": 4,
            "width": 96,
            "depth": 8,
            "dtype": "bfloat16",
            "games": 1024,
            "batch": 2048,
            "positions": 1_000_000,
            "first_positions": 200_000,
            "simulations": 96,
            "fast_simulations": 24,
            "surprise_share": 0.5,
            "resign_value": 0.95,
            "minutes": 720.0,
        },
    ),
}


def preset_named(name: str) -> Preset:
    """The preset of that name; ValueError lists the names there are."""
    if name not in PRESETS:
        near = difflib.get_close_matches(name, PRESETS, n=1)
        hint = f"did you mean {near[0]!r}? " if near else ""
        raise ValueError(
            f"unknown preset {name!r}: {hint}choose one of {', '.join(PRESETS)}"
        )
    return PRESETS[name]
