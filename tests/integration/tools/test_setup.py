"""tools/setup.sh on machines that lack something, and after interruptions. Python itself is a stand-in here."""

import os
import shutil
import subprocess
import textwrap
from pathlib import Path

import pytest

from tests.architecture.source import ROOT

# Answers what setup.sh asks of a Python: its version, venv and ensurepip, making .venv, and pip inside it.
STAND_IN = """
    #!/bin/sh
    echo "$0 $*" >>"$CALLS"
    case "$*" in
        *sys.exit*version_info*) exit $WRONG_VERSION ;;
        *"import venv, ensurepip"*) exit $NO_VENV ;;
        *"print("*) echo 3.11 ;;
        "-m venv .venv")
            mkdir -p .venv/bin && cp "$0" .venv/bin/python
            echo "command = $0 -m venv $PWD/.venv" >.venv/pyvenv.cfg ;;
        *"--require-hashes"*) echo "Collecting a"; [ ! -e fail-pip ] || { echo "no such package" >&2; exit 1; } ;;
    esac
"""


class Machine:
    """A checkout with the files setup.sh reads, and a PATH with stand-ins only."""

    def __init__(self, directory: Path) -> None:
        self.checkout = directory / "a checkout"
        (self.checkout / "tools").mkdir(parents=True)
        (self.checkout / "requirements").mkdir()
        shutil.copy(ROOT / "tools" / "setup.sh", self.checkout / "tools")
        shutil.copy(ROOT / "pyproject.toml", self.checkout)
        self.poker = self.checkout / "sdk" / "python" / "koikoi_sdk" / "poker"
        self.poker.mkdir(parents=True)
        (self.poker / "ristretto.c").write_text("int f(void) { return 0; }\n")
        for name in ("run", "dev"):
            (self.checkout / "requirements" / f"{name}.lock").write_text(f"{name}==1 --hash=sha256:0\n")
        self.programs = directory / "bin"
        self.programs.mkdir()
        self.calls = directory / "calls"
        for tool in (
            "sh",
            "cat",
            "cksum",
            "tr",
            "pwd",
            "grep",
            "mkdir",
            "rm",
            "cp",
            "dirname",
            "awk",
            "touch",
            "sleep",
            "kill",
        ):
            if path := shutil.which(tool):
                (self.programs / tool).symlink_to(path)

    def add_python(self, name: str) -> None:
        program = self.programs / name
        program.write_text(textwrap.dedent(STAND_IN).lstrip())
        program.chmod(0o755)

    def setup(self, what: str = "run", *, wrong_version: int = 0, no_venv: int = 0) -> subprocess.CompletedProcess[str]:
        environ = {"PATH": str(self.programs), "CALLS": str(self.calls)}
        environ |= {"WRONG_VERSION": str(wrong_version), "NO_VENV": str(no_venv)}
        self.calls.write_text("")
        command = [str(self.programs / "sh"), "tools/setup.sh", what]
        return subprocess.run(command, cwd=self.checkout, env=environ, capture_output=True, text=True, check=False)

    @property
    def installs(self) -> int:
        return self.calls.read_text().count("--require-hashes")


@pytest.fixture
def machine(tmp_path) -> Machine:
    return Machine(tmp_path)


def test_no_fitting_python_is_one_sentence(machine: Machine):
    result = machine.setup()
    assert result.returncode == 1
    assert result.stderr.startswith("Python 3.11, 3.12 or 3.13 is needed")
    machine.add_python("python3")
    result = machine.setup(wrong_version=1)
    assert result.returncode == 1
    assert result.stderr.startswith("Python 3.11, 3.12 or 3.13 is needed")


@pytest.mark.parametrize("name", ["python3", "python3.13", "python3.12", "python3.11"])
def test_any_of_the_names_will_do(machine: Machine, name):
    machine.add_python(name)
    assert machine.setup().returncode == 0
    assert f"bin/{name} -m venv" in machine.calls.read_text()


def test_a_missing_venv_package_is_named(machine: Machine):
    machine.add_python("python3")
    result = machine.setup(no_venv=1)
    assert result.returncode == 1
    assert "install the package python3.11-venv (or python3-venv)" in result.stderr
    assert not (machine.checkout / ".venv").exists()


def test_it_is_done_once_per_lock(machine: Machine):
    machine.add_python("python3")
    assert machine.setup().returncode == 0
    assert machine.installs == 1
    assert machine.setup().returncode == 0
    assert machine.installs == 0
    (machine.checkout / "requirements" / "run.lock").write_text("other==2 --hash=sha256:0\n")
    assert machine.setup().returncode == 0
    assert machine.installs == 1


def test_a_changed_c_source_is_built_again_and_an_old_library_never_stays(machine: Machine):
    machine.add_python("python3")
    machine.setup()
    old = machine.poker / "_ristretto.cpython-311-some.so"
    old.write_text("built from the old source")
    machine.setup()
    assert machine.installs == 0
    assert old.exists()
    (machine.poker / "ristretto.c").write_text("int f(void) { return 1; }\n")
    assert machine.setup().returncode == 0
    assert machine.calls.read_text().count("--no-build-isolation -e .") == 1
    assert not old.exists()


def test_what_tests_need_holds_what_run_needs(machine: Machine):
    machine.add_python("python3")
    machine.setup("dev")
    machine.setup("run")
    assert machine.installs == 0


def test_a_failed_install_says_so_and_the_next_one_heals(machine: Machine):
    machine.add_python("python3")
    (machine.checkout / "fail-pip").touch()
    result = machine.setup()
    assert result.returncode == 1
    assert "no such package" in result.stderr
    assert "try again" in result.stderr
    assert not (machine.checkout / ".venv-lock").exists()
    (machine.checkout / "fail-pip").unlink()
    assert machine.setup().returncode == 0
    assert machine.installs == 1


def test_half_a_venv_and_a_dead_owners_lock_are_no_obstacle(machine: Machine):
    machine.add_python("python3")
    (machine.checkout / ".venv" / "bin").mkdir(parents=True)
    (machine.checkout / ".venv-lock").mkdir()
    dead = subprocess.Popen(["true"])
    dead.wait()
    (machine.checkout / ".venv-lock" / "pid").write_text(str(dead.pid))
    assert machine.setup().returncode == 0
    assert machine.installs == 1


def test_a_moved_checkout_gets_a_new_venv(machine: Machine):
    machine.add_python("python3")
    machine.setup()
    machine.checkout = machine.checkout.rename(machine.checkout.with_name("moved"))
    assert machine.setup().returncode == 0
    assert "-m venv .venv" in machine.calls.read_text()


def test_two_at_once_install_once(machine: Machine):
    machine.add_python("python3")
    environ = {"PATH": str(machine.programs), "CALLS": str(machine.calls), "WRONG_VERSION": "0", "NO_VENV": "0"}
    command = [str(machine.programs / "sh"), "tools/setup.sh", "run"]
    both = [subprocess.Popen(command, cwd=machine.checkout, env=environ) for _ in range(2)]
    assert [one.wait(60) for one in both] == [0, 0]
    assert machine.installs == 1


def test_a_lock_that_was_taken_just_now_is_respected(machine: Machine):
    """Its owner's name is not written yet, only the file for it."""
    machine.add_python("python3")
    lock = machine.checkout / ".venv-lock"
    lock.mkdir()
    (lock / "pid").touch()
    environ = {"PATH": str(machine.programs), "CALLS": str(machine.calls), "WRONG_VERSION": "0", "NO_VENV": "0"}
    setup = subprocess.Popen([str(machine.programs / "sh"), "tools/setup.sh", "run"], cwd=machine.checkout, env=environ)
    with pytest.raises(subprocess.TimeoutExpired):
        setup.wait(0.7)
    shutil.rmtree(lock)
    assert setup.wait(60) == 0
    assert machine.installs == 1


def test_setup_names_no_index():
    text = (ROOT / "tools" / "setup.sh").read_text() + (ROOT / "Makefile").read_text()
    for option in ("--index-url", "--extra-index-url", "--find-links", "--trusted-host", "://"):
        assert option not in text
    assert os.access(ROOT / ".ci" / "run", os.X_OK)
