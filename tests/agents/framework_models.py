"""Models on loopback for agents of frameworks: what they answer follows from what they are asked."""

from __future__ import annotations

import json
from typing import Any

from dialects import CHAT, RESPONSES, Call, Text
from scripted import Answer, Request

HANDING = ("transfer", "handoff", "delegate", "Handoff")
HANDED = {
    "handoff": '{"to_agent": "shop", "reason": "it sells"}',  # of LlamaIndex
    "delegate_task_to_member": '{"member_id": "shop", "task": "socks"}',  # of Agno
}
CALLS = (("a", "find", '{"q": "socks"}'), ("b", "bad", '{"x": 1}'))


def calls_in(body: Any) -> list[tuple[str, str, str]]:
    """The calls that the model makes for this request: (id, name, arguments)."""
    told = body.get("messages") or body.get("input")
    told = told if isinstance(told, list) else []
    asked = max((number for number, one in enumerate(told) if one.get("role") == "user"), default=0)
    said = json.dumps(told[asked:])
    offered = [one.get("function", one)["name"] for one in body.get("tools") or ()]
    plain = {name.rpartition("-")[2]: name for name in offered}  # Semantic Kernel has `Shop-find`
    own = [(key, plain[name], arguments) for key, name, arguments in CALLS if name in plain]
    if own:
        return [] if f'"name": "{own[0][1]}"' in said else own
    over = [name for name in offered if name.rpartition("-")[2].startswith(HANDING) and f'"name": "{name}"' not in said]
    return [("h", name, HANDED.get(name, "{}")) for name in over[:1]]


def as_openai(request: Request) -> Answer:
    """A model of the two APIs of OpenAI, streamed and whole. It calls the tools `find` and `bad` if it has them, else
    one that hands over to another agent; once it knows what they gave, it answers."""
    body = request.json
    dialect = RESPONSES if request.path.endswith("/responses") else CHAT
    asked = calls_in(body)
    answered = not asked
    words = ["3 ", "pairs"] if answered else ["let me ", "see"]
    if answered and body.get("response_format"):
        words = ['{"pairs": 3}']
    text = "".join(words)
    parts: list[Any] = [Text(words)]
    parts += [Call(key, name, [arguments[:6], arguments[6:]]) for key, name, arguments in asked]
    used = {"prompt_tokens": 20, "completion_tokens": 2} if answered else {"prompt_tokens": 10, "completion_tokens": 5}
    used["total_tokens"] = sum(used.values())
    if dialect is CHAT and body.get("stream"):
        chunks = [json.loads(one[6:]) for one in dialect.chunks(*parts)]
        for delta in [choice["delta"] for chunk in chunks for choice in chunk["choices"]]:
            for call in delta.get("tool_calls") or ():
                call.update({"type": "function"} if call.get("id") else {})  # Agno needs it
        chunks.append({"choices": [], "usage": used})
        about = {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "m"}
        lines = [f"data: {json.dumps({**about, **chunk})}\n\n" for chunk in chunks]
        return Answer(200, "".join([*lines, "data: [DONE]\n\n"]), "text/event-stream")
    if dialect is CHAT:
        calls = [{"id": i, "type": "function", "function": {"name": n, "arguments": a}} for i, n, a in asked]
        message = {"role": "assistant", "content": text, **({"tool_calls": calls} if calls else {})}
        choice = {"index": 0, "message": message, "finish_reason": "stop" if answered else "tool_calls"}
        about = {"id": f"x{answered}", "object": "chat.completion", "created": 1, "model": "m"}
        return Answer(200, json.dumps({**about, "choices": [choice], "usage": used}))
    content = [{"type": "output_text", "text": text, "annotations": []}]
    items: list[Any] = [
        {"type": "message", "id": f"m{answered}", "role": "assistant", "status": "completed", "content": content}
    ]
    items += [{"type": "function_call", "id": f"f{i}", "call_id": i, "name": n, "arguments": a} for i, n, a in asked]
    tokens = {
        "input_tokens": used["prompt_tokens"],
        "output_tokens": used["completion_tokens"],
        "total_tokens": used["total_tokens"],
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens_details": {"reasoning_tokens": 0},
    }
    about = {"id": f"r{answered}", "object": "response", "created_at": 1, "model": "m", "status": "completed"}
    whole = {**about, "output": items, "usage": tokens, "tools": [], "tool_choice": "auto", "parallel_tool_calls": True}
    if not body.get("stream"):
        return Answer(200, json.dumps(whole))
    place = {"output_index": 0, "content_index": 0, "item_id": f"m{answered}"}
    events: list[Any] = [{"type": "response.created", "response": {**whole, "output": [], "usage": None}}]
    events += [{"type": "response.output_text.delta", "delta": one, "logprobs": [], **place} for one in parts[0].pieces]
    events += [{"type": "response.output_item.done", "output_index": n, "item": one} for n, one in enumerate(items)]
    events.append({"type": "response.completed", "response": whole})
    lines = [
        f"event: {one['type']}\ndata: {json.dumps({**one, 'sequence_number': n})}\n\n" for n, one in enumerate(events)
    ]
    return Answer(200, "".join(lines), "text/event-stream")


def as_dspy(request: Request) -> Answer:
    """A model that answers in the fields that DSPy asks for: two tools, the end, and then the answer."""
    told = json.dumps(request.json["messages"])
    if "[[ ## next_tool_name ## ]]" in told:
        done = told.count("[[ ## observation_")
        tool, arguments = [("find", '{"q": "socks"}'), ("bad", '{"x": 1}'), ("finish", "{}")][done]
        fields = {"next_thought": "let me see", "next_tool_name": tool, "next_tool_args": arguments}
    else:
        fields = {"reasoning": "hm", "answer": "3 pairs"}
    text = "\n\n".join(f"[[ ## {name} ## ]]\n{value}" for name, value in {**fields, "completed": ""}.items())
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    usage = {"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12}
    about = {"id": "x", "object": "chat.completion", "created": 1, "model": "m"}
    return Answer(200, json.dumps({**about, "choices": [choice], "usage": usage}))


def as_anthropic(request: Request) -> Answer:
    """A model of the Messages API that streams. It calls a sub-agent where it has that tool and no result of it, else
    `find` and `bad` of an MCP server; then it answers."""
    body = request.json
    if "count_tokens" in request.path:
        return Answer(200, '{"input_tokens": 5}')
    told = body["messages"]
    named = [block.get("name") for message in told for block in message["content"] if isinstance(block, dict)]
    offered = [one["name"] for one in body.get("tools") or ()]
    start = next((name for name in ("Agent", "Task") if name in offered), None)
    calls: list[tuple[str, str, Any]] = []
    if start and start not in named:
        brief = {"description": "sell", "prompt": "sell socks", "subagent_type": "keeper", "run_in_background": False}
        calls = [("h", start, brief)]
    elif not start and "mcp__shop__find" in offered and "mcp__shop__find" not in named:
        calls = [(key, f"mcp__shop__{name}", json.loads(arguments)) for key, name, arguments in CALLS]
    words = "let me see" if calls else "3 pairs"
    usage = {"input_tokens": 10 if calls else 20, "output_tokens": 5 if calls else 2}
    stop = "tool_use" if calls else "end_turn"
    blocks: list[tuple[Any, Any]] = [
        ({"type": "text", "text": ""}, {"type": "text_delta", "text": words}),
        *(
            (
                {"type": "tool_use", "id": key, "name": name, "input": {}},
                {"type": "input_json_delta", "partial_json": json.dumps(arguments)},
            )
            for key, name, arguments in calls
        ),
    ]
    about = {"id": f"msg_{len(told)}_{start}", "type": "message", "role": "assistant", "model": "m", "content": []}
    message = {**about, "stop_reason": None, "stop_sequence": None, "usage": {**usage, "output_tokens": 1}}
    events: list[Any] = [{"type": "message_start", "message": message}]
    for number, (block, delta) in enumerate(blocks):
        events.append({"type": "content_block_start", "index": number, "content_block": block})
        events.append({"type": "content_block_delta", "index": number, "delta": delta})
        events.append({"type": "content_block_stop", "index": number})
    events.append({"type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": None}, "usage": usage})
    events.append({"type": "message_stop"})
    lines = [f"event: {one['type']}\ndata: {json.dumps(one)}\n\n" for one in events]
    return Answer(200, "".join(lines), "text/event-stream")
