"""Finds secrets among the words of a command: after an option, in an assignment or a header."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from batonpass.credentials.secret_names import GONE, is_secret_name, is_secret_option

# Short options that take a secret, by program: the letter alone means nothing.
_SHORT_OPTIONS: Final[Mapping[str, str]] = {
    **dict.fromkeys(
        ("mysql", "mysqldump", "mysqladmin", "mysqlimport", "mariadb", "mariadb-dump", "mariadb-admin"), "p"
    ),
    **dict.fromkeys(("mongo", "mongosh", "mongodump", "mongorestore", "sshpass", "7z", "7za", "7zr"), "p"),
    **dict.fromkeys(("zip", "unzip", "sqlcmd", "bcp"), "P"),
    **dict.fromkeys(("ldapsearch", "ldapmodify", "ldapadd", "ldapdelete"), "w"),
    "redis-cli": "a",
    "docker login": "p",
    "podman login": "p",
    "helm login": "p",
}
PROGRAMS: Final = tuple(sorted({name.partition(" ")[0] for name in _SHORT_OPTIONS} | {"curl"}))
# The same options in the middle of any text: group 1 is everything up to the value, group 2 the value.
SHORT_OPTION: Final = "|".join(
    rf"""(?:(\b(?:{programs})\b[^\n;|&]*?\s-{letter}[ =]?)('[^']*'|"[^"]*"|[^\s"'\\]+))"""
    for letter in sorted({*_SHORT_OPTIONS.values()})
    for programs in ["|".join(name for name, given in sorted(_SHORT_OPTIONS.items()) if given == letter)]
)
# Options that take USER:SECRET; only the part after the colon is removed.
_OF_USERS: Final[Mapping[str, tuple[str, ...]]] = {"curl": ("-u", "-U", "--user", "--proxy-user")}

_ASSIGNMENT: Final = re.compile(r"(?s)([A-Za-z_][A-Za-z0-9_.-]*)=(.+)")
_HEADER: Final = re.compile(
    r"(?is)((?:-H)?(?:(?:proxy-)?authorization|(?:set-)?(cookie)|(?:x-)?(?:[a-z]+-)*(?:api-?key|auth-token|access-token)):\s*)"
    r"(\S.*)?"
)
_SCHEMES: Final = frozenset({"bearer", "basic", "token", "digest", "negotiate", "apikey"})
_OF_ANY_LENGTH: Final = frozenset({"bearer", "token", "apikey"})  # in prose these are not followed by a word
_SHORTEST_ENCODED: Final = 8
_LONG: Final = 16

# Words that follow an option in prose or in a usage text: they are not its value.
_SAID: Final = frozenset(
    """
    a all an and any are argument arguments as at be by can cannot could does flag flags for from has if in instead is
    it may means must need needs no not of on only option options or parameter parameters prompt requires set should so
    switch takes than that the then this to unless use uses was were when where which will with without would you
    PASSWORD PASSPHRASE TOKEN SECRET KEY STRING VALUE TEXT
    """.split()  # noqa: SIM905 - words are read as words
)
_STANDS_FOR: Final = re.compile(
    r"<[^<>]*>|\[[^\[\]]*\]|\$\{?[A-Z_][A-Z0-9_]*\}?|\$\([^()]*\)?|%[A-Z_]+%|\*+|\.{3}|…|-.*", re.DOTALL
)


def is_said(word: str) -> bool:
    """Return whether the word after an option is prose or a placeholder, not a value."""
    plain = word.strip(".,;:!?)`\"'")
    return plain in _SAID or any(_STANDS_FOR.fullmatch(spelled) is not None for spelled in (word, plain))


def without_secrets(words: Sequence[str], program: str | None = None, *, sentence: bool = False) -> list[str]:
    """Return the words of a command with secrets replaced.

    `program` is the program that gets the words, if it is not one of them. With `sentence`, the words may be prose:
    ordinary words are kept.
    """
    return list(_Words(program, sentence=sentence).clean(words))


class _Words:
    """State while reading a row of words: the program they belong to, and the expected kind of the next word."""

    def __init__(self, program: str | None, *, sentence: bool) -> None:
        self._sentence = sentence
        self._letter = ""
        self._users: tuple[str, ...] = ()
        self._before = ""
        self._awaits: str | None = None  # which kind of secret the next word is expected to be
        if program is not None:
            self._meet(program)

    def clean(self, words: Sequence[str]) -> Iterator[str]:
        for word in words:
            awaits, self._awaits = self._awaits, None
            if awaits is not None and not word.startswith("-"):
                yield self._taken(word, awaits)
            else:
                yield self._look(word)
            self._meet(word)

    def _taken(self, word: str, awaits: str) -> str:
        match awaits:
            case "header" if word.lower() in _SCHEMES:
                self._awaits = "secret" if word.lower() in _OF_ANY_LENGTH else "encoded"
                return word
            case "encoded" if self._sentence and len(word) < _SHORTEST_ENCODED:
                return word
            case "header" if self._sentence and len(word) < _LONG and not any(map(str.isdigit, word)):
                return word
            case "cookie" if "=" not in word:
                return word
            case "user":
                return _of_user(word)
            case _:
                return word if self._sentence and is_said(word) else GONE

    def _look(self, word: str) -> str:
        if (assigned := _ASSIGNMENT.fullmatch(word)) is not None and is_secret_name(assigned[1]):
            return f"{assigned[1]}={GONE}"
        if (header := _HEADER.fullmatch(word)) is not None:
            return self._header(header[1], header[3], is_cookie=header[2] is not None)
        return self._option(word) if word.startswith("-") else word

    def _option(self, word: str) -> str:
        name, equals, value = word.partition("=")
        if name in self._users:
            self._awaits = None if equals else "user"
            return f"{name}={_of_user(value)}" if equals else word
        # First, because `-pmy-secret` is `-p` with a value, not a long option.
        if self._letter and word.startswith(f"-{self._letter}") and not word.startswith("--"):
            self._awaits = "secret" if len(word) == 2 else None  # noqa: PLR2004 - as above
            return word if self._awaits else f"-{self._letter}{GONE}"
        if is_secret_option(name) and len(name) > 2:  # noqa: PLR2004 - one letter is a short option
            self._awaits = None if equals else "secret"
            return f"{name}={GONE}" if value else word
        if self._users and word[:2] in self._users:
            return f"{word[:2]}{_of_user(word[2:])}"
        return word

    def _header(self, name: str, value: str | None, *, is_cookie: bool) -> str:
        if value is None:
            self._awaits = "cookie" if is_cookie else "header"
            return name
        scheme, _, rest = value.partition(" ")
        return f"{name}{scheme} {GONE}" if rest and scheme.lower() in _SCHEMES else f"{name}{GONE}"

    def _meet(self, word: str) -> None:
        name = word.rpartition("/")[2].lower()
        letter = _SHORT_OPTIONS.get(name) or _SHORT_OPTIONS.get(f"{self._before} {name}")
        if letter is not None or name in _OF_USERS:
            self._letter, self._users = letter or "", _OF_USERS.get(name, ())
        self._before = name


def _of_user(value: str) -> str:
    name, colon, secret = value.partition(":")
    return f"{name}:{GONE}" if colon and secret else value
