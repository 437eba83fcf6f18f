"""Modules of DSPy: how to run one, and what it gives. Runs in the child: only the standard library, of Python 3.8 or
later."""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agenteval_tui.agents.process.python_conversation import Conversation
    from agenteval_tui.agents.process.python_message import Call, Read, Request, Run

if not __name__.startswith("_agenteval_"):
    from agenteval_tui.agents.process import python_context as contexts
    from agenteval_tui.agents.process import python_frameworks as frameworks
    from agenteval_tui.agents.process import python_pieces as pieces
else:  # in the child, where this package need not be installed
    contexts = sys.modules["_agenteval.python_context"]
    frameworks = sys.modules["_agenteval.python_frameworks"]
    pieces = sys.modules["_agenteval.python_pieces"]
_FAILED = "which calls failed, as a Prediction does not say it; name the module itself"
_ALONE = "those of a Prediction without a trajectory; name the module itself"


class Ran:
    """What a module gave, and what was seen of its tools: (name, arguments, result, what they raised)."""

    def __init__(self, prediction: Any, tools: list[list[Any]], usage: dict[str, Any]) -> None:
        self.prediction = prediction
        self.tools = tools
        self.usage = usage


def runner(module: Any, target: str) -> Run | None:
    """See `python_frameworks.Framework`."""
    if "Module" in [cls.__name__ for cls in type(module).__mro__] and hasattr(module, "named_predictors"):
        return lambda request: _run(module, request, target)
    return None


def _run(module: Any, request: Request, target: str) -> Iterator[object]:
    contexts.refuse(request, target, "a module of DSPy takes no context; write what it takes in `input`")
    dspy: Any = importlib.import_module("dspy")
    callback: Any = importlib.import_module("dspy.utils.callback").BaseCallback
    tools: dict[str, list[Any]] = {}  # by the id of their call, in the order of the calls

    # Its base is DSPy's, which can be had only here.
    class Listening(callback):  # type: ignore[misc]
        def on_tool_start(self, call_id: Any, instance: Any, inputs: Any) -> None:
            tools[call_id] = [instance.name, inputs.get("kwargs", inputs), None, None]

        def on_tool_end(self, call_id: Any, outputs: object, exception: Any = None) -> None:
            if call_id in tools:
                tools[call_id][2:] = [outputs, exception]

    inputs = _inputs(module, request, target)
    with dspy.context(callbacks=[*(dspy.settings.callbacks or ()), Listening()]), dspy.track_usage() as tracker:
        try:
            prediction = module(**inputs)
        except Exception:
            # What was called before it failed is told first.
            yield Ran(None, list(tools.values()), tracker.get_total_tokens())
            raise
    yield Ran(prediction, list(tools.values()), tracker.get_total_tokens())


def _inputs(module: Any, request: Request, target: str) -> dict[str, Any]:
    """The module's input fields by name. Raises WrongTarget where it is not known which is the prompt."""
    inputs = (request.get("_how") or {}).get("input")
    if isinstance(inputs, dict):
        return inputs
    prompt = pieces.with_history(request, pieces.prompt_of(request, target))
    names = _input_names(module)
    filled = {name: value for name, value in (request.get("variables") or {}).items() if name in names}
    rest = [name for name in names if name not in filled]
    if len(rest) > 1:
        message = target + " is a module with the inputs: " + ", ".join(names) + "; write in the agent `input: {"
        raise pieces.WrongTarget(message + ", ".join(name + ": ..." for name in names) + "}`")
    return dict(filled, **dict.fromkeys(rest, prompt))


def _input_names(module: Any) -> list[str]:
    """Of its signature, of its own `forward`, or of the first signature in it."""
    signature = getattr(module, "signature", None)
    if signature is None:
        forward = inspect.signature(module.forward).parameters.values()
        names = [
            parameter.name
            for parameter in forward
            if parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
        ]
        if names:
            return names
        signature = next((getattr(predictor, "signature", None) for _, predictor in module.named_predictors()), None)
    return list(getattr(signature, "input_fields", ())) or ["question"]


def result_of(last: object) -> object:
    """The fields of a Prediction."""
    prediction = last.prediction if isinstance(last, Ran) else last
    return prediction.toDict() if hasattr(prediction, "toDict") else prediction


class Pieces:
    """Reads what a module gives."""

    def __init__(self, conversation: Conversation, read: Read) -> None:
        self._conversation = conversation

    def read(self, piece: Any) -> bool:
        """Whether this could be read."""
        if type(piece).__name__ == "Ran":
            self._calls([*piece.tools], _steps(piece.prediction))
            for number, (model, usage) in enumerate(piece.usage.items()):
                self._conversation.total("model " + str(number), pieces.usage_of(usage))
                self._conversation.about(model=model)
            if piece.prediction is not None:
                self._answer(piece.prediction)
        elif type(piece).__name__ == "Prediction":
            steps = _steps(piece)
            self._calls([[name, arguments, result, None] for _, name, arguments, result in steps], steps)
            self._conversation.note(*(("left_out", _FAILED) if steps else ("unread_calls", _ALONE)))
            self._answer(piece)
        else:
            return False
        return True

    def _calls(self, tools: list[list[Any]], steps: list[tuple[Any, ...]]) -> None:
        """Each call is a message with the thought before it, where the trajectory has every thought."""
        thoughts = [step[0] for step in steps] if [step[1] for step in steps] == [tool[0] for tool in tools] else []
        for number, (name, arguments, result, raised) in enumerate(tools):
            key = "call " + str(number + 1)
            text = str(raised) if raised is not None else pieces.text_of(result, self._conversation.note)
            call: Call = {"id": key, "name": name, "arguments": pieces.plain(arguments)}
            thought = str(thoughts[number]) if thoughts else ""
            self._conversation.append(
                [
                    {"role": "assistant", "text": "", "reasoning": thought, "calls": [call]},
                    {"role": "tool", "call_id": key, "name": name, "text": text, "error": raised is not None},
                ]
            )

    def _answer(self, prediction: Any) -> None:
        fields = dict(prediction.toDict())
        fields.pop("trajectory", None)
        # Alone it is the answer.
        thought = fields.pop("reasoning", None) if len(fields) > 1 else None
        answer = next(iter(fields.values())) if len(fields) == 1 else fields
        text = pieces.text_of(answer, self._conversation.note)
        self._conversation.append([{"role": "assistant", "text": text, "reasoning": str(thought or "")}])


def _steps(prediction: object) -> list[tuple[Any, ...]]:
    """(thought, tool, arguments, observation) of each step in the trajectory of a ReAct module."""
    trajectory = getattr(prediction, "trajectory", None) if prediction is not None else None
    steps: list[tuple[Any, ...]] = []
    while isinstance(trajectory, dict) and "tool_name_" + str(len(steps)) in trajectory:
        names = ("thought_", "tool_name_", "tool_args_", "observation_")
        steps.append(tuple(trajectory.get(name + str(len(steps))) for name in names))
    return steps


FRAMEWORK = frameworks.Framework(
    title="DSPy",
    runner=runner,
    pieces=Pieces,
    makers=(frameworks.Maker("dspy", ("ReAct", "ChainOfThought")),),
    result_of=result_of,
)
