"""The names under which receipts refer to their contents. They are in signed bytes, so none is ever renamed."""

from typing import Final

# Contents of runs and handoffs.
INTENT: Final = "intent"  # the human's own words
KEY: Final = "key"  # of a root run: the caller's word for it, under an id that only one run can have
TASK: Final = "task"
BRIEF: Final = "brief"
REPORT: Final = "report"
POLICY: Final = "policy"  # the demands of the sender of an offer
QUESTION: Final = "question"
ANSWER: Final = "answer"
REASON: Final = "reason"
EVIDENCE: Final = "evidence"
COMMAND: Final = "command"
ITEM: Final = "item"
BODY: Final = "body"
PATH: Final = "path"
UNTOUCHED: Final = "untouched"  # targets that a run was expected to change, and did not
UNRECORDED: Final = "unrecorded"  # files that a run says it made, without a recorded effect
MESSAGES: Final = "messages"  # the messages of a model, as a checkpoint keeps them
CONFIG: Final = "config"  # model, prompt and tools of the agent that accepted, as it says
SOURCE: Final = "source"  # the origin of a receipt that was imported, not recorded during the act

# Contents of calls.
ARGUMENTS: Final = "arguments"
RESULT: Final = "result"
TARGET: Final = "target"
MESSAGE: Final = "message"  # error message of a failed call
CREDENTIAL: Final = "credential"  # name of the credential that the call uses, and its identity
STANDING: Final = "standing"  # of a held call: the file that it would replace, as it was
SCOPE: Final = "scope"  # action and resource of the call, as its grant sees them
PERMIT: Final = "permit"  # the permit of each hop that allows the call, the last hop first
CHANGE: Final = "change."  # prefix, followed by a number: one changed file
EFFECT: Final = "effect."  # prefix, followed by a number: one other effect

# Contents of grants.
TERMS: Final = "terms"
CERTIFICATE: Final = "certificate"
USE: Final = "use"
URL: Final = "url"  # of a webhook; parts of it are often a secret
TASK_KIND: Final = "task_kind"  # of an alarm: the kind of task at which the agent changed
CEILING: Final = "ceiling"  # of a token: the permits of runs that are started with it
