"""`python -m services.lobby` serves; `python -m services.lobby migrate` prepares the stores."""

from services.kit.app import run
from services.lobby.app import build, migrate

run("lobby", build, {"migrate": migrate})
