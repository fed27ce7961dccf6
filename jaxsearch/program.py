"""How a program ends."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn


def one_line(message: object) -> str:
    """A message on one line, whatever names are in it: control characters escaped."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in str(message))


def finish(main: Callable[[], int]) -> NoReturn:
    """Runs `main` and exits with its code.

    An interrupt gives code 130; a file that cannot be read or written, and memory that
    a device does not have, code 1; a search that is too large for it, code 2; each with
    one line in the place of a traceback.
    """
    import jax

    from jaxsearch.search.memory import TreeTooLargeError

    sys.unraisablehook = _show_of_python
    name = Path(sys.argv[0]).name
    try:
        code = main()
    except KeyboardInterrupt:
        code = 130
        print(f"{name}: interrupted", file=sys.stderr)
    except TreeTooLargeError as error:
        code = 2
        print(f"{name}: {one_line(error)}", file=sys.stderr)
    except OSError as error:
        code = 1
        print(f"{name}: {one_line(error)}", file=sys.stderr)
    except jax.errors.JaxRuntimeError as error:
        if "RESOURCE_EXHAUSTED" not in str(error):
            raise
        code = 1
        reason = str(error).splitlines()[0]
        print(
            f"{name}: {reason} Take smaller batches or a smaller net", file=sys.stderr
        )
    sys.exit(code)


def _show_of_python(unraisable: Any) -> None:
    """Without what C++ threads print of a failed save, which is raised here as well."""
    if unraisable.object is not None:
        sys.__unraisablehook__(unraisable)
