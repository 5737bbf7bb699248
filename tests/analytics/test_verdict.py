"""Verdicts, reasons, canonical bytes, and the phase tree."""

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from analytics.canonical import canonical_bytes
from analytics.reasons import Code
from analytics.tree import PhaseNode, phase_tree
from analytics.verdict import ORDER, Finding, Reason, conclude, worst

DECIDING = Path(__file__).resolve().parents[2] / "docs" / "deciding.md"


def test_nothing_to_judge_is_hold() -> None:
    """An empty set of verdicts, and a finding without a reason, never pass."""
    assert worst([]) == "hold"
    assert Finding("empty", (), ()).verdict == "hold"


@given(st.lists(st.sampled_from(ORDER), min_size=1))
def test_the_worst_verdict_counts(verdicts: list[str]) -> None:
    """One reject rejects, one hold holds, and only all passes pass."""
    expected = "reject" if "reject" in verdicts else "hold" if "hold" in verdicts else "pass"
    assert worst(verdicts) == expected  # type: ignore[arg-type] # drawn from ORDER


def test_a_finding_names_the_worst_reason_first_and_each_once() -> None:
    """A reader sees the deciding reason before the others."""
    hold, reject = Reason(Code.LEG_MISSING, "no exit"), Reason(Code.BOUND_EXCEEDED, "too long")
    finding = conclude("measured", [hold, reject, hold], met="all", evidence=["s/10", "s/9", "s/10"])
    assert finding.reasons == (reject, hold)
    assert finding.evidence == ("s/9", "s/10")


def test_every_reason_code_is_documented() -> None:
    """docs/deciding.md names each code with its meaning and its effect."""
    text = DECIDING.read_text(encoding="utf-8")
    for code in Code:
        assert f"| `{code.value}` | {code.effect} | {code.meaning} |" in text


def test_numbers_that_json_cannot_hold_are_written_as_text() -> None:
    """A digest is never refused for a large integer or a NaN."""
    value = {"b": 2**63, "a": [float("nan"), float("inf"), 1, True, None]}
    assert canonical_bytes(value) == b'{"a":["nan","inf",1,true,null],"b":"9223372036854775808"}'


def row(phase_id: int, parent_id: int | None) -> dict[str, object]:
    """Return a row of the phases view."""
    return {
        "phase_id": phase_id, "parent_id": parent_id, "name": f"phase {phase_id}", "status": "finished",
        "duration_ms": 1.0, "longest_gap_ms": None, "steps_seen": 1, "steps_total": 2,
    }  # fmt: skip


def test_phases_nest_in_the_order_in_which_they_began() -> None:
    """Whatever the order of the rows, children stand under their parents by phase id."""
    [root] = phase_tree([row(4, 1), row(1, None), row(3, 2), row(2, 1)])
    assert [child.phase_id for child in root.children] == [2, 4]
    assert [child.phase_id for child in root.children[0].children] == [3]


@given(st.lists(st.tuples(st.integers(1, 9), st.none() | st.integers(1, 9)), unique_by=lambda pair: pair[0]))
def test_a_tree_shows_every_phase_once(pairs: list[tuple[int, int | None]]) -> None:
    """Orphans and circles of a damaged history stand as roots: nothing is hidden."""

    def count(nodes: tuple[PhaseNode, ...]) -> int:
        return len(nodes) + sum(count(node.children) for node in nodes)

    assert count(phase_tree([row(phase_id, parent) for phase_id, parent in pairs])) == len(pairs)
