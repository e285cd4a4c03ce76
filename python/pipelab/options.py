"""Keyword arguments as the command line's options, with the same names and checks."""
import contextlib
import os
import tempfile

from pipelab import _core


class AsFile:
    """An object that an option takes as a file: a schedule, a plan, a model."""

    def _file(self):
        """The file's name, without its folder, and its text."""
        raise NotImplementedError


class Words:
    """Words and options of one call; objects among them are files while it runs."""

    def __init__(self, function, returned=()):
        self._function = function
        self._returned = returned  # options for what the function returns
        self._folder = tempfile.TemporaryDirectory(prefix="pipelab-")
        self._files = 0

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self._folder.cleanup()

    def word(self, value):
        """A name, a configuration or a path as it is; the path of an object's file."""
        if isinstance(value, AsFile):
            name, text = value._file()
            folder = os.path.join(self._folder.name, str(self._files))
            self._files += 1
            os.mkdir(folder)
            path = os.path.join(folder, name)
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
            return path
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, (list, tuple)):
            return ",".join(self.word(v) for v in value)
        return os.fspath(value) if isinstance(value, os.PathLike) else str(value)

    def options(self, options, **own):
        """"--name=value" of each; None is an option that is not given."""
        for name in self._returned:
            if options.get(name) is not None:
                raise _core.UsageError(
                    f"{name}={options[name]}: pipelab.{self._function} returns it")
        given = {**options, **own}
        return [f"--{name}={self.word(value)}" for name, value in given.items() if value is not None]

    @contextlib.contextmanager
    def naming(self):
        """Errors name an object's file without the folder, which is gone by then."""
        try:
            yield
        except _core.Error as error:
            text = str(error)
            for number in range(self._files):
                text = text.replace(os.path.join(self._folder.name, str(number)) + os.sep, "")
            if text == str(error):
                raise
            raise type(error)(text) from None
