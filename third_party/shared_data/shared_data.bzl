"""@shared_data: a folder of inputs that are not part of the project.

The folder is the one that PIPELAB_SHARED names, else `shared` beside the checkout, else none. A test
takes `data = shared_data("planner-inputs")` from @shared_data//:defs.bzl: the files under that entry of
the folder, or nothing where it is absent; the test then skips itself by name.
"""

def _shared_data_impl(ctx):
    folder = ctx.os.environ.get("PIPELAB_SHARED", "")
    if folder and not ctx.path(folder).exists:
        fail("\n*** PIPELAB_SHARED=%s: no such folder; unset it or name an existing one.\n" % folder)
    if not folder:
        beside = ctx.path(Label("@//:WORKSPACE")).dirname.dirname.get_child("shared")
        folder = str(beside) if beside.exists else ""
    names = [p.basename for p in ctx.path(folder).readdir()] if folder else []
    build = "package(default_visibility = [\"//visibility:public\"])\n"
    for name in names:
        ctx.symlink(folder + "/" + name, "shared/" + name)
        build += "\nfilegroup(\n    name = %r,\n    srcs = glob([%r, %r]),\n)\n" % (
            name,
            "shared/" + name,
            "shared/" + name + "/**",
        )
    ctx.file("BUILD.bazel", build)
    ctx.file("defs.bzl", "\n".join([
        "PRESENT = %s" % bool(folder),
        "_NAMES = %r" % names,
        "",
        "def shared_data(*names):",
        "    return [\"@shared_data//:\" + n for n in names if n in _NAMES]",
        "",
    ]))

shared_data = repository_rule(
    implementation = _shared_data_impl,
    environ = ["PIPELAB_SHARED"],
    local = True,
)
