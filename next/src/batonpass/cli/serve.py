"""Programs in other languages."""

import sys

import click

from batonpass.api.json_lines import serve_lines
from batonpass.cli.options import Session, common
from batonpass.errors import InvalidValueError


@click.command()
@click.option("--json-lines", is_flag=True, help="A JSON object a line: requests on stdin, answers on stdout.")
@common
def serve(session: Session, *, json_lines: bool) -> None:
    """Let a program in another language record its work, over the pipes of this process."""
    if not json_lines:
        raise InvalidValueError("say how: --json-lines reads requests from stdin and answers on stdout")
    with session.acting(create=True) as port:
        serve_lines(port, sys.stdin.buffer, sys.stdout.buffer)
