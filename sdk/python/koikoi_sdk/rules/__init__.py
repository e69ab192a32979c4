"""The rules of Koi-Koi, the only place where a rule lives (docs/rules.md). Pure, std-lib only."""

from __future__ import annotations

from koikoi_sdk.rules.board import KOIKOI, LAST_TURN, SHOBU, Board, Phase, start
from koikoi_sdk.rules.cards import Card, Kind, card_name, card_number, kind, month
from koikoi_sdk.rules.contract import Rules, format_rules, make_rules, parse_rules
from koikoi_sdk.rules.errors import Reason, RulesError
from koikoi_sdk.rules.match import EndReason, Final, Match, start_match
from koikoi_sdk.rules.report import ReportedRound, replay
from koikoi_sdk.rules.round import Action, Event, Koikoi, Play, Round, Shobu, Take, deal
from koikoi_sdk.rules.scoring import Pair, Player, ResultKind, RoundResult
from koikoi_sdk.rules.variants import PRESETS, SWITCHES, Scoring, Variant, variant
from koikoi_sdk.rules.yaku import Yaku, evaluate, field_redeal, hand_redeal, teyaku, total

__all__ = [
    "KOIKOI",
    "LAST_TURN",
    "PRESETS",
    "SHOBU",
    "SWITCHES",
    "Action",
    "Board",
    "Card",
    "EndReason",
    "Event",
    "Final",
    "Kind",
    "Koikoi",
    "Match",
    "Pair",
    "Phase",
    "Play",
    "Player",
    "Reason",
    "ReportedRound",
    "ResultKind",
    "Round",
    "RoundResult",
    "Rules",
    "RulesError",
    "Scoring",
    "Shobu",
    "Take",
    "Variant",
    "Yaku",
    "card_name",
    "card_number",
    "deal",
    "evaluate",
    "field_redeal",
    "format_rules",
    "hand_redeal",
    "kind",
    "make_rules",
    "month",
    "parse_rules",
    "replay",
    "start",
    "start_match",
    "teyaku",
    "total",
    "variant",
]
