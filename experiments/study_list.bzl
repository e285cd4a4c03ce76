"""study_list: programs, and a file that says where they are."""

def _study_list_impl(ctx):
    programs = [study[DefaultInfo].files_to_run.executable for study in ctx.attr.studies]
    lines = ["%s %s\n" % (study.label.name, study[DefaultInfo].files_to_run.executable.short_path) for study in ctx.attr.studies]
    out = ctx.actions.declare_file(ctx.label.name + ".txt")
    ctx.actions.write(out, "".join(lines))
    runfiles = ctx.runfiles(files = programs + [out])
    for study in ctx.attr.studies:
        runfiles = runfiles.merge(study[DefaultInfo].default_runfiles)
    return [DefaultInfo(files = depset([out]), runfiles = runfiles)]

# NAME.txt has a line a program, "name path", with paths in the runfiles of what has it as data.
study_list = rule(
    implementation = _study_list_impl,
    attrs = {"studies": attr.label_list(mandatory = True)},
)
