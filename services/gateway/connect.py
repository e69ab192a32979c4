"""The door of the Connect protocol (connectrpc.com/docs/protocol): finds the method, has it answered, counts once."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from typing import Any

from aiohttp import web

from services.gateway.answers import HEADERS, code_of, error_response, failed, own_status
from services.gateway.backends import CallFailed
from services.gateway.codec import JSON, PROTO
from services.gateway.errors import GatewayError, MethodUnknown
from services.gateway.incoming import STREAM, STREAM_TYPES
from services.gateway.methods import Method
from services.gateway.streaming import StreamDoor
from services.gateway.unary import UnaryDoor
from services.kit import log, trace
from services.kit.metrics import Metrics

_TRACE = web.RequestKey("trace", trace.Trace)
_OPENING_S = 10.0
"""Longest time that the opening of a stream is traced for."""


class ConnectDoor:
    """Offers public methods and nothing else."""

    def __init__(self, methods: Mapping[str, Method], unary: UnaryDoor, streams: StreamDoor, metrics: Metrics) -> None:
        self._methods, self._unary, self._streams, self._metrics = methods, unary, streams, metrics

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """Answer one call, whatever it is; counts and logs it once."""
        started = time.perf_counter()
        method = self._methods.get(request.path)
        code, status = "CANCELLED", 499
        if method is not None:  # a path the caller chose is no name of a span, either
            at_most_s = _OPENING_S if method.is_streaming else None
            trace.current().open(method.path[1:], at_most_s)
        try:
            response, code = await self._answer(request, method)
            status = response.status
        finally:  # a stream whose caller went away is counted, too
            elapsed_s = time.perf_counter() - started
            name = method.name if method else "unknown"  # a path the caller chose is no label
            trace.current().close(code)
            self._metrics.rpcs.labels(name, code).inc()
            if method is None or not method.is_streaming:
                self._metrics.rpc_seconds.labels(name).observe(elapsed_s)
            log.get().info("gateway.rpc", method=name, outcome=code, status=status, ms=round(elapsed_s * 1000, 1))
        return response

    async def _answer(self, request: web.Request, method: Method | None) -> tuple[web.StreamResponse, str]:
        if method is None:
            unknown = MethodUnknown("There is no such public method.")
            return error_response(own_status(unknown), http_status=404), "UNIMPLEMENTED"
        verbs = ("GET", "POST") if method.is_safe else ("POST",)
        if request.method not in verbs:
            return web.Response(status=405, headers={**HEADERS, "Allow": ", ".join(verbs)}), "METHOD_NOT_ALLOWED"
        if method.is_streaming:
            return await self._streams.answer(request, method) or _unsupported(*STREAM_TYPES)
        try:
            response = await self._unary.answer(request, method)
        except GatewayError as error:
            status = own_status(error)
        except CallFailed as error:
            status = error.status
        else:
            return (response, "OK") if response else _unsupported(JSON, PROTO)
        return error_response(status), code_of(status).name


def _unsupported(*content_types: str) -> tuple[web.Response, str]:
    headers = {**HEADERS, "Accept-Post": ", ".join(content_types)}
    return web.Response(status=415, headers=headers), "UNSUPPORTED_TYPE"


@web.middleware
async def begin_trace(request: web.Request, handler: Any) -> web.StreamResponse:
    """Make the request part of its caller's trace (https://www.w3.org/TR/trace-context), or of a new one."""
    request[_TRACE] = trace.begin(request.headers.get("Traceparent"))
    answer: web.StreamResponse = await handler(request)
    return answer


async def name_trace(request: web.Request, response: web.StreamResponse) -> None:
    """Tell the caller the trace, so that a player can report it; not on what may be kept for others."""
    if _TRACE in request and not response.headers.get("Cache-Control", "").startswith("public"):
        response.headers["Trace-Id"] = request[_TRACE].id


@web.middleware
async def finish_calls(request: web.Request, handler: Any) -> web.StreamResponse:
    """Let a call go on when its caller leaves, for it may change something; only a stream ends with its reader."""
    if request.headers.get("Content-Type", "").lower().startswith(STREAM):
        answer: web.StreamResponse = await handler(request)
        return answer
    return await asyncio.shield(handler(request))


@web.middleware
async def speak_json(request: web.Request, handler: Any) -> web.StreamResponse:
    """Turn what nobody answered into a JSON error without a trace; the trace goes to the log, once."""
    try:
        answer: web.StreamResponse = await handler(request)
    except web.HTTPNotFound:
        unknown = MethodUnknown("There is nothing here; public methods are /<package>.<Service>/<Method>.")
        return error_response(own_status(unknown), http_status=404)
    except web.HTTPMethodNotAllowed as error:
        return web.Response(status=405, headers={**HEADERS, "Allow": error.headers["Allow"]})
    except GatewayError as error:
        return error_response(own_status(error))
    except CallFailed as error:
        return error_response(error.status)
    except Exception as error:  # noqa: BLE001 - the edge is where every error ends
        return error_response(failed(error))
    return answer
