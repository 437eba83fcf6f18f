"""Relaxations with what they would do: flips over all stored runs, and people's labels."""

from __future__ import annotations

from agenteval_tui.analysis.workbench import Suggestion, Workbench, suggest
from agenteval_tui.grading.results import Outcome

SUITE = """\
name: Made
agent: demo
tests:
  - id: order
    name: Order
    prompt: Where is it?
    criteria:
      - name: Says shipped
        prototype_class: TextResponse
        config_uxon: |
          {
            // in small letters
            "metrics": [{"type": "TextMatch", "contains": "shipped"}]
          }
"""


def counted(bench: Workbench, criterion: int = 0) -> tuple[Suggestion, ...]:
    rounds = list(bench.relaxations(criterion))
    assert rounds
    return rounds[-1]


def test_what_each_would_flip(make_history, answered) -> None:
    texts = ["It has SHIPPED", "shipped", "Shipped today", "not yet", "UNSHIPPED"]
    _, store = make_history(SUITE, [("order", answered(text)) for text in texts])
    bench = Workbench.open(store, "EXECUTION-RUN-0000")
    assert bench.judge(0).outcome is Outcome.FAILED
    first = next(bench.relaxations(0))
    assert first
    assert all(one.impact is None and one.summary == "not counted yet" for one in first)
    suggestions = counted(bench)
    best = suggestions[0]
    assert best.relaxation.title == "ignore case: `contains_ignore_case`"
    assert best.counted
    assert best.impact is not None
    assert {run for run, _, _ in best.impact.flips} == {f"EXECUTION-RUN-000{n}" for n in (0, 2, 4)}
    assert best.summary == "3 of 5 runs flip to passed"
    assert "// in small letters" in best.relaxation.new_text
    narrow = next(one for one in suggestions if one.relaxation.title.startswith('also accept "SHIPPED"'))
    assert narrow.summary == "2 of 5 runs flip to passed"
    # Counting is of the stored runs: grading them by hand says the same.
    for one in suggestions:
        assert bench.judge(0, one.relaxation.new_text).outcome is Outcome.PASSED


def test_people_said_otherwise(make_history, answered) -> None:
    texts = ["It has SHIPPED", "shipped", "UNSHIPPED", "not yet"]
    _, store = make_history(SUITE, [("order", answered(text)) for text in texts])
    bench = Workbench.open(store, "EXECUTION-RUN-0000")
    for run, rating, own in ((0, 5, True), (2, 5, False), (2, 1, True), (3, 2, False)):
        of = bench.spec(0).hash if own else ""
        store.label(f"EXECUTION-RUN-000{run}", rating, criterion_hash=of).result()
    store.label("EXECUTION-RUN-0002", 5).result()  # of the run as a whole: that of the criterion counts
    best = counted(bench)[0]
    assert (best.labels.labelled, best.labels.now, best.labels.then) == (3, 2, 2)
    assert best.labels.against == ["EXECUTION-RUN-0002"]
    assert best.summary == "2 of 4 runs flip to passed; agrees with 2 of 3 labels (now 2)"


def test_of_an_edited_config_and_of_one_that_passes(make_history, answered) -> None:
    _, store = make_history(SUITE, [("order", answered("shipped"))])
    bench = Workbench.open(store, "EXECUTION-RUN-0000")
    assert list(bench.relaxations(0)) == [()]
    edited = '{"metrics": [{"type": "TextMatch", "contains": "SHIPPED"}]}'
    assert suggest(bench, 0, edited)[0].relaxation.new_text == edited.replace("contains", "contains_ignore_case")
