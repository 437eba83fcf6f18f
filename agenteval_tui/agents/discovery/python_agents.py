"""Agents in a Python module: objects and factories of frameworks, functions that ask a model, and programs."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec import structs

from agenteval_tui.agents.discovery import model_servers, module_description
from agenteval_tui.agents.discovery.agent_calls import own_calls
from agenteval_tui.agents.discovery.arguments import Arguments, declares_arguments, python_arguments
from agenteval_tui.agents.discovery.fields import (
    ANSWER_FIELDS,
    MESSAGE_FIELDS,
    context_for,
    fields_of,
    is_number,
    is_text,
    is_typed_dict,
    names_a_thing,
    place_for_prompt,
    placeholder,
)
from agenteval_tui.agents.discovery.frameworks import (
    SDK_NAMES,
    SDKS,
    Construction,
    Frameworks,
    app_finders,
    finder_of,
    finders,
)
from agenteval_tui.agents.discovery.model import AgentCandidate, ConsoleScript, FoundTool, Sign, agent_name, relative
from agenteval_tui.agents.discovery.python_module import (
    Function,
    Module,
    Modules,
    called_name,
    code_of,
    constant_text,
    is_guard,
    keyword,
    needed,
    returns_a_value,
    source_of,
    stays_callable,
)
from agenteval_tui.agents.process.project_interpreter import ENVIRONMENT_FOLDERS
from agenteval_tui.agents.process.python_answers import HISTORY

_SETTINGS = ("settings", "config")
_WAYS = ("run", "ainvoke", "invoke", "arun", "chat", "kickoff", "query", "ask", "__call__")
"""How an object is asked: the first of these (`process.python_objects.WAYS`)."""
_PROMPTS = (*MESSAGE_FIELDS, "messages", "user_msg")
_MODELS = ("LLM", "ChatModel", "Embedding", "Embeddings")
"""What classes are called that adapt a model to a framework."""
_CHAT_MODEL = re.compile(r"langchain\w*\.(?:.*\.)?(?:Chat[A-Z]\w*(?<!Template)(?<!History)|init_chat_model)")
"""A model of a provider, as LangChain's packages name it."""
_DEEPEST = 6
_STEPS = 4
"""Imports between a program and the module that asks its model: main, flow, nodes, utils.call_llm."""
_MANAGEMENT = re.compile(r"(?:^|/)management/commands/([a-z]\w*)\.py")
"""The file of a command of Django's `manage.py`, with its name."""
_INLINE_PACKAGES = re.compile(rb"^# /// script$", re.M)
"""A script that says itself which packages it needs (PEP 723)."""
_ASKS = frozenset(
    (
        *("create", "acreate", "run", "run_sync", "invoke", "ainvoke", "kickoff", "completion"),
        *("acompletion", "parse", "generate_content", "arun", "chat", "stream", "run_streamed", "query"),
        *("complete", "messages", "ClaudeSDKClient", "predict", "apredict", "astream", "astream_events", "run_stream"),
    )
)
PARTS = (Sign.FUNCTION, Sign.PROGRAM)
"""What is found in a module may also be a part of a program that imports it."""
_SERVES = frozenset(
    (
        *(
            "fastapi",
            "flask",
            "quart",
            "uvicorn",
            "streamlit",
            "gradio",
            "chainlit",
            "nicegui",
            "mcp.server",
            "fastmcp",
        ),
        *("pytest", "telegram", "telebot", "aiogram", "discord", "slack_bolt"),
    )
)
"""Packages of programs that wait for others, and never answer a question that is asked when they start."""
_RECEIVES = frozenset(("telegram.ext", "telebot", "aiogram", "discord", "slack_bolt"))
"""Packages of modules that make such a program of the one that imports them."""


class PythonAgents:
    """Finds the agents of modules."""

    def __init__(self, modules: Modules) -> None:
        self._modules = modules
        self._frameworks = Frameworks(modules)
        self._libraries: dict[str, str] = {}
        self._clients: dict[str, str] = {}
        self._apps = app_finders()
        starts = ("__main__", "BaseCommand", *(rf"import\s+{name}\b|from\s+{name}\b" for name in self._apps))
        self._starts = re.compile("|".join(starts).encode())

    def of(self, module: Module) -> Iterator[AgentCandidate]:
        """The agents of a module, in its order."""
        if (app := self._app(module)) is not None:
            yield app
            # What the app makes only when its fields are filled in is not there when the module is imported.
            always = {statement.lineno for statement in module.tree.body}
            yield from (agent for agent in self._objects(module) if agent.line in always)
            return
        objects = list(self._objects(module))
        yield from objects
        construction = [*self._classes(module), *self._factories(module)]
        yield from construction
        # Where agents are made, functions mostly only ask them.
        if not objects and not construction:
            at_once = self._asks_at_once(module)
            functions = [] if at_once else list(self._functions(module))
            yield from functions
            if not functions and (at_once or module.is_program() or self._managed(module)):
                yield from self._own_program(module)

    def asked(self, read: Sequence[Module], paths: Sequence[str], *, functions: bool) -> Iterator[AgentCandidate]:
        """What the project's own code asks in the files `paths`: methods of classes, and `functions` if wanted, in the
        modules `read`."""
        read = [module for module in read if not self._asks_at_once(module)]
        # What another module makes of a framework, a class may ask; a function would be called so by chance.
        read = [module for module in read if self._sdk(module) or (not functions and self._frameworks.imported(module))]
        for call in own_calls(self._modules, read, paths, self._asks, functions=functions):
            config: dict[str, Any] = {"capture": "model"}
            for option in ("settings", "input", "output"):
                if value := getattr(call, option):
                    config[option] = value
            agent = self._agent(
                call.module,
                call.name,
                call.function,
                None,
                Sign.FUNCTION if call.owner is None else Sign.METHOD,
                called=(call.owner or call.function).name,
                framework=self._sdk(call.module) or self._frameworks.imported(call.module),
                config=config,
                docstring=ast.get_docstring(call.function) or (ast.get_docstring(call.owner) if call.owner else None),
            )
            prompts = (call.prompt,) if call.prompt else agent.prompts
            yield structs.replace(agent, prompts=prompts, variables=call.variables)

    def target(self, path: str, name: str, sign: Sign, called: str) -> AgentCandidate | None:
        """The agent that a configuration names: `path` is a file; None if it isn't there."""
        module = self._modules.get(path)
        if module is None:
            return None
        node = module.values.get(name) or module.functions.get(name) or module.classes.get(name)
        if node is None:
            return None
        if isinstance(node, ast.ClassDef):
            construction = None
        elif isinstance(node, Function):
            construction = self._frameworks.returned(module, node)
        else:
            construction = self._frameworks.makes(module, node)
        return self._agent(module, name, node, construction, sign, called=called)

    # Objects

    def _objects(self, module: Module) -> Iterator[AgentCandidate]:
        constructions: dict[str, tuple[ast.expr, Construction]] = {}
        for name, value in module.values.items():
            # A second name of an agent is no second agent, unless it is the one that its framework's tools look for.
            construction = self._frameworks.makes(module, value)
            if (
                construction is not None
                and not name.startswith("__")
                and (not isinstance(value, ast.Name) or name == finder_of(construction.maker.framework).root)
            ):
                constructions[name] = value, construction
        for name, function in module.functions.items():
            for decorator in function.decorator_list:
                target = decorator.func if isinstance(decorator, ast.Call) else decorator
                if module.qualified(target) == "langgraph.func.entrypoint":
                    yield self._agent(module, name, function, None, Sign.OBJECT, framework="LangGraph")
        used = self._used(module, set(constructions))
        for name, (value, construction) in constructions.items():
            finder = finder_of(construction.maker.framework)
            makes_part = bool(finder.part) and code_of(construction.call.func).endswith(finder.part)
            if makes_part and len(constructions) > 1 and name in used:
                continue  # another object has it
            if finder.root in constructions and name not in (finder.root, *finder.beside_root):
                continue
            sign = Sign.ROOT if name == finder.root else Sign.OBJECT
            yield self._agent(module, name, value, construction, sign, is_part=name in used)

    def _used(self, module: Module, names: set[str]) -> set[str]:
        """The agents that others of the module are made with, or that its functions use as a part."""
        used: set[str] = set()
        if not names:
            return used
        for name, value in module.values.items():
            used |= {
                node.id
                for node in ast.walk(value)
                if isinstance(node, ast.Name) and node.id in names and node.id != name
            }
        for function in module.functions.values():
            if function.decorator_list:  # a tool that asks an agent
                used |= {node.id for node in ast.walk(function) if isinstance(node, ast.Name) and node.id in names} - {
                    node.value.id
                    for decorator in function.decorator_list
                    for node in ast.walk(decorator)
                    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
                }
        for node in module.nodes:
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Attribute):  # agent.handoffs = [...]
                used |= {part.id for part in ast.walk(node.value) if isinstance(part, ast.Name) and part.id in names}
        # Where each is used by another, as in handoffs, none is only a part.
        return used if used != names else set()

    def _agent(
        self,
        module: Module,
        name: str,
        node: ast.AST,
        construction: Construction | None,
        sign: Sign,
        *,
        called: str = "",
        framework: str = "",
        is_part: bool = False,
        config: dict[str, Any] | None = None,
        docstring: str | None = None,
    ) -> AgentCandidate:
        modules, files = self._modules, self._modules.files
        folder = files.project_of(module.path)
        written: dict[str, Any] = {"kind": "python", "callable": f"{relative(module.path, folder)}:{name}"}
        if folders := modules.import_folders(module):
            written["path"] = [relative(place, folder) for place in folders]
        incomplete: tuple[str, ...] = ()
        examples: tuple[str, ...] = ()
        instructions = own_name = ""
        tools: tuple[FoundTool, ...] = ()
        if construction is not None:
            framework = framework or construction.maker.framework
            instructions = module_description.instructions_of(modules, construction.module, construction.call)
            tools = module_description.tools_of(modules, construction.module, construction.call, name)
            own_name = modules.text(construction.module, keyword(construction.call, "name"))
            context, incomplete = self._context(construction)
            state = finder_of(framework).needed_state(modules, construction.module, construction.call)
            if context is None and (fields := {name: name.replace("_", " ") for name in state}):
                context, examples = fields, tuple(f"context.{name}" for name in fields)
            if context is not None:
                written["context"] = context
            if framework == "LangGraph":
                mapping, examples = self._state(construction)
                written.update(mapping)
                tools = tools or module_description.tools_in(modules, construction.module)
        # What makes an agent describes how it makes it.
        if docstring is None and isinstance(node, ast.ClassDef | Function) and construction is None:
            docstring = ast.get_docstring(node)
        instructions = instructions or module_description.without_sections(docstring or "")
        return AgentCandidate(
            sign=sign,
            name=agent_name(called or own_name or name, module.path, files.root),
            framework=framework,
            file=module.path,
            line=getattr(node, "lineno", 1),
            source=_source(name, node),
            folder=folder,
            config={**written, **(config or {})},
            instructions=instructions,
            tools=tools,
            prompts=module_description.prompts_in(modules, module, agent=name),
            is_part=is_part,
            incomplete=incomplete,
            examples=examples,
        )

    def _context(self, construction: Construction) -> tuple[Any, tuple[str, ...]]:
        call, module = construction.call, construction.module
        node = keyword(call, "deps_type", "context_schema")
        if node is None and construction.maker.framework == "openai-agents" and isinstance(call.func, ast.Subscript):
            node = call.func.slice
        return context_for(self._modules, module, node)

    def _state(self, construction: Construction) -> tuple[dict[str, Any], tuple[str, ...]]:
        """`input` and `output` for a graph that takes no messages, and the fields of its input that are examples."""
        call = construction.call
        if not call.args and not call.keywords:
            return {}, ()
        state = keyword(call, "state_schema", "schema") or next(iter(call.args), None)
        takes = keyword(call, "input_schema", "input") or state
        gives = keyword(call, "output_schema", "output") or state
        fields = fields_of(self._modules, construction.module, takes)
        results = fields_of(self._modules, construction.module, gives)
        if fields is None or results is None or code_of(call.func).endswith("create_react_agent"):
            return {}, ()
        names = [field.name for field in fields[1]]
        # It takes messages, as ours are.
        if not names or "messages" in names:
            return {}, ()
        where, listed = fields
        computed = self._written(construction.module)
        place = place_for_prompt(self._modules, where, listed, computed=computed)
        into, value = place or place_for_prompt(self._modules, where, listed) or (names[0], "{{prompt}}")
        values: dict[str, Any] = {into: value}
        if not is_typed_dict(self._modules, construction.module, takes):  # no key of those has to be there
            for field in listed:
                can, value = placeholder(self._modules, where, field.annotation)
                if can and not field.has_default and field.name != into:
                    values[field.name] = value
        declared = {field.name: field.annotation for field in results[1]}
        result_names = list(declared)
        others = tuple(f"input.{name}" for name, value in values.items() if value != "{{prompt}}")
        if "messages" in result_names:
            return {"input": values}, others
        rest = [name for name in result_names if name != into] or result_names
        texts = [f.name for f in results[1] if f.annotation is not None and is_text(f.annotation)]
        answers = [name for name in rest if name in texts and not names_a_thing(name)]
        computed_last = [name for name in rest if name in computed and not is_number(declared[name])]
        out = next(
            (name for name in (*ANSWER_FIELDS, *reversed(answers), *reversed(computed_last)) if name in rest), rest[-1]
        )
        return {"input": values, "output": out}, others

    def _written(self, module: Module) -> set[str]:
        """The keys of a state that nodes write, in a module with a graph and in those that it imports: they return
        them, set them, or give them to `Command(update=...)`."""
        keys: set[str] = set()
        for part in (module, *self._modules.imported(module)):
            for node in part.nodes:
                if (
                    isinstance(node, ast.Return | ast.keyword)
                    and getattr(node, "arg", "update") == "update"
                    and isinstance(node.value, ast.Dict)
                ):
                    keys.update(map(constant_text, filter(None, node.value.keys)))
                elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
                    keys.add(constant_text(node.slice))
        return keys

    # Factories and classes

    def _factories(self, module: Module) -> Iterator[AgentCandidate]:
        called = {
            node.func.id
            for value in module.values.values()
            for node in ast.walk(value)
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        }
        for name, function in module.functions.items():
            # One that the module calls made an object that was found.
            if name in called or name.startswith("_") or not _needs_nothing(function) or _is_tool(function):
                continue
            construction = self._frameworks.returned(module, function)
            if construction is not None:
                yield self._agent(module, name, function, construction, Sign.FACTORY)

    def _classes(self, module: Module) -> Iterator[AgentCandidate]:
        # An object that the module makes of a class is the agent, and not the class.
        options = {
            value.func.id: (name, value)
            for name, value in module.values.items()
            if isinstance(value, ast.Call) and isinstance(value.func, ast.Name)
        }
        for name, cls in module.classes.items():
            own, node, sign = (*options[name], Sign.OBJECT) if name in options else (name, cls, Sign.FACTORY)
            if any(each.endswith("Tool") for each in (name, *map(code_of, cls.bases))):
                continue  # of an agent
            if name.endswith(("Model", *_MODELS)):
                continue  # it asks a model for an agent
            docstring, line, is_made = ast.get_docstring(cls), list(self._line(module, cls)), name in options
            known = ((finder, finder.of_class(self._modules, line, is_made)) for finder in finders())
            finder, of_framework = next((pair for pair in known if pair[1] is not None), (None, None))
            if finder is not None and of_framework is not None:
                own, node, sign = (own, node, sign) if of_framework.sign is None else (name, cls, of_framework.sign)
                agent = self._agent(module, own, node, None, sign, framework=finder.framework, docstring=docstring)
                yield structs.replace(agent, variables=of_framework.variables, tools=of_framework.tools or agent.tools)
            elif (
                (not name.startswith("_") or is_made)
                and (library := self._sdk(module))
                and self._is_asked(module, cls, is_made=is_made)
            ):
                config = {"capture": "model"}
                yield self._agent(module, own, node, None, sign, framework=library, config=config, docstring=docstring)

    def _is_asked(
        self, module: Module, cls: ast.ClassDef, *, is_made: bool, settings: dict[str, Any] | None = None
    ) -> bool:
        """Whether this class wraps a model or an agent: it is made with nothing, or by the module, and has a method to
        ask it. With `settings`, it may also be made with plain values, of which examples are put there. One with
        abstract methods isn't an agent, but its subclasses are; one that adapts a model to a framework is neither.
        """
        line = list(self._line(module, cls))
        bases = [module.qualified(base) for module, each in line for base in each.bases]
        if any(base.endswith(_MODELS) or _CHAT_MODEL.fullmatch(base) for base in bases):
            return False
        methods = {node.name: node for _, each in reversed(line) for node in each.body if isinstance(node, Function)}
        if any("abstractmethod" in code_of(name) for each in methods.values() for name in each.decorator_list):
            return False
        ask = next((methods[name] for name in _WAYS if name in methods), None)
        init = methods.get("__init__")
        is_ready = is_made or init is None or [node.arg for node in needed(init)] == ["self"]
        if settings is not None and init is not None and not is_ready:
            settings.update(_example_settings(self._modules, module, init))
            is_ready = bool(settings)
        if ask is None or not is_ready or len(needed(ask)) != 2 or not returns_a_value(ask):
            return False
        return any(
            self._asks(module, each)
            or any(self._frameworks.maker_of(module, call.func) is not None for call in module.calls_in(each))
            for module, each in line
        )

    def made_with_settings(self, read: Sequence[Module]) -> Iterator[AgentCandidate]:
        """Classes of the modules `read` that ask a model, and are made with plain values."""
        for module in read:
            library = self._sdk(module)
            for name, cls in module.classes.items() if library else ():
                settings: dict[str, Any] = {}
                if name.startswith("_") or name.endswith(("Model", "Tool", "Client", "Driver", *_MODELS)):
                    continue
                if not self._is_asked(module, cls, is_made=False, settings=settings) or not settings:
                    continue
                config = {"capture": "model", "settings": settings}
                agent = self._agent(module, name, cls, None, Sign.FACTORY, framework=library, config=config)
                yield structs.replace(agent, examples=tuple(f"settings.{each}" for each in settings))

    def _line(self, module: Module, cls: ast.ClassDef, depth: int = 0) -> Iterator[tuple[Module, ast.ClassDef]]:
        """The class, then the classes of the project that it is made of."""
        yield module, cls
        for base in cls.bases if depth < _DEEPEST else ():
            place = self._modules.value(module, base)
            if place is not None and isinstance(place[1], ast.ClassDef):
                yield from self._line(place[0], place[1], depth + 1)

    def subclasses(self, read: Sequence[Module], paths: Sequence[str]) -> Iterator[AgentCandidate]:
        """The agents in the files `paths` whose classes are made of one in the modules `read`: they need not import a
        framework themselves."""
        bases = {id(cls): cls for module in read for cls in module.classes.values()}
        names = "|".join(sorted({re.escape(cls.name) for cls in bases.values()}))
        subclass = re.compile(rf"^class\s+\w+\s*\([^)]*\b(?:{names})\b".encode(), re.M)
        for path in paths if names else ():
            text = self._modules.files.text(path)
            if text is None or not subclass.search(text) or (module := self._modules.get(path)) is None:
                continue
            if self._sdk(module):
                continue  # its classes were looked at
            for name, cls in module.classes.items():
                libraries = [self._sdk(home) for home, each in self._line(module, cls) if id(each) in bases]
                if not any(libraries) or name.startswith("_") or name.endswith(("Model", *_MODELS)):
                    continue
                if not self._is_asked(module, cls, is_made=False):
                    continue
                library, config = next(filter(None, libraries)), {"capture": "model"}
                yield self._agent(module, name, cls, None, Sign.FACTORY, framework=library, config=config)

    def constructed(self, read: Sequence[Module], paths: Sequence[str]) -> Iterator[AgentCandidate]:
        """The agents in the files `paths` that are made by functions of the modules `read`, which need a model or a
        config for it: what calls them need not import a framework itself."""
        makers = {
            name
            for module in read
            for name, function in module.functions.items()
            if not _needs_nothing(function) and self._frameworks.returned(module, function) is not None
        }
        call = re.compile(rf"\b(?:{'|'.join(sorted(makers))})\s*\(".encode())
        known = {module.path for module in read}
        for path in paths if makers else ():
            text = None if path in known else self._modules.files.text(path)
            if text is not None and call.search(text) and (module := self._modules.get(path)) is not None:
                yield from self._objects(module)
                yield from self._factories(module)

    # Functions and programs

    def _sdk(self, module: Module) -> str:
        for target in module.imports.values():
            for package in SDKS:
                if target == package or target.startswith(package + "."):
                    return SDK_NAMES[package.partition(".")[0]]
            if _CHAT_MODEL.fullmatch(target):
                return "LangChain"
        for call in module.calls:
            if (maker := self._frameworks.maker_of(module, call.func)) is not None:
                return maker.framework
        return self._client(module)

    def _client(self, module: Module) -> str:
        """The HTTP client with which it asks a server of models by itself."""
        if module.path not in self._clients:
            self._clients[module.path] = model_servers.python_client(module)
        return self._clients[module.path]

    def _asks_at_once(self, module: Module) -> bool:
        """Whether to import it is to ask a server of models."""
        return bool(self._client(module)) and model_servers.asks_at_once(module) is not None

    def _asks(self, module: Module, scope: ast.AST) -> bool:
        """Whether a model or an agent is asked in a part of a module."""
        calls = module.calls_in(scope)
        return any(map(_is_question, calls)) or (bool(self._client(module)) and model_servers.sends(calls))

    def _functions(self, module: Module) -> Iterator[AgentCandidate]:
        library = self._sdk(module)
        if not library:
            return
        for name, function in module.functions.items():
            if name.startswith("_") or _is_tool(function) or not stays_callable(module, function):
                continue
            missing = [node for node in needed(function) if node.arg not in HISTORY]
            first = missing[0] if len(missing) == 1 else None
            if (
                first is None
                or first.arg not in _PROMPTS
                or not returns_a_value(function)
                or not self._asks(module, function)
            ):
                continue
            config = {"capture": "model"}
            yield self._agent(module, name, function, None, Sign.FUNCTION, framework=library, config=config)

    def scripts(
        self, scripts: Mapping[str, ConsoleScript], agents: Sequence[AgentCandidate]
    ) -> Iterator[tuple[AgentCandidate, set[str]]]:
        """The commands of the project that ask a model, each with the files of the modules that do: `scripts` by the
        file of their function. Where such a module has one of `agents` that is made, that is asked instead."""
        made = {agent.file for agent in agents if agent.sign not in (*PARTS, Sign.ROUTE)}
        for path, script in scripts.items():
            module = self._modules.get(path)
            if module is None:
                continue
            # Another module of the project often declares its arguments.
            declares = next(filter(declares_arguments, (module, *self._modules.imported(module))), module)
            arguments = python_arguments(declares, self._readme(module), script.name)
            reads_input = not declares_arguments(declares) and self._serves_nobody(module)
            if not (arguments.is_named or (script.is_main and (arguments.words or reads_input))):
                continue
            libraries = {part.path: self._sdk(part) for part in (module, *self._parts(module))}
            asking = {part for part, library in libraries.items() if library}
            if asking and made.isdisjoint(asking):
                # A client of HTTP is rather for something else.
                library = min(filter(None, libraries.values()), key=lambda name: name not in SDK_NAMES.values())
                yield self._program_of(module, library, arguments, script), asking

    def programs(
        self, paths: Sequence[str], agents: Sequence[AgentCandidate]
    ) -> Iterator[tuple[AgentCandidate, set[str]]]:
        """Programs in the files `paths` that ask a model only through other modules of the project, each with the files
        of those. Where such a module has one of `agents` that is made, that is asked instead."""
        made = {agent.file for agent in agents if agent.sign not in PARTS}
        seen = {agent.file for agent in agents}
        for path in paths:
            text = self._modules.files.text(path)
            if self._modules.files.is_late():
                return
            if path in seen or text is None or not self._starts.search(text):
                continue
            module = self._modules.get(path)
            if module is None or not (self._is_app(module) or self._is_program(module)):
                continue
            libraries = {part.path: self._asked_of(part) for part in self._parts(module)}
            asking = {part for part, library in libraries.items() if library}
            if asking and made.isdisjoint(asking):
                library = next(filter(None, libraries.values()))
                program = self._app(module, library) if self._is_app(module) else self._program(module, library)
                if program is not None:
                    yield program, asking

    def _is_app(self, module: Module) -> bool:
        return not self._apps.keys().isdisjoint(map(_top, module.imports.values()))

    def _is_program(self, module: Module) -> bool:
        return (module.is_program() or bool(self._managed(module))) and self._serves_nobody(module)

    def _managed(self, module: Module) -> list[str]:
        """The words of the `manage.py` that starts a module which is a command of Django and takes a question; [] for
        any other module."""
        named = _MANAGEMENT.search(module.path)
        if named is None or "Command" not in module.classes:
            return []
        if not python_arguments(module).words and not any(called_name(call) == "input" for call in module.calls):
            return []  # it works on what is in the database, say
        project = self._modules.files.project_of(module.path)
        place = module.path[: named.start()]
        while not self._modules.files.has(f"{place}/manage.py".lstrip("/")):
            if place == project or not place:
                return []
            place = place.rpartition("/")[0]
        return [relative(f"{place}/manage.py".lstrip("/"), project), named[1]]

    def _serves_nobody(self, module: Module) -> bool:
        """Whether it waits for no other program or person, and needs no terminal."""
        imported = _packages(module)
        if any(not _RECEIVES.isdisjoint(_packages(part)) for part in self._modules.imported(module)):
            return False
        # `import mcp` may be for its server; `from mcp import ClientSession` is not.
        serves = "mcp" in module.imports.values() or not _SERVES.isdisjoint(imported)
        return not serves and not any(module.qualified(call.func) == "os.get_terminal_size" for call in module.calls)

    def _asked_of(self, module: Module) -> str:
        """The library whose model a module asks; "" where it asks none."""
        if module.path not in self._libraries:
            self._libraries[module.path] = self._sdk(module) if self._asks(module, module.tree) else ""
        return self._libraries[module.path]

    def _parts(self, module: Module) -> Iterator[Module]:
        """The modules of its project that one imports, and those that these import, the nearest first. Far away, a
        model belongs to a library of the project rather than to the program."""
        project = self._modules.files.project_of(module.path)
        visited, importers = {module.path}, [module]
        for _ in range(_STEPS):
            parts: list[Module] = []
            for importer in importers:
                for part in self._modules.imported(importer):
                    if part.path not in visited and self._modules.files.project_of(part.path) == project:
                        visited.add(part.path)
                        parts.append(part)
            yield from parts
            importers = parts

    def _app(self, module: Module, library: str = "") -> AgentCandidate | None:
        """The app in a module that asks a model or makes an agent; None where it is none, or can't be asked."""
        package = next((name for name in map(_top, module.imports.values()) if name in self._apps), None)
        if package is None:
            return None
        app = self._apps[package](self._modules, module)
        if app is None or not (app.is_chat or library or self._asked_of(module) or self._made_in(module)):
            return None
        files = self._modules.files
        folder = files.project_of(module.path)
        config: dict[str, Any] = {"kind": "python", "callable": relative(module.path, folder), "capture": "model"}
        construction = self._made_in(module)
        instructions = (
            module_description.instructions_of(self._modules, module, construction.call) if construction else ""
        )
        return AgentCandidate(
            sign=Sign.APP,
            name=agent_name("app", module.path, files.root),
            framework=app.framework,
            file=module.path,
            line=app.line,
            source=app.source,
            folder=folder,
            config=config if app.input is None else {**config, "input": app.input},
            instructions=instructions,
            tools=module_description.tools_of(self._modules, module, construction.call, "") if construction else (),
            prompts=(*app.prompts, *module_description.prompts_in(self._modules, module)),
        )

    def _made_in(self, module: Module) -> Construction | None:
        """The first agent that is made anywhere in a module."""
        return next(filter(None, (self._frameworks.makes(module, call) for call in module.calls)), None)

    def _own_program(self, module: Module) -> Iterator[AgentCandidate]:
        library = self._sdk(module)
        if (
            library
            and self._serves_nobody(module)
            and (self._asks(module, module.tree) or any(self._calls_agent(module, call) for call in module.calls))
        ):
            yield self._program(module, library)

    def _readme(self, module: Module) -> str:
        files = self._modules.files
        readme = files.text(f"{files.project_of(module.path)}/README.md".lstrip("/")) or b""
        return readme.decode("utf-8", "replace")

    def _program(self, module: Module, library: str) -> AgentCandidate:
        return self._program_of(module, library, python_arguments(module, self._readme(module)))

    def _program_of(
        self, module: Module, library: str, arguments: Arguments, script: ConsoleScript | None = None
    ) -> AgentCandidate:
        files = self._modules.files
        folder = files.project_of(module.path)
        own = relative(module.path, folder)
        package = own.removeprefix("src/").partition("/")[0]
        if any(
            target.startswith(".") or _top(target) == package or self._is_only_at(folder, module, _top(target))
            for target in module.imports.values()
        ):
            # It imports its own package, or one beside that: they are found only so.
            words = ["-m", own.removesuffix(".py").removeprefix("src/").replace("/", ".")]
        else:
            words = [own]
        managed = self._managed(module)
        words = managed or words
        python = python_of(files.root, folder)
        command = [python, *words]
        if python == "python3" and _INLINE_PACKAGES.search(files.text(module.path) or b""):
            # Its packages are those that it lists itself.
            command = ["uv", "run", "--script", own]
        construction = self._made_in(module)
        modules = self._modules
        instructions = module_description.instructions_of(modules, module, construction.call) if construction else ""
        if script is not None:
            installed = f"{python.removesuffix('python')}{script.name}"
            if (files.root / folder / installed).is_file():
                command = [installed]
            # An environment without the command has the packages that the project needs, and not the project.
            elif python == "python3" or not module.is_program() or own.startswith("src/"):
                command = [script.name]
        start = next(filter(is_guard, module.tree.body), model_servers.asks_at_once(module))
        if script is not None:
            file, line, source = script.declared, script.line, script.source
        else:
            file, line = module.path, 1 if start is None else start.lineno
            source = 'if __name__ == "__main__":' if start is None or is_guard(start) else source_of(start)
            if managed:
                line, source = module.classes["Command"].lineno, "class Command"
        return AgentCandidate(
            sign=Sign.PROGRAM if script is None else Sign.SCRIPT,
            name=agent_name("main" if script is None else script.name, module.path, files.root),
            framework=library,
            file=file,
            line=line,
            source=source,
            folder=folder,
            config={
                "kind": "command",
                "command": [*command, *arguments.words],
                **({} if arguments.words else {"input": "text"}),
                "capture": "model",
                "answer": "auto",
            },
            instructions=instructions,
            tools=module_description.tools_of(modules, module, construction.call, "") if construction else (),
            prompts=(*arguments.prompts, *module_description.prompts_in(modules, module)),
        )

    def _is_only_at(self, folder: str, module: Module, package: str) -> bool:
        """Whether a package or module is at the root of the project, and not beside a module in a folder of it."""

        def is_in(place: str) -> bool:
            base = f"{place}/{package}" if place else package
            return any(map(self._modules.files.has, (f"{base}.py", f"{base}/__init__.py")))

        return module.folder != folder and is_in(folder) and not is_in(module.folder)

    def _calls_agent(self, module: Module, call: ast.Call) -> bool:
        """Whether an agent that this module makes is called like a function."""
        if not isinstance(call.func, ast.Name):
            return False
        options = (
            node.value
            for node in module.nodes
            if isinstance(node, ast.Assign) and [getattr(target, "id", "") for target in node.targets] == [call.func.id]
        )
        return any(
            self._frameworks.makes(module, value) is not None for value in options if isinstance(value, ast.Call)
        )


def python_of(root: Any, folder: str) -> str:
    """The interpreter of a project's own environment, as a command in `folder` names it."""
    place, up = folder, ""
    while True:
        for name in ENVIRONMENT_FOLDERS:
            if (root / place / name / "pyvenv.cfg").is_file():
                return f"{up}{name}/bin/python"
        if not place:
            return "python3"
        place, up = place.rpartition("/")[0], up + "../"


def _source(name: str, node: ast.AST) -> str:
    if isinstance(node, ast.ClassDef):
        return f"class {name}"
    if isinstance(node, Function):
        return f"def {name}({source_of(node.args, 40)})"
    if isinstance(node, ast.Call):
        return f"{name} = {source_of(node.func, 40).partition('(')[0]}(…)"
    return source_of(node)


def _needs_nothing(function: Function) -> bool:
    names = {node.arg for node in [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]}
    if names & {"prompt", "messages", "request", *_PROMPTS}:
        return False
    return all(node.arg in _SETTINGS for node in needed(function))


def _is_tool(function: Function) -> bool:
    return any("tool" in code_of(node).lower() for node in function.decorator_list)


def _example_settings(modules: Modules, module: Module, init: Function) -> dict[str, Any]:
    """Examples of what an object must be made with; {} where it needs more than texts, numbers and the like."""
    settings = {}
    for node in needed(init)[1:]:
        if node.annotation is None or ast.unparse(node.annotation) not in ("str", "int", "float", "bool"):
            return {}
        settings[node.arg] = placeholder(modules, module, node.annotation)[1]
    return settings


def _packages(module: Module) -> set[str]:
    """The packages that a module imports from, as `mcp` and `mcp.server`."""
    return {".".join(name.split(".")[:length]) for name in module.imports.values() for length in (1, 2)}


def _top(target: str) -> str:
    """The top-level package of an imported name."""
    return target.partition(".")[0]


def _is_question(call: ast.Call) -> bool:
    return called_name(call) in _ASKS
