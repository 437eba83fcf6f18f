"""What a template may make: bounded memory and time, and nothing at compile time."""

from __future__ import annotations

import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from agenteval_tui.analysis.lint import check_suites
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.suites.templates import render, render_value, template_problems

BIG = 999_999_999
VALUES: dict[str, Any] = {
    "n": BIG,
    "a": "a",
    "lines": "a\n" * 2_000,
    "items": list(range(100)),
    "doc": "word " * 100_000,
}


def nested_sets(step: str, start: str = "'aaaaaaaaaa'") -> str:
    """Forty assignments, each made of the one before it."""
    lines = [f"{{% set x0 = {start} %}}"]
    lines += [f"{{% set x{i + 1} = {step.format(x=f'x{i}')} %}}" for i in range(40)]
    return "".join(lines) + "{{ x40 }}"


TOO_MUCH = {
    "center": f"{{{{ 'a'|center({BIG}) }}}}",
    "center by a variable": "{{ 'a'|center(n) }}",
    "center in a set": f"{{% set x = 'a'|center({BIG}) %}}",
    "center in a condition": f"{{% if 'a'|center({BIG}) %}}x{{% endif %}}",
    "center by name": f"{{{{ 'a'|center(width={BIG}) }}}}",
    "center as a block": f"{{% filter center({BIG}) %}}a{{% endfilter %}}",
    "center by map": f"{{{{ [a]|map('center', {BIG})|list }}}}",
    "the method center": f"{{{{ 'a'.center({BIG}) }}}}",
    "the method ljust": f"{{{{ 'a'.ljust({BIG}) }}}}",
    "the method rjust": f"{{{{ a.rjust({BIG}) }}}}",
    "the method zfill": f"{{{{ a.zfill({BIG}) }}}}",
    "the method expandtabs": f"{{{{ '\\t'.expandtabs({BIG}) }}}}",
    "the method by attr": f"{{{{ (a|attr('center'))({BIG}) }}}}",
    "indent": f"{{{{ 'a\nb'|indent({BIG}) }}}}",
    "indent, first": f"{{{{ 'a'|indent({BIG}, true) }}}}",
    "indent many lines": "{{ lines|indent(9000) }}",
    "indent by a text": "{{ lines|indent('a' * 9000) }}",
    "wordwrap": "{{ doc|wordwrap(1, wrapstring='a' * 9000) }}",
    "format": f"{{{{ '%{BIG}d'|format(1) }}}}",
    "format with a star": f"{{{{ '%*d'|format({BIG}, 1) }}}}",
    "format with digits": f"{{{{ '%.{BIG}f'|format(1.0) }}}}",
    "percent": f"{{{{ '%{BIG}d' % 1 }}}}",
    "percent with a star": f"{{{{ '%*d' % ({BIG}, 1) }}}}",
    "the method format": f"{{{{ '{{:{BIG}}}'.format(1) }}}}",
    "the method format, nested": f"{{{{ '{{:{{w}}}}'.format(1, w={BIG}) }}}}",
    "format_map": f"{{{{ '{{a:{BIG}}}'.format_map({{'a': 1}}) }}}}",
    "a repeated text": f"{{{{ 'a' * {BIG} }}}}",
    "a repeated list": f"{{{{ [1] * {BIG} }}}}",
    "a repeated tuple": f"{{{{ {BIG} * (1,) }}}}",
    "repeated twice": "{{ 'a' * 10000 * 10000 }}",
    "repeated in sets": "{% set b = 'a' * 10000 %}{% set c = b * 10000 %}{{ c }}",
    "a power": "{{ 10 ** 10 ** 8 }}",
    "a power of powers": nested_sets("{x} * {x}", "9999"),
    "round": f"{{{{ 1.5|round({BIG}, 'ceil') }}}}",
    "to_bytes": f"{{{{ (5).to_bytes({BIG}, 'big') }}}}",
    "replace": "{{ doc|replace('', 'a' * 9000) }}",
    "the method replace": "{{ doc.replace('w', 'a' * 9000) }}",
    "join": "{{ doc|join('a' * 9000) }}",
    "the method join": "{{ ('a' * 9000).join(doc) }}",
    "batch": f"{{{{ [1]|batch({BIG}, 0)|list }}}}",
    "slice": f"{{{{ [1]|slice({BIG})|list }}}}",
    "tojson": f"{{{{ [1]|tojson(indent={BIG}) }}}}",
    "doubled by ~": nested_sets("{x} ~ {x}"),
    "doubled by +": nested_sets("{x} + {x}"),
    "doubled lists": nested_sets("[{x}, {x}]"),
    "doubled tuples": nested_sets("({x}, {x})"),
    "doubled objects": nested_sets("{{'a': {x}, 'b': {x}}}"),
    "doubled by dict": nested_sets("dict(a={x}, b={x})"),
    "doubled by join": nested_sets("[{x}, {x}]|join"),
    "doubled by format": nested_sets("'%s%s'|format({x}, {x})"),
    "doubled blocks": "{% set x0 %}aaaaaaaaaa{% endset %}"
    + "".join(f"{{% set x{i + 1} %}}{{{{ x{i} }}}}{{{{ x{i} }}}}{{% endset %}}" for i in range(40))
    + "{{ x40 }}",
    "sums of lists": "{{ items|map('string')|map('list')|sum(start=[]) }}",
    "loops": "".join(f"{{% for v{i} in items %}}" for i in range(8)) + "{% endfor %}" * 8,
    "loops that say something": "".join(f"{{% for v{i} in items %}}" for i in range(8)) + "x" + "{% endfor %}" * 8,
    "loops in a block": "{% set x %}"
    + "".join(f"{{% for v{i} in items %}}" for i in range(8))
    + "{{ doc }}"
    + "{% endfor %}" * 8
    + "{% endset %}",
    "macros": "{% macro m(n) %}{% if n %}{{ m(n - 1) }}{{ m(n - 1) }}{% endif %}{% endmacro %}{{ m(60) }}",
    "a recursive loop": "{% for x in items recursive %}{{ loop(items) }}{% endfor %}",
}


@pytest.mark.sweep
@pytest.mark.parametrize("case", TOO_MUCH)
def test_little_does_not_make_much(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agenteval_tui.suites.templates.MAX_SECONDS", 0.1)
    text = TOO_MUCH[case]
    tracemalloc.start()
    try:
        template_problems(text, VALUES)
        assert tracemalloc.get_traced_memory()[1] < 20_000_000
        for way in (render, render_value):
            with pytest.raises(AgentevalError) as caught:
                way(text, VALUES)
            assert caught.value.fix
        assert tracemalloc.get_traced_memory()[1] < 400_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("text", "rendered"),
    [
        ("{{ 'a'|center(5) }}|", "  a  |"),
        ("{{ 'a\nb'|indent(2) }}", "a\n  b"),
        ("{{ '%05d'|format(7) }} {{ '%.2f' % 1.5 }}", "00007 1.50"),
        ("{{ '{:>4}|{x}'.format(1, x=2) }}", "   1|2"),
        ("{{ 'ab' * 3 }}{{ [1, 2] + [3] }}{{ 2 ** 10 }}", "ababab[1, 2, 3]1024"),
        ("{{ items[:3]|join(', ') }}", "0, 1, 2"),
        ("{{ ', '.join(['a', 'b']) }}{{ a.upper() }}{{ doc.split()|length }}", "a, bA100000"),
        ("{{ n * n }}", str(BIG * BIG)),
        ("{{ doc|replace('word', 'words')|length }}", "600000"),
        ("{{ doc|wordwrap(20)|length > 0 }}", None),
        ("{% for x in items %}{{ loop.index }}{% if not loop.last %},{% endif %}{% endfor %}", None),
        ("{% set x %}{{ a }}{{ a }}{% endset %}{{ x ~ '!' }}", "aa!"),
        ("{% macro m(x) %}<{{ x }}>{% endmacro %}{{ m(a) }}{{ m(1) }}", "<a><1>"),
        ("{{ {'a': [1, 2]}|tojson(indent=1) }}", '{\n "a": [\n  1,\n  2\n ]\n}'),
        ("{{ [3, 1]|sort|map('string')|list }}{{ items|sum }}", "['1', '3']4950"),
        ("{{ doc|truncate(20000)|length > 100 }}", "True"),
        ("{{ items|batch(50)|map('length')|list }}", "[50, 50]"),
    ],
)
def test_ordinary_templates_are_rendered(text: str, rendered: str | None) -> None:
    if rendered is None and "wordwrap" in text:
        with pytest.raises(AgentevalError):  # half a million characters are too many to wrap
            render(text, VALUES)
        return
    found = render(text, VALUES)
    assert rendered is None or found == rendered


def test_a_large_variable_is_put_in_whole() -> None:
    assert len(render("{{ doc }}{{ doc|upper }}", {"doc": "x" * 4_000_000})) == 8_000_000
    assert render_value("{{ items }}", VALUES) == VALUES["items"]


def test_validate_runs_nothing(tmp_path: Path) -> None:
    text = "{{ 'a'|center(999999999) }}{% set x = 'a'|indent(999999999) %}"
    (tmp_path / "a.suite.yaml").write_text(
        f'agent: a\ntests:\n  - id: t\n    prompt: "{text}"\n    criteria:\n'
        "      - {name: n, prototype_class: TextResponse, config_uxon: {metrics: [{type: TextMatch, contains: x}]}}\n",
        "utf-8",
    )
    tracemalloc.start()
    try:
        check_suites([tmp_path])
        assert tracemalloc.get_traced_memory()[1] < 60_000_000
    finally:
        tracemalloc.stop()
