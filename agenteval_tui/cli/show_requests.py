"""What a model was asked in a run, for `agenteval show --request`."""

from __future__ import annotations

from agenteval_tui.cli.output import Output
from agenteval_tui.core.display import one_line
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.formats.documents.model_request import requests_document
from agenteval_tui.history.records import RunRow
from agenteval_tui.history.store import Store
from agenteval_tui.transcripts.model_request import recorded_requests
from agenteval_tui.transcripts.request_changes import changes_since
from agenteval_tui.views.model_request import request_view, requests_view
from agenteval_tui.views.request_difference import request_difference_view


def show_requests(
    out: Output, store: Store, row: RunRow, which: str, *, only_changes: bool = False, as_json: bool = False
) -> int:
    """Print what the model was asked in a run: `which` is the number of a request, `last`, or `all`. `only_changes`:
    what is different since the request before, with its texts. Returns 0."""
    transcript = store.transcript(row.id)
    requests = recorded_requests(transcript.requests, row.id)
    numbers, calls = _chosen(len(requests.references), which, row), [call.name for call in transcript.tool_calls]
    if as_json:
        out.json(requests_document(row.id, requests, numbers))
    elif only_changes:
        for number in numbers:
            if number > numbers[0]:
                out.line()
            out.view(request_difference_view(requests, number, calls))
    elif which == "all":
        out.view(requests_view(requests, [changes_since(requests, number) for number in numbers], calls))
    else:
        out.view(request_view(requests, numbers[0], calls))
    return 0


def _chosen(total: int, which: str, row: RunRow) -> range:
    """The numbers of the requests that are meant, of `total`."""
    if not total:
        raise AgentevalError(
            "no model was asked in this run", where=f"run {row.id}", fix="look at it without --request"
        )
    if which == "all":
        return range(1, total + 1)
    number = total if which == "last" else int(which) if which.isascii() and which.isdigit() else 0
    if not 1 <= number <= total:
        raise AgentevalError(
            f"--request takes a number from 1 to {total}, `last` or `all`, not {one_line(which, 40)!r}",
            fix="`--request all` lists them",
        )
    return range(number, number + 1)
