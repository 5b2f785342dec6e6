"""The hook command: hands one event of Claude Code to the recorder that stays, and prints its answer.

Claude Code starts this program for every event and waits for it, so it is quick first: it runs as `python -I -S` on
this very file, knows nothing of the rest of the package, and imports what is written in C. Whatever goes wrong, an
observed session goes on and the event is left in the spool, durably, to be recorded as a gap; in an enforced one the
call is refused with a sentence that says what to do. Why there is a process that stays: docs/adr/0023.
"""

# `socket` takes 8 ms to import, most of it for enums; what it is made of takes half a millisecond. Likewise hashlib.
import _blake2
import _socket
import errno
import os
import sys
import time

VERSION = "0.1.0.dev0"  # that of the package, which would take 12 ms to ask; a test compares them
HOME_NAME = ".batonpass"
SPOOL = "spool"
LOG = "hooks.log"
MODULE = "batonpass.adapters.claude_code.hooks.resident"
LOCK_FD = 3  # where the recorder that we start finds the lock that we took for it

PATIENCE = 5.0  # seconds, for everything: a cold start on a busy machine takes one or two
PATIENCE_OF_ENFORCED = 8.0  # a refusal for want of patience costs more; Claude Code itself waits for ten
LARGEST = 64 << 20  # bytes of an event; of a larger one only the beginning is kept
BEGINNING = 1 << 16
_PAUSE = 0.01
_CHUNK = 1 << 20
_OTHERS_WRITE = 0o022
_SQLITE = "sqlite:///"


class UnansweredError(Exception):
    """Nobody answered for an event; says why in a sentence."""


class HookInvocation:
    """What the hook was told by its command line and its environment."""

    def __init__(self, arguments: list[str], environment: dict[str, str]) -> None:
        self.enforce = "--enforce" in arguments
        self.environment = environment
        self.told = _option(arguments, "--ledger")
        self.given = self.told or environment.get("BATONPASS_LEDGER") or ""
        self.patience = float(
            _option(arguments, "--patience") or (PATIENCE_OF_ENFORCED if self.enforce else PATIENCE),
        )
        self.ends = time.monotonic() + self.patience
        project = _option(arguments, "--project")
        start = os.path.abspath(project or environment.get("CLAUDE_PROJECT_DIR") or os.getcwd())
        self.project = start if project else nearest(start) or start
        self.home = self._home()

    @property
    def name(self) -> str:
        """Return what the files of this project's recorder are called, in the ledger's home."""
        told = f"{self.project}\0{self.given}".encode("utf-8", "surrogateescape")
        return f"hook-{_blake2.blake2s(told, digest_size=8).hexdigest()}"

    @property
    def stamp(self) -> str:
        """Return what must be the same at both ends: else the recorder that is there makes room for another."""
        return f"{VERSION}/{'enforce' if self.enforce else 'observe'}"

    def left(self) -> float:
        """Return for how many seconds we may still hold up Claude Code. Raises `UnansweredError` if there are none."""
        left = self.ends - time.monotonic()
        if left <= 0:
            raise UnansweredError(f"the recorder did not answer within {self.patience:g} seconds")
        return left

    def _home(self) -> str:
        """Return the home of the ledger, as `batonpass.config` finds it; a test compares them."""
        if chosen := self.environment.get("BATONPASS_HOME"):
            return os.path.abspath(os.path.expanduser(chosen))
        at_hand = (nearest(self.project) or self.project) + f"/{HOME_NAME}"
        if not self.given or ("://" in self.given and not self.given.startswith(_SQLITE)):
            return at_hand
        path = os.path.join(self.project, os.path.expanduser(self.given.removeprefix(_SQLITE)))
        folder = os.path.dirname(path)
        return folder if os.path.basename(folder) == HOME_NAME else f"{path}{HOME_NAME}"


def nearest(start: str) -> str | None:
    """Return the directory, this one or the nearest above it, that has a ledger's home in it."""
    place = start
    while not os.path.isdir(f"{place}/{HOME_NAME}"):
        above = os.path.dirname(place)
        if above == place:
            return None
        place = above
    return place


def ask(call: HookInvocation, event: bytes) -> bytes:
    """Return what the recorder answers to an event; one is started if there is none.

    Raises `UnansweredError` if there is no answer in time.
    """
    if len(event) > LARGEST:
        raise UnansweredError(f"an event of {len(event)} bytes is too large")
    started: int | None = None
    while True:
        call.left()
        line = _connected(call)
        if line is not None:
            answer = _converse(line, call, event)
            if answer is not None:
                return answer
        elif started is None:
            started = start(call)
        elif os.waitpid(started, os.WNOHANG) != (0, 0):
            raise UnansweredError(f"the recorder could not be started; {LOG} says why")
        time.sleep(_PAUSE)


def start(call: HookInvocation) -> int | None:
    """Start the recorder of this project and return its pid; None if somebody else is doing so.

    It gets nothing of ours but the lock: no terminal, no pipe that Claude Code waits for, none of its secrets.
    """
    import fcntl  # noqa: PLC0415 - only whoever starts a recorder needs it

    lock = os.open(f"{call.name}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return None
        pid = os.fork()
        if pid == 0:
            _become_recorder(call, lock)
        return pid
    finally:
        os.close(lock)


def spool(event: bytes, why: str) -> None:
    """Keep an event that nobody recorded, durably, until a recorder notes the gap.

    A file for each: it is whole or not there, whoever else writes, and can be taken away while others are added.
    """
    os.makedirs(SPOOL, 0o700, exist_ok=True)
    kept = event if len(event) <= LARGEST else event[:BEGINNING]
    name = f"{time.time_ns()}-{os.getpid()}"
    file = os.open(f"{SPOOL}/.{name}", os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        _write(file, why.encode("utf-8", "replace").replace(b"\n", b" ") + b"\n" + kept)
        os.fsync(file)
    finally:
        os.close(file)
    os.rename(f"{SPOOL}/.{name}", f"{SPOOL}/{name}")
    folder = os.open(SPOOL, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def deny(event: bytes, why: str) -> bytes:
    """Return the refusal of a call that may not run unrecorded; nothing for events that are no question."""
    import json  # noqa: PLC0415 - something went wrong already: 10 ms more do not matter

    try:
        name = json.loads(event)["hook_event_name"]
    except (ValueError, TypeError, KeyError, RecursionError):
        name = "PreToolUse"
    if name != "PreToolUse":
        return b""
    sentence = (
        f"Batonpass could not record this call, and no call may be made unrecorded here: {why}. "
        "Try the same call again; if it is refused again, stop and ask the user to run `batonpass doctor`."
    )
    answer = {"hookEventName": name, "permissionDecision": "deny", "permissionDecisionReason": sentence}
    return json.dumps({"hookSpecificOutput": answer}).encode()


def attend(call: HookInvocation) -> bytes:
    """Return what to tell Claude Code about the event on stdin."""
    event = b""
    kept = False
    try:
        event = _read_event(call)
        _enter_home(call)
        kept = True
        return ask(call, event)
    except FileNotFoundError as error:
        if not call.enforce:
            return b""  # nobody records here: the hook is the user's, for all projects, and this one has no ledger
        why = f"there is no ledger's home at {error.filename}"
    except (UnansweredError, OSError) as error:
        why = str(error)
    if kept:
        try:
            spool(event, why)
        except OSError as error:
            why = f"{why}, and the event could not be kept: {error}"
    if call.enforce:
        return deny(event, why)
    _write(2, f"batonpass: {why}\n".encode())
    return b""


def main() -> int:
    """Attend to one event; the exit code is 0, or 2 where a refusal could not be said in any other way."""
    enforce = "--enforce" in sys.argv
    try:
        answer = attend(HookInvocation(sys.argv[1:], dict(os.environ)))
        _write(1, answer)
    except Exception as error:  # noqa: BLE001 - an error of ours never stops a session that is only observed
        if enforce:
            _write(2, f"Batonpass failed ({error}): ask the user to run `batonpass doctor`\n".encode())
            return 2
    return 0


def _option(arguments: list[str], name: str) -> str | None:
    return arguments[arguments.index(name) + 1] if name in arguments[:-1] else None


def _read_event(call: HookInvocation) -> bytes:
    import select  # noqa: PLC0415 - beside the only place that needs it

    parts: list[bytes] = []
    while select.select([0], [], [], call.left())[0]:
        part = os.read(0, _CHUNK)
        if not part:
            return b"".join(parts)
        parts.append(part)
    raise UnansweredError("the event did not end")


def _enter_home(call: HookInvocation) -> None:
    """Stand in the ledger's home: from there names are short, and the path of a socket may have 107 bytes only."""
    os.chdir(call.home)
    found = os.stat(".")
    if found.st_uid != os.geteuid() or found.st_mode & _OTHERS_WRITE:
        raise UnansweredError(f"others can write to {call.home}")


def _connected(call: HookInvocation) -> _socket.socket | None:
    line = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    line.settimeout(call.left())
    try:
        line.connect(f"{call.name}.sock")
    except OSError as error:
        line.close()
        # Nobody, not any more, or too many at once who wait to be let in.
        if error.errno in {errno.ENOENT, errno.ECONNREFUSED, errno.EAGAIN}:
            return None
        raise
    return line


def _converse(line: _socket.socket, call: HookInvocation, event: bytes) -> bytes | None:
    """Return the answer; None if the recorder went away before it took the event, which may then be sent again."""
    try:
        line.sendall(f"{call.stamp} {len(event)}\n".encode() + event)
        heard = _heard(line, call)
    except (ConnectionError, BrokenPipeError):
        return None
    except TimeoutError:
        call.left()
        raise
    finally:
        line.close()
    head, _, answer = heard.partition(b"\n")
    if head == b"other" or not heard:
        return None
    if head != b"taken":
        raise UnansweredError("the recorder said something that we do not understand")
    status, _, answer = answer.partition(b"\n")
    word, _, rest = status.partition(b" ")
    if word == b"done" and str(len(answer)).encode() == rest:
        return answer
    # It may or may not be recorded. To send it again could record it twice; a gap tells what is known.
    raise UnansweredError(rest.decode("utf-8", "replace") if word == b"failed" else "the recorder ended meanwhile")


def _heard(line: _socket.socket, call: HookInvocation) -> bytes:
    parts: list[bytes] = []
    while True:
        line.settimeout(call.left())
        part = line.recv(_CHUNK)
        if not part:
            return b"".join(parts)
        parts.append(part)


def _become_recorder(call: HookInvocation, lock: int) -> None:
    try:
        os.setsid()
        # The lock first: its place is taken then, and to copy a file onto itself would not let it survive `exec`.
        if lock != LOCK_FD:
            os.dup2(lock, LOCK_FD)
        os.set_inheritable(LOCK_FD, True)  # noqa: FBT003 - it takes no name
        null = os.open(os.devnull, os.O_RDWR)
        log = os.open(LOG, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o600)
        for source, target in ((log, 2), (null, 1), (null, 0)):
            os.dup2(source, target)
        os.closerange(LOCK_FD + 1, os.sysconf("SC_OPEN_MAX"))
        words = ["-I", "-m", MODULE, "--project", call.project]
        # What the environment says stays there: everybody can read a command line, and a URL may hold a password.
        words += ["--ledger", call.told] if call.told else []
        words += ["--enforce"] if call.enforce else []
        os.execve(sys.executable, [sys.executable, *words], _harmless(call.environment))  # noqa: S606 - no shell is wanted
    finally:
        os._exit(127)


def _harmless(environment: dict[str, str]) -> dict[str, str]:
    """Return an environment without what Claude Code tells its children: tokens, sockets, its keys."""
    kept = {name: value for name, value in environment.items() if not name.startswith(("ANTHROPIC", "CLAUDE"))}
    if (place := environment.get("CLAUDE_CONFIG_DIR")) is not None:
        kept["CLAUDE_CONFIG_DIR"] = place
    return kept


def _write(file: int, data: bytes) -> None:
    while data:
        data = data[os.write(file, data) :]


if __name__ == "__main__":
    sys.exit(main())
