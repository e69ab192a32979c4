"""`python -m services.match` serves; `python -m services.match migrate` prepares Postgres."""

from services.kit.app import run
from services.match.app import build, migrate

run("match", build, {"migrate": migrate})
