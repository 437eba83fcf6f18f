"""Programs that ask Gemini or Claude on Vertex AI are recorded like those that ask Google or Anthropic."""

from __future__ import annotations

import json
from typing import Any

import pytest
from scripted import Answer as Sent
from scripted import Request, ScriptedServer
from test_auto_capture import paths_of, python
from test_capture import run, told

from agenteval_tui.agents.recording.exchange import Question
from agenteval_tui.agents.recording.protocols import read_request
from tests.agents.conftest import skip_without

GOOGLE = "v1beta1/projects/shop/locations/us-central1/publishers/google/models/gemini-2.5-flash"
CLAUDE = "v1/projects/shop/locations/us-central1/publishers/anthropic/models/claude-sonnet-4-5@20250929"
AGENTS = """
import os
def gemini(prompt):
    from google import genai
    from google.oauth2.credentials import Credentials
    options = genai.types.HttpOptions(base_url=os.environ["SHOP_MODEL"])
    client = genai.Client(
        vertexai=True, project="shop", location="us-central1", credentials=Credentials("planted"), http_options=options
    )
    config = genai.types.GenerateContentConfig(system_instruction="Be brief.")
    pieces = client.models.generate_content_stream(model="gemini-2.5-flash", contents=prompt, config=config)
    return "".join(piece.text or "" for piece in pieces)
def claude(prompt):
    from anthropic import AnthropicVertex
    client = AnthropicVertex(
        project_id="shop", region="us-central1", access_token="planted", base_url=os.environ["SHOP_MODEL"] + "/v1"
    )
    messages = [{"role": "user", "content": prompt}]
    reply = client.messages.create(
        model="claude-sonnet-4-5@20250929", max_tokens=9, system="Be brief.", messages=messages
    )
    return reply.content[0].text
"""


def vertex(request: Request) -> Sent:
    if "anthropic" in request.path:
        usage = {"input_tokens": 1000, "output_tokens": 100}
        content = [{"type": "text", "text": "It is shipped."}]
        body = {"id": "m1", "type": "message", "role": "assistant", "model": "claude", "content": content}
        return Sent(body=json.dumps({**body, "stop_reason": "end_turn", "stop_sequence": None, "usage": usage}))
    usage = {"promptTokenCount": 1000, "candidatesTokenCount": 100}
    parts = [{"text": "It is shipped."}]
    chunk = {"candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": "STOP"}]}
    return Sent(body=f"data: {json.dumps({**chunk, 'usageMetadata': usage})}\r\n\r\n", content_type="text/event-stream")


@pytest.mark.parametrize(
    ("agent", "path"),
    [("gemini", f"gemini/{GOOGLE}:streamGenerateContent"), ("claude", f"gemini/{CLAUDE}:rawPredict")],
)
async def test_what_is_asked_on_vertex_is_recorded(tmp_path: Any, agent: str, path: str) -> None:
    skip_without("google.genai" if agent == "gemini" else "anthropic")
    async with ScriptedServer(vertex) as server:
        env = {"SHOP_MODEL": f"http://127.0.0.1:{server.port}"}
        transcript, events = await run(python(tmp_path, AGENTS, agent), tmp_path, env, "Where is it?")
    assert transcript.error is None
    assert paths_of(events) == [path]
    assert told(transcript) == ["system: Be brief.", "user: Where is it?", "assistant: It is shipped."]
    assert transcript.usage.input_tokens == 1000


def test_tokens_that_are_counted_are_no_question_to_a_model() -> None:
    path = CLAUDE.replace("claude-sonnet-4-5@20250929", "count-tokens:rawPredict")
    assert read_request(Question("POST", f"gemini/{path}", {}, {"messages": []})) is None
