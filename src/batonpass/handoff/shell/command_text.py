"""Parses a shell command: the programs that it runs and the words that it gives them, as far as the text shows.

This is a net, not a wall: a shell can compute any word, and we only read words. Quotes, escapes, assignments,
substitutions, braces and here-documents are resolved, because honest commands contain them too. Words that only a shell
can compute (`$(printf …)`, an encoded script) stay unknown.
"""

import codecs
import re
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from msgspec import Struct, field

_ESCAPE: Final = re.compile(r"\\([4-7][0-7]{2}|.)", re.DOTALL)
_ESCAPED: Final = frozenset("\\'\"abfnrtv01234567xuU\n")

NOTHING: Final[Mapping[str, str]] = MappingProxyType({})
LONGEST: Final = 200_000  # characters; a longer text is only searched for names
_DEEPEST: Final = 8
_MOST_SPELLINGS: Final = 64

_ENDS: Final = frozenset(";&|\n()")
_ASSIGNMENT: Final = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=(.*)", re.DOTALL)
_VARIABLE: Final = re.compile(
    r"\$(?:\{([A-Za-z_][A-Za-z0-9_]*|[0-9]+)(?:(:?[-=+?])([^{}]*))?\}|([A-Za-z_][A-Za-z0-9_]*|[0-9]))"
)
_FED: Final = re.compile(r"<<(?!<)-?[ \t]*([^\s;&|<>()]+)")
_DUPLICATED: Final = re.compile(r"[<>]&(?:\d+|-)")
_BRACES: Final = re.compile(r"\{([^{}]*,[^{}]*)\}")
_KEYWORDS: Final = frozenset(
    {"!", "do", "done", "elif", "else", "fi", "if", "then", "time", "until", "while", "{", "}"}
)


class Redirected(NamedTuple):
    """A file to which a command redirects its output."""

    word: str
    sign: str  # as written: `>`, `>>`, `2>`, `&>`


class SimpleCommand(Struct):
    """A simple command: its words, its here-documents, and the words around it that are no arguments."""

    words: list[str] = field(default_factory=list)
    fed: list[str] = field(default_factory=list)
    assigned: list[str] = field(default_factory=list)  # values of variables, set before it
    read_from: list[str] = field(default_factory=list)
    written_to: list[str] = field(default_factory=list)
    redirected: list[Redirected] = field(default_factory=list)  # the same words, with their signs
    detached: bool = False  # the shell does not wait for it
    substituted: bool = False  # its output becomes words of another command

    @property
    def program(self) -> str:
        """Return the name of the program, without its directory."""
        return self.words[0].rpartition("/")[2] if self.words else ""


def read_commands(text: str, known: Mapping[str, str] = NOTHING) -> list[SimpleCommand]:
    """Return the simple commands in a text, in their order, including those in substitutions.

    Variables are replaced by their values if these are in `known` or assigned in the text.
    """
    if len(text) > LONGEST:
        return []
    reader = _Reader(text, known=dict(known))
    reader.read()
    return reader.found


def unbraced(word: str) -> Iterator[str]:
    """Yield the words that a shell makes of a word with braces."""
    waiting, count = [word], 0
    while waiting and count < _MOST_SPELLINGS:
        one = waiting.pop()
        if found := _BRACES.search(one):
            waiting += [one[: found.start()] + part + one[found.end() :] for part in found[1].split(",")]
        else:
            count += 1
            yield one


class _Reader:
    """Parses a text once, from left to right."""

    def __init__(self, text: str, *, depth: int = 0, known: dict[str, str] | None = None) -> None:
        self._text = text.replace("\\\n", "")
        self._at = 0
        self._depth = depth
        self._known = {} if known is None else known
        self._word: str | None = None
        self._command = SimpleCommand()
        self._next: list[str] | None = None  # where the next word goes, if it is no argument
        self._sign = ""  # the redirection before it
        self._documents: list[tuple[SimpleCommand, str]] = []
        self.found: list[SimpleCommand] = []

    def read(self) -> None:
        while self._at < len(self._text):
            self._step()
        self._end_command()

    def _step(self) -> None:
        character = self._text[self._at]
        match character:
            case "'":
                self._add(self._until("'"))
            case '"':
                self._quoted()
            case "\\":
                self._add(self._text[self._at + 1 : self._at + 2])
                self._at += 2
            case "$" | "`":
                self._dollar()
            case "#" if self._word is None:
                self._skip_line()
            case _ if self._text.startswith(("<", ">", "&>"), self._at):
                self._redirect()
            case _ if character in _ENDS:
                self._separate(character)
            case _ if character.isspace():
                self._at += 1
                self._end_word()
            case _:
                self._add(character)
                self._at += 1

    def _separate(self, character: str) -> None:
        detaching = self._is_detaching()
        self._at += 1
        self._end_command()
        if detaching and self.found:
            self.found[-1].detached = True  # after a parenthesis, this is the last command in it
        if character == "\n":
            self._take_documents()

    def _is_detaching(self) -> bool:
        """Return whether there is a single `&` here, which is neither `&&` nor part of a redirection."""
        around = self._text[max(0, self._at - 1) : self._at] + self._text[self._at + 1 : self._at + 2]
        return self._text[self._at] == "&" and not set(around) & set("&><")

    def _add(self, text: str) -> None:
        self._word = (self._word or "") + text

    def _until(self, end: str) -> str:
        stop = self._text.find(end, self._at + 1)
        stop = len(self._text) if stop < 0 else stop
        inside = self._text[self._at + 1 : stop]
        self._at = stop + 1
        return inside

    def _quoted(self) -> None:
        self._add("")
        self._at += 1
        while self._at < len(self._text) and self._text[self._at] != '"':
            character = self._text[self._at]
            if character == "\\":
                self._add(self._text[self._at + 1 : self._at + 2])
                self._at += 2
            elif self._text.startswith("$'", self._at):
                # Within double quotes these are two characters, and begin nothing.
                self._add("$'")
                self._at += 2
            elif character in "$`":
                self._dollar()
            else:
                self._add(character)
                self._at += 1
        self._at += 1

    def _dollar(self) -> None:
        rest = self._text[self._at : self._at + 2]
        if rest == "$'":
            start = self._at + 2
            self._skip_quoted()
            self._add(_unescaped(self._text[start : self._at].removesuffix("'")))
        elif rest == '$"':
            self._at += 1
        elif rest == "$(":
            self._at += 1
            self._add("$()")
            self._descend(self._parenthesised())
        elif rest.startswith("`"):
            self._add("$()")
            self._descend(self._until("`"))
        elif found := _VARIABLE.match(self._text, self._at):
            self._add(self._value(found))
            self._at = found.end()
        else:
            self._add("$")
            self._at += 1

    def _value(self, found: re.Match[str]) -> str:
        """Return the value of a variable. If it is unknown, return the default in the text, else the text itself.

        `${x+y}` always gives `y`.
        """
        name, how, other = found[1] or found[4], found[2], re.sub(r"[\"'\\]", "", found[3] or "")
        if how is None or how.endswith("?"):
            return self._known.get(name, found[0])
        return other if how.endswith("+") else self._known.get(name) or other

    def _parenthesised(self) -> str:
        """Return the text up to the matching closing parenthesis. Single quotes and backslashes are respected."""
        start, depth = self._at + 1, 0
        while self._at < len(self._text):
            character = self._text[self._at]
            # A parenthesis in quotes closes nothing. Whoever ends here too early takes the rest for a quoted word, and
            # the commands in it are never looked at.
            if self._text.startswith("$'", self._at) or character == '"':
                self._skip_quoted()
                continue
            if character == "'":
                self._until("'")
                continue
            depth += (character == "(") - (character == ")")
            self._at += 2 if character == "\\" else 1
            if depth == 0:
                return self._text[start : self._at - 1]
        return self._text[start:]

    def _skip_quoted(self) -> None:
        """Go behind the `"…"` or `$'…'` that begins here, in which a backslash takes the next character along."""
        expands = self._text[self._at] == '"'
        end = '"' if expands else "'"
        self._at += 1 if expands else 2
        while self._at < len(self._text):
            character = self._text[self._at]
            if expands and self._text.startswith("$(", self._at):
                self._at += 1
                self._parenthesised()
            elif expands and character == "`":
                self._until("`")
            else:
                self._at += 2 if character == "\\" else 1
                if character == end:
                    return

    def _descend(self, text: str) -> None:
        if self._depth < _DEEPEST:
            inner = _Reader(text, depth=self._depth + 1, known=self._known)
            inner.read()
            # `wc` prints numbers, and these name no file.
            if inner.found and inner.found[-1].program != "wc":
                for command in inner.found:
                    command.substituted = True
            self.found += inner.found

    def _redirect(self) -> None:
        stream = ""
        if self._word is not None and self._word.isdigit():
            stream, self._word = self._word, None
        self._end_word()
        if found := _FED.match(self._text, self._at):
            self._at = found.end()
            self._documents.append((self._command, re.sub(r"[\"'\\]", "", found[1])))
        elif self._text.startswith("<<<", self._at):
            self._at += 3
            self._next = self._command.fed
        elif found := _DUPLICATED.match(self._text, self._at):
            self._at = found.end()
        elif self._text[self._at + 1 : self._at + 2] == "(":
            self._at += 1
            self._descend(self._parenthesised())
        else:
            start = self._at
            self._at += 1
            while self._text[self._at : self._at + 1] in {">", "&", "|"}:
                self._at += 1
            self._sign = stream + self._text[start : self._at]
            writes = ">" in self._sign
            self._next = self._command.written_to if writes else self._command.read_from

    def _take_documents(self) -> None:
        for command, end in self._documents:
            lines = []
            while self._at < len(self._text):
                stop = self._text.find("\n", self._at)
                stop = len(self._text) if stop < 0 else stop
                line = self._text[self._at : stop]
                self._at = stop + 1
                if line.strip("\t") == end:
                    break
                lines.append(line)
            command.fed.append("\n".join(lines))
        self._documents = []

    def _skip_line(self) -> None:
        stop = self._text.find("\n", self._at)
        self._at = len(self._text) if stop < 0 else stop

    def _end_word(self) -> None:
        word, self._word = self._word, None
        if word is None:
            return
        if self._next is not None:
            self._next.append(word)
            if self._next is self._command.written_to:
                self._command.redirected.append(Redirected(word, self._sign))
            self._next = None
        elif self._command.words or not (given := _ASSIGNMENT.fullmatch(word)):
            if self._command.words or word not in _KEYWORDS:
                self._command.words.append(word)
        else:
            self._known[given[1]] = given[2]
            self._command.assigned.append(given[2])

    def _end_command(self) -> None:
        self._end_word()
        command, self._command, self._next = self._command, SimpleCommand(), None
        if command.words or command.fed or command.assigned or command.read_from or command.written_to:
            self.found.append(command)


def _unescaped(text: str) -> str:
    try:
        return codecs.decode(_ESCAPE.sub(_escape, text).encode("latin-1", "backslashreplace"), "unicode_escape")
    except UnicodeDecodeError:
        return text


def _escape(found: re.Match[str]) -> str:
    """Return an escape in Python's spelling. An unknown escape stays as it is."""
    if len(found[1]) > 1:
        return f"\\x{int(found[1], 8) & 0xFF:02x}"  # a shell keeps eight bits
    return found[0] if found[1] in _ESCAPED else f"\\{found[0]}"
