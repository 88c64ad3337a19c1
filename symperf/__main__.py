"""`python -m symperf`."""

from .cli import run_command

run_command()
