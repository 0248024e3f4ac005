"""Pictures and films as files."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from math import ceil
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from lfd_gym.files import replacing_file

Picture = NDArray[np.uint8]

#: Of a .gif: pictures a second, pixels along the longer side, pictures that its colours are chosen from.
_FASTEST, _LARGEST, _N_LOOKED_AT = 25, 480, 8


def write_png(path: Path, picture: Picture) -> None:
    """Write an RGB picture as a PNG file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing_file(path, overwrite=True) as unfinished:
        Image.fromarray(picture).save(unfinished, format="PNG")


def check_video(path: Path, force: bool) -> None:
    """Refuse a video that could not be written, before anything is played."""
    if path.suffix not in (".gif", ".mp4"):
        raise ValueError(f"video must end in .gif or .mp4, got {path}")
    if path.exists() and not force:
        raise FileExistsError(f"{path} exists already; --force replaces it")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"cannot write {path}: the folder {path.parent} does not exist")
    if path.suffix == ".mp4":
        try:
            import_module("imageio_ffmpeg")
        except ImportError as error:
            raise ImportError(
                "an .mp4 needs ffmpeg: pip install imageio-ffmpeg, or record a .gif, which needs nothing"
            ) from error


def write_video(path: Path, frames: Sequence[Picture], rate: float, overwrite: bool) -> None:
    """Write pictures as a film, ``rate`` of them a second; a .gif leaves some out if they are many."""
    with replacing_file(path, overwrite) as unfinished:
        if path.suffix == ".mp4":
            _write_mp4(unfinished, frames, rate)
        else:
            _write_gif(unfinished, frames, rate)


def _write_mp4(path: Path, frames: Sequence[Picture], rate: float) -> None:
    ffmpeg: Any = import_module("imageio_ffmpeg")
    height, width = frames[0].shape[:2]
    # The name of a file that is not finished does not tell its format.
    film = ffmpeg.write_frames(str(path), (width, height), fps=rate, macro_block_size=2, output_params=["-f", "mp4"])
    film.send(None)
    for frame in frames:
        film.send(np.ascontiguousarray(frame))
    film.close()


def _write_gif(path: Path, frames: Sequence[Picture], rate: float) -> None:
    step = ceil(rate / _FASTEST)
    chosen = [*frames[:-1:step], frames[-1]]
    smaller = ceil(max(chosen[0].shape[:2]) / _LARGEST)
    pictures = [Image.fromarray(frame).reduce(smaller) for frame in chosen]
    # One palette for all: to choose one for each picture takes ten times as long, and colours would flicker.
    looked_at = [np.asarray(pictures[k]) for k in np.linspace(0, len(pictures) - 1, _N_LOOKED_AT).astype(int)]
    palette = Image.fromarray(np.concatenate(looked_at)).quantize(256)
    first, *others = [picture.quantize(palette=palette, dither=Image.Dither.NONE) for picture in pictures]
    duration = round(1000 * step / rate)
    first.save(path, format="GIF", save_all=True, append_images=others, duration=duration, loop=0)
