#!/usr/bin/env python3
"""Packs the package into a wheel: make_wheel.py ROOT OUT_FOLDER

Prints the wheel's path. No setuptools: a wheel is a zip with three files of metadata (PEP 427). It
has the package and the command `pipelab`, and brings the libraries that these need, but those of the
compiler and of the C library, so its tag names this machine's C library as the oldest one (PEP 600).
The same sources give the same bytes.
"""
import base64
import hashlib
import importlib.util
import os
import stat
import subprocess
import sys
import sysconfig
import tempfile
import zipfile

sys.path.insert(0, os.path.join(sys.argv[1], "tools/package"))
import libraries  # noqa: E402

DESCRIPTION = "Pipeline-parallel training schemes compared end to end"


def Version(folder):
    """The project's one version, from the extension, as PEP 440 writes it."""
    spec = importlib.util.spec_from_file_location("_core", os.path.join(folder, "_core.so"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.version.replace("-", ".") + ("0" if module.version.endswith("dev") else "")


def Tag():
    python = f"cp{sys.version_info.major}{sys.version_info.minor}"
    c_library = os.confstr("CS_GNU_LIBC_VERSION").split()[1].replace(".", "_")
    return f"{python}-{python}-manylinux_{c_library}_{os.uname().machine}"


def Read(path):
    with open(path, "rb") as file:
        return file.read()


def Stripped(path):
    """The binary without the symbols that only debuggers ask for."""
    with tempfile.NamedTemporaryFile() as file:
        subprocess.run(["strip", "--strip-unneeded", "-o", file.name, path], check=True)
        return Read(file.name)


def Libraries(binaries, info):
    """The libraries, where the binaries' DT_RPATH looks for them, and the terms they come under."""
    needed = {}
    for binary in binaries:
        needed.update(libraries.Needed(binary))
    brought = {n: path for n, path in sorted(needed.items()) if not libraries.SYSTEM.match(n)}
    files = {f"pipelab/lib/pipelab/{name}": Read(path) for name, path in brought.items()}
    for owner, path in libraries.Terms(brought.values()).items():
        files[f"{info}/licenses/{owner}"] = Read(path)
    return files


def Files(root, version):
    """Path in the wheel -> content."""
    folder, files = os.path.join(root, "python/pipelab"), {}
    for name in sorted(os.listdir(folder)):
        if name.endswith((".py", ".pyi", "py.typed")):
            files[f"pipelab/{name}"] = Read(os.path.join(folder, name))
    extension, program = os.path.join(folder, "_core.so"), os.path.join(root, "experiments/pipelab_plan")
    files["pipelab/_core" + sysconfig.get_config_var("EXT_SUFFIX")] = Stripped(extension)
    # bin/ and lib/pipelab/ are as in a tarball: one DT_RPATH of the program is right in both.
    files["pipelab/bin/pipelab"] = Stripped(program)
    files[f"pipelab-{version}.data/scripts/pipelab"] = Read(os.path.join(root, "python/command.py"))
    info = f"pipelab-{version}.dist-info"
    files.update(Libraries([extension, program], info))
    files[f"{info}/METADATA"] = (
        f"Metadata-Version: 2.1\nName: pipelab\nVersion: {version}\nSummary: {DESCRIPTION}\n"
        f"License: Apache-2.0\nRequires-Python: =={sys.version_info.major}.{sys.version_info.minor}.*\n"
        "Provides-Extra: numpy\nRequires-Dist: numpy; extra == 'numpy'\n"
        "Provides-Extra: torch\nRequires-Dist: torch>=2.6; extra == 'torch'\n").encode()
    files[f"{info}/WHEEL"] = (
        f"Wheel-Version: 1.0\nGenerator: pipelab\nRoot-Is-Purelib: false\nTag: {Tag()}\n").encode()
    files[f"{info}/LICENSE"] = Read(os.path.join(root, "LICENSE"))
    record = "".join(
        f"{path},sha256={base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b'=').decode()},"
        f"{len(content)}\n" for path, content in files.items())
    files[f"{info}/RECORD"] = (record + f"{info}/RECORD,,\n").encode()
    return files


def main(root, out):
    version = Version(os.path.join(root, "python/pipelab"))
    os.makedirs(out, exist_ok=True)
    path = os.path.join(out, f"pipelab-{version}-{Tag()}.whl")
    with zipfile.ZipFile(path + ".part", "w", zipfile.ZIP_DEFLATED) as wheel:
        for name, content in Files(root, version).items():
            entry = zipfile.ZipInfo(name, (2020, 1, 1, 0, 0, 0))
            entry.compress_type = zipfile.ZIP_DEFLATED
            runs = ".so" in name or name.endswith(("/bin/pipelab", "/scripts/pipelab"))
            # pip leaves a file runnable only where the wheel says that it is a regular one.
            entry.external_attr = (stat.S_IFREG | (0o755 if runs else 0o644)) << 16
            wheel.writestr(entry, content)
    os.replace(path + ".part", path)
    print(path)


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except libraries.Missing as error:
        sys.exit(str(error))
    except OSError as error:
        sys.exit(f"{error.filename}: {error.strerror}; --out must name a folder that you may write")
