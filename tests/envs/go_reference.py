"""Go as the rules say it, slowly: boards are tuples, and all earlier ones are kept."""

from typing import NamedTuple

EMPTY, BLACK, WHITE = 0, 1, -1


def beside(point, size):
    row, column = divmod(point, size)
    for r, c in (
        (row - 1, column),
        (row + 1, column),
        (row, column - 1),
        (row, column + 1),
    ):
        if 0 <= r < size and 0 <= c < size:
            yield r * size + c


def chain(board, size, point):
    """The stones of a chain, or the points of an empty region, and what is beside."""
    colour, found, border, todo = board[point], {point}, set(), [point]
    while todo:
        for near in beside(todo.pop(), size):
            if board[near] == colour and near not in found:
                found.add(near)
                todo.append(near)
            elif board[near] != colour:
                border.add(near)
    return found, border


def has_liberty(board, size, point):
    return any(board[near] == EMPTY for near in chain(board, size, point)[1])


def area(board, size):
    """The area of Black less that of White."""
    total, seen = sum(board), set()
    for point in range(size * size):
        if board[point] == EMPTY and point not in seen:
            region, border = chain(board, size, point)
            seen |= region
            colours = {board[near] for near in border}
            if len(colours) == 1:
                total += colours.pop() * len(region)
    return total


class Position(NamedTuple):
    size: int
    board: tuple
    colour: int  # to move
    earlier: frozenset  # what has been on the board, the position itself too
    ko: str
    suicide: bool
    closed: int = -1  # by the simple ko rule
    passes: int = 0
    ply: int = 0


def start(size, ko="positional", suicide=False):
    board = (EMPTY,) * size**2
    position = Position(size, board, BLACK, frozenset(), ko, suicide)
    return position._replace(earlier=frozenset([seen(position, board, BLACK)]))


def seen(position, board, colour):
    """What may not come again."""
    return (board, colour) if position.ko == "situational" else board


def after_stone(position, point):
    """The board after a stone and what it took, or None where there is none."""
    size, colour = position.size, position.colour
    if position.board[point] != EMPTY or point == position.closed:
        return None
    board = list(position.board)
    board[point] = colour
    taken = set()
    for near in beside(point, size):
        if board[near] == -colour and not has_liberty(board, size, near):
            taken |= chain(board, size, near)[0]
    for other in taken:
        board[other] = EMPTY
    if not has_liberty(board, size, point):
        if not position.suicide:
            return None
        for other in chain(board, size, point)[0]:
            board[other] = EMPTY
    again = seen(position, tuple(board), -colour) in position.earlier
    if again and position.ko != "simple":
        return None
    return tuple(board), taken


def legal(position):
    """Which actions are legal, pass last: a list of bools."""
    if position.passes == 2:
        return [False] * (position.size**2 + 1)
    stones = [after_stone(position, p) is not None for p in range(position.size**2)]
    return [*stones, True]


def play(position, action):
    size, colour = position.size, position.colour
    if action == size * size:
        board, closed, passes = position.board, -1, position.passes + 1
    else:
        board, taken = after_stone(position, action)
        closed, passes = -1, 0
        own, border = chain(board, size, action)
        liberties = {near for near in border if board[near] == EMPTY}
        if len(taken) == 1 and own == {action} and liberties == taken:
            (closed,) = taken
    return position._replace(
        board=board,
        colour=-colour,
        earlier=position.earlier | {seen(position, board, -colour)},
        closed=closed,
        passes=passes,
        ply=position.ply + 1,
    )
