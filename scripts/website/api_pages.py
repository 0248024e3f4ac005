"""The pages of the API reference: every public name, on the page of the part of the package that defines it."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

import lfd_gym

#: The modules whose ``__all__`` is public.
PUBLIC_MODULES = (
    "lfd_gym",
    *(f"lfd_gym.{name}" for name in ("baselines", "datasets", "envs", "features", "plots", "testing")),
)


def public_names() -> list[str]:
    """Return every public name with its module, such as ``lfd_gym.envs.TabularEnv``, without the modules themselves."""
    return [
        f"{module}.{name}"
        for module in PUBLIC_MODULES
        for name in import_module(module).__all__
        if f"{module}.{name}" not in PUBLIC_MODULES
    ]


def api_pages() -> dict[str, str]:
    """Return the text of each page by its path, the overview first."""
    parts: dict[str, list[str]] = {}
    for name in public_names():
        parts.setdefault(_part(name), []).append(name)
    shown = {part: _once(names) for part, names in parts.items()}
    pages = {
        f"api/{part}.md": "\n\n".join([f"# {part}", _said_of(part), *(f"::: {name}" for name in names)]) + "\n"
        for part, names in sorted(parts.items())
    }
    lines = [
        f"| [{part}]({part}.md) | {', '.join(_link(part, name) for name in names)} |"
        for part, names in sorted(shown.items())
    ]
    overview = ["# Reference", _OVERVIEW, "| part | names |\n|---|---|\n" + "\n".join(lines)]
    return {"api/index.md": "\n\n".join(overview) + "\n", **pages}


_OVERVIEW = (
    "Every public name. Those of `lfd_gym` itself are used as `lfd.Task`, after `import lfd_gym as lfd`; those of "
    "`lfd_gym.features`, `lfd_gym.baselines`, `lfd_gym.datasets`, `lfd_gym.envs`, `lfd_gym.plots` and "
    "`lfd_gym.testing` under their module. Modules and names that are not here may change at any time."
)


def _once(names: list[str]) -> list[str]:
    """Return the names without those that are at a second place: the overview links to the first."""
    last = [name.rpartition(".")[2] for name in names]
    return [name for k, name in enumerate(names) if last[k] not in last[:k]]


def _link(part: str, name: str) -> str:
    return f"[`{name.rpartition('.')[2]}`]({part}.md#{name})"


def _part(name: str) -> str:
    """Return the part of the package that defines ``name``: the second word of its module."""
    module, _, attribute = name.rpartition(".")
    home = lfd_gym._LATER.get(attribute) if module == "lfd_gym" else None  # what needs an extra is not imported
    if home is None:
        home = getattr(import_module(module), attribute).__module__
    return str(home.split(".")[1])


def _said_of(part: str) -> str:
    """Return the first line of the docstring of a part, where it has one."""
    module: ModuleType = import_module(f"lfd_gym.{part}")
    return (module.__doc__ or "").strip().splitlines()[0] if module.__doc__ else ""
