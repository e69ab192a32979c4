"""`python -m services.ranking [migrate | rebuild | verify]`."""

from __future__ import annotations

from services.kit.app import run
from services.ranking.app import build, migrate_schema, rebuild_ratings, verify_ratings

if __name__ == "__main__":
    run(
        "ranking",
        build,
        {"migrate": migrate_schema, "rebuild": rebuild_ratings, "verify": verify_ratings},
    )
