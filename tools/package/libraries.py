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


def Owners(libraries):
    """Path -> the Debian package that has it, for these paths; raises Missing."""
    # A merged /usr: dpkg may know a library by the path without it.
    paths = {path: os.path.realpath(path).replace("/usr/lib/", "/lib/", 1) for path in libraries}
    names = sorted(set(paths.values()))
    known = {}
    if names:  # one call for all: each reads dpkg's list of every file
        found = subprocess.run(["dpkg-query", "-S"] + names + ["/usr" + name for name in names],
                               stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout
        for line in found.splitlines():
            if re.match(r"(local )?diversion ", line):
                continue
            owners, path = line.rsplit(": ", 1)
            known[path.replace("/usr/lib/", "/lib/", 1)] = owners.split(":")[0]
    for path, name in paths.items():
        if name not in known:
            raise Missing(
                f"{path}: no Debian package has it, so its version and terms are unknown")
    return {path: known[name] for path, name in paths.items()}


def Terms(libraries):
    """Debian package -> path of the terms that it comes under, where these are installed."""
    terms = {owner: f"/usr/share/doc/{owner}/copyright" for owner in Owners(libraries).values()}
    return {owner: path for owner, path in sorted(terms.items()) if os.path.exists(path)}
