"""What of a session is not in the ledger yet: neither imported before, nor recorded while it happened."""

from collections.abc import Collection, Iterator

from msgspec import Struct

from batonpass.adapters.claude_code.conversation import Call, Conversation, Run
from batonpass.adapters.claude_code.records import Prompt, Task
from batonpass.adapters.claude_code.sources import NOTHING, Heard, key_of


class Newness(Struct, frozen=True):
    """Tells what is new."""

    known: Collection[str] = ()  # the keys of what was imported
    heard: Heard = NOTHING

    def is_anything_new(self, conversation: Conversation) -> bool:
        """Return whether a session says anything that is not recorded yet."""
        return any(self._find(conversation))

    def is_new(self, step: Prompt | Task | Call) -> bool:
        """Return whether something that was said or done is not recorded yet."""
        if isinstance(step, Prompt):
            return step.uuid not in self.known and not self._is_heard(step)
        if not isinstance(step, Call):
            return step.uuid not in self.known
        if step.children:
            return any(map(self.is_new_run, step.children))
        return step.use.tool_use_id not in self.heard.calls and key_of(step.result or step.use) not in self.known

    def is_new_run(self, run: Run) -> bool:
        """Return whether anything of a sub-agent is not recorded yet."""
        if run.agent in self.heard.agents:
            return any(map(self.is_new, run.calls))
        if run.report is not None and run.report.uuid not in self.known:
            return True
        return any(map(self.is_new, run.steps)) or end_key(run) not in self.known

    def _find(self, conversation: Conversation) -> Iterator[bool]:
        for run in conversation.runs:
            yield self.is_new_run(run) if run.agent is not None else any(map(self.is_new, run.steps))

    def _is_heard(self, prompt: Prompt) -> bool:
        if prompt.prompt_id is None:
            return prompt.text in self.heard.words
        return prompt.prompt_id in self.heard.prompts


def end_key(run: Run) -> str:
    """Return what names the end of a run."""
    return run.report.uuid if run.report is not None else f"end/{run.agent}"
