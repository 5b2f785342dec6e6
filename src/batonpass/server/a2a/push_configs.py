"""Where callers want to be told about their tasks. It outlives the server, in files beside the keys.

The token by which a caller recognises our messages is a secret, so nothing of it is in the ledger.
"""

import json
import os
import threading
import uuid
from contextlib import suppress
from pathlib import Path
from typing import Final

from a2a.types.a2a_pb2 import TaskPushNotificationConfig
from google.protobuf.json_format import MessageToDict, ParseDict, ParseError

from batonpass.dispatch.egress_rule import EgressRule
from batonpass.errors import EgressFailedError, InvalidValueError, NotFoundError

_FOLDER: Final = "a2a-push"
_MOST: Final = 16  # for one task
_LONGEST: Final = 2000


class PushConfigs:
    """Keeps the addresses for push notifications, by task. Safe to use from many threads."""

    def __init__(self, home: Path | None, rule: EgressRule) -> None:
        self._rule = rule
        self._folder = None if home is None else home / _FOLDER
        self._kept: dict[str, str] = {}  # without a home, they last as long as the server
        self._lock = threading.Lock()

    def require_usable(self, config: TaskPushNotificationConfig) -> None:
        """Raise `InvalidValueError` or `EgressError` unless it may be told there."""
        if not config.url.startswith(("https://", "http://")) or len(config.url) > _LONGEST:
            raise InvalidValueError("url", "is no address that a notification could be sent to")
        given = (config.id, config.token, config.authentication.scheme, config.authentication.credentials)
        if any(len(one) > _LONGEST or not one.isprintable() for one in given):
            raise InvalidValueError("push", f"has texts of at most {_LONGEST} printable characters")
        # It is judged again each time that it is dialled. Here the caller is told at once, unless nobody knows the name
        # just now: somebody may know it when there is something to tell.
        with suppress(EgressFailedError):
            self._rule.judge(config.url)

    def add(self, task: str, config: TaskPushNotificationConfig) -> TaskPushNotificationConfig:
        """Keep an address for a task, or replace the one with the same id. Raises `InvalidValueError`."""
        self.require_usable(config)
        told = TaskPushNotificationConfig()
        told.CopyFrom(config)
        told.task_id, told.id = task, config.id or str(uuid.uuid4())
        told.ClearField("tenant")
        with self._lock:
            known = {one.id: one for one in self._read(task)} | {told.id: told}
            if len(known) > _MOST:
                raise InvalidValueError("push", f"a task has at most {_MOST} addresses")
            self._write(task, list(known.values()))
        return told

    def get(self, task: str, config: str) -> TaskPushNotificationConfig:
        """Return one. Raises `NotFoundError`."""
        found = next((one for one in self.find(task) if one.id == config), None)
        if found is None:
            raise NotFoundError("push notification", config)
        return found

    def find(self, task: str) -> list[TaskPushNotificationConfig]:
        """Return all addresses for a task."""
        with self._lock:
            return self._read(task)

    def remove(self, task: str, config: str) -> None:
        """Forget one; if there is none, nothing happens."""
        with self._lock:
            self._write(task, [one for one in self._read(task) if one.id != config])

    def _read(self, task: str) -> list[TaskPushNotificationConfig]:
        try:
            text = self._kept.get(task, "[]") if self._folder is None else self._file(task).read_text("utf-8")
            return [
                ParseDict(one, TaskPushNotificationConfig(), ignore_unknown_fields=True) for one in json.loads(text)
            ]
        except (FileNotFoundError, ValueError, ParseError):
            return []

    def _write(self, task: str, configs: list[TaskPushNotificationConfig]) -> None:
        text = json.dumps([MessageToDict(one) for one in configs])
        if self._folder is None:
            self._kept[task] = text
            return
        file = self._file(task)
        if not configs:
            file.unlink(missing_ok=True)
            return
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        beside = file.with_suffix(".new")
        with os.fdopen(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as opened:
            opened.write(text)
            opened.flush()
            os.fsync(opened.fileno())
        beside.replace(file)

    def _file(self, task: str) -> Path:
        # A task's id is one of ours, found in the ledger before: letters, digits and an underscore.
        return (self._folder or Path()) / f"{task}.json"
