"""Every repository that the project takes from its machine; WORKSPACE calls this and nothing else.

Each rule fails with the Debian package or the folder that is missing, CUDA and Open MPI only once their
switch is on. third_party/packages.txt lists the same packages for the launcher.
"""

load("//third_party/cuda:cuda_configure.bzl", "cuda_configure")
load("//third_party/offline:offline.bzl", "offline_repositories")
load("//third_party/shared_data:shared_data.bzl", "shared_data")
load("//third_party/system:system_repo.bzl", "system_absl", "system_library")

def pipelab_repositories():
    """All of them, in the order in which they need each other."""

    # Stand-ins for the archives Bazel 4 would download; first, because the first definition of a name wins.
    offline_repositories()

    # Debian packages.
    system_absl(name = "com_google_absl")

    system_library(
        name = "com_github_google_glog",
        apt = "libgoogle-glog-dev",
        probe_headers = ["glog/logging.h"],
        targets = {"glog": "-lglog"},
    )

    system_library(
        name = "com_google_googletest",
        apt = "libgtest-dev libgmock-dev",
        probe_headers = [
            "gtest/gtest.h",
            "gmock/gmock.h",
        ],
        targets = {
            "gtest": "-lgmock -lgtest -lpthread",
            "gtest_main": "-lgmock_main -lgmock -lgtest -lpthread",
        },
    )

    system_library(
        name = "com_github_google_benchmark",
        apt = "libbenchmark-dev",
        probe_headers = ["benchmark/benchmark.h"],
        targets = {
            "benchmark": "-lbenchmark -lpthread",
            "benchmark_main": "-lbenchmark_main -lbenchmark -lpthread",
        },
    )

    system_library(
        name = "onednn",
        apt = "libdnnl-dev",
        probe_headers = ["oneapi/dnnl/dnnl.hpp"],
        targets = {"dnnl": "-ldnnl -lgomp"},
    )

    system_library(
        name = "openmpi",
        apt = "libopenmpi-dev openmpi-bin",
        defines = ["OMPI_SKIP_MPICXX=1"],  # the C++ bindings are not linked
        include_dirs = ["/usr/lib/{multiarch}/openmpi/include"],
        lib_dirs = ["/usr/lib/{multiarch}/openmpi/lib"],
        probe_headers = ["mpi.h"],
        programs = ["mpirun"],
        switch = "mpi",  # with --config=mpi only
        targets = {"mpi": "-lmpi"},
    )

    system_library(
        name = "com_github_nlohmann_json",
        apt = "nlohmann-json3-dev",
        probe_headers = ["nlohmann/json.hpp"],
        targets = {"json": ""},
    )

    # Its classes depend on how Debian built it (cpp-httplib.pc).
    system_library(
        name = "cpp_httplib",
        apt = "libcpp-httplib-dev",
        defines = [
            "CPPHTTPLIB_OPENSSL_SUPPORT",
            "CPPHTTPLIB_ZLIB_SUPPORT",
            "CPPHTTPLIB_BROTLI_SUPPORT",
        ],
        probe_headers = ["httplib.h"],
        targets = {"httplib": "-lcpp-httplib -lpthread"},
    )

    system_library(
        name = "tomlplusplus",
        apt = "libtomlplusplus-dev",
        defines = [
            "TOML_EXCEPTIONS=0",
            "TOML_HEADER_ONLY=1",
        ],
        probe_headers = ["toml++/toml.h"],
        targets = {"tomlplusplus": ""},
    )

    system_library(
        name = "zlib",
        apt = "zlib1g-dev",
        probe_headers = ["zlib.h"],
        targets = {"zlib": "-lz"},
    )

    system_library(
        name = "xz",
        apt = "liblzma-dev",
        probe_headers = ["lzma.h"],
        targets = {"lzma": "-llzma"},
    )

    system_library(
        name = "png",
        apt = "libpng-dev",
        probe_headers = ["png.h"],
        targets = {"png": "-lpng"},
    )

    system_library(
        name = "pugixml",
        apt = "libpugixml-dev",
        probe_headers = ["pugixml.hpp"],
        targets = {"pugixml": "-lpugixml"},
    )

    system_library(
        name = "metis",
        apt = "libmetis-dev",
        probe_headers = ["metis.h"],
        targets = {"metis": "-lmetis"},
    )

    # gRPC between processes that come and go; its Abseil is Debian's, as ours.
    system_library(
        name = "com_github_grpc_grpc",
        apt = "libgrpc++-dev libprotobuf-dev protobuf-compiler protobuf-compiler-grpc",
        probe_headers = [
            "google/protobuf/message.h",
            "grpcpp/grpcpp.h",
        ],
        programs = [
            "grpc_cpp_plugin",
            "protoc",
        ],
        targets = {
            "grpc++": "-lgrpc++ -lgrpc -lgpr -lprotobuf",
            "protobuf": "-lprotobuf",
        },
    )

    # The extension module of python/.
    system_library(
        name = "system_python",
        apt = "python3-dev",
        include_dirs = ["/usr/include/{python}"],
        probe_headers = ["Python.h"],
        targets = {"headers": ""},  # the interpreter that loads it has the functions
    )

    system_library(
        name = "pybind11",
        apt = "pybind11-dev",
        probe_headers = ["pybind11/pybind11.h"],
        targets = {"pybind11": ""},
    )

    # The CUDA toolkit with cuBLAS, cuDNN and NCCL: used with --config=cuda only.
    cuda_configure(name = "local_config_cuda")

    # Inputs that are not part of the project (may be absent).
    shared_data(name = "shared_data")
