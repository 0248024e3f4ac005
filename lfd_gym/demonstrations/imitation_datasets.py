"""The folders that `imitation` saves: Arrow files whose infos are strings of jsonpickle, which run code when decoded.

They are read here with Arrow alone, and nothing is decoded.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from lfd_gym.files import refusing


def read_arrow(folder: Path) -> Any:
    """Read the Arrow files that the folder's ``state.json`` names, and nothing else."""
    try:
        import pyarrow as pa
    except ImportError as error:
        raise ImportError(
            "reading datasets of imitation needs the 'imitation' extra: pip install 'lfd-gym[imitation]'"
        ) from error
    if not folder.is_dir():
        raise FileNotFoundError(f"there is no folder {folder}")
    state_file = folder / "state.json"
    with refusing(state_file, "is not that of a saved dataset"):
        names = [str(file["filename"]) for file in json.loads(state_file.read_text(encoding="utf-8"))["_data_files"]]
    tables = []
    for name in names:
        if Path(name).name != name:
            raise ValueError(f"{state_file} is not valid: it names the file {name!r} outside the folder")
        file = folder / name
        with (
            refusing(file, "is damaged or no Arrow file"),
            pa.memory_map(str(file)) as source,
            pa.ipc.open_stream(source) as reader,
        ):
            table = reader.read_all()
            table.validate(full=True)  # offsets outside their buffers would be followed without looking
            tables.append(table)
    if not tables:
        raise ValueError(f"{folder} is an empty dataset")
    return pa.concat_tables(tables)


def rows(column: Any, shape: tuple[int, ...]) -> list[NDArray[Any]]:
    """Split a column of nested lists into one array of ``shape`` rows per trajectory, in the stored dtype."""
    arrays = []
    for chunk in column.chunks:
        for row in chunk:
            values = row.values
            while hasattr(values, "flatten") and _is_list(values.type):
                values = values.flatten()
            arrays.append(values.to_numpy(zero_copy_only=False).reshape(-1, *shape))
    return arrays


def _is_list(kind: Any) -> bool:
    import pyarrow.types as kinds

    return bool(kinds.is_list(kind) or kinds.is_large_list(kind) or kinds.is_fixed_size_list(kind))
