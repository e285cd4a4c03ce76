"""A folder is a library and a test: package_library, package_test, package_benchmark, package_program.

    load("//tools/build_defs:package.bzl", "package_library", "package_test")

    package_library(deps = ["//tools/base"])    # the folder's *.cc and *.h, named as the folder
    package_test(deps = [...])                  # its *_test.cc and *_fuzz.cc, named FOLDER_test

Sources are compiled in chunks: one translation unit has as many files of a target as fit into 1,500 lines
(chunks.sh), since most of a small file's compile time goes into the headers that it reads. So file-local names
are unique within a folder, and an edit of one file compiles its chunk again. Abseil and glog are always there.
What holds a file at a time is checked a file at a time: direct includes (tools/dev/layering.py), bug patterns
(clang-tidy, tools/dev/compile_commands.py).
"""

load("@rules_cc//cc:defs.bzl", "cc_binary", "cc_library", "cc_test")
load("//tools/build_defs:compiler.bzl", "if_gcc")

# What every target of the project may use without naming it.
_ALWAYS = ["//third_party:always"]

_COPTS = [
    "-Wall",
    "-Wextra",
    "-Werror",
] + if_gcc([
    # A struct in a header may have a member whose type is file-local to a source in the same chunk.
    "-Wno-subobject-linkage",
])

# What sets up, reads small files, prints or tests need not be fast, and compiles in less time.
_QUICK = ["-Og"]
_QUICK_FOLDERS = ["experiments", "python", "tests", "models/files", "models/specs", "models/zoo", "pipelines/recipes"]

# Files at which a chunk is foreseen. Their number is known before their lines are: chunks that are left over are
# empty, and where too few are foreseen, chunks.sh says so.
_FILES_OF_CHUNK = 6

def _chunks_impl(ctx):
    count = (len(ctx.files.srcs) + _FILES_OF_CHUNK - 1) // _FILES_OF_CHUNK
    chunks = [ctx.actions.declare_file("%s/%d.cc" % (ctx.label.name, i + 1)) for i in range(count)]
    arguments = ctx.actions.args()
    arguments.add(chunks[0].dirname)
    arguments.add(count)
    arguments.add_all(ctx.files.srcs)
    ctx.actions.run(
        executable = ctx.executable._tool,
        arguments = [arguments],
        inputs = ctx.files.srcs,
        outputs = chunks,
        mnemonic = "Chunks",
        progress_message = "Dividing %s into chunks" % ctx.label,
    )
    return [DefaultInfo(files = depset(chunks))]

_chunks = rule(
    implementation = _chunks_impl,
    attrs = {
        "srcs": attr.label_list(allow_files = [".cc"]),
        "_tool": attr.label(
            default = "//tools/build_defs:chunks.sh",
            allow_single_file = True,
            executable = True,
            cfg = "host",
        ),
    },
)

def _in(stems, suffixes):
    return [stem + suffix for stem in stems for suffix in suffixes]

def _name_of_folder():
    return native.package_name().split("/")[-1]

def _copts(copts, quick):
    package = native.package_name()
    quick = quick or package in _QUICK_FOLDERS or package.split("/")[0] in _QUICK_FOLDERS
    return _COPTS + (_QUICK if quick else []) + copts

def _chunk_sources(name, srcs):
    """The srcs and textual_hdrs of a target that compiles srcs in chunks."""
    if not srcs:
        return [], []
    _chunks(
        name = name + "_chunks",
        srcs = srcs,
        tags = ["manual"],
        visibility = ["//visibility:private"],
    )
    return [name + "_chunks"], srcs

def package_library(
        name = None,
        only = None,
        without = [],
        srcs = [],
        hdrs = [],
        deps = [],
        copts = [],
        testonly = False,
        **kwargs):
    """The folder's files that are no test, benchmark or fuzz entry, as a cc_library.

    Args:
      name: of the library; the folder's, if none is given.
      only: names of files without their endings, for a library of these alone.
      without: names of files without their endings that belong to other targets.
      srcs: further sources, of other folders or made by rules.
      hdrs: further headers.
      deps: libraries that its files include something of; Abseil and glog are there.
      copts: more flags for the compiler.
      testonly: for tests alone.
      **kwargs: for cc_library.
    """
    name = name or _name_of_folder()
    if only == None:
        others = ["*_test.cc", "*_fuzz.cc", "*_benchmark.cc", "*.cu.cc"] + _in(without, [".cc"])
        srcs = native.glob(["*.cc"], exclude = others) + srcs
        hdrs = native.glob(["*.h"], exclude = _in(without, [".h"])) + hdrs
    else:
        srcs = native.glob(_in(only, [".cc"])) + srcs
        hdrs = native.glob(_in(only, [".h"])) + hdrs
    chunks, texts = _chunk_sources(name, srcs)
    cc_library(
        name = name,
        srcs = chunks,
        hdrs = hdrs,
        textual_hdrs = texts,
        copts = _copts(copts, quick = testonly),
        testonly = testonly,
        deps = deps + _ALWAYS,
        **kwargs
    )

def package_test(
        name = None,
        only = None,
        without = [],
        srcs = [],
        deps = [],
        size = "small",
        copts = [],
        one_core = False,
        **kwargs):
    """The folder's tests, and its fuzz entries with their seeded tests, as a cc_test.

    Args:
      name: of the test; FOLDER_test, if none is given.
      only: names of files without their endings, for a test of these alone.
      without: names of files without their endings that belong to other tests.
      srcs: further sources.
      deps: libraries that its files include something of; the folder's own, matchers, GoogleTest are there.
      size: Bazel's.
      copts: more flags for the compiler.
      one_core: whether its threads wait for one another, and are faster on one core (tools/base/one_core_main.cc).
      **kwargs: for cc_test.
    """
    name = name or _name_of_folder() + "_test"
    if only == None:
        others = _in(without, [".cc"])
        srcs = native.glob(["*_test.cc", "*_fuzz.cc"], exclude = others) + srcs
    else:
        srcs = native.glob(_in(only, [".cc"])) + srcs
    chunks, texts = _chunk_sources(name, srcs)

    # A library, since a test has no textual_hdrs; alwayslink for the tests that nothing calls.
    cc_library(
        name = name + "_cases",
        testonly = True,
        srcs = chunks,
        textual_hdrs = texts,
        copts = _copts(copts, quick = True),
        alwayslink = True,
        linkstatic = True,
        target_compatible_with = kwargs.get("target_compatible_with", []),
        tags = ["manual"],
        visibility = ["//visibility:private"],
        deps = deps + _ALWAYS + [
            "//tools/base:testing",
            "@com_google_googletest//:gtest",
        ],
    )
    cc_test(
        name = name,
        size = size,
        # The inputs that fuzz entries have kept (tools/base/fuzz_mutations.h).
        data = kwargs.pop("data", []) + native.glob(["*_fuzz.txt"], allow_empty = True),
        deps = [
            name + "_cases",
            "//tools/base:one_core_main" if one_core else "@com_google_googletest//:gtest_main",
        ],
        **kwargs
    )

def package_program(name, srcs = None, deps = [], copts = [], **kwargs):
    """A program of one file with main(), NAME.cc unless srcs say otherwise, as a cc_binary."""
    cc_binary(
        name = name,
        srcs = srcs or [name + ".cc"],
        copts = _copts(copts, quick = False),
        deps = deps + _ALWAYS,
        **kwargs
    )

def package_benchmark(name, deps = [], **kwargs):
    """A benchmark, NAME.cc, as a program with Google Benchmark's main()."""
    package_program(
        name = name,
        testonly = True,
        deps = deps + ["@com_github_google_benchmark//:benchmark_main"],
        **kwargs
    )

def fuzzers(names, deps):
    """libFuzzer's program NAMEer for each fuzz entry NAME.cc of the folder; by hand, with --config=fuzz.

    The folder's package_test runs the same entries over seeded damage.
    """
    for name in names:
        cc_binary(
            name = name + "er",
            testonly = True,
            srcs = [name + ".cc"],
            copts = _copts([], quick = False),
            linkopts = ["-fsanitize=fuzzer,address"],
            tags = ["manual"],
            deps = deps + _ALWAYS,
        )
