"""The app in a browser: who gets in, what the page loads, and a real browser that presses keys."""

from __future__ import annotations

import asyncio
import base64
import http.client
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pyte
import pytest

from agenteval_tui.cli.main import main
from agenteval_tui.extensions.serve.command import app_command

ROOT = Path(__file__).resolve().parents[3]
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
# The server's modules are loaded by the one process of the tests that runs these.
pytestmark = [
    pytest.mark.xdist_group("serve"),
    pytest.mark.skipif(find_spec("textual_serve") is None, reason="the extra `serve` is not installed"),
]


@pytest.mark.parametrize(
    ("host", "origin", "served", "said"),
    [
        ("127.0.0.1:8777", "", "127.0.0.1", ""),
        ("localhost:9000", "http://localhost:9000", "127.0.0.1", ""),  # through a tunnel
        ("[::1]:8777", "http://[::1]:8777", "::1", ""),
        ("tests.example", "https://tests.example", "tests.example", ""),
        ("192.0.2.7:8777", "http://192.0.2.7:8777", "0.0.0.0", ""),
        ("box:8777", "http://box:8777", "0.0.0.0", ""),
        ("rebound.example:8777", "http://rebound.example:8777", "127.0.0.1", "not a name of this machine"),
        ("127.0.0.1:8777", "http://evil.example", "127.0.0.1", "another site"),
        ("127.0.0.1:8777", "http://127.0.0.1:9999", "127.0.0.1", "another site"),
        ("127.0.0.1:8777", "null", "127.0.0.1", "another site"),
        ("127.0.0.1:8777", "file://127.0.0.1:8777", "127.0.0.1", "another site"),
        ("192.0.2.7:8777", "", "127.0.0.1", "not served"),
        ("", "", "127.0.0.1", "names no host"),
        ("[oops", "", "127.0.0.1", "names no host"),
    ],
)
def test_only_the_page_itself_gets_in(host: str, origin: str, served: str, said: str) -> None:
    from agenteval_tui.extensions.serve.web_server import why_refused

    why = why_refused(host, origin, served=served, names=["Box"])
    assert (said in why) if said else why == ""


def test_the_address_and_the_command_can_be_used_as_they_are(tmp_path: Path) -> None:
    from agenteval_tui.extensions.serve.web_server import ServerOptions, address_of

    assert address_of(ServerOptions("", "::1", 0, "s"), 5) == "http://[::1]:5/s/"
    assert ServerOptions("", "::1", 0).secret != ServerOptions("", "::1", 0).secret
    odd = tmp_path / "a b; $(touch never)"
    command = app_command((odd,), None)
    words = subprocess.run(["sh", "-c", command.replace("exec ", 'printf "%s\\n" ', 1)], capture_output=True, text=True)
    assert words.stdout.splitlines()[-1] == str(odd)


def test_without_the_extra_it_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.setitem(sys.modules, "textual_serve.server", None)
    monkeypatch.delitem(sys.modules, "agenteval_tui.extensions.serve.web_server")
    assert main(["serve"], launch_app=lambda start: 0) == 2
    assert "pip install 'agenteval-tui[serve]'" in capsys.readouterr().err


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a server of the sample suites."""
    folder = tmp_path_factory.mktemp("served")
    places = {f"AGENTEVAL_{name}_DIR": str(folder) for name in ("CONFIG", "DATA", "RUNTIME")}
    command = [sys.executable, "-m", "agenteval_tui", "serve", "--port", "0", str(ROOT / "sample_suites" / "recorded")]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env={**os.environ, **places, "LANG": "C", "TERM": "dumb"}, cwd=ROOT
    )
    try:
        assert process.stdout is not None
        said = process.stdout.readline()
        found = re.search(r"http://\S+", said)
        assert found, said
        yield found[0]
        process.send_signal(signal.SIGINT)
        assert process.wait(250) == 0
        assert "with your rights" in process.stdout.read()
    finally:
        process.kill()


def test_others_are_refused_and_the_page_loads_nothing_from_elsewhere(served: str) -> None:
    with httpx.Client() as client:
        page = client.get(served)
        assert page.status_code == 200
        assert "default-src 'none'" in page.headers["content-security-policy"]
        for name in ("page/page.css", "page/page.js", "static/js/textual.js", "static/css/xterm.css"):
            assert client.get(served + name).status_code == 200
            assert "//fonts." not in page.text
        root = served.rsplit("/", 2)[0]
        assert client.get(root + "/").status_code == 404
        assert client.get(f"{root}/not-the-secret/").status_code == 404
        assert client.get(served + "static/").status_code != 200  # no list of files
        assert client.get(served + "page/..%2f..%2fserve.py").status_code == 404
        assert client.get(served, headers={"Host": "rebound.example"}).status_code == 403
        upgrade = {
            "Connection": "Upgrade",
            "Upgrade": "websocket",
            "Sec-WebSocket-Version": "13",
            "Sec-WebSocket-Key": base64.b64encode(b"0" * 16).decode(),
        }
        rebound = {"Host": "rebound.example", "Origin": "http://rebound.example"}
        for origin in ({}, {"Origin": "http://evil.example"}, {"Origin": "null"}, rebound):
            assert client.get(served + "ws", headers={**upgrade, **origin}).status_code == 403


def test_no_path_leads_out_and_no_answer_tells_the_secret(served: str) -> None:
    parts = urlsplit(served)
    assert len(parts.path.strip("/")) >= 24, "too long to be guessed"
    for path in (
        "static/../../server.py",
        "static/%2e%2e/%2e%2e/server.py",
        "static/..%2f..%2fserver.py",
        "static//etc/passwd",
        "static/%2fetc%2fpasswd",
        "static/js/..%5c..%5cserver.py",
        "static/%00",
        "page/%2e%2e%2fserve.py",
        "page/index.html",
        "download/../ws",
        "download/nothing",
        "nowhere",
    ):
        # Paths as they are: a client would put them in order first.
        connection = http.client.HTTPConnection(parts.netloc)
        connection.request("GET", parts.path + path)
        answer = connection.getresponse()
        said = answer.read()
        assert answer.status in (403, 404), path
        assert b"import" not in said
        assert b"root:" not in said
        assert parts.path.strip("/").encode() not in said
        assert answer.headers["Referrer-Policy"] == "no-referrer", "no other site is told the address"
        assert answer.headers["Cache-Control"] == "no-store"
        connection.close()


class Page:
    """A page in a browser: its terminal's content, what it asked for, and its keyboard."""

    def __init__(self, socket: Any) -> None:
        self._socket = socket
        self._number = 0
        self._answers: dict[int, asyncio.Future[Any]] = {}
        self.asked_for: list[str] = []
        self.screen = pyte.Screen(80, 24)
        self._stream = pyte.ByteStream(self.screen)
        self._task = asyncio.create_task(self._listen())

    async def _listen(self) -> None:
        async for message in self._socket:
            said = json.loads(message.data)
            if "id" in said:
                self._answers.pop(said["id"]).set_result(said.get("result"))
            elif said["method"] == "Network.requestWillBeSent":
                self.asked_for.append(said["params"]["request"]["url"])
            elif said["method"] == "Network.webSocketCreated":
                self.asked_for.append(said["params"]["url"])
                size = dict(part.split("=") for part in said["params"]["url"].partition("?")[2].split("&"))
                self.screen.resize(int(size["height"]), int(size["width"]))
            elif said["method"] == "Network.webSocketFrameReceived":
                frame = said["params"]["response"]
                if frame["opcode"] == 2:
                    self._stream.feed(base64.b64decode(frame["payloadData"]))

    async def call(self, method: str, **params: Any) -> Any:
        self._number += 1
        answer = self._answers[self._number] = asyncio.get_running_loop().create_future()
        await self._socket.send_json({"id": self._number, "method": method, "params": params})
        return await asyncio.wait_for(answer, 250)

    async def press(self, key: str) -> None:
        await self.call("Input.dispatchKeyEvent", type="keyDown", key=key, text=key)
        await self.call("Input.dispatchKeyEvent", type="keyUp", key=key)

    async def click(self, x: int, y: int) -> None:
        for kind in ("mousePressed", "mouseReleased"):
            await self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    async def shows(self, text: str) -> None:
        end = time.monotonic() + 250
        while not any(text in line for line in self.screen.display):
            assert time.monotonic() < end, "\n".join(self.screen.display)
            await asyncio.sleep(0.05)


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")
@pytest.mark.e2e
async def test_a_real_browser_shows_the_app_and_takes_keys(served: str, tmp_path: Path) -> None:
    import aiohttp

    assert CHROMIUM is not None
    quiet = ["gpu", "quic", "background-networking", "component-update", "sync", "extensions", "default-apps"]
    options = ["--headless", "--no-sandbox", "--no-first-run", *(f"--disable-{one}" for one in quiet)]
    where = [f"--user-data-dir={tmp_path / 'browser'}", "--remote-debugging-port=0", "--window-size=1200,800"]
    browser = subprocess.Popen([CHROMIUM, *options, *where, "about:blank"], stderr=subprocess.DEVNULL)
    try:
        port_file = tmp_path / "browser" / "DevToolsActivePort"
        end = time.monotonic() + 250
        while not port_file.is_file() or not port_file.read_text():
            assert time.monotonic() < end, "the browser did not start"
            await asyncio.sleep(0.05)
        port = port_file.read_text().split()[0]
        async with aiohttp.ClientSession() as session:
            async with session.get(f"http://127.0.0.1:{port}/json") as listed:
                target = next(one for one in await listed.json(content_type=None) if one["type"] == "page")
            async with session.ws_connect(target["webSocketDebuggerUrl"], max_msg_size=0) as socket:
                page = Page(socket)
                await page.call("Network.enable")
                await page.call("Page.enable")
                await page.call("Page.navigate", url=served)
                await page.shows("customers-")
                assert "✗" in "".join(page.screen.display) or "▸" in "".join(
                    page.screen.display
                )  # UTF-8, whatever LANG
                before = (await page.call("Page.captureScreenshot"))["data"]
                await page.press("?")
                await page.shows("Help")
                painted = (await page.call("Page.captureScreenshot"))["data"]
                assert painted != before
                if os.environ.get("AGENTEVAL_TEST_PICTURES"):
                    folder = Path(os.environ["AGENTEVAL_TEST_PICTURES"])
                    (folder / "browser-before.png").write_bytes(base64.b64decode(before))
                    (folder / "browser.png").write_bytes(base64.b64decode(painted))
                await page.press("q")
                await page.click(300, 158)  # a row
                await page.shows("▌ ")
                await page.press("5")
                await page.shows("history")
                mine = served.partition("//")[2].partition("/")[0]
                elsewhere = [url for url in page.asked_for if not re.match(rf"(https?|wss?)://{mine}/|data:", url)]
                assert elsewhere == []
    finally:
        browser.terminate()
        browser.wait(250)
