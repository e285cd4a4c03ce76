"""The code blocks of docs/adding.md as files, so that a test follows what the page says.

A block begins with ```LANGUAGE PATH; PATH is the file that it is, or that it is a line of.
"""

_DOC = "//:docs/adding.md"

def _block(path):
    """awk that prints the blocks whose info string ends in PATH, one after the other."""
    return "awk -v want='%s' '/^```/ { info = $$0; sub(/^```[a-z]* /, \"\", info); on = (info == want); next } on' $(location %s)" % (path, _DOC)

def doc_files(name, files, folder = ""):
    """FILES: those that the page has in FOLDER.

    Args:
      name: of the rule that makes them.
      files: without their folder.
      folder: as in the page, with a slash at its end.
    """
    native.genrule(
        name = name,
        srcs = [_DOC],
        outs = files,
        cmd = "\n".join([
            "%s > $(location %s) && test -s $(location %s)" % (_block(folder + file), file, file)
            for file in files
        ]),
    )

def with_doc_line(name, src, line_of, after, declarations_of = None):
    """NAME: SRC with the page's line of it put behind the line AFTER, and its declarations before.

    Args:
      name: of the file that is made.
      src: the file of today.
      line_of: path of the block with the line.
      after: text of the line to put it behind.
      declarations_of: path of the block with declarations, which stand at the head of the namespace.
    """
    declarations = _block(declarations_of) if declarations_of else "true"
    native.genrule(
        name = name.replace(".", "_"),
        srcs = [_DOC, src],
        outs = [name],
        cmd = "\n".join([
            "%s > $@.line && test -s $@.line" % _block(line_of),
            "%s > $@.head" % declarations,
            "awk -v after='%s' -v line=$@.line -v head=$@.head '" % after,
            "  { print }",
            "  $$0 == \"namespace pipelab {\" { while ((getline l < head) > 0) print l }",
            "  index($$0, after) && !done { while ((getline l < line) > 0) print l; done = 1 }",
            "  END { exit !done }",
            "' $(location %s) > $@ && rm $@.line $@.head" % src,
        ]),
    )
