"""Ids sort by time; equal values have equal hashes."""

from __future__ import annotations

import os
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agenteval_tui.core.ids import canonical_json, content_hash, free_name, new_id

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
)


def test_ids_are_unique_and_increasing_also_from_many_threads() -> None:
    ids = [new_id() for _ in range(500)]
    assert ids == sorted(set(ids))
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda _: new_id(), range(2000)))
    assert len(set(made)) == 2000
    assert all(len(one) == 26 for one in made)


@pytest.mark.parametrize("clock", ["goes", "stepped back"])
def test_a_child_process_makes_other_ids(clock: str, monkeypatch: pytest.MonkeyPatch) -> None:
    new_id()
    if clock == "stepped back":
        monkeypatch.setattr(time, "time_ns", lambda: 1_000_000)
    told, tell = os.pipe()
    child = os.fork()
    if not child:
        os.write(tell, "".join(new_id()[10:] for _ in range(40)).encode())
        os._exit(0)
    ours = {new_id()[10:] for _ in range(40)}
    os.waitpid(child, 0)
    said = os.read(told, 40 * 16).decode()
    assert len(said) == 40 * 16
    assert ours.isdisjoint(said[at : at + 16] for at in range(0, len(said), 16))


@given(st.dictionaries(st.text(max_size=5), JSON, max_size=6))
def test_the_order_of_keys_does_not_matter(value: dict[str, object]) -> None:
    turned = dict(reversed(list(value.items())))
    assert canonical_json(turned) == canonical_json(value)
    assert content_hash(turned) == content_hash(value)


def test_a_lone_surrogate_has_a_hash_too() -> None:
    assert content_hash("\ud800") != content_hash("\ud801")


def test_the_first_name_that_is_free_has_the_lowest_number() -> None:
    assert free_name("report", {"report-2"}.__contains__) == "report"
    assert free_name("report", {"report", "report-2", "report-4"}.__contains__) == "report-3"
    assert free_name("agent", {"agent"}.__contains__, "#") == "agent#2"
