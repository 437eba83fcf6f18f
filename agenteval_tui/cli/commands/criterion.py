"""`agenteval criterion`: the versions of a criterion, their difference, what each would say, and restoring one."""

from __future__ import annotations

import click

from agenteval_tui.analysis.criterion_names import criterion_place
from agenteval_tui.analysis.criterion_versions import (
    Versions,
    compare_versions,
    load,
    own_spec,
    restore,
    stored_spec,
    text_difference,
    versions,
)
from agenteval_tui.cli import shell_completion
from agenteval_tui.cli.invocation import Invocation, allow_one_of, common_options, pass_invocation
from agenteval_tui.cli.output import Output
from agenteval_tui.core.display import one_line
from agenteval_tui.core.document import extended
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.ids import short_hash
from agenteval_tui.core.numbers import count, iso, moment
from agenteval_tui.formats.documents.comparison import CriterionVersion, CriterionVersions, comparison_document
from agenteval_tui.history.criterion_versions import criteria_of_test, tests_named
from agenteval_tui.history.references import is_file
from agenteval_tui.history.store import Store
from agenteval_tui.views.comparison import comparison_view
from agenteval_tui.views.model import Difference, Paragraph, text


@click.command("criterion")
@click.argument("reference", metavar="TEST/CRITERION", shell_complete=shell_completion.tests)
@click.option("--suite", metavar="FILE", help="The suite's file, if several suites have this test.")
@click.option(
    "--diff",
    nargs=2,
    metavar="A B",
    help="Show how version B differs from A; `current` is the one in the suite's file.",
)
@click.option(
    "--compare",
    "compared",
    nargs=2,
    metavar="A B",
    help="Compare the verdicts of both versions on the test's stored runs.",
)
@click.option(
    "--restore", metavar="V", help="Write this version into the suite's file; the rest of the file stays as it is."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document (the list, or the comparison).")
@common_options
@pass_invocation
def command(
    invocation: Invocation,
    reference: str,
    suite: str | None,
    diff: tuple[str, str] | None,
    compared: tuple[str, str] | None,
    restore: str | None,
    as_json: bool,
) -> int:
    """List the versions of a criterion that have graded runs, newest first. Each version is kept by its hash.

    CRITERION is its name, the start of its name, or its number from 1. Name a version by the start of its hash, by its
    number in the list, or as `current`.
    """
    allow_one_of("diff", "compared", "restore")
    if as_json and (diff or restore):
        raise AgentevalError("--json is for the list and for --compare", fix="leave it out")
    with invocation.store(to_look=True) as store:
        versions = _find(store, reference, suite)
        if diff is not None:
            return _diff(invocation.out, versions, *diff)
        if compared is not None:
            return _compare(invocation.out, store, versions, compared, as_json=as_json)
        if restore is not None:
            return _restore(invocation.out, store, versions, restore)
    if as_json:
        invocation.out.json(_document(versions))
    else:
        _list(invocation.out, versions)
    return 0


def _find(store: Store, reference: str, suite: str | None) -> Versions:
    file, colons, rest = reference.partition("::")
    if not colons:
        file, rest = "", reference
    test, slash, criterion = rest.partition("/")
    named = store.read(lambda connection: tests_named(connection, test))
    tests = [entry for entry in named if all(is_file(entry[0], place) for place in (suite, file) if place)]
    if not tests:
        raise AgentevalError(
            f"there is no test {test!r} with runs in the history", fix="`agenteval history --runs` lists them"
        )
    if len(tests) > 1:
        files = ", ".join(test[0] for test in tests)
        raise AgentevalError(
            f"several suites have a test {test!r}: {files}", fix="name it as FILE::ID, or give --suite FILE"
        )
    key, _, test_id = tests[0]
    names = store.read(lambda connection: criteria_of_test(connection, key, test_id))
    listed = ", ".join(f"{number} {name}" for number, name in enumerate(names, 1)) or "it has none"
    # Asked last: the names to choose from are those of the test that was meant.
    if not slash or not criterion:
        raise AgentevalError(f"name a criterion of {test_id}", fix=f"{test_id}/NAME, one of: {listed}")
    return versions(store, key, test_id, names[criterion_place(names, criterion, f"test {test_id}")])


def _list(out: Output, versions: Versions) -> None:
    out.line(
        (f"{one_line(versions.test_id)} / {one_line(versions.criterion)}", "bold"), (f"  {versions.suite_key}", "dim")
    )
    for number, entry in enumerate(versions.versions, 1):
        now = "  in the file now" if entry.hash == versions.current else ""
        passed = f"{entry.passed}/{entry.passed + entry.failed} passed"
        out.line(
            f"{number:>3}  {short_hash(entry.hash)}  {count(entry.runs, 'run'):>9}  {passed}",
            (f"  {moment(entry.first_ms)} to {moment(entry.last_ms)}", "dim"),
            (now, "good"),
        )
    if versions.was_named:
        out.line((f"renamed: it was {one_line(versions.was_named)} before", "dim"))
    if not versions.current:
        out.line(("the criterion is no longer in the suite's file", "warn"))
    elif all(version.hash != versions.current for version in versions.versions):
        out.line((f"the one in the file ({short_hash(versions.current)}) has not graded a run yet", "dim"))


def _diff(out: Output, versions: Versions, a: str, b: str) -> int:
    version, other = versions.named(a), versions.named(b)
    lines = text_difference(
        versions.texts[version.hash], versions.texts[other.hash], (short_hash(version.hash), short_hash(other.hash))
    )
    out.view((Difference(tuple(lines)),) if lines else (Paragraph(text("both are the same")),))
    return 0


def _compare(out: Output, store: Store, versions: Versions, names: tuple[str, str], *, as_json: bool) -> int:
    specs = [stored_spec(store, versions.named(name).hash) for name in names]
    comparison = compare_versions(store, versions.suite_key, versions.test_id, specs[0], specs[1], versions.criterion)
    if as_json:
        out.json(comparison_document(comparison))
    else:
        out.view(comparison_view(comparison, everything=True))
    return 0


def _restore(out: Output, store: Store, versions: Versions, name: str) -> int:
    version = versions.named(name)
    if version.hash == versions.current:
        out.line("this version is already in the file")
        return 0
    own = own_spec(store, versions.suite_key, versions.test_id, versions.criterion, version.hash)
    loaded = restore(load(versions.suite_key), versions.test_id, versions.criterion, own)
    where = f"{loaded.path}:{loaded.line_of(versions.test_id)}"
    out.line(("restored ", "good"), f"{one_line(versions.criterion)} {short_hash(version.hash)} in {where}")
    return 0


def _document(versions: Versions) -> CriterionVersions:
    return extended(
        CriterionVersions,
        versions,
        test=versions.test_id,
        versions=tuple(
            extended(
                CriterionVersion,
                version,
                first=iso(version.first_ms),
                last=iso(version.last_ms),
                current=version.hash == versions.current,
                text=versions.texts[version.hash],
            )
            for version in versions.versions
        ),
    )
