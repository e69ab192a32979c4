"""`python -m services.auth [migrate]`."""

from services.auth.app import build, migrate
from services.kit.app import run

if __name__ == "__main__":
    run("auth", build, {"migrate": migrate})
