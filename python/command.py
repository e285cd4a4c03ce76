#!python
"""The command `pipelab` of a wheel: starts the program that lies in the package.

The program looks for its libraries from where it is, so it stays there, wherever the installer puts
commands. The package is found and not imported: nothing of it is needed to start a program.
"""
import importlib.util
import os
import signal
import sys


def main():
    package = importlib.util.find_spec("pipelab")
    if package is None or package.origin is None:
        return "pipelab: this Python has no package of that name; install the wheel again"
    program = os.path.join(os.path.dirname(package.origin), "bin", "pipelab")
    # Python ignores these two signals, and a program would inherit that.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    try:
        os.execv(program, ["pipelab"] + sys.argv[1:])
    except OSError as error:
        return f"{program}: {error.strerror}; install the wheel again"


if __name__ == "__main__":
    sys.exit(main())
