"""if_gcc: compiler flags that clang does not know."""

def if_gcc(flags):
    return select({
        "//tools/build_defs:clang": [],
        "//conditions:default": flags,
    })
