"""OpenTelemetry's protocol: spans that programs send, put together to transcripts as they arrive."""
