#!/usr/bin/env python3
"""Installs pipelab, or packs it. package.sh starts it, from the files that Bazel made.

    tools/bazel run //:install -- --prefix=/usr/local
    tools/bazel run //:deb -- --out=dist
    tools/bazel run //:tarball -- --out=dist
    tools/bazel run //:release -- --out=dist

Each has bin/pipelab and the programs that it starts from its own folder, libpipelab.so with its
headers, files for pkg-config and CMake, the manual page, bash's completion and the pages. The .deb
has the Python package, too, and depends on Debian's libraries. The tarball runs from any folder and
brings the libraries that it needs, but those of the compiler and of the C library. A release is a
.deb, a tarball, Python's wheel, and SHA256SUMS, with which who gets them tells that they are whole.

PIPELAB_QUICK_PACKAGE=1 in the environment packs in a fraction of the time, to larger files: for
tests.
"""
import hashlib
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tempfile

import libraries
from libraries import Output

SUMMARY = "Pipeline-parallel training schemes compared end to end"
# `pipelab` is there the program that also plans and serves: to whoever does not build it, small is no gain.
PROGRAMS = {"pipelab": "pipelab_plan", "pipelab_train": "pipelab_train",
            "pipelab_study": "pipelab_study"}
QUICK = os.environ.get("PIPELAB_QUICK_PACKAGE") == "1"
# Libraries of Abseil that the headers of the surface use, by the names of their .pc files.
ABSEIL = ["flat_hash_map", "flat_hash_set", "memory", "optional", "span", "status", "statusor",
          "strings", "time"]


def Fail(message, code=2):
    print(message, file=sys.stderr)
    sys.exit(code)


class Package:
    """The files of a package below a folder, `prefix`, which nothing in them names."""

    def __init__(self, root, prefix):
        self.root, self.prefix = root, prefix
        self.program = os.path.join(root, "experiments/pipelab_plan")
        self.version = re.match("pipelab ([^ :\n]+)", Output(self.program, "--version")).group(1)
        self.number = re.match(r"\d+\.\d+", self.version).group()
        library = os.path.join(root, "tools/package/libpipelab.so")
        # Until 1.0 each minor version may change the surface, so it has a library name of its own.
        self.so_name = f"libpipelab.so.{self.number}"
        if f"SONAME               {self.so_name}\n" not in Output("objdump", "-p", library):
            Fail(f"tools/package/BUILD.bazel: libpipelab.so is not {self.so_name}, which "
                 "tools/base/version.h asks for", 1)

    def Add(self, source, target, mode=0o644):
        target = os.path.join(self.prefix, target)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        # Beside the file and then in its place: a program that runs keeps its own.
        shutil.copyfile(source, target + ".new")
        os.chmod(target + ".new", mode)
        os.replace(target + ".new", target)
        return target

    def AddText(self, text, target):
        with tempfile.NamedTemporaryFile("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            self.Add(file.name, target)

    def AddBinary(self, source, target):
        subprocess.run(["strip", "--strip-unneeded", self.Add(source, target, 0o755)], check=True)

    def AddTemplate(self, name, target):
        with open(os.path.join(self.root, "tools/package", name), encoding="utf-8") as file:
            text = file.read()
        values = {
            "SUMMARY": SUMMARY, "VERSION": self.version, "NUMBER": self.number,
            "SONAME": self.so_name,
            "REQUIRES": ", ".join("absl_" + name for name in ABSEIL),
            "CMAKE_LIBRARIES": ";".join("absl::" + name for name in ABSEIL)}
        self.AddText(re.sub(r"@(\w+)@", lambda match: values[match.group(1)], text), target)

    def AddAll(self):
        for name, made in PROGRAMS.items():
            self.AddBinary(os.path.join(self.root, "experiments", made), "bin/" + name)
        self.AddBinary(os.path.join(self.root, "tools/package/libpipelab.so"),
                       "lib/" + self.so_name)
        link = os.path.join(self.prefix, "lib/libpipelab.so")
        if os.path.lexists(link):
            os.remove(link)
        os.symlink(self.so_name, link)
        with open(os.path.join(self.root, "tools/package/headers.txt"), encoding="utf-8") as file:
            for header in file.read().split():
                self.Add(os.path.join(self.root, header), "include/pipelab/" + header)
        self.AddTemplate("pipelab.pc.in", "lib/pkgconfig/pipelab.pc")
        for name in ("pipelabConfig.cmake", "pipelabConfigVersion.cmake"):
            self.AddTemplate(name + ".in", "lib/cmake/pipelab/" + name)
        self.AddText(Output(self.program, "help", "--man"), "share/man/man1/pipelab.1")
        self.AddText(Output(self.program, "completion", "bash"),
                     "share/bash-completion/completions/pipelab")
        for name in ("README.md", "CHANGELOG.md", "LICENSE"):
            self.Add(os.path.join(self.root, name), "share/doc/pipelab/" + name)
        for folder, _, names in os.walk(os.path.join(self.root, "docs"), followlinks=True):
            for name in names:
                path = os.path.join(folder, name)
                self.Add(path, "share/doc/pipelab/" + os.path.relpath(path, self.root))

    def AddPython(self, folder):
        source = os.path.join(self.root, "python/pipelab")
        for name in sorted(os.listdir(source)):
            path = os.path.join(source, name)
            if name == "_core.so":
                suffix = sysconfig.get_config_var("EXT_SUFFIX")
                self.AddBinary(path, f"{folder}/pipelab/_core{suffix}")
            elif name.endswith((".py", ".pyi")) or name == "py.typed":
                self.Add(path, f"{folder}/pipelab/{name}")

    def Libraries(self, all_of_them):
        """Path of each shared library that the binaries need, or of those that they name themselves."""
        paths, named = {}, set()
        for folder, _, names in os.walk(self.prefix):
            for name in names:
                path = os.path.join(folder, name)
                if not os.path.islink(path) and (".so" in name or folder.endswith("/bin")):
                    paths.update(libraries.Needed(path))
                    named.update(libraries.Named(path))
        return {name: path for name, path in paths.items() if all_of_them or name in named}


def DebianPackages(paths):
    """The packages that have these libraries, each with the version that is installed or a later one."""
    depends = []
    for owner in sorted(set(libraries.Owners(paths).values())):
        version = Output("dpkg-query", "-W", "-f", "${Version}\n", owner).split()[0]
        upstream = re.sub(r"-[^-]*$", "", version)
        depends.append(f"{owner} (>= {upstream})")
    return depends


def Install(root, prefix):
    package = Package(root, prefix)
    package.AddAll()
    print(f"pipelab {package.version} is in {prefix}")
    if prefix != "/usr":
        print(f"for this shell: PATH={prefix}/bin:$PATH "
              f"PKG_CONFIG_PATH={prefix}/lib/pkgconfig LD_LIBRARY_PATH={prefix}/lib")


def MakeDeb(root, out):
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        package = Package(root, os.path.join(folder, "usr"))
        package.AddAll()
        package.AddPython("lib/python3/dist-packages")
        with open(os.path.join(root, "LICENSE"), encoding="utf-8") as file:
            package.AddText(file.read(), "share/doc/pipelab/copyright")
        architecture = Output("dpkg", "--print-architecture").strip()
        version = package.version.replace("-", "~")
        minor = sys.version_info.minor
        depends = DebianPackages(set(package.Libraries(all_of_them=False).values())) + [
            f"python3 (>= 3.{minor})", f"python3 (<< 3.{minor + 1})"]
        size = int(Output("du", "-sk", "--apparent-size", folder).split()[0])
        os.makedirs(os.path.join(folder, "DEBIAN"))
        with open(os.path.join(folder, "DEBIAN/control"), "w", encoding="utf-8") as file:
            file.write(
                f"Package: pipelab\nVersion: {version}\nArchitecture: {architecture}\n"
                "Maintainer: The pipelab authors <authors@pipelab.invalid>\nSection: science\n"
                f"Priority: optional\nInstalled-Size: {size}\nDepends: {', '.join(depends)}\n"
                "Recommends: python3-numpy\nSuggests: libabsl-dev, pkg-config, g++\n"
                f"Description: {SUMMARY}\n"
                " Searches, simulates and runs pipeline schedules, partitions and grids of\n"
                " a training step, from one description of it. The command pipelab, a Python\n"
                " package, and a C++ library with headers.\n")
        path = os.path.join(out, f"pipelab_{version}_{architecture}.deb")
        compression = ["-Zgzip", "-z1"] if QUICK else []  # else Debian's own: xz
        subprocess.run(["dpkg-deb", *compression, "--build", "--root-owner-group", folder,
                        path + ".part"], check=True, stdout=subprocess.DEVNULL)
        os.replace(path + ".part", path)
        return path


def OfRoot(info):
    info.uid = info.gid = 0
    info.uname = info.gname = "root"
    return info


def MakeTarball(root, out):
    with tempfile.TemporaryDirectory() as folder:
        machine = os.uname().machine
        package = Package(root, "")
        name = f"pipelab-{package.version}-linux-{machine}"
        package.prefix = os.path.join(folder, name)
        package.AddAll()
        brought = {
            library: path for library, path in package.Libraries(all_of_them=True).items()
            if not libraries.SYSTEM.match(library) and not library.startswith("libpipelab")}
        for library, path in brought.items():
            package.Add(path, "lib/pipelab/" + library)
        for owner, path in libraries.Terms(brought.values()).items():
            package.Add(path, "share/doc/pipelab/licenses/" + owner)
        path = os.path.join(out, name + ".tar.gz")
        with tarfile.open(path + ".part", "w:gz", compresslevel=1 if QUICK else 9) as tar:
            tar.add(package.prefix, name, filter=OfRoot)
        os.replace(path + ".part", path)
        return path


def MakeWheel(root, out):
    wheel = subprocess.run([sys.executable, os.path.join(root, "python/make_wheel.py"), root, out],
                           stdout=subprocess.PIPE, text=True)
    if wheel.returncode != 0:
        sys.exit(1)  # it has said why
    return wheel.stdout.strip()


def MakeSums(paths, out):
    """What `sha256sum --check SHA256SUMS` reads in the folder of these files."""
    path = os.path.join(out, "SHA256SUMS")
    with open(path + ".part", "w", encoding="utf-8") as sums:
        for packed in paths:
            with open(packed, "rb") as file:
                digest = hashlib.sha256(file.read()).hexdigest()
            sums.write(f"{digest}  {os.path.basename(packed)}\n")
    os.replace(path + ".part", path)
    return path


MAKERS = {"deb": [MakeDeb], "tarball": [MakeTarball], "release": [MakeDeb, MakeTarball, MakeWheel]}


def Make(root, kind, out):
    paths = []
    for make in MAKERS[kind]:
        paths.append(make(root, out))
        print(paths[-1], flush=True)
    if kind == "release":
        print(MakeSums(paths, out))


def main(root, kind, *words):
    option = "prefix" if kind == "install" else "out"
    folder = "" if kind == "install" else "dist"
    for word in words:
        match = re.fullmatch(f"--{option}=(.+)", word)
        if not match:
            Fail(f"{word}: {kind} takes --{option}=DIR alone")
        folder = match.group(1)
    if not folder:
        Fail("--prefix: missing; the folder to install into, such as /usr/local")
    folder = os.path.abspath(os.path.expanduser(folder))
    try:
        os.makedirs(folder, exist_ok=True)
        if kind == "install":
            Install(root, folder)
        else:
            Make(root, kind, folder)
    except libraries.Missing as error:
        Fail(str(error), 1)
    except OSError as error:
        Fail(f"--{option}={folder}: {error.strerror}: {error.filename}; name a folder that you may "
             "write", 1)


if __name__ == "__main__":
    main(*sys.argv[1:])
