"""Structured logs: one JSON object per line on stderr, event names like `room.create.refused`.

Every line of a call has its `trace_id`. Never log a token, a key, a payload or a password. Account and device ids may
appear; they are random.
"""

import logging
import os
import sys
import traceback
from collections.abc import Mapping
from typing import Any, TextIO

import structlog

from services.kit import trace
from services.kit.settings import SettingsError

__all__ = ["Logger", "configure", "describe", "get"]

Logger = structlog.typing.FilteringBoundLogger
_LEVELS = ("debug", "info", "warning", "error")


def configure(service: str, environ: Mapping[str, str] = os.environ, stream: TextIO | None = None) -> None:
    """Set up logging for this process; `KOIKOI_LOG_LEVEL` is debug, info (default), warning or error.

    Raises:
        SettingsError: The level is unknown.
    """
    level = environ.get("KOIKOI_LOG_LEVEL", "info").lower()
    if level not in _LEVELS:
        raise SettingsError(f"KOIKOI_LOG_LEVEL must be one of {', '.join(_LEVELS)}.")
    number = logging.getLevelNamesMapping()[level.upper()]

    def add_service(_logger: object, _method: str, event: Any) -> Any:
        event["service"] = service
        if trace_id := trace.current().id:
            event["trace_id"] = trace_id
        return event

    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            add_service,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.JSONRenderer(ensure_ascii=False),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(number),
        logger_factory=structlog.PrintLoggerFactory(stream or sys.stderr),
        cache_logger_on_first_use=False,
    )
    # Libraries (grpc, asyncio, aiohttp) speak through the standard library; only their warnings matter here.
    logging.basicConfig(level=max(number, logging.WARNING), handlers=[_Libraries()], force=True)


class _Libraries(logging.Handler):
    """Writes what a library says as one line of ours, without what it quotes.

    An exception's message may hold a stranger's bytes (aiohttp shows the header line it cannot read, and a token may be
    in it), so of an exception only its kind and place are kept, and of a message its first line.
    """

    def emit(self, record: logging.LogRecord) -> None:
        said = {"logger": record.name, "text": record.getMessage().partition("\n")[0]}
        if record.exc_info and (error := record.exc_info[1]) is not None:
            said |= describe(error)
        get().log(record.levelno, "library.said", **said)


def describe(error: BaseException) -> dict[str, Any]:
    """Say what happened where, for a log line; not the message, which may quote a row, a header or a token."""
    return {"error": type(error).__name__, "trace": traceback.format_tb(error.__traceback__)}


def get() -> Logger:
    """Return the logger. Binding happens at the call, so tests may reconfigure."""
    logger: Logger = structlog.get_logger()
    return logger
