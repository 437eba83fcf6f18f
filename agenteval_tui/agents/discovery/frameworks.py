"""How agents of Python frameworks are written: the names of what makes them (`python_frameworks.Maker`), and what else
the search knows of a framework."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from typing import Any

from msgspec import Struct

from agenteval_tui.agents.discovery.model import AgentCandidate, FoundApp, FoundTool, Sign
from agenteval_tui.agents.discovery.project_files import ProjectFiles
from agenteval_tui.agents.discovery.python_module import Function, Module, Modules, annotation_of, bindings, code_of
from agenteval_tui.agents.process.python_frameworks import Framework
from agenteval_tui.core import entry_points

Line = list[tuple[Module, ast.ClassDef]]
"""A class, then the classes of the project that it is made of, with their modules."""
AppFinder = Callable[[Modules, Module], FoundApp | None]
_CONFIGURED = ("with_config", "bind", "with_retry", "with_fallbacks", "with_types")
_RUNNABLES = ("langchain", "langchain_core", "langchain_openai", "langchain_anthropic", "langchain_community")
_RETURNED = {
    "CompiledStateGraph": "LangGraph",
    "CompiledGraph": "LangGraph",
    "Pregel": "LangGraph",
    "AgentExecutor": "LangChain",
}
"""Types of what factories say that they return, besides the makers."""
SDKS = (
    *("openai", "anthropic", "claude_agent_sdk", "claude_code_sdk", "litellm", "google.genai", "google.generativeai"),
    *("groq", "mistralai", "together", "cohere", "cerebras", "ollama", "huggingface_hub"),
)
SDK_NAMES = {
    "openai": "OpenAI SDK",
    "anthropic": "Anthropic SDK",
    "claude_agent_sdk": "Claude Agent SDK",
    "claude_code_sdk": "Claude Agent SDK",
    "litellm": "LiteLLM",
    "google": "Google GenAI SDK",
    "groq": "Groq SDK",
    "mistralai": "Mistral SDK",
    "together": "Together SDK",
    "cohere": "Cohere SDK",
    "cerebras": "Cerebras SDK",
    "ollama": "Ollama SDK",
    "huggingface_hub": "Hugging Face Hub",
}


class ClassAgent(Struct, frozen=True):
    """What a class of the project is to a framework. `sign` None: as any class that makes agents, or the object that
    its module makes of it."""

    sign: Sign | None = None
    variables: Mapping[str, Any] = {}
    tools: tuple[FoundTool, ...] = ()


class FrameworkFinder(Struct, frozen=True, kw_only=True):
    """How agents of a framework look in a project (entry point group `agenteval.agent_finders`)."""

    framework: str
    """Its title, as in its `Framework`."""
    files: Mapping[str, Callable[[ProjectFiles, str], Iterable[AgentCandidate]]] = {}
    """Who reads the files of these names, which nothing else does."""
    tables: Callable[[Mapping[str, Any]], Iterable[tuple[str, str]]] = lambda tools: ()
    """The agents that `[tool]` of pyproject.toml names: the name of each, and the target."""
    methods: tuple[str, ...] = ()
    """Methods that make an agent of another object of the framework."""
    packages: tuple[str, ...] = ()
    """The packages whose objects have these methods."""
    root: str = ""
    """The object that the framework's own tools look for. Beside it, others are its parts."""
    beside_root: tuple[str, ...] = ()
    """Names of objects that are agents beside it."""
    part: str = ""
    """How what makes a part of an agent is called: another object of its module has it."""
    of_class: Callable[[Modules, Line, bool], ClassAgent | None] = lambda modules, line, is_made: None
    """What a class is to the framework, or None; the last argument: its module makes an object of it."""
    needed_state: Callable[[Modules, Module, ast.Call], Iterable[str]] = lambda modules, module, call: ()
    """The fields of the context without which an agent does not begin, by the call that makes it."""
    app: AppFinder | None = None
    """How the app in a module that imports the framework is asked; None where it has no field for a prompt."""


@cache
def finders() -> tuple[FrameworkFinder, ...]:
    """Those of all frameworks, each once."""
    return tuple({id(finder): finder for finder in _by_package().values()}.values())


def finder_of(framework: str) -> FrameworkFinder:
    """That of a framework by its title; one that knows nothing where there is none."""
    return next((finder for finder in finders() if finder.framework == framework), FrameworkFinder(framework=framework))


@cache
def app_finders() -> dict[str, AppFinder]:
    """By the package that an app imports, how it is asked."""
    return {package: finder.app for package, finder in _by_package().items() if finder.app is not None}


@cache
def _by_package() -> dict[str, FrameworkFinder]:
    return dict(entry_points.loaded(entry_points.AGENT_FINDERS, "finder of agents of"))


class Maker(Struct, frozen=True):
    """Names in a package whose call makes an agent of a framework, or something that the method `needs` makes an agent
    of."""

    framework: str
    package: str
    names: frozenset[str]
    needs: str = ""


def _maker(framework: str, package: str, *names: str, needs: str = "") -> Maker:
    return Maker(framework, package, frozenset(names), needs)


_OWN = (
    _maker("pydantic-ai", "pydantic_ai", "Agent"),
    _maker("openai-agents", "agents", "Agent", "SandboxAgent"),
    _maker("LangGraph", "langgraph", "StateGraph", "MessageGraph", needs="compile"),
    _maker("LangGraph", "langgraph.prebuilt", "create_react_agent"),
    _maker("LangGraph", "langgraph_supervisor", "create_supervisor", needs="compile"),
    _maker("LangGraph", "langgraph_swarm", "create_swarm", needs="compile"),
    _maker("LangGraph", "deepagents", "create_deep_agent", "async_create_deep_agent"),
    _maker("LangChain", "langchain", "create_agent", "AgentExecutor", "LLMChain", "ConversationChain"),
    _maker("LangChain", "langchain_classic", "AgentExecutor", "LLMChain"),
)
"""Of the frameworks that are read without an extension."""


@cache
def makers() -> tuple[Maker, ...]:
    """What makes agents, in all frameworks. A reader that can't be loaded is left out: whoever runs an agent of its
    framework is told."""
    frameworks: Iterator[tuple[str, Framework]] = entry_points.loaded(entry_points.FRAMEWORKS, "reader of objects of")
    offered = [
        _maker(framework.title, each.package, *each.names, needs=each.needs)
        for _, framework in frameworks
        for each in framework.makers
    ]
    return tuple(dict.fromkeys([*_OWN, *offered]))


@cache
def framework_packages() -> tuple[str, ...]:
    """A file that imports none of these has no agent of a framework."""
    packages = (*(maker.package for maker in makers()), *entry_points.names(entry_points.FRAMEWORKS))
    return tuple(dict.fromkeys(package.partition(".")[0] for package in packages))


class Construction(Struct, frozen=True):
    """An expression that makes an agent: with what, and the call that has its arguments."""

    maker: Maker
    call: ast.Call
    module: Module


class Frameworks:
    """Tells what expressions of modules make."""

    def __init__(self, modules: Modules) -> None:
        self._modules = modules

    def maker_of(self, module: Module, name: ast.expr | None) -> Maker | None:
        """The maker that a name means."""
        qualified = module.qualified(name)
        package, _, last = qualified.rpartition(".")
        for maker in makers():
            if last in maker.names and (package == maker.package or package.startswith(maker.package + ".")):
                top = maker.package.partition(".")[0]
                return None if top == "agents" and self._modules.is_own(module, top) else maker
        return None

    def imported(self, module: Module) -> str:
        """The first framework that a module imports from; "" if it is none."""
        for target in module.imports.values():
            for maker in makers():
                top = maker.package.partition(".")[0]
                # Google has many packages of this name.
                root = ".".join(maker.package.split(".")[:2]) if top == "google" else top
                if f"{target}.".startswith(f"{root}.") and not (top == "agents" and self._modules.is_own(module, top)):
                    return maker.framework
        return ""

    def makes(
        self, module: Module, node: ast.AST | None, local: dict[str, ast.expr] | None = None, depth: int = 0
    ) -> Construction | None:
        """What an expression makes, if that is an agent; `local` are the names of the function that it is in."""
        if node is None or depth > 6:
            return None
        if isinstance(node, ast.Await):
            return self.makes(module, node.value, local, depth + 1)
        if isinstance(node, ast.Name):
            if local and node.id in local:
                inner = {name: value for name, value in local.items() if name != node.id}
                return self.makes(module, local[node.id], inner, depth + 1)
            place = self._modules.named(module, node.id)
            return None if place is None else self.makes(place[0], place[1], None, depth + 1)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
            return self._chain(module, node, local)
        if not isinstance(node, ast.Call):
            return None
        maker = self.maker_of(module, node.func)
        if maker is not None:
            return None if maker.needs else Construction(maker, node, module)
        if isinstance(node.func, ast.Attribute):
            return self._method(module, node, local, depth)
        if isinstance(node.func, ast.Name):
            place = self._modules.named(module, node.func.id)
            if place is not None and isinstance(place[1], Function):
                return self.returned(place[0], place[1], depth + 1)
        return None

    def _method(
        self, module: Module, node: ast.Call, local: dict[str, ast.expr] | None, depth: int
    ) -> Construction | None:
        assert isinstance(node.func, ast.Attribute)
        method, owner = node.func.attr, node.func.value
        if method in _CONFIGURED:
            return self.makes(module, owner, local, depth + 1)
        for finder in finders():
            if method in finder.methods and any(name.startswith(finder.packages) for name in module.imports.values()):
                return Construction(_maker(finder.framework, finder.packages[0], method), node, module)
        if method in ("compile", "build"):
            start = self._start(module, owner, local, depth + 1)
            if start is not None and start.maker.needs == method:
                return start
        return None

    def _start(
        self, module: Module, node: ast.AST | None, local: dict[str, ast.expr] | None, depth: int
    ) -> Construction | None:
        """The call that a chain of calls begins with, if that makes a graph: StateGraph(State).add_node(...)."""
        if node is None or depth > 60:
            return None
        if isinstance(node, ast.Name):
            if local and node.id in local:
                inner = {name: value for name, value in local.items() if name != node.id}
                return self._start(module, local[node.id], inner, depth + 1)
            place = self._modules.named(module, node.id)
            return None if place is None or place[1] is node else self._start(place[0], place[1], None, depth + 1)
        if isinstance(node, ast.Call):
            maker = self.maker_of(module, node.func)
            if maker is not None and maker.needs:
                return Construction(maker, node, module)
            if isinstance(node.func, ast.Attribute):
                return self._start(module, node.func.value, local, depth + 1)
            if isinstance(node.func, ast.Name):
                return self._start(module, node.func, local, depth + 1)
        if isinstance(node, Function):
            inner = bindings(ast.walk(node))
            for result in returns_of(node):
                start = self._start(module, result, inner, depth + 1)
                if start is not None:
                    return start
        return None

    def _chain(self, module: Module, node: ast.BinOp, local: dict[str, ast.expr] | None) -> Construction | None:
        """A chain of LangChain: prompt | model."""
        parts: list[ast.expr] = []
        expression: ast.expr = node
        while isinstance(expression, ast.BinOp) and isinstance(expression.op, ast.BitOr):
            parts.append(expression.right)
            expression = expression.left
        parts.append(expression)
        for part in parts:
            value = (local or {}).get(part.id) if isinstance(part, ast.Name) else part
            if value is None and isinstance(part, ast.Name):
                value = module.values.get(part.id)
            while isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
                if module.qualified(value.func).startswith(_RUNNABLES):
                    break
                value = value.func.value
            if isinstance(value, ast.Call) and module.qualified(value.func).startswith(_RUNNABLES):
                return Construction(_maker("LangChain", "langchain_core", "|"), value, module)
        return None

    def returned(self, module: Module, function: Function, depth: int = 0) -> Construction | None:
        """What a function returns, if that is an agent."""
        local = bindings(ast.walk(function))
        manages = any("contextmanager" in code_of(node) for node in function.decorator_list)
        for result in returns_of(function, yields=manages):
            construction = self.makes(module, result, local, depth + 1)
            if construction is not None:
                return construction
        if function.returns is not None:
            hint = annotation_of(function.returns)
            if hint is None:
                return None
            maker = self.maker_of(module, hint)
            empty = ast.Call(func=hint, args=[], keywords=[])
            if maker is not None and not maker.needs:
                return Construction(maker, self._call_in(module, function, maker) or empty, module)
            name = module.qualified(hint).rpartition(".")[2]
            if name in _RETURNED:
                return Construction(_maker(_RETURNED[name], "", name), empty, module)
        return None

    def _call_in(self, module: Module, function: ast.AST, maker: Maker) -> ast.Call | None:
        calls = (node for node in ast.walk(function) if isinstance(node, ast.Call))
        return next((call for call in calls if self.maker_of(module, call.func) == maker), None)


def returns_of(function: Function, *, yields: bool = False) -> list[ast.expr]:
    """The expressions that a function itself returns."""
    results: list[ast.expr] = []
    waiting: list[ast.AST] = list(function.body)
    while waiting:
        node = waiting.pop(0)
        if isinstance(node, Function | ast.ClassDef | ast.Lambda):
            continue
        if (isinstance(node, ast.Return) and node.value is not None) or (
            yields and isinstance(node, ast.Yield) and node.value is not None
        ):
            results.append(node.value)
        waiting.extend(ast.iter_child_nodes(node))
    return results
