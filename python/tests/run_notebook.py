#!/usr/bin/env python3
"""Runs a notebook's cells, or the blocks of Python of a page, in order, and shows each last value as a notebook
would: run_notebook.py NOTEBOOK_OR_PAGE

In place of nbclient, whose forty packages no test should need. A notebook in the tree has no outputs.
"""
import ast
import json
import re
import sys
from xml.etree import ElementTree


def Shown(value):
    """The form that a notebook takes."""
    for method in ("_repr_html_", "_repr_svg_"):
        if hasattr(value, method):
            text = getattr(value, method)()
            ElementTree.fromstring(text)  # well formed
            return text
    return repr(value)


def Cells(path):
    """(number, source) of each."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    if path.endswith(".md"):
        yield from enumerate(re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL))
        return
    notebook = json.loads(text)
    assert notebook["nbformat"] == 4, notebook["nbformat"]
    for number, cell in enumerate(notebook["cells"]):
        if cell["cell_type"] == "code":
            assert cell["outputs"] == [] and cell["execution_count"] is None, f"cell {number}: clear its output"
            yield number, "".join(cell["source"])


def main(path):
    names, ran = {"__name__": "__main__"}, 0
    for number, source in Cells(path):
        body = ast.parse(source)
        last = body.body.pop() if isinstance(body.body[-1], ast.Expr) else None
        where = f"{path}, cell {number}"
        exec(compile(body, where, "exec"), names)
        if last is not None:
            value = eval(compile(ast.Expression(last.value), where, "eval"), names)
            print(f"cell {number}: {'' if value is None else Shown(value)[:70]!r}")
        ran += 1
    assert ran > 0, f"{path}: no cells"


if __name__ == "__main__":
    main(sys.argv[1])
