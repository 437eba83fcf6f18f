"""What is known of a config while it is written: completions, and the words for what is under the cursor."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path

from msgspec.structs import replace

from agenteval_tui.analysis.config_usage import words_used
from agenteval_tui.grading.config.completion import complete_config, hover_config, prepare
from agenteval_tui.history.agent_facts import facts_for
from agenteval_tui.suites.datasets import variable_names
from agenteval_tui.tui.analysis_context import Session
from agenteval_tui.tui.presenters.completion_rows import hover_lines
from agenteval_tui.tui.widgets.config_editor import ConfigEditor
from agenteval_tui.uxon.complete import Completion
from agenteval_tui.uxon.hover import Hover
from agenteval_tui.uxon.name_source import Facts


class ConfigAssistant:
    """Answers an editor's questions in threads. What recordings know of a test, and which words configs use, is read
    once, and kept."""

    def __init__(self) -> None:
        self._facts: dict[tuple[str, str], Facts] = {}
        self._uses: Mapping[str, int] | None = None
        self._prepared = False

    async def answer(
        self, question: ConfigEditor.Asked, prototype_class: str, session: Session, suite_key: str, test_id: str
    ) -> None:
        """Offer what can be written, as soon as it is known; an older question's answer is dropped by the editor."""
        key = (suite_key, test_id)

        def work() -> tuple[Completion, ...]:
            if not self._prepared:
                prepare()
                self._prepared = True
            if key not in self._facts:
                suites = (suite.loaded.suite for suite in session.overview().suites if suite.loaded.key == suite_key)
                suite = next(suites, None)
                probes = suite.probe_names(test_id) if suite is not None else ()
                names = variable_names(suite.test(test_id) if suite is not None else None, Path(suite_key).parent)
                facts = facts_for(session.store, *key)
                self._facts[key] = replace(facts, probe_names=probes, variable_names=names)
            if self._uses is None:
                self._uses = words_used(session.store, [suite.loaded for suite in session.overview().suites])
            return complete_config(question.text, question.offset, prototype_class, self._facts[key], self._uses)

        items = await asyncio.to_thread(work)
        question.editor.offer(items, revision=question.revision, typed=question.typed)

    async def explain(self, editor: ConfigEditor, prototype_class: str) -> bool:
        """Show what the word under the cursor means; False when there is nothing to say."""

        text, offset = editor.text, editor.cursor_offset
        hover: Hover | None = await asyncio.to_thread(hover_config, text, offset, prototype_class)
        if hover is None or editor.text != text:
            return False
        editor.tell(lambda room: hover_lines(hover, room))
        return True

    def forget(self) -> None:
        """New runs may have come: read again what recordings know."""
        self._facts.clear()
        self._uses = None
