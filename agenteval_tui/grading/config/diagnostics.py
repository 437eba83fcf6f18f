"""Everything that can be said of a config before a transcript is graded with it, with places and fixes."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from agenteval_tui.core.did_you_mean import closest
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.grading import registry
from agenteval_tui.grading.config.errors import in_words_of, path_of
from agenteval_tui.grading.config.model import NullError
from agenteval_tui.grading.config.schema import config_schema
from agenteval_tui.grading.config_variables import templates_of
from agenteval_tui.grading.metrics.judge_question import elsewhere
from agenteval_tui.grading.metrics.matchers import MatcherError
from agenteval_tui.grading.metrics.metric import ConfigWarning
from agenteval_tui.grading.placeholders import placeholders_in
from agenteval_tui.grading.regex_search import PatternError
from agenteval_tui.grading.spec import metrics_in
from agenteval_tui.uxon.check import check
from agenteval_tui.uxon.diagnostics import Diagnostic, replace_fix
from agenteval_tui.uxon.parse import parse
from agenteval_tui.uxon.tree import Document, Node

if TYPE_CHECKING:
    from pydantic import BaseModel


UNWRITTEN = "…"
"""The text of templates of criteria, where a person writes what is checked."""
# What `uxon.check` says already, with better places than the model's errors have.
_SAID_BY_CHECK = ("extra_forbidden", "missing", "null", "greater_than_equal", "less_than_equal", "literal_error")


def diagnose(
    config: str | Document, prototype_class: str, variables: Collection[str] | None = None
) -> tuple[Diagnostic, ...]:
    """All diagnostics of a config text, in the order of the text; never raises.

    Syntax, names, exact types, regular expressions (`uxon.check`), then what only grading knows: matchers,
    placeholders, contradictions, what cannot fail and what checks nothing. `variables`: the names that `{{...}}`
    may use; None: any.
    """
    document = parse(config) if isinstance(config, str) else config
    try:
        diagnostics = list(check(document, config_schema(prototype_class)))
        model = registry.prototype(prototype_class)
    except AgentevalError as unknown:
        where = Diagnostic("error", "unknown-prototype", str(unknown), 0, min(1, len(document.text)))
        return (*document.diagnostics, where)
    diagnostics.extend(_placeholders(document, variables))
    if isinstance(document.value, dict) and not document.broken:
        diagnostics.extend(_meaning(document, model))
    return tuple(sorted(dict.fromkeys(diagnostics), key=lambda diagnostic: (diagnostic.start, diagnostic.end)))


def _meaning(document: Document, model: Any) -> Iterator[Diagnostic]:
    value = document.value
    own = {key: item for key, item in value.items() if key != "metrics"}
    prototype, errors = _validated(model, own)
    yield from _model_errors(document, model, errors, ())
    if prototype is not None:
        yield from _findings(document, prototype.findings(), ())
    listed = value.get("metrics")
    if not listed and prototype is not None and not prototype.can_find_nothing:
        start, end = marked_range(document, ("metrics",) if listed is not None else ())
        yield Diagnostic("warning", "checks-nothing", "There is no metric: this criterion checks nothing.", start, end)
    for number, entry in enumerate(listed if isinstance(listed, list) else ()):
        name = registry.known_metric(entry["type"]) if _has_type(entry) else None
        if name is None:
            continue
        try:
            metric_model = registry.metric(name)
        except AgentevalError as broken:
            start, end = marked_range(document, ("metrics", number, "type"))
            yield Diagnostic("error", "unknown-type", str(broken), start, end)
            continue
        metric, errors = _validated(metric_model, {key: item for key, item in entry.items() if key != "type"})
        yield from _model_errors(document, metric_model, errors, ("metrics", number))
        if metric is not None:
            yield from _findings(document, metric.findings(), ("metrics", number))
            if prototype is not None:
                yield from _findings(document, prototype.findings_of(metric), ("metrics", number))
            if metric.alone_because and len(listed) > 1:
                start, end = marked_range(document, ("metrics", number, "type"))
                yield Diagnostic("error", "not-alone", _sentence(metric.alone_because), start, end)


def _findings(
    document: Document, findings: Iterator[ConfigWarning], where: tuple[str | int, ...]
) -> Iterator[Diagnostic]:
    for finding in findings:
        # A message about a metric as a whole is placed at its type.
        path = (*where, *finding.path) if finding.path or not where else (*where, "type")
        start, end = marked_range(document, path)
        yield Diagnostic(finding.severity, finding.code, _sentence(finding.message), start, end)


def _has_type(entry: object) -> bool:
    return isinstance(entry, Mapping) and isinstance(entry.get("type"), str)


def _validated(model: Any, entry: Mapping[str, Any]) -> tuple[Any, Sequence[Any]]:
    try:
        return model.model_validate(dict(entry)), ()
    except ValidationError as error:
        return None, error.errors(include_url=False)


def _model_errors(
    document: Document, model: type[BaseModel], errors: Sequence[Any], where: tuple[str | int, ...]
) -> Iterator[Diagnostic]:
    """What the model's own validators say, at the place of what they speak of."""
    for error in errors:
        kind = str(error["type"])
        cause = error.get("ctx", {}).get("error")
        if kind in _SAID_BY_CHECK or kind.endswith("_type") or isinstance(cause, PatternError):
            continue
        if kind.startswith(("int_from", "finite")) and not isinstance(error.get("input"), str):
            continue
        if isinstance(cause, NullError):
            continue
        base = (*where, *path_of(error))
        if not isinstance(cause, MatcherError):
            position, code = getattr(cause, "position", None), getattr(cause, "code", "bad-regex")
            yield from _at(document, base, _sentence(in_words_of(error, model)), position, code=code)
            continue
        base = base[: len(base) - len(cause.path)]
        for matcher_error in (cause, *cause.more):
            yield from _at(
                document,
                (*base, *matcher_error.path),
                _sentence(matcher_error.message),
                matcher_error.position,
                matcher_error.meant,
            )


def _at(
    document: Document,
    path: Sequence[str | int],
    message: str,
    position: int | None,
    meant: str | None = None,
    code: str = "bad-regex",
) -> Iterator[Diagnostic]:
    """A diagnostic at `path`; at a character of the text there (a pattern); or at its name, which is a different
    place."""
    node = _node(document, path)
    if node is not None and isinstance(node.value, str) and "{{" in node.value and code != "judge-prompt":
        return  # its final value is not known yet
    start, end = marked_range(document, path)
    fix = None
    if node is not None and node.kind == "string" and position is not None:
        start = document.string_offset(node, position)
        end = min(max(document.string_offset(node, position + 1), start + 1), node.end)
    elif meant is not None:
        owner = _node(document, path[:-1])
        member = owner.member(str(path[-1])) if owner is not None else None
        if member is not None:
            start, end = member.key_start, member.key_end
            fix = replace_fix(f"write {meant}", start, end, f'"{meant}"') if meant else None
    yield Diagnostic("error", "wrong-value" if position is None else code, message, start, end, fix)


def _templates(document: Document) -> dict[int, frozenset[str]]:
    """The names that aren't variables, by the place of their templates."""
    names_by_node: dict[int, frozenset[str]] = {}
    for number, metric in enumerate(metrics_in(document.value)):
        for name, own in templates_of(metric).items():
            node = _node(document, ("metrics", number, name))
            if node is not None:
                names_by_node[node.start] = own
    return names_by_node


def _placeholders(document: Document, variables: Collection[str] | None) -> Iterator[Diagnostic]:
    templates = _templates(document)
    for node in _strings(document.root):
        own = templates.get(node.start, frozenset())
        names = None if variables is None else dict.fromkeys((*sorted(own), *variables))
        if node.value.strip() == UNWRITTEN:
            text = f"{UNWRITTEN} stands for what you want to check: write it here."
            yield Diagnostic("warning", "unwritten", text, node.start, node.end)
        for placeholder in placeholders_in(node.value):
            start = document.string_offset(node, placeholder.start)
            end = document.string_offset(node, placeholder.end)
            if placeholder.is_literal:
                continue
            if not placeholder.is_path:
                text = "{{ }} takes a name, a dotted path, or a literal text in quotes."
                yield Diagnostic("error", "bad-placeholder", text, start, end)
            elif names is not None and not _is_there(placeholder.name, names):
                near = (elsewhere(placeholder.name) if own else "") or closest(placeholder.name, names)
                fix = replace_fix(f"write {near}", start, end, f"{{{{{near}}}}}") if near else None
                there = ", ".join(sorted(str(name) for name in names)[: max(8, len(own))]) or "none"
                hint = f"did you mean {near}?" if near else f"there are: {there}."
                yield Diagnostic(
                    "error", "unknown-variable", f"There is no variable {placeholder.name}: {hint}", start, end, fix
                )


def _is_there(path: str, names: Mapping[str, Any]) -> bool:
    # Only names are known here, not what is inside of them.
    return path in names or path.split(".")[0] in names


def _strings(node: Node | None) -> Iterator[Node]:
    waiting = [node] if node is not None else []
    while waiting:
        current = waiting.pop()
        if current.commented:
            continue
        if current.kind == "string":
            if isinstance(current.value, str) and ("{{" in current.value or current.value.strip() == UNWRITTEN):
                yield current
            continue
        waiting.extend(current.items)
        waiting.extend(member.value for member in current.members if not member.commented)


def _node(document: Document, path: Sequence[str | int]) -> Node | None:
    """The value at `path`, which counts as `document.value` does: what is commented out is not there."""
    node = document.root
    for step in path:
        if node is None:
            return None
        if isinstance(step, int):
            items = node.items
            # Only lists with something commented out are copied: each of thousands of findings comes here.
            if not isinstance(node.value, list) or len(node.value) != len(items):
                items = tuple([item for item in items if not item.commented])
            node = items[step] if 0 <= step < len(items) else None
            continue
        member = node.member(step) or next((m for a in _OTHER_NAMES.get(step, ()) if (m := node.member(a))), None)
        node = member.value if member is not None else None
    return node


_OTHER_NAMES = {"tools": ("tool",)}


def marked_range(document: Document, path: Sequence[str | int]) -> tuple[int, int]:
    """The characters to mark for `path`: a plain value as a whole, of an object or a list the bracket."""
    node = _node(document, path)
    cut = list(path)
    while node is None and cut:
        cut.pop()
        node = _node(document, cut)
    if node is None:
        return 0, min(1, len(document.text))
    if node.kind in ("object", "array") and node.end > node.start:
        return node.start, node.start + 1
    return node.start, node.end


def _sentence(text: str) -> str:
    text = text[:1].upper() + text[1:]
    return text if text.endswith((".", "?", "!")) else f"{text}."
