"""What arrived is what was sent, and agrees with itself, or it is found out."""

from collections.abc import Iterable
from typing import Any

import pytest
from msgspec.structs import replace

from batonpass.guard.baton.corruption import (
    find_broken_enums,
    find_broken_ranges,
    find_broken_types,
    find_changed_bodies,
    find_changed_items,
    find_corruption,
    find_disagreeing_counts,
    find_missing_outputs,
    find_other_bytes,
    find_other_media_types,
    find_other_sizes,
    find_other_units,
    find_two_values,
    find_unverified_work,
)
from batonpass.guard.baton.problem import Problem
from batonpass.model.baton.items import Claim, Constraint, Decision, Report, WorkItem
from batonpass.model.policy.handoff_policy import HandoffPolicy
from tests.unit.guard.batons import DAY, LAX, LONG, NOON, OTHER, a_baton, an_artifact, content_id, kept, known

VERIFIED_ONLY = HandoffPolicy(verified_only=True)


def a_claim(value: str, key: str = "threshold", **changes: Any) -> Claim:  # noqa: ANN401
    return Claim("so it is", key=key, value=value, **changes)


def a_limit(operator: str, value: str, unit: str | None = None, key: str = "threshold") -> Constraint:
    return Constraint(key=key, operator=operator, value=value, unit=unit)


def found(problems: Iterable[Problem]) -> list[tuple[str, bool]]:
    return [(problem.check, problem.blocking) for problem in problems]


def test_a_sound_baton_has_no_corruption() -> None:
    """Bytes as declared, claims that agree and limits that hold are sound."""
    baton = a_baton(an_artifact(), a_claim("2"), a_claim("2.0"), a_limit("<=", "3"), Constraint("be careful"))

    assert [] == list(find_corruption(baton, known(kept()), VERIFIED_ONLY))


def test_an_item_that_was_changed_is_found() -> None:
    """Content that no longer has its digest is not what was recorded."""
    changed = known(contents={content_id(1): kept(digest_ok=False), content_id(2): kept()})
    problems = find_changed_items(a_baton(Decision("a"), Decision("b"), Decision("c")), changed)

    assert [f"Can you record the decision {content_id(1)} again?"] == [problem.question for problem in problems]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        pytest.param({}, [], id="intact bytes are sound"),
        pytest.param({"digest_ok": False}, ["signal-corruption.artifact-digest"], id="changed bytes are one problem"),
        pytest.param(
            {"digest_ok": False, "size": 9, "sha256": OTHER},
            ["signal-corruption.artifact-digest"],
            id="changed bytes are one problem even if everything differs",
        ),
        pytest.param(
            {"size": 9, "sha256": OTHER},
            ["signal-corruption.artifact-size"],
            id="another size is one problem, though the digest differs too",
        ),
        pytest.param({"sha256": OTHER}, ["signal-corruption.artifact-sha256"], id="other bytes of the same size"),
        pytest.param({"media_type": "text/csv"}, [], id="the declared media type"),
        pytest.param({"media_type": "application/octet-stream"}, [], id="bytes may be anything"),
        pytest.param({"media_type": "text/plain"}, [], id="text may be any text"),
        pytest.param({"media_type": "image/png"}, ["signal-corruption.media-type"], id="an image is no table"),
    ],
)
def test_an_artifact_that_is_not_as_declared_is_found(change: dict[str, Any], expected: list[str]) -> None:
    """Each difference between declared and kept is found, by one check."""
    baton, really = a_baton(an_artifact()), known(kept(**change))
    checks = (find_changed_bodies, find_other_sizes, find_other_bytes, find_other_media_types)

    assert expected == [problem.check for check in checks for problem in check(baton, really)]


def test_plain_text_is_no_image() -> None:
    """Text stored as text contradicts whoever declares something else than text."""
    baton = a_baton(an_artifact(media_type="image/png"))

    assert [("signal-corruption.media-type", True)] == found(
        find_other_media_types(baton, known(kept(media_type="text/plain"))),
    )


def test_bytes_that_cannot_be_reached_are_not_compared() -> None:
    """What is not there is a gap, and not corrupt."""
    assert [] == list(find_corruption(a_baton(an_artifact()), known(), LAX))


def test_another_unit_is_found_and_its_value_not_compared() -> None:
    """A claim in another unit than its constraint is asked about, whatever its value."""
    baton = a_baton(a_limit("<=", "3", "sigma"), a_claim("9", unit="percent"))
    problems = list(find_corruption(baton, known(), LAX))

    assert ['Is "threshold" = "9" in "sigma" or in "percent"?'] == [problem.question for problem in problems]
    assert ["signal-corruption.unit"] == [problem.check for problem in problems]


@pytest.mark.parametrize(
    ("wanted", "given"),
    [
        pytest.param("sigma", "sigma", id="the same unit"),
        pytest.param("sigma", None, id="a claim without a unit"),
        pytest.param(None, "sigma", id="a constraint without a unit"),
    ],
)
def test_a_unit_that_nobody_gave_is_no_other(wanted: str | None, given: str | None) -> None:
    """Only two units that were both given can differ."""
    assert [] == list(find_other_units(a_baton(a_limit("<=", "3", wanted), a_claim("2", unit=given))))


@pytest.mark.parametrize(
    ("limit", "value", "expected"),
    [
        pytest.param(a_limit("<=", "3"), "3.00", [], id="at most three, and it is three"),
        pytest.param(a_limit("<=", "3"), "3.01", ["signal-corruption.range"], id="at most three, and it is more"),
        pytest.param(
            a_limit("<=", "0.3"),
            "0.30000000000000001",
            ["signal-corruption.range"],
            id="more by less than a float could tell",
        ),
        pytest.param(a_limit("<", "3"), "three", ["signal-corruption.type"], id="a word is no number"),
        pytest.param(a_limit("<", "3"), "NaN", ["signal-corruption.type"], id="NaN is no number"),
        pytest.param(a_limit("in", "eur, usd"), "usd", [], id="one of the choices"),
        pytest.param(a_limit("in", "eur, usd"), "gbp", ["signal-corruption.enum"], id="none of the choices"),
        pytest.param(a_limit("not in", "eur, usd"), "eur", ["signal-corruption.enum"], id="a forbidden value"),
        pytest.param(a_limit("=", "3"), "4", ["signal-corruption.enum"], id="another value than the only one"),
        pytest.param(a_limit("<=", "3", key="other"), "9", [], id="a limit on something else"),
    ],
)
def test_a_claim_that_breaks_a_constraint_is_found(limit: Constraint, value: str, expected: list[str]) -> None:
    """A claim is held against the typed constraints of its key: type, range and enum."""
    checks = (find_broken_types, find_broken_ranges, find_broken_enums)

    assert expected == [problem.check for check in checks for problem in check(a_baton(limit, a_claim(value)))]


def test_an_inherited_constraint_that_stands_there_twice_is_one() -> None:
    """The same constraint, carried twice, does not make two problems of one."""
    baton = a_baton(a_limit("<=", "3"), a_limit("<=", "3"), a_claim("4"))

    assert ['Is "threshold" really "4", although it must be <= "3"?'] == [
        problem.question for problem in find_broken_ranges(baton)
    ]


@pytest.mark.parametrize(
    ("claims", "expected"),
    [
        pytest.param([a_claim("1"), a_claim("2")], [True], id="two values"),
        pytest.param([a_claim("1"), a_claim("1.00")], [], id="one value, written in two ways"),
        pytest.param([a_claim("1"), a_claim("2", key="other")], [], id="two keys"),
        pytest.param([a_claim("1"), a_claim("2"), a_claim("3")], [True], id="three values are one problem"),
        pytest.param([a_claim("1", unit="km"), a_claim("1", unit="m")], [True], id="one value in two units"),
        pytest.param([a_claim("1", unit="km"), a_claim("1")], [], id="a unit that one of them leaves out"),
        pytest.param(
            [a_claim("1", as_of=NOON), a_claim("2", as_of=NOON - DAY)],
            [False],
            id="values of two days are reported",
        ),
        pytest.param(
            [a_claim("1", as_of=NOON), a_claim("1", as_of=NOON - DAY), a_claim("2", as_of=NOON - DAY)],
            [True],
            id="two values of one day, among others",
        ),
        pytest.param([a_claim("1", as_of=NOON), a_claim("2")], [True], id="a value of today and one of any day"),
    ],
)
def test_two_values_for_one_key_are_found(claims: list[Claim], expected: list[bool]) -> None:
    """Claims that contradict each other block; what only has changed since does not."""
    assert [("signal-corruption.two-values", blocking) for blocking in expected] == found(
        find_two_values(a_baton(*claims)),
    )


def test_the_question_about_two_values_offers_both() -> None:
    """Whoever answers chooses one of two, with their units."""
    problems = find_two_values(a_baton(a_claim("1", unit="km"), a_claim("2", unit="km")))

    assert ['Which value of "threshold" is right: "1 km" or "2 km"?'] == [problem.question for problem in problems]


@pytest.mark.parametrize("key", ["count:invoices", "rows:invoices.csv"], ids="the key is {}".format)
def test_counts_that_disagree_are_found(key: str) -> None:
    """Two counts of one thing are found by their own check, and by no other."""
    baton = a_baton(a_claim("10", key), a_claim("11", key))

    assert [("signal-corruption.counts", True)] == found(find_disagreeing_counts(baton))
    assert [] == list(find_two_values(baton))
    assert [] == list(find_disagreeing_counts(a_baton(a_claim("10", key), a_claim("10", key), a_claim("1"))))


def test_unverified_work_is_found_where_the_policy_wants_it_verified() -> None:
    """Completed and unverified is a problem only for who relies on verified results."""
    done = WorkItem("Parsed all rows")
    verified = WorkItem("Parsed all rows", verified_by="reviewer", how="tests")

    assert [("signal-corruption.unverified", True)] == found(find_unverified_work(a_baton(done), VERIFIED_ONLY))
    assert [] == [*find_unverified_work(a_baton(verified), VERIFIED_ONLY), *find_unverified_work(a_baton(done), LAX)]


def test_what_a_report_says_is_done_is_its_readers_to_verify() -> None:
    """Work that a child reported is refused when it is handed on, not again by whoever gets it."""
    reported = a_baton(Report(result="done", completed=(WorkItem("Parsed all rows"),)))

    assert WorkItem("Parsed all rows") in reported.completed
    assert [] == found(find_unverified_work(reported, VERIFIED_ONLY))


def test_an_output_that_is_not_carried_is_reported() -> None:
    """Completed work that names outputs which do not come along is reported, once for each."""
    work = WorkItem("Parsed", outputs=("rows.csv", "rate", "lost.csv", "lost.csv"))
    baton = a_baton(work, an_artifact("rows.csv"), a_claim("1", key="rate"))

    assert [("signal-corruption.output-missing", False)] == found(find_missing_outputs(baton))
    assert [] == list(find_missing_outputs(a_baton(replace(work, outputs=()))))


def test_long_names_are_asked_about_in_25_words() -> None:
    """Names, values and units of 100,000 characters do not make a long question."""
    baton = a_baton(
        an_artifact(LONG, media_type="a" * 64 + "/" + "b" * 64),
        an_artifact(LONG, number=2),
        an_artifact(LONG, number=3),
        a_limit("not in", LONG, LONG, LONG),
        a_claim(LONG, LONG, unit=LONG),
        a_claim(LONG, LONG, unit="m"),
        WorkItem(LONG, outputs=(LONG + "!",)),
    )
    really = known(kept(media_type="image/png"), kept(size=2**53 - 1), kept(sha256=OTHER))
    problems = list(find_corruption(baton, really, VERIFIED_ONLY))

    assert [True] * 8 == [len(problem.question.split()) <= 25 for problem in problems]
