"""A message as it came: its parts as data for an agent, and the message as it is kept."""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from a2a.types.a2a_pb2 import Message, Part
from google.protobuf.json_format import MessageToDict

from batonpass.server.a2a.incoming_task import MessagePart

TEXT: Final = "request.txt"
ANSWER: Final = "answer-{}.txt"
LINK: Final = ".url"  # ends the name of a file that is only a link
_UNNAMED: Final = re.compile(r"[^\w.@+ -]+")
_LONGEST_NAME: Final = 100


def document_of(message: Message) -> str:
    """Return a message as JSON, to be kept."""
    return json.dumps(MessageToDict(message), ensure_ascii=False, sort_keys=True)


def fingerprint_of(message: Message) -> str:
    """Return a digest of a message's parts and context. Fields that others add on the way are left out."""
    said = [message.context_id, *(MessageToDict(part) for part in message.parts)]
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()


def _texts_of(message: Message) -> str:
    """Return the words of a message."""
    return "\n\n".join(part.text for part in message.parts if part.WhichOneof("content") == "text")


def parts_of(message: Message, text: str = TEXT) -> list[MessagePart]:
    """Return the parts of a message as data with names of their own: its words in one text, then everything else."""
    words = _texts_of(message)
    told = [MessagePart(name=text, body=words, media_type="text/plain")] if words else []
    return [*told, *_named_files(message, text)]


def _named_files(message: Message, text: str) -> list[MessagePart]:
    """Return the parts of a message that are no words. A link is kept as it is: nobody here follows it."""
    # No file takes the place of the request.
    taken = {TEXT, text}
    found = []
    for one in _files(message):
        name, number = one.name, 1
        while name in taken:
            number += 1
            name = f"{number}-{one.name}"
        taken.add(name)
        found.append(MessagePart(name=name, body=one.body, media_type=one.media_type))
    return found


def _files(message: Message) -> Iterator[MessagePart]:
    for number, part in enumerate(message.parts, 1):
        kind = part.WhichOneof("content")
        if kind == "data":
            body = json.dumps(MessageToDict(part.data), ensure_ascii=False)
            yield MessagePart(name=_named(part, f"data-{number}.json"), body=body, media_type="application/json")
        elif kind == "raw":
            media_type = part.media_type or "application/octet-stream"
            yield MessagePart(name=_named(part, f"file-{number}"), body=part.raw, media_type=media_type)
        elif kind == "url":
            yield MessagePart(name=_named(part, f"link-{number}") + LINK, body=part.url, media_type="text/plain")


def _named(part: Part, otherwise: str) -> str:
    # A name from outside is only a label here; it is shown to people and models, so it is kept plain.
    return _UNNAMED.sub("_", part.filename).strip(" .")[:_LONGEST_NAME] or otherwise


def extension_of(message: Message, uri: str) -> Mapping[str, Any] | None:
    """Return the value of an extension in a message; None if there is none."""
    found = MessageToDict(message.metadata).get(uri) if message.HasField("metadata") else None
    return found if isinstance(found, dict) else None
