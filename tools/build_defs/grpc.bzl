"""grpc_library: messages and a service of a .proto file, as C++ made by Debian's protoc."""

load("@rules_cc//cc:defs.bzl", "cc_library")

_NO_WARNINGS = ["-w"]

def grpc_library(name, src, visibility = None):
    """Defines NAME with the messages of FILE.proto (FILE.pb.h), and NAME_grpc with the service (FILE.grpc.pb.h).

    Args:
      name: of the library.
      src: the definitions, FILE.proto.
      visibility: of both libraries.
    """
    stem = src[:-len(".proto")]
    native.genrule(
        name = name + "_sources",
        srcs = [src],
        outs = [stem + suffix for suffix in [".pb.h", ".pb.cc", ".grpc.pb.h", ".grpc.pb.cc"]],
        cmd = "protoc --proto_path=. --cpp_out=$(GENDIR) --grpc_out=$(GENDIR) " +
              "--plugin=protoc-gen-grpc=$$(command -v grpc_cpp_plugin) $(SRCS)",
    )
    cc_library(
        name = name,
        srcs = [stem + ".pb.cc"],
        hdrs = [stem + ".pb.h"],
        copts = _NO_WARNINGS,
        visibility = visibility,
        deps = ["@com_github_grpc_grpc//:protobuf"],
    )
    cc_library(
        name = name + "_grpc",
        srcs = [stem + ".grpc.pb.cc"],
        hdrs = [stem + ".grpc.pb.h"],
        copts = _NO_WARNINGS,
        visibility = visibility,
        deps = [
            ":" + name,
            "@com_github_grpc_grpc//:grpc++",
        ],
    )
