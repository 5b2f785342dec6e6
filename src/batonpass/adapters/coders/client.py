"""The hook command: passes one event of a coding agent to the resident recorder and prints its answer.

The agent starts this program for every event and waits for it, so it must be fast: it runs as `python -I -S` on this
file, uses nothing else of the package, and imports only modules written in C. If anything fails, an observed session
goes on, and the event is kept durably in the spool, to be recorded as a gap; in an enforced session the call is denied
with a sentence that says what to do. docs/adr/0023 explains why there is a resident process.
"""

# Importing `socket` takes 8 ms, mostly for enums; the C module takes half a millisecond. The same goes for hashlib.
import _blake2
import _signal  # type: ignore[import-not-found]
import _socket
import errno
import os
import sys
import time

VERSION = "0.1.0.dev0"  # of the package; asking for it takes 12 ms, so a test compares them
HOME_NAME = ".batonpass"
SPOOL = "spool"
LOG = "hooks.log"
MODULE = "batonpass.adapters.coders.resident"
LOCK_FD = 3  # the descriptor on which a new recorder inherits the lock

PATIENCE = 5.0  # seconds in total; a cold start on a busy machine takes one or two
PATIENCE_OF_ENFORCED = 8.0  # a denial because of a timeout is worse than waiting; the agent itself waits for ten
LAST_MOMENT = 1.0  # seconds after that in which an event is stored; then the answer is given without
LARGEST = 64 << 20  # bytes; of a larger event only the beginning is kept
BEGINNING = 1 << 16
_PAUSE = 0.01
_CHUNK = 1 << 20
_OTHERS_WRITE = 0o022
_OF_AGENTS = (
    "ANTHROPIC",
    "CLAUDE",
    "CODEX",
    "COPILOT",
    "CURSOR",
    "DASHSCOPE",
    "DROID",
    "FACTORY",
    "GEMINI",
    "GH_TOKEN",
    "GITHUB_TOKEN",
    "GOOGLE_API",
    "OPENAI",
    "OPENCODE",
    "QWEN",
)
_SQLITE = "sqlite:///"

CLAUDE_CODE = "claude-code"
# Variables that agents set for the hooks they run, by which a hook that was written for another agent may know them.
MARKS = ("COPILOT_CLI", "CURSOR_VERSION", "GEMINI_SESSION_ID", "QWEN_CODE_SESSION_ID", "DROID_PROJECT_DIR")
# What agents call the event before a call, and the forms of a denial; a test compares them with the dialects.
ASKING = frozenset({"PreToolUse", "BeforeTool", "preToolUse"})


class UnansweredError(Exception):
    """An event got no answer; the message says why."""


class HookInvocation:
    """The settings of a hook command, from its arguments and its environment."""

    def __init__(self, arguments: list[str], environment: dict[str, str]) -> None:
        self.enforce = "--enforce" in arguments
        self.agent = _option(arguments, "--agent") or CLAUDE_CODE
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
        """Return the base name of the files of this project's recorder in the ledger's home."""
        told = f"{self.project}\0{self.given}".encode("utf-8", "surrogateescape")
        return f"hook-{_blake2.blake2s(told, digest_size=8).hexdigest()}"

    @property
    def stamp(self) -> str:
        """Return the version and mode. A recorder with another stamp leaves and makes room for a new one."""
        return f"{VERSION}/{'enforce' if self.enforce else 'observe'}"

    def left(self) -> float:
        """Return the remaining seconds for this event. Raises `UnansweredError` if there are none."""
        left = self.ends - time.monotonic()
        if left <= 0:
            raise UnansweredError(f"the recorder did not answer within {self.patience:g} seconds")
        return left

    def _home(self) -> str:
        """Return the ledger's home, by the same rules as `batonpass.config`; a test compares them."""
        if chosen := self.environment.get("BATONPASS_HOME"):
            return os.path.abspath(os.path.expanduser(chosen))
        at_hand = (nearest(self.project) or self.project) + f"/{HOME_NAME}"
        if not self.given or ("://" in self.given and not self.given.startswith(_SQLITE)):
            return at_hand
        path = os.path.join(self.project, os.path.expanduser(self.given.removeprefix(_SQLITE)))
        folder = os.path.dirname(path)
        return folder if os.path.basename(folder) == HOME_NAME else f"{path}{HOME_NAME}"


def nearest(start: str) -> str | None:
    """Return the directory, this or the nearest above, that contains a ledger's home."""
    place = start
    while not os.path.isdir(f"{place}/{HOME_NAME}"):
        above = os.path.dirname(place)
        if above == place:
            return None
        place = above
    return place


def ask(call: HookInvocation, event: bytes) -> bytes:
    """Return the recorder's answer to an event; a recorder is started if there is none.

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
    """Start this project's recorder and return its pid; None if another process is starting it.

    The recorder inherits only the lock: no terminal, no pipe that Claude Code waits for, no secrets.
    """
    import fcntl  # noqa: PLC0415 - needed only to start a recorder

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


def spool(event: bytes, why: str, agent: str = CLAUDE_CODE) -> None:
    """Store an unrecorded event durably, until a recorder notes the gap.

    Each event is a file of its own: it is complete or absent, also if others write at the same time, and can be removed
    while others are added.
    """
    os.makedirs(SPOOL, 0o700, exist_ok=True)
    kept = event if len(event) <= LARGEST else event[:BEGINNING]
    name = f"{time.time_ns()}-{os.getpid()}{'' if agent == CLAUDE_CODE else f'.{agent}'}"
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


def deny(event: bytes, why: str, agent: str = CLAUDE_CODE) -> bytes:
    """Return the denial of a call that must not run unrecorded; nothing for other events."""
    import json  # noqa: PLC0415 - after an error, 10 ms more do not matter

    try:
        name = json.loads(event)["hook_event_name"]
    except (ValueError, TypeError, KeyError, RecursionError):
        name = "PreToolUse"
    if name not in ASKING or agent == "cline":
        return b""
    sentence = (
        f"Batonpass could not record this call, and unrecorded calls are not allowed here: {why}. "
        "Try the same call again; if it is refused again, stop and ask the user to run `batonpass doctor`."
    )
    return json.dumps(denial(sentence, agent)).encode()


def denial(sentence: str, agent: str) -> dict[str, object]:
    """Return the denial of a call in the form that an agent takes."""
    if agent == "gemini":
        return {"decision": "deny", "reason": sentence}
    told = {"hookEventName": "PreToolUse", "permissionDecision": "deny", "permissionDecisionReason": sentence}
    if agent == "cursor":
        words = {"user_message": sentence, "agent_message": sentence}
        return {"permission": "deny", **words, "hookSpecificOutput": told}
    return {"hookSpecificOutput": told}


def attend(call: HookInvocation) -> bytes:
    """Return the answer to the agent for the event on stdin."""
    # No output means "go on" to every agent. That is right for an observed session, which we must never stop, and wrong
    # for an enforced one, in which no call may be made without a receipt: there every failure is an explicit denial.
    # Either way the event is spooled first, if there is a ledger to spool it in, so that the gap gets on record.
    event = b""
    kept = False
    try:
        event = _read_event(call)
        _enter_home(call)
        kept = True
        return ask(call, event)
    except FileNotFoundError as error:
        if not call.enforce:
            return b""  # the hook is installed for all projects of the user, and this one has no ledger
        why = f"there is no ledger at {error.filename}"
    except (UnansweredError, OSError) as error:
        why = str(error)
    if kept:
        try:
            spool(event, why, call.agent)
        except OSError as error:
            why = f"{why}; the event could not be stored either: {error}"
    if call.enforce:
        return deny(event, why, call.agent)
    _write(2, f"batonpass: {why}\n".encode())
    return b""


def main() -> int:
    """Handle one event; return the exit code: 0, or 2 if a denial could not be given in another way."""
    enforce = "--enforce" in sys.argv
    try:
        call = HookInvocation(sys.argv[1:], dict(os.environ))
        if "--where" in sys.argv:
            return _tell_where(call)
        _answer_in_time(call)
        answer = attend(call)
        _signal.setitimer(_signal.ITIMER_REAL, 0)  # one answer, not two; and whoever called us here lives on
        _write(1, answer)
    except Exception as error:  # noqa: BLE001 - our own error never stops an observed session
        _signal.setitimer(_signal.ITIMER_REAL, 0)
        if enforce:
            _write(2, f"Batonpass failed ({error}): ask the user to run `batonpass doctor`\n".encode())
            return 2
    return 0


def _tell_where(call: HookInvocation) -> int:
    """Print where the recorder listens, for a program that stays and sends it events itself."""
    import json  # noqa: PLC0415 - not needed for events

    _write(1, json.dumps({"path": f"{call.home}/{call.name}.sock", "stamp": call.stamp}).encode())
    return 0


def _answer_in_time(call: HookInvocation) -> None:
    """Give the answer that a failure gets, even if this process hangs: after its own limit an agent makes the call."""

    def answer(*_: object) -> None:
        # The event was not read, or a disk does not answer; the name of an event that asks is the cautious guess.
        if call.enforce:
            why = f"the hook command did not finish within {call.patience + LAST_MOMENT:g} seconds"
            _write(1, deny(b"", why, call.agent))
        os._exit(0)

    _signal.signal(_signal.SIGALRM, answer)
    _signal.setitimer(_signal.ITIMER_REAL, call.patience + LAST_MOMENT)


def _option(arguments: list[str], name: str) -> str | None:
    return arguments[arguments.index(name) + 1] if name in arguments[:-1] else None


def _read_event(call: HookInvocation) -> bytes:
    import select  # noqa: PLC0415 - needed only here

    parts: list[bytes] = []
    while select.select([0], [], [], call.left())[0]:
        part = os.read(0, _CHUNK)
        if not part:
            return b"".join(parts)
        parts.append(part)
    raise UnansweredError("the event is incomplete")


def _enter_home(call: HookInvocation) -> None:
    """Change to the ledger's home, because the path of a socket is limited to 107 bytes."""
    os.chdir(call.home)
    found = os.stat(".")
    if found.st_uid != os.geteuid() or found.st_mode & _OTHERS_WRITE:
        raise UnansweredError(f"other users can write to {call.home}")


def _connected(call: HookInvocation) -> _socket.socket | None:
    line = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    line.settimeout(call.left())
    try:
        line.connect(f"{call.name}.sock")
    except OSError as error:
        line.close()
        # No recorder, no longer one, or too many waiting connections.
        if error.errno in {errno.ENOENT, errno.ECONNREFUSED, errno.EAGAIN}:
            return None
        raise
    return line


def _converse(line: _socket.socket, call: HookInvocation, event: bytes) -> bytes | None:
    """Return the answer; None if the recorder left before it accepted the event, which may then be sent again."""
    try:
        marks = ",".join([mark for mark in MARKS if mark in call.environment])
        line.sendall(f"{call.stamp} {len(event)} {call.agent} {marks}\n".encode() + event)
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
        raise UnansweredError("the recorder gave an unknown answer")
    status, _, answer = answer.partition(b"\n")
    word, _, rest = status.partition(b" ")
    if word == b"done" and str(len(answer)).encode() == rest:
        return answer
    # The event may or may not be recorded. Sending it again could record it twice; a gap states what is known.
    raise UnansweredError(
        rest.decode("utf-8", "replace") if word == b"failed" else "the recorder ended before it answered"
    )


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
        # The lock first, so that its descriptor is taken. dup2 onto itself would not make it inheritable.
        if lock != LOCK_FD:
            os.dup2(lock, LOCK_FD)
        os.set_inheritable(LOCK_FD, True)  # noqa: FBT003 - a positional parameter
        null = os.open(os.devnull, os.O_RDWR)
        log = os.open(LOG, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o600)
        for source, target in ((log, 2), (null, 1), (null, 0)):
            os.dup2(source, target)
        os.closerange(LOCK_FD + 1, os.sysconf("SC_OPEN_MAX"))
        words = ["-I", "-m", MODULE, "--project", call.project]
        # A ledger from the environment stays there: anybody can read a command line, and a URL may contain a password.
        words += ["--ledger", call.told] if call.told else []
        words += ["--enforce"] if call.enforce else []
        os.execve(sys.executable, [sys.executable, *words], _harmless(call.environment))  # noqa: S606 - no shell
    finally:
        os._exit(127)


def _harmless(environment: dict[str, str]) -> dict[str, str]:
    """Return the environment without the variables that agents give their children: tokens, sockets, keys."""
    kept = {name: value for name, value in environment.items() if not name.startswith(_OF_AGENTS)}
    if (place := environment.get("CLAUDE_CONFIG_DIR")) is not None:
        kept["CLAUDE_CONFIG_DIR"] = place
    return kept


def _write(file: int, data: bytes) -> None:
    while data:
        data = data[os.write(file, data) :]


if __name__ == "__main__":
    sys.exit(main())
