"""The one error of the rules: what was refused, where, which limit, and what to do."""

from __future__ import annotations

from enum import StrEnum


class Reason(StrEnum):
    """Why something was refused; stable names that programs may compare."""

    BAD_CARD = "BAD_CARD"
    """A card is not `MM-I`, is given twice, or there are too many."""
    BAD_DECK = "BAD_DECK"
    """A deck does not hold all 48 cards once, or decks and redeals do not fit."""
    BAD_FIELD = "BAD_FIELD"
    """A field does not hold eight different cards."""
    BAD_JSON = "BAD_JSON"
    """A line or text is not the JSON asked for, or a member is missing or of another kind."""
    BAD_PRESET = "BAD_PRESET"
    """No preset has this name."""
    BAD_RULES = "BAD_RULES"
    """A contract's rules string is not canonical, asks for a number of rounds that the preset does not allow, or a
    reported result cannot follow from the rules."""
    BAD_SWITCH = "BAD_SWITCH"
    """A switch does not exist or cannot have this value."""
    ILLEGAL_ACTION = "ILLEGAL_ACTION"
    """The action is not one of the legal ones now."""
    INTERNAL = "INTERNAL"
    """A fault of ours; the next line is answered all the same."""
    MATCH_OVER = "MATCH_OVER"
    """The match has ended; there is no further round."""
    ROUND_OVER = "ROUND_OVER"
    """The round has ended; there is no further action."""
    ROUND_UNFINISHED = "ROUND_UNFINISHED"
    """The actions of a round of a match stop before its end."""
    TOO_LONG = "TOO_LONG"
    """A line has more than 1 MiB."""
    UNKNOWN_OP = "UNKNOWN_OP"
    """The member `op` is none of yaku, round and match."""


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
