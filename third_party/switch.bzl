"""Switches for vendors that a machine may lack (CUDA, Open MPI).

`switch(name = "cuda")` in third_party/cuda/BUILD.bazel gives
  //third_party/cuda:enable    the flag that --config=cuda sets (.bazelrc),
  //third_party/cuda:enabled   a condition for select(),
  //third_party/cuda:required  a constraint no platform has: `//...` skips a target that carries it.
`only_with("cuda")` puts that constraint on a target while the switch is off.
"""

SwitchInfo = provider(fields = ["value"])

def _bool_flag_impl(ctx):
    return [SwitchInfo(value = ctx.build_setting_value)]

# What bazel_skylib's bool_flag is.
_bool_flag = rule(
    implementation = _bool_flag_impl,
    build_setting = config.bool(flag = True),
)

def switch(name):
    _bool_flag(
        name = "enable",
        build_setting_default = False,
    )
    native.config_setting(
        name = "enabled",
        flag_values = {":enable": "True"},
    )
    native.constraint_setting(name = name + "_setting")
    native.constraint_value(
        name = "required",
        constraint_setting = ":" + name + "_setting",
    )

def only_with(name):
    """The value for target_compatible_with of a target that exists only with --config=<name>."""
    return select({
        "@pipelab//third_party/%s:enabled" % name: [],
        "//conditions:default": ["@pipelab//third_party/%s:required" % name],
    })

def _missing_library_impl(ctx):
    if ctx.attr.switched_on:
        fail("\n*** --config=%s needs %s\n" % (ctx.attr.switch, ctx.attr.what))
    return [CcInfo()]

_missing_library = rule(
    implementation = _missing_library_impl,
    attrs = {
        "switch": attr.string(),
        "switched_on": attr.bool(),
        "what": attr.string(),
    },
)

def missing_library(name, switch, what):
    """Stands in for a library that was not found; fails, with the reason, once its switch is on.

    (Bazel 4 analyses the dependencies of skipped targets too, so the failure has to depend on the flag.)
    """
    _missing_library(
        name = name,
        switch = switch,
        what = what,
        switched_on = select({
            "@pipelab//third_party/%s:enabled" % switch: True,
            "//conditions:default": False,
        }),
        visibility = ["//visibility:public"],
    )
