"""Names of suites where several stand together: two files may give theirs the same name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from agenteval_tui.core.groups import grouped


def unique_names(suites: Iterable[tuple[str, str]]) -> dict[tuple[str, str], str]:
    """For each suite (its key, its name) its name; with the end of its path if another suite has that name."""
    keys = grouped((name, key) for key, name in dict.fromkeys(suites))
    ends = path_ends({key for same_name in keys.values() for key in same_name})
    return {
        (key, name): name if len(same_name) == 1 else f"{name} ({ends[key]})"
        for name, same_name in keys.items()
        for key in same_name
    }


def path_ends(keys: Iterable[str]) -> dict[str, str]:
    """For each suite's key the end of it, from a folder on, that no other has."""
    parts = {key: key.split("/") for key in keys}
    ends = Counter("/".join(each[-n:]) for each in parts.values() for n in range(1, len(each) + 1))
    return {
        key: next((end for n in range(1, len(each)) if ends[end := "/".join(each[-n:])] == 1), key)
        for key, each in parts.items()
    }
