"""A quick sign hides nothing: with it, the checks of prose find what their patterns alone would find."""

import re
from collections.abc import Iterable
from random import Random

import pytest
from msgspec.structs import replace

from batonpass.guard.baton import validation
from batonpass.guard.baton.known_facts import KnownFacts
from batonpass.guard.baton.placeholder import find_hollow, find_placeholders, is_placeholder
from batonpass.guard.baton.problem import Problem
from batonpass.guard.baton.prose import (
    announcements,
    contradictions,
    figures,
    prose_reader,
    quantities,
    references,
    sources,
)
from batonpass.guard.baton.prose.prose_reader import find_signs
from batonpass.guard.baton.prose.signs import LOCATED
from batonpass.guard.baton.text_memory import LONGEST_REMEMBERED, MOST_REMEMBERED, remembered
from batonpass.model.baton.baton import Baton
from batonpass.model.baton.items import Artifact, Claim, Decision, ItemValue, RejectedPath, Report, WorkItem
from tests.unit.guard.baton.labelled_batons import Labelled, read_set
from tests.unit.guard.batons import NOON, a_baton, a_brief

SETS = [name + number for number in ("", "-2", "-3", "-4", "-5", "-6") for name in ("planted", "clean")]
SET = [one for name in SETS for one in read_set(name)]

# For every alternative of a pattern a text that it finds, where it ends where it can.
FOUND = {
    "data-gap.attachment-missing": (
        "Use the attached log. | It is enclosed. | see the attachment | as my enclosures | I'm sending you a log"
        " | we are sending over a log | it is sent along | sending along the log | the appendix below | annex below"
        " | the table below | list below | text below | code below | figure below | the figures below | example below"
        " | against the checklist below. | the rules given below | with the credentials provided | the data supplied."
        " | see ticket | see the docs. | with this error message. | these numbers | sort the following list."
        " | SEE ATTACHED | \u017fent along | the l\u0131st below"
    ),
    "data-gap.promised": (
        "I'll send it | we will decide | the customer shall confirm | They do not know yet | doesn't have them yet"
        " | not yet decided | it has not been chosen | not agreed | It is still open | are still missing"
        " | to be announced | she has not answered | they did not reply | it is for Ana to decide | are up to "
        "the client to say"
        " | we should get it tomorrow | I hope to receive them next week | which we will get | it comes later | "
        "they arrive soon"
        " | she still has to choose | it will be sent separately | they will follow later | has not been fixed "
        "| have not yet been set"
        " | it is coming | they are on their way | is in preparation | is being written | are not ready yet | "
        "NOT DECIDED | i\u017f still open"
    ),
    "data-gap.blank": "for ____ now | for ??? | {{name}} | <insert a name> | [your name] | [NAME OF IT] | by "
    "TBD | XXX | on <date>"
    " | by [date] | [date and time] | Dear $FIRST_NAME | chapter XX | in this: {}",
    "data-gap.section-empty": "Features:\n\nProblems:\n | ## Inputs\n\n## Task",
    "data-gap.source-missing": "as shown in the plan | in line with our brand guide | Describe the screenshot",
    "referential-drift.unknown-thing": (
        "Fix the bug from yesterday. | Rename the function Jonas complained about. | Go on with step 4. | the "
        "usual for Ana"
        " | keep the agreed limit | what the previous agent found | the approach the team preferred | the other "
        "two languages"
    ),
    "referential-drift.pronoun": "Tell them she agreed. | Make it faster. | Merge both and stop. | Remind her of it.",
    "signal-corruption.duration": "from 20:00 to 06:00 as one shift of 12 hours",
    "signal-corruption.impossible": "latitude 147.1 | at 12:75 | probability of 2 | longitude 200",
    "signal-corruption.too-late": "Do it by 5 May. Use the data that they provide on 9 May.",
    "referential-drift.earlier-talk": (
        "as discussed | like we agreed | what was talked about | which I mentioned | that we spoke about"
        " | as decided earlier | as I said before | what we said earlier | we talked about it | listed above"
        " | shown before | quoted earlier | named previously | the above-mentioned | aforementioned"
        " | your previous mail | my last message | our earlier chat | the former note | results of the previous step"
        " | output of my last run | findings of your preceding phase | outcome of the earlier task | the other one"
        " | the latter | the former | the first option | the second approach | the third proposal | the last variant"
        " | same as last time | the same way as before | same as for the last | same as for the other"
        " | same as for the previous | worked last time | did so well last time | that function everywhere"
        " | that file again | that table too | that bug as well | step 3 of the plan | steps 2 to 4 of our checklist"
        " | the price we agreed on | the file that I mentioned | the date which they had settled on | like last "
        "year | as always"
        " | that the research phase selected | which the team has identified"
        " | AS DISCUSSED | as di\u017fcussed | as d\u0131scussed | as d\u0130scussed"
    ),
    "signal-corruption.date": (
        "on 31 June | on 31st of June | on June 31 | on Sept. 31st | on 2026-02-30 | On 30 FEB | on 30th "
        "February, 2026"
        " | on ٣١ June | on June ٣١ | on 31 September. | on september. 31"
    ),
    "signal-corruption.weekday": "Monday, 17 November 2026 | Monday the November 17th, 2026 | monday 2026-11-17",
    "signal-corruption.interval": "from 2026-03-05 to 2026-03-01 | 5 March 2026 – 1 March 2026 | starts on 5 "
    "March and ends on 1 March",
    "signal-corruption.sum": (
        "10 EUR and 20 EUR, in total 40 EUR | €10, €20, total €40 | $10 and $20: the sum is $40"
        " | 10 pounds and 20 pounds, altogether 40 pounds | 10 CHF, 20 CHF, TOTAL 40 CHF | £10 and £20 together £40"
        " | 10 USD, 20 USD, together 40 USD | 10 euros, 20 euros, total 40 euros | 10 GBP, 20 GBP, \u017fum 40 GBP"
        " | 10 dollars, 20 dollars, total 40 dollars | 10 €, 20 €, total 40 €"
    ),
    "signal-corruption.shares": "60% rent, 50% food | 70 % men and 40 % women | 118 % of all | price (60 %) and "
    "speed (50 %)",
    "signal-corruption.count": (
        "the three tests: one, two | 4 colours: red, blue | Five countries of the union: Malta, Cyprus"
        " | all twelve long and rather tedious items for this list: a1, b2 | THE TWO CITIES: Rome, Paris, Oslo"
        " | three te\u017fts: one, two | ٣ tests: one, two"
    ),
    "signal-corruption.encoding": "the cafÃ© | itâ€™s | 20Â°C | a \ufffd b",
    "signal-corruption.cut-off": 'He said "this is | call it "x',
    "data-gap.list-missing": "Do this: | do the following | Use tools such as\n",
}
EXAMPLES = [(check, text) for check, texts in FOUND.items() for text in texts.split(" | ")]


def _all_signs(text: str) -> int:
    # Where something is located is a fact about a text, and no sign of it.
    return (-1 & ~LOCATED) | (find_signs(text) & LOCATED)


def by_patterns(baton: Baton, known: KnownFacts) -> list[Problem]:
    """Return what the slow patterns find in prose, each tried on each text, with nothing remembered."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("find_signs", "find_told_signs", "_recall_signs", "_recall_told_signs"):
            patch.setattr(prose_reader, name, _all_signs)
        for module in (contradictions, quantities, references, sources):
            for name, found in vars(module).items():
                if hasattr(found, "__wrapped__"):
                    patch.setattr(module, name, found.__wrapped__)
        patch.setattr(announcements, "_LONGEST_END", 1 << 20)
        patch.setattr(references, "_LONGEST_UNFINISHED", 1 << 20)
        patch.setattr(references, "_may_number_two", lambda _: True)
        for name in ("_PLACES", "_DAMAGES"):
            patch.setattr(references, name, ("",))  # which is in every text
        patch.setattr(figures, "may_have_date", lambda _: True)
        patch.setattr(quantities, "_find_given", quantities._THE_COUNT.finditer)
        patch.setattr(quantities, "_find_any", quantities._A_COUNT.finditer)
        patch.setattr(sources, "_NAME", re.compile(""))
        patch.setattr(announcements, "find_placeholders", _placeholders_one_by_one)
        return list(validation.find_in_prose(baton, known, None))


def _placeholders_one_by_one(texts: Iterable[str], task: str) -> list[str]:
    return [text for text in texts if is_placeholder(text, task)]


def quickly(baton: Baton, known: KnownFacts) -> list[Problem]:
    """Return what is found where the signs are looked for first."""
    return list(validation.find_in_prose(baton, known, None))


def variants(one: Labelled) -> tuple[Baton, ...]:
    """Return a baton as it is, in capitals, and without what is carried, so that every check has its turn."""
    alone = replace(one.baton, items=())
    told = tuple(item for item in one.baton.items if not isinstance(item.value, Artifact | Decision))
    shouted = replace(one.baton, task=one.baton.task.upper(), items=told)
    return one.baton, alone, replace(one.baton, items=told), shouted


@pytest.mark.parametrize("name", SETS)
def test_the_labelled_set_is_read_alike_with_and_without_signs(name: str) -> None:
    """Each of its batons, however much of it is left and however it is spelled."""
    for one in read_set(name):
        for baton in variants(one):
            assert by_patterns(baton, one.known) == quickly(baton, one.known), one.id


SENTENCES = [
    sentence
    for one in SET
    for text in (one.baton.task, *one.baton.brief.criteria, one.baton.brief.rationale or "")
    for sentence in text.split(". ")
    if sentence.strip()
]


@pytest.mark.parametrize("seed", range(4))
def test_sentences_from_anywhere_are_read_alike_with_and_without_signs(seed: int) -> None:
    """A text is judged by all of its words: those of many tasks in one, beside items of other batons."""
    chance = Random(seed)  # the same cases each time
    texts = [*SENTENCES, *[text for _, text in EXAMPLES]]
    items = [item for one in SET for item in one.baton.items]
    differing = []
    for _ in range(30):
        task, why, criterion = (". ".join(chance.sample(texts, chance.randint(1, 4))) for _ in range(3))
        carried = tuple(chance.sample(items, chance.randint(0, 6)))
        baton = replace(a_baton(task=task, brief=a_brief(rationale=why, criteria=(criterion,))), items=carried)
        if by_patterns(baton, KnownFacts(now=NOON)) != quickly(baton, KnownFacts(now=NOON)):
            differing.append(baton)

    assert [] == differing


def test_which_digits_a_text_has_makes_no_difference_to_its_signs() -> None:
    """So tasks that differ only in their numbers are looked through once, and each is still compared by its figures."""
    others = str.maketrans("0123456789", "7894561230")
    texts = [text for text in (*SENTENCES, *[text for _, text in EXAMPLES]) if text.translate(others) != text]

    assert len(texts) > 100
    assert [find_signs(text) for text in texts] == [find_signs(text.translate(others)) for text in texts]


@pytest.mark.parametrize(("check", "text"), EXAMPLES)
def test_every_alternative_of_a_pattern_has_its_sign(check: str, text: str) -> None:
    """A pattern that gets one more alternative needs a sign that it cannot do without."""
    known = KnownFacts(now=NOON)
    for baton in (a_baton(task=text), a_baton(task="Mend it.", brief=a_brief(criteria=("It works.", text)))):
        slow = by_patterns(baton, known)
        if check != "data-gap.list-missing" or baton.task == text:  # which only a task can lack
            assert check in {problem.check for problem in slow}
        assert slow == quickly(baton, known)


@pytest.mark.parametrize(
    "around", ["ä {}", "{}\u2014 ", "\u201c{}\u201d", "x" * 3000 + " {}", "1 2 3: {}", "\u00a0{}\u00a0"]
)
def test_a_sign_is_seen_among_other_letters(around: str) -> None:
    """Words and figures are looked for in bytes, and other letters, spaces and marks have more than one."""
    known = KnownFacts(now=NOON)
    for _, text in EXAMPLES:
        baton = a_baton(task="Mend it.", brief=a_brief(rationale=around.format(text)))
        assert by_patterns(baton, known) == quickly(baton, known)


@pytest.mark.parametrize(
    "text", ["on 31 \u017fep", "on 30 apr\u0131l 2026", "\u017fix tests: one, two", "n\u0130ne rows in a.csv"]
)
def test_a_letter_that_only_looks_alike_is_no_month_and_no_number(text: str) -> None:
    """Patterns that ignore capitals take a long s for an s. Validation never raises, whatever a baton says."""
    baton, known = a_baton(task=text), KnownFacts(now=NOON)

    assert [] == [problem for problem in quickly(baton, known) if problem.check.startswith("signal-corruption")]
    assert by_patterns(baton, known) == quickly(baton, known)


@pytest.mark.parametrize(
    "shout", [" Keep the old totals ", "KEEP THE\u2003OLD TOTALS!", "\u201ckeep\u201d the old totals"]
)
def test_a_sentence_in_each_field_is_found_however_it_is_spelled(shout: str) -> None:
    """Capitals, spaces and marks around it make no other sentence of it; a mark inside does."""
    values: list[ItemValue] = [
        WorkItem("keep the old totals"),
        Decision("Keep the old totals."),
        Claim(shout),
        RejectedPath("Floats, by hand."),
    ]
    same = "\u201c" not in shout

    assert same == ({"completed", "decision", "claim"} <= find_hollow("Mend it.", a_brief(), values))


@pytest.mark.parametrize(
    "text",
    [
        "n/a",
        " " * 40 + "tbd" + " " * 40,
        "-" * 50,
        "<the name of whoever is responsible>",
        "  [what you have found out about it so far]",
        "xxxxx",
        "Mend the parser of dates.",
        "MEND the parser of dates, please!",
        "Dates: of the parser, mend" + "!" * 40,
        "Of course the parser was mended, and all of its dates are read.",
    ],
)
def test_a_placeholder_is_found_without_a_call_for_each_text(text: str) -> None:
    """Both ways, and where a part of a baton or of a report is hollow because of it."""
    task = "Mend the parser of dates."
    hollow = is_placeholder(text, task)

    assert [text] * hollow == find_placeholders([text], task)
    assert hollow == bool(find_hollow(task, a_brief(), [WorkItem(text), Decision("Half-even, as agreed.")]))
    assert hollow == bool(find_hollow(task, a_brief(), [Report(result=text)]))


def test_a_common_word_at_the_end_of_a_sentence_is_no_name_that_is_ruled_out() -> None:
    """A decision that ends with "never on the lines." forbids nobody to speak of lines."""
    decided = Decision("Totals are rounded on the sum and never on the lines.")
    named = Decision("Totals are never written to ledger.csv.")

    def checks(decision: Decision, task: str) -> list[str]:
        return [problem.check for problem in quickly(a_baton(decision, task=task), KnownFacts(now=NOON))]

    assert [] == checks(decided, "Read the lines as they are stored, and add them up.")
    assert ["signal-corruption.decided-against"] == checks(named, "Add the totals to ledger.csv today.")


def test_what_a_text_says_is_found_once_and_long_texts_are_not_kept() -> None:
    """What is carried along is read once in a process. What a process keeps of words has bounds."""
    asked = []

    @remembered
    def find(text: str) -> int:
        asked.append(len(text))
        return len(text)

    long = "x" * (LONGEST_REMEMBERED + 1)
    found = [find(text) for text in ("short", long, "short", long)]
    for number in range(MOST_REMEMBERED):
        find(f"text {number}")
    find("short")

    assert [5, len(long), 5, len(long)] == found
    assert [5, len(long), len(long)] == asked[:3]
    assert 5 == asked[-1]  # it had been forgotten for the sake of later ones
