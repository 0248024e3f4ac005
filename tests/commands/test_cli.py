"""The command line, called as a user does."""

import os
import shutil
import subprocess
import sys
from typing import get_args

import pytest
import tyro
from matplotlib.image import imread

import lfd_gym
from lfd_gym.cli import AnyCommand, main


def test_version(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"lfd-gym {lfd_gym.__version__}\n"


def test_envs_lists_the_gridworld(capsys):
    assert main(["envs"]) == 0
    assert "lfd_gym/StochasticGridworld-v0" in capsys.readouterr().out


def test_show_draws_a_gridworld(tmp_path, capsys):
    out = tmp_path / "new" / "grid.png"
    assert main(["show", "lfd_gym/StochasticGridworld-v0", "--env-kwargs", "size=5", "--out", str(out)]) == 0
    assert "25 states, 4 actions" in capsys.readouterr().out
    picture = imread(out)
    assert picture.shape[0] == picture.shape[1]
    assert picture[..., :3].std() > 0.05  # neither empty nor of one colour


def test_show_draws_other_environments(tmp_path):
    assert main(["show", "CartPole-v1", "--out", str(tmp_path / "cart.png")]) == 0
    assert imread(tmp_path / "cart.png").std() > 0.01


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["show", "lfd_gym/Nothing-v0"], "lfd-gym: Environment `Nothing` doesn't exist"),
        (
            ["show", "lfd_gym/StochasticGridworld-v0", "--env-kwargs", "size=0"],
            "lfd-gym: size must be an integer of at least 1",
        ),
        (["show", "CartPole-v1", "--video", "a.gif", "--horizon", "0"], "lfd-gym: horizon must be at least 1, got 0"),
        (["evaluate", "nowhere"], "lfd-gym: there is no file or folder nowhere"),
        (["certify", "nowhere"], "lfd-gym: there is no file or folder nowhere"),
        (["benchmark", "--spec", "no.toml", "--out", "b"], "lfd-gym: there is no file no.toml"),
    ],
)
def test_expected_failures_are_one_line_and_exit_with_2(arguments, message, capsys):
    assert main(arguments) == 2
    error = capsys.readouterr().err
    assert error.startswith(message)
    assert "Traceback" not in error


def commands():
    """Return the names of all commands, as `--help` of the parser itself lists them."""
    return [get_args(part)[1].name for part in get_args(AnyCommand)]


def test_help_shows_a_worked_line_for_every_command(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")  # so that no line is broken
    with pytest.raises(SystemExit) as ended:
        main(["--help"])
    assert ended.value.code == 0
    shown = capsys.readouterr().out
    lines = [line.removeprefix("$ lfd-gym ") for line in shown.splitlines() if line.startswith("$ lfd-gym ")]
    assert sorted(line.split()[0] for line in lines) == sorted(commands())
    for line in lines:  # whole lines, which the parser understands
        assert tyro.cli(AnyCommand, args=line.split()) is not None


def test_shell_completion_is_printed(capsys):
    with pytest.raises(SystemExit):
        main(["--tyro-print-completion", "bash"])
    script = capsys.readouterr().out
    assert all(command in script for command in commands())


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        (["tr"], {"train"}),
        (["ev"], {"evaluate"}),
        (["train", "--dem"], {"--demonstrations"}),
        (["collect", "--train-expert", ""], {"ppo", "sac", "dqn"}),
    ],
)
def test_bash_completes_what_is_typed(tmp_path, capsys, typed, offered):
    with pytest.raises(SystemExit):
        main(["--tyro-print-completion", "bash"])
    (tmp_path / "lfd-gym").write_text(capsys.readouterr().out)
    words = " ".join(f"'{word}'" for word in ["lfd-gym", *typed])
    asked = f"""
        source {tmp_path}/lfd-gym
        complete -p lfd-gym | sed -E 's/.*-F ([^ ]+) .*/\\1/' > {tmp_path}/function
        COMP_WORDS=({words}) COMP_CWORD={len(typed)}
        $(cat {tmp_path}/function) lfd-gym
        printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    done = subprocess.run(["bash", "-c", asked], capture_output=True, text=True, timeout=60)
    found = {word.strip() for word in done.stdout.split()}
    assert offered <= found, done.stderr
    assert not found & set(commands()) - offered, "other commands do not begin like this"


def test_a_terminal_that_does_not_know_greek_gets_question_marks():
    code = "import sys; from lfd_gym import cli\n"
    code += "cli._main = lambda words: print(chr(0x3B3), chr(0x2264), 1) or 0\nsys.exit(cli.main([]))"
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, timeout=100)
    assert (done.returncode, done.stdout) == (0, "? ? 1\n"), done.stderr[-500:]
