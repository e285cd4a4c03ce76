"""embed_texts: text files as a constant of C++, so that a binary needs no files beside it."""

load("@rules_cc//cc:defs.bzl", "cc_library")

def embed_texts(name, srcs, function, visibility = None):
    """Defines a cc_library NAME with NAME.h: `absl::Span<const EmbeddedText> FUNCTION()`.

    One member a file, in the order of srcs: its name without folders and extension, and its text.

    Args:
      name: of the library.
      srcs: text files without the line `)embedded"`.
      function: name of the function, in namespace pipelab.
      visibility: of the library.
    """
    native.genrule(
        name = name + "_header",
        outs = [name + ".h"],
        cmd = "\n".join([
            "cat > $@ <<'END'",
            "// Made from text files by tools/build_defs/embed.bzl.",
            "#pragma once",
            "#include \"absl/types/span.h\"",
            "#include \"tools/base/embedded_text.h\"",
            "namespace pipelab {",
            "absl::Span<const EmbeddedText> " + function + "();",
            "}  // namespace pipelab",
            "END",
        ]),
    )
    native.genrule(
        name = name + "_source",
        srcs = srcs,
        outs = [name + ".cc"],
        cmd = "\n".join([
            "{",
            "echo '#include \"%s/%s.h\"'" % (native.package_name(), name),
            "echo 'namespace pipelab { namespace { constexpr EmbeddedText kTexts[] = {'",
            "for f in $(SRCS); do",
            "  base=$$(basename $$f)",
            "  printf '{\"%s\", R\"embedded(' $${base%.*}",
            "  cat $$f",
            "  echo ')embedded\"},'",
            "done",
            "echo '}; }  // namespace'",
            "echo 'absl::Span<const EmbeddedText> %s() { return kTexts; }'" % function,
            "echo '}  // namespace pipelab'",
            "} > $@",
        ]),
    )
    cc_library(
        name = name,
        srcs = [name + ".cc"],
        hdrs = [name + ".h"],
        visibility = visibility,
        deps = [
            "//tools/base",
            "@com_google_absl//absl/types:span",
        ],
    )
