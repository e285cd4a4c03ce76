#!/usr/bin/env python3
"""Packs the package into a wheel: make_wheel.py PACKAGE_FOLDER LICENSE OUT_FOLDER

Prints the wheel's path. No setuptools: a wheel is a zip with three files of metadata (PEP 427). The
same sources give the same bytes.
"""
import base64
import hashlib
import importlib.util
import os
import sys
import sysconfig
import zipfile

DESCRIPTION = "Pipeline-parallel training schemes compared end to end"


def Version(folder):
    """The project's one version, from the extension, as PEP 440 writes it."""
    spec = importlib.util.spec_from_file_location("_core", os.path.join(folder, "_core.so"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.version.replace("-", ".") + ("0" if module.version.endswith("dev") else "")


def Tag():
    python = f"cp{sys.version_info.major}{sys.version_info.minor}"
    return f"{python}-{python}-{sysconfig.get_platform().replace('-', '_').replace('.', '_')}"


def Files(folder, license_file, version):
    """Path in the wheel -> content."""
    files = {}
    for name in sorted(os.listdir(folder)):
        if not name.endswith((".py", ".pyi", ".so", "py.typed")):
            continue
        with open(os.path.join(folder, name), "rb") as file:
            target = "_core" + sysconfig.get_config_var("EXT_SUFFIX") if name == "_core.so" else name
            files[f"pipelab/{target}"] = file.read()
    info = f"pipelab-{version}.dist-info"
    files[f"{info}/METADATA"] = (
        f"Metadata-Version: 2.1\nName: pipelab\nVersion: {version}\nSummary: {DESCRIPTION}\n"
        f"License: Apache-2.0\nRequires-Python: =={sys.version_info.major}.{sys.version_info.minor}.*\n"
        "Provides-Extra: numpy\nRequires-Dist: numpy; extra == 'numpy'\n"
        "Provides-Extra: torch\nRequires-Dist: torch>=2.6; extra == 'torch'\n").encode()
    files[f"{info}/WHEEL"] = (
        f"Wheel-Version: 1.0\nGenerator: pipelab\nRoot-Is-Purelib: false\nTag: {Tag()}\n").encode()
    with open(license_file, "rb") as file:
        files[f"{info}/LICENSE"] = file.read()
    record = "".join(
        f"{path},sha256={base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b'=').decode()},"
        f"{len(content)}\n" for path, content in files.items())
    files[f"{info}/RECORD"] = (record + f"{info}/RECORD,,\n").encode()
    return files


def main(folder, license_file, out):
    version = Version(folder)
    os.makedirs(out, exist_ok=True)
    path = os.path.join(out, f"pipelab-{version}-{Tag()}.whl")
    with zipfile.ZipFile(path + ".part", "w", zipfile.ZIP_DEFLATED) as wheel:
        for name, content in Files(folder, license_file, version).items():
            entry = zipfile.ZipInfo(name, (2020, 1, 1, 0, 0, 0))
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (0o755 if name.endswith(".so") else 0o644) << 16
            wheel.writestr(entry, content)
    os.replace(path + ".part", path)
    print(path)


if __name__ == "__main__":
    main(*sys.argv[1:])
