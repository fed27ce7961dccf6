"""How a program ends."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn


def finish(main: Callable[[], int]) -> NoReturn:
    """Runs `main` and exits with its code.

    An interrupt gives code 130 and a file that cannot be read or written code 1, each
    with one line in the place of a traceback.
    """
    sys.unraisablehook = _show_of_python
    name = Path(sys.argv[0]).name
    try:
        code = main()
    except KeyboardInterrupt:
        code = 130
        print(f"{name}: interrupted", file=sys.stderr)
    except OSError as error:
        code = 1
        print(f"{name}: {error}", file=sys.stderr)
    sys.exit(code)


def _show_of_python(unraisable: Any) -> None:
    """Without what C++ threads print of a failed save, which is raised here as well."""
    if unraisable.object is not None:
        sys.__unraisablehook__(unraisable)
