"""A reader who sees only file names finds the room: names of modules, sizes of packages, one class for each name."""

import ast
from collections import Counter, defaultdict
from typing import Final

import pytest

from tests.house.tree import PACKAGE, ROOT, files, parsed

# What somebody asks who has never been here, and where it has to be. Who moves it answers for the next reader.
PLACES: Final = {
    "where does the policy refuse or hold a handoff?": "handoff/transfer/handoff_gates.py",
    "where is a task offered?": "handoff/transfer/offer.py",
    "where does the receiver validate a baton, and accept or decline?": "handoff/transfer/accept.py",
    "where is a result verified or refuted?": "handoff/transfer/verdict.py",
    "where is a failed handoff tried again?": "handoff/transfer/retry.py",
    "where is ended what a dead worker left behind?": "handoff/transfer/sweep.py",
    "where does the policy deny or hold a call?": "handoff/calls/call_gates.py",
    "where is it decided whether a call of a tainted run goes on?": "handoff/calls/taint_gate.py",
    "where is a call judged and recorded before it is made?": "handoff/calls/begin.py",
    "where is the outcome of a call recorded?": "handoff/calls/finish.py",
    "where does content from outside reach a run?": "handoff/taint/intake.py",
    "where is a held call approved or denied?": "handoff/approvals/decision.py",
    "where is it decided who may approve?": "handoff/approvals/entitlement.py",
    "where is counted what is used of a limit?": "handoff/grants/limit_use.py",
    "where is a grant revoked?": "handoff/grants/revocation.py",
    "where is a run resumed whose process is gone?": "handoff/sessions/resume.py",
    "where is it said which paths no call may touch?": "handoff/files/protected_paths.py",
    "where is found out which files a shell command touches?": "handoff/shell/command_reach.py",
    "where are secrets taken out of what is written down?": "credentials/redaction.py",
    "where does the verifier check grants?": "audit/verification/grant_check.py",
    "where is told who wrote the lines of a file?": "accounts/blame/file_blame.py",
    "where are all kinds of finding listed?": "review/catalogue.py",
    "where is a store opened by its URL?": "store/factory.py",
    "where does the MCP proxy decide about a call?": "adapters/mcp/proxy/call_decision.py",
    "where are the sessions of coding agents brought into a ledger?": "adapters/importer/session_import.py",
    "where is a whole job retold in prose, from what was recorded?": "review/story.py",
    "where is it worked out who may have caused a failure?": "review/suspects.py",
    "where does a person say that a finding may stay as it is?": "review/acknowledgement.py",
    "where are the numbers computed that say how like its former self an agent still is?": "drift/stability.py",
    "where is an agent told how earlier work like its own went?": "drift/receiver_memory.py",
    "where is it tested whether a difference between two weeks can be chance?": "drift/statistics.py",
    "where are the graphs drawn that people see in a browser?": "server/page/chart.py",
    "where is it listed what the web page shows under which address?": "server/page/view_table.py",
    "where does a request of an agent on another server become a handoff here?": "server/a2a/incoming_task.py",
    "where is work given to an agent that runs on somebody else's server, over A2A?": "adapters/a2a/remote_agent.py",
    "where is what was recorded written as numbers for Prometheus?": "telemetry/metric_text.py",
    "where is it decided which hosts our own outgoing requests may reach?": "dispatch/egress_rule.py",
    "where is the run found that code is working for, without passing it along?": "handoff/live/current_run.py",
    "where does a worker say that it is alive?": "dispatch/heartbeat.py",
    "where is it decided how often a handoff is tried by itself?": "handoff/transfer/attempt_limit.py",
    "where is a result reused, so that a tool is not called again?": "handoff/calls/result_cache.py",
    "where are messages to webhooks signed?": "dispatch/webhook_secret.py",
    "where is the file batonpass.toml read?": "policy/document.py",
    "where does a receiver ask before it begins, and where is it answered?": "handoff/transfer/question.py",
    "where is a duration such as 10m read?": "model/base/durations.py",
    "where is noted that calls went unrecorded while the store was away?": "handoff/runtime/record_gaps.py",
    "where are the transcripts of Claude Code read?": "adapters/claude_code/transcripts/transcript_reader.py",
    "where does the doctor look at the ledger?": "cli/doctor/ledger_checks.py",
    "where is noticed that a date in a task does not exist?": "guard/baton/prose/dates.py",
    "where is a token of an HTTP client looked up?": "server/access.py",
    "where is the same request over HTTP answered twice, and done once?": "server/idempotency.py",
    "where is it checked that a child's grant is no wider than its parent's?": "guard/grants/narrower_terms.py",
    "where does a worker lose its claim, on SQLite?": "store/sqlite/leases.py",
    "where are the appends of many threads put into one commit?": "store/sqlite/group_commit.py",
    "where is a prompt injection looked for in a text?": "scan/pattern_scanner.py",
    "where is worked out who is at the other end of an MCP connection?": "server/mcp/mcp_caller.py",
    "where does only one of two processes run a native agent for the same key?": "agents/key_lock.py",
    "where are the JSON fields of runs and handoffs made, for commands and HTTP?": "records/json_shapes.py",
    "where are the calls of a coding agent's session written down as receipts?": (
        "adapters/coders/session/session_writer.py"
    ),
    "where does the model of a native agent work until it answers?": "agents/framework/agent_loop.py",
    "where is a receipt turned into the bytes that are signed?": "wire/receipt_codec.py",
    "where is the chain read from the call that made something up to the human?": "accounts/blame/maker_chain.py",
    "where are lines blamed that only git notes explain?": "accounts/blame/note_blame.py",
    "where is it noticed that agents go in circles?": "review/kinds/repetition.py",
    "where is the exception of a tool turned into a code and words?": "handoff/runtime/faults.py",
    "where does `batonpass why` get its answer from?": "accounts/why/why.py",
    "where is a baton rendered as text for the model that receives it?": "briefing/render.py",
    "where does the verifier check a seal?": "audit/verification/seal_check.py",
    "where are words under a receipt deleted for good?": "ledger/erasure.py",
    "where does a worker take a waiting handoff and run it?": "dispatch/worker.py",
    "where is it decided that an agent has changed so much that an alarm is due?": "drift/alarms.py",
    "where are the last characters of an id turned into the id that is meant?": "audit/meant_ids.py",
    "where is it found out which commit repeats another one, after a rebase?": "attribution/git/rewrites.py",
    "where is it said which tools our MCP server offers to a model?": "server/mcp/tool_table.py",
    "where are the permitted steps of a handoff written down?": "model/base/lifecycle.py",
    "where do processes take turns to write to one SQLite file?": "store/sqlite/turnstile.py",
    "where is the smallest grant worked out that would have been enough?": "guard/grants/least_grant.py",
    "where is a decision's condition looked at when a session is resumed?": "handoff/sessions/condition_checks.py",
    "where does the verifier check that a receipt follows the one before it?": "audit/verification/chain_check.py",
    "where does a browser get told that something on its page has changed?": "server/page/live.py",
    "where is a grant in a TOML file read?": "model/grants/grant_toml.py",
    "where does PostgreSQL tell waiting workers that there is work?": "store/postgres/notifications.py",
    "where are the tables computed that receipts must add up to?": "store/derived_rows.py",
    "where is it found out which results no longer stand, and what was built on them?": "records/stale_results.py",
}

# They end in -ing, and are nouns.
NOUNS: Final = frozenset({"briefing", "finding", "keyring", "reasoning", "ruling", "signing", "testing", "warning"})
ADJECTIVES: Final = frozenset({"incoming", "pending"})
# From the twentieth file on, somebody makes a package of some of them.
MANY: Final = 20


@pytest.mark.parametrize("question", PLACES)
def test_a_reader_finds_the_place(question: str) -> None:
    """What is asked for is in the module that is called like it."""
    assert (PACKAGE / PLACES[question]).is_file()


def test_modules_have_nouns_as_names() -> None:
    """No module or package is called by a gerund, which says what somebody does and not what is there."""
    names = {part for path in files(PACKAGE, ".py") for part in path.relative_to(PACKAGE).with_suffix("").parts}
    words = {name: [word for word in name.split("_") if word.endswith("ing")] for name in names}

    assert {} == {name: found for name, found in words.items() if set(found) - NOUNS - ADJECTIVES}


def test_packages_are_small() -> None:
    """No package has twenty files side by side."""
    sizes = Counter(path.parent for path in files(PACKAGE, ".py"))

    assert {} == {folder.relative_to(ROOT).as_posix(): size for folder, size in sizes.items() if size >= MANY}


def test_a_public_class_has_its_name_to_itself() -> None:
    """Whoever searches for a class finds one."""
    homes = defaultdict(list)
    for name, tree in parsed(PACKAGE):
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes[node.name].append(name)

    assert {} == {name: found for name, found in homes.items() if len(found) > 1}
