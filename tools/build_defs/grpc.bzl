"""grpc_library: messages and a service of a .proto file, as C++ made by Debian's protoc."""

load("@rules_cc//cc:defs.bzl", "cc_library")

_NO_WARNINGS = ["-w"]

def grpc_library(name, src, visibility = None):
    """Defines NAME with the messages (NAME.pb.h), and NAME_grpc with the service (NAME.grpc.pb.h).

    Args:
      name: of the library; `src` is NAME.proto.
      src: the definitions.
      visibility: of both libraries.
    """
    native.genrule(
        name = name + "_sources",
        srcs = [src],
        outs = [name + suffix for suffix in [".pb.h", ".pb.cc", ".grpc.pb.h", ".grpc.pb.cc"]],
        cmd = "protoc --proto_path=. --cpp_out=$(GENDIR) --grpc_out=$(GENDIR) " +
              "--plugin=protoc-gen-grpc=$$(command -v grpc_cpp_plugin) $(SRCS)",
    )
    cc_library(
        name = name,
        srcs = [name + ".pb.cc"],
        hdrs = [name + ".pb.h"],
        copts = _NO_WARNINGS,
        visibility = visibility,
        deps = ["@com_github_grpc_grpc//:protobuf"],
    )
    cc_library(
        name = name + "_grpc",
        srcs = [name + ".grpc.pb.cc"],
        hdrs = [name + ".grpc.pb.h"],
        copts = _NO_WARNINGS,
        visibility = visibility,
        deps = [
            ":" + name,
            "@com_github_grpc_grpc//:grpc++",
        ],
    )
