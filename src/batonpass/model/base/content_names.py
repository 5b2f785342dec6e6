"""The names under which receipts refer to their contents. They stand in signed bytes, so none is ever renamed."""

from typing import Final

# Of a run and its handoffs.
INTENT: Final = "intent"  # what the human said
TASK: Final = "task"
BRIEF: Final = "brief"
REPORT: Final = "report"
QUESTION: Final = "question"
ANSWER: Final = "answer"
REASON: Final = "reason"
EVIDENCE: Final = "evidence"
COMMAND: Final = "command"
ITEM: Final = "item"
BODY: Final = "body"
PATH: Final = "path"
MESSAGES: Final = "messages"  # a model's messages, as a checkpoint keeps them
SOURCE: Final = "source"  # where a receipt comes from that the act itself did not record

# Of a call.
ARGUMENTS: Final = "arguments"
RESULT: Final = "result"
TARGET: Final = "target"
MESSAGE: Final = "message"  # how something went wrong, in words
CREDENTIAL: Final = "credential"  # with whose secret it acts
SCOPE: Final = "scope"  # what it does to what, as its grant sees it
PERMIT: Final = "permit"  # which permit of each hop lets it, the last first
CHANGE: Final = "change."  # a file that it changed, by number
EFFECT: Final = "effect."  # what else it changed, by number

# Of a grant.
TERMS: Final = "terms"
CERTIFICATE: Final = "certificate"
USE: Final = "use"
