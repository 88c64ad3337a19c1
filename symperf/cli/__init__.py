"""The command line: `symperf VERB ...`."""

from __future__ import annotations

import sys


def main(arguments: list[str] | None = None) -> int:
    """Run one command.

    Returns:
        0 fine, 2 bad input (told in one line on standard error), 130 interrupted.
    """
    from ..errors import InputError
    from .output import discard_output, write_error
    from .parser import parse

    try:
        options = parse(sys.argv[1:] if arguments is None else arguments)
        return int(options.run(options))
    except SystemExit:  # from argparse, which has answered -h or --version
        return 0
    except InputError as error:
        write_error(str(error))
        return 2
    except KeyboardInterrupt:
        write_error("interrupted")
        return 130
    except BrokenPipeError:
        discard_output()
        return 0
