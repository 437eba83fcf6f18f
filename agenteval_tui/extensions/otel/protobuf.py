"""The package that reads OTLP's protobuf: the extra `otel`."""

from __future__ import annotations

from importlib.util import find_spec

from agenteval_tui.core.errors import AgentevalError


def require_protobuf() -> None:
    """Raises `AgentevalError` where it is not installed."""
    if find_spec("opentelemetry") is None or find_spec("opentelemetry.proto") is None:
        raise AgentevalError(
            "the package that reads OTLP's protobuf is not installed", fix="pip install 'agenteval-tui[otel]'"
        )
