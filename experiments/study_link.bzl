"""study_link: a study's name as a target, which is the program of all studies under that name."""

def _study_link_impl(ctx):
    # In a folder of their own, for some studies have the name of their folder.
    link = ctx.actions.declare_file("studies/" + ctx.label.name)
    ctx.actions.symlink(output = link, target_file = ctx.executable.program, is_executable = True)
    runfiles = ctx.runfiles(files = [ctx.executable.program]).merge(ctx.attr.program[DefaultInfo].default_runfiles)
    return [DefaultInfo(executable = link, runfiles = runfiles)]

# `bazel run //experiments:NAME -- OPTIONS` is `pipelab study NAME OPTIONS`.
study_link = rule(
    implementation = _study_link_impl,
    executable = True,
    attrs = {"program": attr.label(mandatory = True, executable = True, cfg = "target")},
)
