"""fuzz_test: a libFuzzer entry point, run over seeded damage in the suite and by libFuzzer by hand."""

load("@rules_cc//cc:defs.bzl", "cc_binary", "cc_test")

def fuzz_test(name, entry, srcs, deps, test_deps = []):
    """Defines NAME_test and NAMEer.

    NAME_test runs `srcs`, which calls the entry point with seeded inputs. NAMEer is libFuzzer's program; by
    hand, with clang, the flags reach the libraries too:
      bazel run --repo_env=CC=clang --copt=-fsanitize=fuzzer-no-link,address //PACKAGE:NAMEer
    """
    cc_test(
        name = name + "_test",
        size = "small",
        srcs = [entry] + srcs,
        deps = deps + test_deps + ["@com_google_googletest//:gtest_main"],
    )
    cc_binary(
        name = name + "er",
        srcs = [entry],
        linkopts = ["-fsanitize=fuzzer,address"],
        tags = ["manual"],
        deps = deps,
    )
