"""The command line, `symperf VERB ...`: flags, verbs, and exit statuses.

Imports `analysis`, `book`, `calibration`, `calibration.kernels`, `checking`, `common`, `derive`, `evaluation`,
`explore`, `export`, `frameworks`, `infer`, `installation`, `measuring`, `models`, `pictures`, `plan_search`,
`plan_search.inference`, `plans`, `report`, `runs`, `serve`, `sweep`, `systems`, `technology`,
`technology.allocation`, `timeline`, `train`, `validation`, `validation.kernels`.
"""

from __future__ import annotations

import atexit
import os
import signal
import sys
from typing import NoReturn

REQUIRED = ("jinja2", "numba", "numpy", "platformdirs", "rich", "sympy", "yaml")
"""Packages that an installation has."""


INTERRUPTED = 130
"""The exit status after Ctrl-C."""


def run_command() -> NoReturn:
    """Run the command of this process, and end the process."""
    from ..common.collecting import keep_until_exit

    keep_until_exit()
    status = main()
    if status == INTERRUPTED:
        _end_at_once(status)
    sys.exit(status)


def _end_at_once(status: int) -> None:
    """End without freeing each of many objects, which takes longer than all else after Ctrl-C; if that can be."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # whoever presses it again does not wait
    try:
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
    except (AttributeError, OSError, ValueError):  # there is no such stream, or it takes no more: as at any end
        return
    os._exit(status)


def main(arguments: list[str] | None = None) -> int:
    """Run one command.

    Returns:
        0 fine, 1 a question without an answer, 2 bad input (both told in one line on standard error), 130 interrupted.
    """
    try:
        return _run(sys.argv[1:] if arguments is None else arguments)
    except KeyboardInterrupt:  # at any moment from here on, also while modules are imported
        print("symperf: interrupted", file=sys.stderr)
        return INTERRUPTED


def _run(arguments: list[str]) -> int:
    from ..common.errors import InputError, NoAnswerError
    from ..common.system_errors import one_line_of
    from .output import begin, discard_output, tell_cache_fault, write_error
    from .parser import parse

    try:
        options = parse(arguments)
        begin(options.verb, options.width, arguments)
        status = int(options.run(options))
        tell_cache_fault()
        return status
    except SystemExit:  # from argparse, which has answered -h or --version
        return 0
    except InputError as error:
        write_error(str(error))
        return 2
    except NoAnswerError as error:
        write_error(str(error))
        return 1
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in REQUIRED:
            raise
        write_error(f"needs {error.name}, which is not installed: pip install symperf")
        return 2
    except BrokenPipeError:
        discard_output()
        return 0
    except OSError as error:  # what no verb expected: a disk that fails, a folder that was removed
        write_error(one_line_of(error))
        return 2
