"""What an HDF5 file may not do: point to other files, whose content would be taken for its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lfd_gym.files import FileContentError, refusing


def check_inside(path: Path) -> None:
    """Refuse a file with links to other files, or with datasets that are stored in other files."""
    import h5py

    with refusing(path, "is damaged or no HDF5 file"), h5py.File(path, "r") as file:
        waiting: list[Any] = [file]
        seen = set()
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
                elif isinstance(part, h5py.Group) and part.id not in seen:
                    seen.add(part.id)
                    waiting.append(part)
