"""Which methods the internet may call: those whose proto says `(koikoi.options.v1.public) = true`, and no other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from google.protobuf.descriptor import FileDescriptor
from google.protobuf.descriptor_pb2 import MethodOptions
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from koikoi.auth.v1 import auth_service_pb2
from koikoi.lobby.v1 import lobby_service_pb2
from koikoi.match.v1 import match_service_pb2
from koikoi.options.v1 import options_pb2
from koikoi.ranking.v1 import ranking_service_pb2

FILES: Mapping[str, FileDescriptor] = {
    "auth": auth_service_pb2.DESCRIPTOR,
    "lobby": lobby_service_pb2.DESCRIPTOR,
    "match": match_service_pb2.DESCRIPTOR,
    "ranking": ranking_service_pb2.DESCRIPTOR,
}
ISSUERS = ("auth", "lobby", "match")
"""The services that sign documents and answer GetKeySet."""


@dataclass(frozen=True, slots=True)
class Method:
    """One public method. `path` is the same in HTTP and in gRPC."""

    backend: str
    path: str
    name: str
    request_type: type[Message]
    response_type: type[Message]
    is_streaming: bool
    """It answers with a stream of messages."""
    is_safe: bool
    """It has no side effects, so a GET may call it."""


def public_methods(files: Mapping[str, FileDescriptor] = FILES) -> dict[str, Method]:
    """List the public methods of each service's file by path. A client cannot stream to us over HTTP."""
    return {method.path: method for backend, file in files.items() for method in _methods(backend, file)}


def key_set_method(issuer: str) -> Method:
    """Give the method by which an issuer tells its public keys."""
    return next(method for method in _methods(issuer, FILES[issuer]) if method.name == "GetKeySet")


def _methods(backend: str, file: FileDescriptor) -> Iterator[Method]:
    for service in file.services_by_name.values():
        for method in service.methods:
            options = method.GetOptions()
            if options.Extensions[options_pb2.public] and not method.client_streaming:
                yield Method(
                    backend,
                    f"/{service.full_name}/{method.name}",
                    method.name,
                    GetMessageClass(method.input_type),
                    GetMessageClass(method.output_type),
                    method.server_streaming,
                    options.idempotency_level == MethodOptions.NO_SIDE_EFFECTS and not method.server_streaming,
                )
