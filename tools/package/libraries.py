"""The shared libraries that binaries need, and where Debian has them from; for packages and wheels."""
import os
import re
import subprocess

# What a tarball or a wheel leaves to the system: a program compiled for it brings its own C++
# library.
SYSTEM = re.compile(r"(ld-linux.*|lib(c|m|dl|rt|pthread|resolv|stdc\+\+|gcc_s))\.so(\.\d+)*$")


class Missing(Exception):
    """One line that says what this machine lacks."""


def Output(*command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def Needed(binary):
    """Name -> path of each library that `binary` needs, directly or not; raises Missing."""
    paths = {}
    for line in Output("ldd", binary).splitlines():
        words = line.split()
        if "not found" in line:
            raise Missing(f"{binary}: needs {words[0]}, which this machine lacks")
        if len(words) > 2 and words[1] == "=>" and words[2].startswith("/"):
            paths[words[0]] = words[2]
    return paths


def Named(binary):
    """The names of the libraries that `binary` itself asks for."""
    return set(re.findall(r"NEEDED +(\S+)", Output("objdump", "-p", binary)))


def Owner(library):
    """The Debian package that has the library of this path; raises Missing."""
    path = os.path.realpath(library)
    # A merged /usr: dpkg may know the library by the path without it.
    found = subprocess.run(["dpkg-query", "-S", path, path.replace("/usr/lib/", "/lib/", 1)],
                           stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout
    if not found:
        raise Missing(f"{library}: no Debian package has it, so its version and terms are unknown")
    return found.split(":")[0]


def Terms(library):
    """(Debian package, path of the terms that it comes under), or None where none are installed."""
    owner = Owner(library)
    path = f"/usr/share/doc/{owner}/copyright"
    return (owner, path) if os.path.exists(path) else None
