"""Turns the failures a user can do something about into one sentence each."""

from __future__ import annotations

from koikoi_sdk.rules.errors import RulesError


def describe(error: Exception) -> str | None:
    """Give one sentence for an expected failure, None for a fault of our own (which keeps its traceback)."""
    if isinstance(error, RulesError | OSError):  # TimeoutError is an OSError
        return str(error) or "it took too long"
    from koikoi_sdk.client.errors import KoikoiError, ServerError
    from koikoi_sdk.table import ContractError

    if isinstance(error, ServerError) and error.retry_after_s:
        return f"{error}; try again in {error.retry_after_s:.0f} s"
    if isinstance(error, ContractError):
        return f"the contract cannot be played: {error}"
    return str(error) if isinstance(error, KoikoiError) else None
