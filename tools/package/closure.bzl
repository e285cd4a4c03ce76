"""What libraries are made of in this tree, with all that they use of it: headers and objects."""

def _own(file):
    return not file.short_path.startswith("../")

def _header_closure_impl(ctx):
    headers = depset(transitive = [dep[CcInfo].compilation_context.headers for dep in ctx.attr.deps])
    own = [file for file in headers.to_list() if _own(file)]
    listing = ctx.actions.declare_file(ctx.label.name + ".txt")
    ctx.actions.write(listing, "".join([file.short_path + "\n" for file in own]))
    return [DefaultInfo(files = depset(own + [listing]))]

# The headers, and NAME.txt with a path a line.
header_closure = rule(
    implementation = _header_closure_impl,
    attrs = {"deps": attr.label_list(providers = [CcInfo])},
)

def _object_closure_impl(ctx):
    inputs = depset(transitive = [dep[CcInfo].linking_context.linker_inputs for dep in ctx.attr.deps])
    objects = []
    for linker_input in inputs.to_list():
        for library in linker_input.libraries:
            objects += [file for file in library.pic_objects or [] if _own(file)]
    return [DefaultInfo(files = depset(objects))]

# For the srcs of a shared library: a linker takes of deps only what something asks for.
object_closure = rule(
    implementation = _object_closure_impl,
    attrs = {"deps": attr.label_list(providers = [CcInfo])},
)
