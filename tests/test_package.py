"""The package as it is declared, built and imported."""

import importlib.util
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

if sys.version_info >= (3, 11):
    import tomllib
else:
    tomllib = None  # Python 3.10 has no TOML reader; the other versions check the declaration


def source_folders():
    return {"lfd_gym": ROOT / "lfd_gym", "lfd_gym.envs": ROOT / "envs", "lfd_gym.baselines": ROOT / "baselines"}


@pytest.mark.skipif(tomllib is None, reason="tomllib arrived with Python 3.11")
def test_declared_packages_are_the_folders_with_sources():
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
    found = {}
    for name, folder in source_folders().items():
        for init in folder.rglob("__init__.py"):
            nested = init.parent.relative_to(folder)
            if name == "lfd_gym" and nested.parts[:1] in (("envs",), ("baselines",)):
                continue  # the symlinks to the other two
            found[".".join((name, *nested.parts))] = str(init.parent.relative_to(ROOT))
    assert sorted(declared["packages"]) == sorted(found)
    assert all(declared["package-dir"].get(name, found[name]) == found[name] for name in found)


def test_version_is_declared_once_and_the_same():
    import lfd_gym

    declared = re.search(r'^version = "(.+)"$', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    assert declared is not None
    assert declared[1] == lfd_gym.__version__


def test_wheel_holds_exactly_the_sources(tmp_path):
    copy = tmp_path / "copy"  # so that nothing built earlier in the tree can slip in
    ignored = shutil.ignore_patterns(".*", "build", "dist", "out", "*.egg-info", "__pycache__")
    shutil.copytree(ROOT, copy, symlinks=True, ignore=ignored)
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(tmp_path), str(copy)]
    subprocess.run(command, check=True, capture_output=True)
    with zipfile.ZipFile(next(tmp_path.glob("*.whl"))) as wheel:
        packed = {name for name in wheel.namelist() if name.startswith("lfd_gym/")}
    expected = {"lfd_gym/py.typed"}
    for name, folder in source_folders().items():
        for source in (*folder.rglob("*.py"), *folder.rglob("report-assets/*"), *folder.glob("datasets/*.[jn]*")):
            expected.add(f"{name.replace('.', '/')}/{source.relative_to(folder)}")
    assert packed == expected


def test_import_is_light():
    code = "import sys, lfd_gym; print(*sorted(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.split()
    heavy = {"torch", "matplotlib", "imitation", "stable_baselines3", "pygame", "minari", "ray", "tyro", "pandas"}
    assert "lfd_gym" in loaded
    assert not heavy & set(loaded)


def test_public_names_exist_and_are_sorted():
    import lfd_gym

    assert lfd_gym.__all__ == sorted(lfd_gym.__all__) == dir(lfd_gym)
    needs_an_extra = {"PrimalDualTrainer"}
    assert all(hasattr(lfd_gym, name) for name in set(lfd_gym.__all__) - needs_an_extra)
    if importlib.util.find_spec("imitation") is None:
        with pytest.raises(ImportError, match=r"pip install 'lfd-gym\[imitation\]'"):
            _ = lfd_gym.PrimalDualTrainer
    else:
        assert lfd_gym.PrimalDualTrainer.__name__ == "PrimalDualTrainer"


def test_sources_of_the_subpackages_are_never_imported_bare():
    bare = re.compile(r"^\s*(from|import) (envs|baselines)\b", re.MULTILINE)
    sources = [
        p for folder in ("lfd_gym", "envs", "baselines", "tests", "scripts") for p in (ROOT / folder).glob("**/*.py")
    ]
    assert sources
    assert [str(p) for p in sources if bare.search(p.read_text())] == []
