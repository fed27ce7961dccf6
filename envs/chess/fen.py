"""Positions as FEN: on the host, with every fault named.

https://www.chessprogramming.org/Forsyth-Edwards_Notation
"""

from typing import NamedTuple, NoReturn

import numpy as np

from envs.chess.bits import flip

# The pieces of a letter belong to these sets of `envs.chess.moves.Board`.
_SETS = {"P": (0,), "N": (1,), "B": (2,), "R": (3,), "Q": (2, 3), "K": (4,)}
_MINE, _CASTLING, _EN_PASSANT = 5, 6, 7
# White's view of a square with White to move, by the first sets, a bit each.
_LETTERS = np.full(2 << _MINE, ".")
for _letter, _sets in _SETS.items():
    _held = sum(1 << kind for kind in _sets)
    _LETTERS[[_held, _held | 1 << _MINE]] = _letter.lower(), _letter
_COLOURS = ("White", "Black")
_MOST_PLIES = 9999  # without capture or pawn move
_MOST_MOVES = 999_999_999  # twice that, and the plies of a game, are within 32 bits
# Castling: the letter, whose it is, and the files of king and rook.
_CASTLES = (("K", 0, 4, 7), ("Q", 0, 4, 0), ("k", 1, 4, 7), ("q", 1, 4, 0))


class Position(NamedTuple):
    words: np.ndarray  # [8, 2] uint32, seen by the player to move
    player: int  # 0 is White
    clock: int
    move_number: int


def square_name(file: int, rank: int) -> str:
    return f"{'abcdefgh'[file]}{rank + 1}"


def rows(words: np.ndarray, player: int, size: int) -> list[str]:
    """The board as letters and ".", from the top as White sees it."""
    white = flip(words, size) if player else words
    bits = white[: _MINE + 1, :, None] >> np.arange(32, dtype=np.uint32) & np.uint32(1)
    sets = bits.reshape(-1, 8, 8)[:, :size, :size]  # [sets, files, ranks]
    held = (sets << np.arange(_MINE + 1, dtype=np.uint32)[:, None, None]).sum(axis=0)
    lines = ["".join(line) for line in _LETTERS[held].T[::-1]]
    return [line.swapcase() for line in lines] if player else lines


def write(
    board: list[str], words: np.ndarray, player: int, clock: int, move_number: int
) -> str:
    size = len(board)
    placed = "/".join(board)
    for run in range(size, 0, -1):
        placed = placed.replace("." * run, str(run))
    white = flip(words, size) if player else words
    numbers = [int(low) | int(high) << 32 for low, high in white]
    castling = "".join(
        letter
        for letter, colour, _, file in _CASTLES
        if numbers[_CASTLING] >> (8 * file + (size - 1) * colour) & 1
    )
    passed = numbers[_EN_PASSANT].bit_length() - 1
    en_passant = "-" if passed < 0 else square_name(*divmod(passed, 8))
    side = "wb"[player]
    return f"{placed} {side} {castling or '-'} {en_passant} {clock} {move_number}"


def read(text: str, size: int) -> Position:
    """Reads a FEN; the two counts at the end may be left out.

    That the player who has moved stands in check is no fault: no move takes a king.

    Raises:
      ValueError: says what is wrong, and where.
    """
    return _Reader(text, size).position()


class _Reader:
    def __init__(self, text: str, size: int):
        self.text, self.size = text, size

    def fail(self, why: str) -> NoReturn:
        raise ValueError(f"FEN {self.text!r}: {why}")

    def position(self) -> Position:
        fields = self.text.split()
        if len(fields) not in (4, 6):
            self.fail(
                f"got {len(fields)} fields, expected 4 or 6: board, w or b, castling, "
                "en passant square, and as well plies since a capture or pawn move, "
                "move number"
            )
        placed, side, castling, passed = fields[:4]
        clock, move_number = fields[4:] or ("0", "1")
        board = self.board(placed)
        if side not in ("w", "b"):
            self.fail(f"the side to move is w or b, got {side!r}")
        player = "wb".index(side)
        sets = [0] * 8
        for (file, rank), letter in board.items():
            for kind in _SETS[letter.upper()]:
                sets[kind] |= 1 << 8 * file + rank
            if letter.isupper() == (player == 0):
                sets[_MINE] |= 1 << 8 * file + rank
        sets[_CASTLING] = self.castling(board, castling)
        sets[_EN_PASSANT] = self.en_passant(board, player, passed)
        words = [[number & 0xFFFFFFFF, number >> 32] for number in sets]
        seen = np.array(words, np.uint32)
        return Position(
            flip(seen, self.size) if player else seen,
            player,
            self.number(
                clock,
                "the count of plies without capture or pawn move",
                0,
                _MOST_PLIES,
            ),
            self.number(move_number, "the move number", 1, _MOST_MOVES),
        )

    def board(self, placed: str) -> dict[tuple[int, int], str]:
        """The pieces by file and rank."""
        lines = placed.split("/")
        if len(lines) != self.size:
            self.fail(f"got {len(lines)} ranks, expected {self.size} with / between")
        board = {}
        for rank, line in zip(reversed(range(self.size)), lines, strict=True):
            file = 0
            for letter in line:
                if letter in "12345678":
                    file += int(letter)
                    continue
                if letter.upper() not in _SETS:
                    self.fail(
                        f"{letter!r} in rank {rank + 1} is neither one of PNBRQKpnbrqk "
                        "nor a number of empty squares"
                    )
                if letter in "Pp" and rank in (0, self.size - 1):
                    self.fail(f"a pawn stands on rank {rank + 1}")
                board[file, rank] = letter
                file += 1
            if file != self.size:
                self.fail(
                    f"rank {rank + 1}, {line!r}, has {file} squares, expected "
                    f"{self.size}"
                )
        for letter, colour in zip("Kk", _COLOURS, strict=True):
            kings = list(board.values()).count(letter)
            if kings != 1:
                self.fail(f"{colour} has {kings} kings, expected 1")
        return board

    def castling(self, board: dict[tuple[int, int], str], field: str) -> int:
        """The rooks that may castle, as bits."""
        letters = "" if field == "-" else field
        known = "KQkq" if self.size == 8 else ""
        if not set(letters) <= set(known) or len(set(letters)) != len(letters):
            self.fail(f"castling is - or some of {known or 'nothing'}, got {field!r}")
        bits = 0
        for letter, colour, king, rook in _CASTLES:
            if letter not in letters:
                continue
            rank = (self.size - 1) * colour
            for file, piece in ((king, "Kk"[colour]), (rook, "Rr"[colour])):
                if board.get((file, rank)) != piece:
                    self.fail(
                        f"castling {letter} needs {piece} on {square_name(file, rank)}"
                    )
            bits |= 1 << 8 * rook + rank
        return bits

    def en_passant(
        self, board: dict[tuple[int, int], str], player: int, field: str
    ) -> int:
        """The en passant square, as a bit."""
        if field == "-":
            return 0
        rank, step = (5, 1) if player == 0 else (2, -1)
        if (
            self.size < 8
            or field[:-1] not in tuple("abcdefgh")
            or (field[-1] != str(rank + 1))
        ):
            expected = f"or a square of rank {rank + 1}" if self.size == 8 else "here"
            self.fail(f"the en passant square is - {expected}, got {field!r}")
        file = "abcdefgh".index(field[0])
        pawn = "pP"[player]
        if board.get((file, rank - step)) != pawn:
            self.fail(
                f"en passant {field} needs {pawn} on {square_name(file, rank - step)}"
            )
        for empty in (rank, rank + step):
            if (file, empty) in board:
                self.fail(
                    f"en passant {field} needs {square_name(file, empty)} to be empty, "
                    "as the pawn has just come over it"
                )
        return 1 << 8 * file + rank

    def number(self, field: str, name: str, least: int, most: int) -> int:
        # Python refuses to read thousands of digits.
        digits = field.isascii() and field.isdigit() and len(field) <= 100
        if not (digits and least <= int(field) <= most):
            self.fail(f"{name} is {least} to {most}, got {field!r}")
        return int(field)
