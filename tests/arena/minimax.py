"""Tic-tac-toe by plain minimax; a board is 9 of ".", "0" and "1"."""

import functools

# 0 1 2
# 3 4 5
# 6 7 8
LINES = ("012", "345", "678", "036", "147", "258", "048", "246")


@functools.cache
def outcome(board, player):
    """1, 0 or -1 for the player to move."""
    if lost(board, player):
        return -1
    after = moves(board, player)
    return max((-outcome(*position) for position in after.values()), default=0)


def moves(board, player):
    """The boards and movers that legal moves lead to, by cell."""
    if lost(board, player):
        return {}
    return {
        cell: (board[:cell] + str(player) + board[cell + 1 :], 1 - player)
        for cell in range(9)
        if board[cell] == "."
    }


def lost(board, player):
    other = str(1 - player)
    return any(all(board[int(cell)] == other for cell in line) for line in LINES)
