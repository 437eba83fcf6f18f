"""How often each kind of evidence named the right step: (right, of how many), by the set of failures.

Made by `python -m benchmarks.accuracy.blame DATA --write`, as are the tables of docs/blame.md. A failure
counts for the kind of its strongest evidence.
"""

from __future__ import annotations

MEASUREMENTS: dict[str, dict[str, tuple[int, int]]] = {
    "out_of_sight": {"planted losses": (21, 21)},
    "parted": {"simulated repetitions": (50, 53)},
    "few_parted": {"simulated repetitions": (58, 90)},
    "request_lost": {"algorithm-generated (Who&When)": (6, 6)},
    "out_of_order": {"tau-bench retail (AgentRx)": (2, 3)},
    "chosen_by_user": {"tau-bench retail (AgentRx)": (2, 2)},
    "forbidden_call": {"tau-bench retail (AgentRx)": (1, 1)},
    "unexpected_write": {"tau-bench retail (AgentRx)": (1, 4)},
    "execution_failed": {"algorithm-generated (Who&When)": (16, 30)},
    "never_called": {"tau-bench retail (AgentRx)": (0, 2)},
    "other_value": {"tau-bench retail (AgentRx)": (3, 3)},
    "sight_changed": {"planted losses": (1, 1)},
    "broke_off": {"Magentic-One (AgentRx)": (2, 5), "hand-crafted (Who&When)": (3, 5)},
    "first_result": {
        "Magentic-One (AgentRx)": (1, 9),
        "hand-crafted (Who&When)": (5, 24),
        "algorithm-generated (Who&When)": (10, 27),
    },
    "answer": {"planted losses": (0, 8)},
}
