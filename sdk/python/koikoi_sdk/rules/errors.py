"""The one error of the rules: what was refused, where, which limit, and what to do."""

from __future__ import annotations

from enum import StrEnum


class Reason(StrEnum):
    """Why something was refused; stable names that programs may compare."""

    BAD_CARD = "BAD_CARD"
    BAD_DECK = "BAD_DECK"
    BAD_FIELD = "BAD_FIELD"
    BAD_JSON = "BAD_JSON"
    BAD_PRESET = "BAD_PRESET"
    BAD_RULES = "BAD_RULES"
    BAD_SWITCH = "BAD_SWITCH"
    ILLEGAL_ACTION = "ILLEGAL_ACTION"
    INTERNAL = "INTERNAL"
    MATCH_OVER = "MATCH_OVER"
    ROUND_OVER = "ROUND_OVER"
    ROUND_UNFINISHED = "ROUND_UNFINISHED"
    TOO_LONG = "TOO_LONG"
    UNKNOWN_OP = "UNKNOWN_OP"


class RulesError(ValueError):
    """Something breaks the rules or the shape they are written in; nothing was changed.

    `field` names the offending member, `limit` what would have been accepted. The message
    says both in one sentence and never repeats the refused value, which may be huge or secret.
    """

    def __init__(self, reason: Reason, field: str, limit: str) -> None:
        super().__init__(f"{field}: expected {limit}")
        self.reason = reason
        self.field = field
        self.limit = limit

    def within(self, outer: str) -> RulesError:
        """Give the same error as seen from an enclosing member."""
        return RulesError(self.reason, f"{outer}.{self.field}", self.limit)
