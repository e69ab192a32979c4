"""A service of the tests' own, as descriptors: `Count` streams, `Look` has no side effects, `Talk` does both ways."""

from google.protobuf import descriptor_pb2, descriptor_pool
from google.protobuf.message_factory import GetMessageClass
from koikoi.options.v1 import options_pb2

PACKAGE = "koikoi.echo.v1"
COUNT, LOOK = f"/{PACKAGE}.EchoService/Count", f"/{PACKAGE}.EchoService/Look"
_Field = descriptor_pb2.FieldDescriptorProto


def _file() -> descriptor_pb2.FileDescriptorProto:
    file = descriptor_pb2.FileDescriptorProto(
        name="koikoi/echo/v1/echo.proto", package=PACKAGE, syntax="proto3", dependency=[options_pb2.DESCRIPTOR.name]
    )
    for name in ("Request", "Response"):
        message = file.message_type.add(name=name)
        message.field.add(name="number", number=1, type=_Field.TYPE_UINT32, label=_Field.LABEL_OPTIONAL)
        message.field.add(name="text", number=2, type=_Field.TYPE_STRING, label=_Field.LABEL_OPTIONAL)
    service = file.service.add(name="EchoService")
    for name, client_streams, server_streams in (("Count", 0, 1), ("Look", 0, 0), ("Talk", 1, 1), ("Hidden", 0, 1)):
        method = service.method.add(name=name, input_type=f".{PACKAGE}.Request", output_type=f".{PACKAGE}.Response")
        method.client_streaming, method.server_streaming = bool(client_streams), bool(server_streams)
        method.options.Extensions[options_pb2.public] = name != "Hidden"
        if name == "Look":
            method.options.idempotency_level = descriptor_pb2.MethodOptions.NO_SIDE_EFFECTS
    return file


_pool = descriptor_pool.Default()
_pool.AddSerializedFile(_file().SerializeToString())
FILE = _pool.FindFileByName("koikoi/echo/v1/echo.proto")
Request = GetMessageClass(FILE.message_types_by_name["Request"])
Response = GetMessageClass(FILE.message_types_by_name["Response"])
