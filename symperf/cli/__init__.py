"""The command line, `symperf VERB ...`: flags, verbs, and exit statuses.

Imports `analysis`, `book`, `calibration`, `calibration.kernels`, `checking`, `common`, `derive`, `evaluation`,
`export`, `frameworks`, `infer`, `measuring`, `models`, `plan_search`, `plan_search.inference`, `plans`, `report`,
`runs`, `serve`, `sweep`, `systems`, `technology`, `technology.allocation`, `timeline`, `train`, `validation`,
`validation.kernels`.
"""

from __future__ import annotations

import sys

REQUIRED = ("jinja2", "numba", "numpy", "platformdirs", "rich", "sympy", "yaml")
"""Packages that an installation has."""


def main(arguments: list[str] | None = None) -> int:
    """Run one command.

    Returns:
        0 fine, 1 a question without an answer, 2 bad input (both told in one line on standard error), 130 interrupted.
    """
    from ..analysis import Unreachable
    from ..common.errors import InputError
    from .output import ask_width, discard_output, write_error
    from .parser import parse

    try:
        options = parse(sys.argv[1:] if arguments is None else arguments)
        ask_width(options.width)
        return int(options.run(options))
    except SystemExit:  # from argparse, which has answered -h or --version
        return 0
    except InputError as error:
        write_error(str(error))
        return 2
    except Unreachable as error:
        write_error(str(error))
        return 1
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in REQUIRED:
            raise
        write_error(f"needs {error.name}, which is not installed: pip install symperf")
        return 2
    except KeyboardInterrupt:
        write_error("interrupted")
        return 130
    except BrokenPipeError:
        discard_output()
        return 0
