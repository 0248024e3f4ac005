"""What an HDF5 file may not do: point to other files, whose content would pass for its own, or ask for much memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lfd_gym.files import FileContentError, most_bytes, refusing


def check_inside(path: Path) -> None:
    """Refuse a file with links to other files, with datasets that are stored in other files, or with huge ones."""
    import h5py

    with refusing(path, "is damaged or no HDF5 file"), h5py.File(path, "r") as file:
        waiting: list[Any] = [file]
        seen, needed = set(), 0
        while waiting:
            group = waiting.pop()
            for name in group:
                where = f"{group.name.rstrip('/')}/{name}"
                link = group.get(name, getlink=True)
                if isinstance(link, h5py.ExternalLink):
                    raise FileContentError(f"{path} is not read: {where} links to another file, {link.filename}")
                if not isinstance(link, h5py.HardLink):
                    continue  # a soft link leads to something in this file
                part = group[name]
                if isinstance(part, h5py.Dataset):
                    if part.external or part.is_virtual:
                        raise FileContentError(f"{path} is not read: {where} is stored in another file")
                    needed += part.nbytes  # a few bytes may claim to be as long as one likes
                    if needed > most_bytes(path):
                        raise FileContentError(f"{path} is not read: with {where} its arrays take {needed} bytes")
                elif isinstance(part, h5py.Group) and part.id not in seen:
                    seen.add(part.id)
                    waiting.append(part)
