"""`agenteval import`: recordings of other tools become executions in the history, their tests become suites."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Any

import click

from agenteval_tui.agents.permission import NotTrustedError
from agenteval_tui.cli import shell_completion
from agenteval_tui.cli.declared_options import declared
from agenteval_tui.cli.invocation import Invocation, allow_one_of, common_options, pass_invocation
from agenteval_tui.cli.output import Output
from agenteval_tui.cli.standard_input import NAME, STDIN, only_once, standard_input_file
from agenteval_tui.core import entry_points
from agenteval_tui.core.atomic_write import write_pieces
from agenteval_tui.core.entry_points import IMPORTERS
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.ids import short_id
from agenteval_tui.core.numbers import count
from agenteval_tui.formats.detect import detect, format_named
from agenteval_tui.formats.documents.listings import ImportedFile, SkippedParts
from agenteval_tui.formats.folder import folder_of
from agenteval_tui.formats.import_file import ImportOptions, ImportReport, import_file, open_source
from agenteval_tui.formats.importers.prompt_functions import fill_prompts, refuse_prompts
from agenteval_tui.formats.importers.suite_import import FoundTests, suite_text
from agenteval_tui.history.store import Store


@click.command("import")
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path, allow_dash=True))
@declared(ImportOptions, "format", shell_complete=shell_completion.choice(lambda: entry_points.names(IMPORTERS)))
@click.option(
    "--to",
    type=click.Path(path_type=Path, allow_dash=True),
    help="Write the file's tests to this new suite; - prints it.",
)
@declared(ImportOptions, "dry_run")
@declared(ImportOptions, "trust")
@declared(ImportOptions, "no_derived")
@click.option("--json", "as_json", is_flag=True, help="Print what was imported as one JSON list.")
@common_options
@pass_invocation
def command(invocation: Invocation, /, files: tuple[Path, ...], to: Path | None, as_json: bool, **values: Any) -> int:
    """Import FILES, or the files in a folder, of other tools; `-` is standard input.

    Runs: Inspect logs (.eval, .json), results of promptfoo, DeepEval, tau-bench, tau2-bench and BFCL, logs of OpenAI's
    evals; traces of LangSmith, Langfuse, openai-agents, MLflow, Braintrust and OpenTelemetry (OTLP JSON); sessions of
    Claude Code, Codex and Gemini CLI; ATIF, SWE-agent, OpenHands, Who&When; messages of OpenAI, Anthropic, LangChain,
    pydantic-ai, AutoGen and ShareGPT. Tests (with --to): promptfoo configurations, pydantic-evals and LangSmith
    datasets, tests of Power UI and Umbraco AI, the samples of Inspect logs, tables (.csv, .xlsx, .json).

    Each file becomes one execution; another tool's verdict is kept as a criterion result. Importing the same file
    again adds nothing. What can't be read is left out and counted, with the reason.

    What a file says was expected (tau-bench's actions, Inspect's targets, promptfoo's assertions) grades the runs too.
    These criteria are marked as derived: they say why a run failed, and never change how it ended.
    """
    allow_one_of("to", "as_json")
    only_once(*files)
    options = ImportOptions(**values)
    if STDIN not in files:
        return _import(invocation, files, to, options, as_json=as_json)
    with standard_input_file(invocation, "a recording") as read:
        try:
            named = tuple(read if file == STDIN else file for file in files)
            return _import(invocation, named, to, options, as_json=as_json)
        except AgentevalError as error:
            raise _with_stdin_name(error, read) from None


def _import(
    invocation: Invocation, files: tuple[Path, ...], to: Path | None, options: ImportOptions, *, as_json: bool
) -> int:
    paths, passed_over = _files(files)
    alone = len(paths) == 1 and not files[0].is_dir()
    if to is not None:
        if not alone:
            raise AgentevalError("--to takes the tests of one file", fix="name one file for each --to")
        return _tests(invocation, paths[0][0], to, options)
    done: list[ImportedFile] = []
    with invocation.store() as store:
        for number, (path, in_folder) in enumerate(paths, 1):
            try:
                done.append(_import_file(invocation, store, path, options, as_json=as_json))
            except KeyboardInterrupt:
                _report_interrupt(invocation, path, done, len(paths) - number)
                raise
            except AgentevalError as error:
                if alone:
                    raise
                done.append(ImportedFile(file=_name(path), error=str(error), dry_run=options.dry_run))
                if not as_json and not in_folder:
                    invocation.err.line(("agenteval: ", "bad"), error.sentence)
                elif not as_json:
                    invocation.out.line((f"{_name(path)}: not imported: ", "dim"), error.what)
    if as_json:
        invocation.out.json(done)
        for line in passed_over:
            invocation.err.line("passed over ", line)
    else:
        for line in passed_over:
            invocation.out.line(("passed over ", "warn"), line)
    # Of a folder nobody said that each file can be imported.
    named = {path for path, in_folder in paths if not in_folder}
    if not any(imported.error is None for imported in done):
        if any(path.is_dir() for path in files) and not as_json:
            raise AgentevalError("no file in it can be imported", where=", ".join(map(str, files)))
        return 2
    return 2 if any(imported.error is not None and Path(imported.file) in named for imported in done) else 0


def _files(paths: tuple[Path, ...]) -> tuple[list[tuple[Path, bool]], list[str]]:
    """(file, whether it was found in a folder): what was named, and of folders the files that may be in a format. Then
    what was passed over in the folders, a line each."""
    files: list[tuple[Path, bool]] = []
    passed_over: list[str] = []
    for path in paths:
        if not path.is_dir():
            files.append((path, False))
            continue
        folder = folder_of(path)
        files += [(file, True) for file in folder.files]
        passed_over += folder.skipped_lines()
    return files, passed_over


def _report_interrupt(invocation: Invocation, path: Path, done: list[ImportedFile], left: int) -> None:
    """Ctrl+C: what is in the history now, and how to go on."""
    imported_files = [imported for imported in done if imported.execution and not imported.already]
    err = invocation.err
    err.line(("agenteval: ", "bad"), f"stopped while reading {_name(path)}: nothing from this file was added")
    if imported_files:
        runs = sum(imported.added for imported in imported_files)
        err.line(f"kept: {count(len(imported_files), 'file')} with {count(runs, 'run')}")
    if left:
        err.line(f"not read: {count(left, 'more file')}")
    err.line("Run the same command to continue: imported files are not added again.")


def _import_file(
    invocation: Invocation, store: Store, path: Path, options: ImportOptions, *, as_json: bool
) -> ImportedFile:
    def progress(done: int, size: int) -> None:
        invocation.err.status(f"{path.name}: {min(100, 100 * done // max(size, 1))} %")

    try:
        report = import_file(path, store, options, progress)
    except AgentevalError as error:
        raise _with_stdin_name(error, path) from None
    finally:
        invocation.err.status("")
    if not as_json:
        _print(invocation.out, path, report, options.dry_run, invocation.db_option)
    return _document(path, report, options.dry_run)


def _name(path: Path) -> str:
    return NAME if path.name == NAME else str(path)


def _with_stdin_name(error: AgentevalError, path: Path) -> AgentevalError:
    """The error with standard input called by its name, and not by that of the file that holds it for a moment."""
    error.where = error.where.replace(str(path), _name(path))
    return error


def _tests(invocation: Invocation, path: Path, to: Path, options: ImportOptions) -> int:
    file_format = format_named(options.format) if options.format else None
    with open_source(path) as source:
        file_format = file_format or detect(source)
        if file_format.tests is None:
            raise AgentevalError(f"a file in the format {file_format.name} has runs but no tests", where=str(path))
        content = file_format.tests(source)
        if content.calls and not options.dry_run:
            # Without trust they stay calls, and `refuse_prompts` names them.
            with contextlib.suppress(NotTrustedError):
                fill_prompts(content, path.parent.resolve(), trusted=options.trust)
        refuse_prompts(content)
        if str(to) == "-" and content.module_text:
            content.note(f"{content.module}.py, with the assertions that are code, is written with --to FILE")
        elif content.names_files and to.parent.resolve() != path.parent.resolve():
            content.note(f"criteria call code that is found from the suite's folder: write it into {path.parent}")
        # From one stream into the other there is no folder that files could be named from.
        if str(to) != "-" or path.name != NAME:
            _point_to_datasets(content, path.parent, Path() if str(to) == "-" else to.parent)
        text = suite_text(content, source=path.name)
    out = invocation.err if str(to) == "-" else invocation.out
    if options.dry_run:
        out.line(f"{_name(path)}: {file_format.name}, {count(len(content.tests), 'test')}; nothing was written")
    elif str(to) == "-":
        invocation.out.line(text.rstrip("\n"))
    else:
        module = to.parent / f"{content.module}.py"
        _write_suite(to, text, module, content.module_text)
        out.line(f"{_name(path)}: {file_format.name}, {count(len(content.tests), 'test')} written to {to}")
        if content.module_text:
            out.line(f"  the assertions that are code are functions in {module}; they run with --trust")
    for reason in content.skipped:
        out.line(("  skipped ", "warn"), reason)
    for note in content.notes:
        out.line(("  note ", "warn"), note)
    _name_page(out, file_format.page_for(path))
    return 0


def _write_suite(to: Path, text: str, module: Path, module_text: str) -> None:
    """Both files or none. A module of an earlier import that says the same stays."""
    if not module_text or (module.is_file() and module.read_bytes() == module_text.encode("utf-8")):
        write_pieces(to, [text])
        return
    write_pieces(module, [module_text])
    try:
        write_pieces(to, [text])
    except AgentevalError:
        # It was new: an older one that says something else is not written over.
        module.unlink()
        raise


def _name_page(out: Output, page: str) -> None:
    if page:
        out.line((f"  agenteval docs {page}", "dim"), (" has their words beside ours", "dim"))


def _point_to_datasets(content: FoundTests, folder: Path, suite_folder: Path) -> None:
    """Name datasets from the folder of the suite; they were named from that of the imported file."""
    outside = set()
    for test in content.tests:
        if isinstance(dataset := test.get("dataset"), dict):
            place = (folder / dataset["file"]).resolve()
            dataset["file"] = os.path.relpath(place, suite_folder.resolve())
            if not place.is_relative_to(suite_folder.resolve()):
                outside.add(dataset["file"])
    for file in sorted(outside):
        content.note(f"{file} is outside the folder of the suite: copy it there, or trust the folder")


def _print(out: Output, path: Path, report: ImportReport, dry_run: bool, options: str) -> None:
    if report.already:
        out.line(
            f"{_name(path)}: imported before as execution {report.execution_id} with {count(report.read, 'run')}; ",
            "nothing was added",
        )
        return
    if dry_run:
        skipped = sum(count for _, count in report.skipped)
        would = count(report.read - skipped, "run")
        out.line(f"{_name(path)}: {report.format}, {count(report.read, 'run')} read; {would} would be added")
    else:
        out.line(
            f"{_name(path)}: {report.format}, {count(report.read, 'run')} read, {report.added:,} added",
            f" as execution {report.execution_id}",
        )
    for excluded in report.left_out():
        out.line(("  skipped ", "warn"), excluded)
    for note in report.notes:
        out.line(("  note ", "warn"), note)
    if report.cut_off:
        out.line(("  the file is cut off: ", "warn"), "everything before the cut can be read")
    if not dry_run:
        name = short_id(report.execution_id)
        out.line((f"  agenteval stats {name}{options}  agenteval show {name}{options}", "dim"))
        _name_page(out, format_named(report.format).page)


def _document(path: Path, report: ImportReport, dry_run: bool) -> ImportedFile:
    return ImportedFile(
        file=_name(path),
        format=report.format,
        execution=report.execution_id,
        read=report.read,
        added=report.added,
        already=report.already,
        cut_off=report.cut_off,
        skipped=tuple(
            SkippedParts(reason=reason, count=count, first=report.places.get(reason, ""))
            for reason, count in report.skipped
        ),
        notes=tuple(report.notes),
        dry_run=dry_run,
    )
