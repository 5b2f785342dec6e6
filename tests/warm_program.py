"""The program in a process of its own, forked from one that has imported it: to import it takes most of a command.

Such a process has its own directory, environment, arguments and streams, and ends like any other. What is about how an
interpreter starts, or is given options or another locale, starts a new one instead.

A program in Python is forked from an interpreter, ours or that of a framework, that has imported packages of others,
and nothing of ours.
"""

import atexit
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Final

from tests.framework_modules import FRAMEWORK_MODULES

# All modules but those that load packages of others, which take longer than all of ours.
_OURS: Final = """
import importlib, pkgutil, sys

import batonpass
LEFT_OUT = ("batonpass.testing", "batonpass.agents.framework", "batonpass.adapters.claude_agent_sdk", "batonpass.demo.",
            "batonpass.adapters.mcp.proxy.http_backend", "batonpass.store.postgres", *sys.argv[2:])
for found in pkgutil.walk_packages(batonpass.__path__, "batonpass."):
    if not found.name.startswith(LEFT_OUT):
        importlib.import_module(found.name)
from batonpass.cli.main import main
"""

# A program finds no name that it did not import. Its main module is its own: annotations are looked up there.
_OTHERS: Final = """
import importlib, sys, types, warnings

for name in {modules}:
    importlib.import_module(name)

def main():
    sys.argv, sys.warnoptions[:] = ["-c"], ["error"]
    warnings.simplefilter("error")
    program = sys.modules["__main__"] = types.ModuleType("__main__")
    exec(compile(asked["program"], "<string>", "exec"), program.__dict__)
"""
_CORE: Final = ("apsw", "click", "msgspec", "nacl.signing", "re2", "rich")

# Each connection brings one command or program, and its streams. This ends when whoever started it does: then its input
# is closed.
_SERVER: Final = """
import gc, io, json, os, select, socket, sys

def become(connection):
    global asked
    said, streams, _, _ = socket.recv_fds(connection, 1 << 20, 3)
    while not said.endswith(b"\\n"):
        said += connection.recv(1 << 20)
    asked = json.loads(said)
    os.chdir(asked["folder"])
    os.environ.clear()
    os.environ.update(asked["environment"])
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    sys.argv = ["batonpass", *asked.get("arguments", ())]
    sys.stdin = open(0, encoding="utf-8", errors="surrogateescape", closefd=False)
    is_at_once = bool(os.environ.get("PYTHONUNBUFFERED"))
    output = open(1, "wb", 0 if is_at_once else -1, closefd=False)
    sys.stdout = io.TextIOWrapper(output, "utf-8", "surrogateescape", write_through=is_at_once)
    sys.stderr = open(2, "w", 1, encoding="utf-8", errors="backslashreplace", closefd=False)
    connection.close()

def serve(listener):
    waiting = 0
    while listener in select.select([listener, sys.stdin], [], [])[0]:
        connection, _ = listener.accept()
        while waiting and os.waitpid(-1, os.WNOHANG)[0]:
            waiting -= 1
        waiting += 1
        if os.fork() == 0:
            listener.close()
            child = os.fork()
            if child == 0:
                become(connection)
                return
            ended = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            connection.sendall(str(ended).encode())
            os._exit(0)
        connection.close()
    while waiting and os.waitpid(-1, 0)[0]:
        waiting -= 1
    sys.exit()

gc.freeze()
serve(socket.socket(fileno=int(sys.argv[1])))
main()
"""

# What a shell finds as `batonpass`: the same, for its own streams. It imports next to nothing.
_CLIENT: Final = """\
#!{python} -IS
import json, os, socket, sys
with socket.socket(socket.AF_UNIX) as connection:
    connection.connect({path!r})
    asked = {{"folder": os.getcwd(), "environment": dict(os.environ), "arguments": sys.argv[1:]}}
    socket.send_fds(connection, [json.dumps(asked).encode() + b"\\n"], [0, 1, 2])
    ended = int(connection.recv(64))
if ended < 0:
    os.kill(os.getpid(), -ended)
sys.exit(ended)
"""


@cache
def directory_of_program() -> Path:
    """Return a directory with a `batonpass` that a shell can run; the process behind it is started once."""
    path = _socket_of(_OURS, sys.executable)
    client = path.with_name("batonpass")
    client.write_text(_CLIENT.format(python=sys.executable, path=str(path)), encoding="utf-8")
    client.chmod(0o755)
    return path.parent


@cache
def _socket_of(imports: str, python: str) -> Path:
    directory = Path(tempfile.mkdtemp(prefix="warm-"))
    path = directory / "socket"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen(64)  # whoever comes before everything is imported waits here
        process = subprocess.Popen(
            [python, "-c", imports + _SERVER, str(listener.fileno()), *FRAMEWORK_MODULES],
            env={name: value for name, value in os.environ.items() if not name.startswith("COV")},  # it is not measured
            stdin=subprocess.PIPE,
            cwd=directory,
            pass_fds=[listener.fileno()],
        )
    atexit.register(_end, process, directory)
    return path


def _end(process: subprocess.Popen[bytes], directory: Path) -> None:
    process.communicate()  # closes its input
    shutil.rmtree(directory, ignore_errors=True)


def run_program(
    folder: Path, arguments: Sequence[str], environment: Mapping[str, str], *, patience: float
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end, and return what it printed. Raises `TimeoutError`."""
    asked = {"folder": str(folder), "environment": dict(environment), "arguments": [*arguments]}
    ended, (output, errors) = _run(_OURS, asked, ["output", "errors"], patience)
    return subprocess.CompletedProcess(["batonpass", *arguments], ended, output, errors)


def run_python(
    folder: Path,
    program: str,
    environment: Mapping[str, str],
    *,
    patience: float,
    python: str = sys.executable,
    modules: Sequence[str] = ("pydantic_ai",),
) -> subprocess.CompletedProcess[str]:
    """Run a program as `python -W error -c` does; return what it printed on both streams. Raises `TimeoutError`.

    `modules` are imported before, once for all programs.
    """
    asked = {"folder": str(folder), "environment": dict(environment), "program": program}
    imports = _OTHERS.format(modules=[*_CORE, *modules])
    ended, (output,) = _run(imports, asked, ["both"], patience, python)
    return subprocess.CompletedProcess([python, "-c", program], ended, output)


def run_script(folder: Path, script: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a file of Python with arguments, and return what it printed on both streams. Raises `TimeoutError`."""
    given = [str(script), *arguments]
    program = f"import runpy, sys\nsys.argv = {given!r}\nrunpy.run_path(sys.argv[0], None, '__main__')"
    return run_python(folder, program, os.environ, patience=300)


def _run(
    imports: str,
    asked: Mapping[str, object],
    streams: Sequence[str],
    patience: float,
    python: str = sys.executable,
) -> tuple[int, tuple[str, ...]]:
    printed = [os.memfd_create(name) for name in streams]
    nothing = os.open(os.devnull, os.O_RDONLY)
    try:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(patience)
            connection.connect(str(_socket_of(imports, python)))
            socket.send_fds(connection, [json.dumps(asked).encode() + b"\n"], [nothing, printed[0], printed[-1]])
            ended = int(connection.recv(64))
        return ended, tuple(_read(stream) for stream in printed)
    finally:
        for stream in (nothing, *printed):
            os.close(stream)


def _read(stream: int) -> str:
    with open(os.dup(stream), "rb") as file:  # noqa: PTH123 - a descriptor
        file.seek(0)
        return file.read().decode()
