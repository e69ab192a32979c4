"""Where rules differ from house, in words for players (docs/rules.md)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from koikoi_sdk.rules import PRESETS, Rules


@dataclass(frozen=True, slots=True)
class Difference:
    """One point in which rules differ from house."""

    field: str
    house_value: str
    value: str
    text_en: str
    text_ja: str


_LABELS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "rounds": ("Rounds of a match", "月数"),
        "scoring": ("Who pays", "精算"),
        "stake": ("Points each player begins with", "持ち点"),
        "double_at": ("Scores double from this base on", "倍になる文数"),
        "koikoi_factor": ("Koi-koi multiplies the score", "こいこいの倍率"),
        "one_koikoi_a_round": ("After a koi-koi the next decision must be shobu", "こいこいは一月に一度"),
        "hanami_tsukimi": ("Hanami and tsukimi count", "花見・月見"),
        "viewing": ("Hanami, tsukimi", "花見・月見の文数"),
        "cup_is_kasu": ("The sake cup is a kasu too", "盃はカスも兼ねる"),
        "goko": ("Goko", "五光"),
        "shiko": ("Shiko", "四光"),
        "ameshiko": ("Ameshiko", "雨四光"),
        "sanko": ("Sanko", "三光"),
        "inoshikacho": ("Inoshikacho", "猪鹿蝶"),
        "ribbons": ("Akatan, aotan", "赤短・青短"),
        "both_ribbons": ("Akatan and aotan together", "赤短・青短の重複"),
        "combo_increment": ("Further cards add to inoshikacho, akatan and aotan", "猪鹿蝶・赤短・青短の追加点"),
        "combo_voids_count": ("Inoshikacho voids tane, ribbons void tan", "猪鹿蝶はタネ、赤短・青短はタンを消す"),
        "teyaku": ("Hand yaku (teshi, kuttsuki)", "手役（手四・くっつき）"),
        "redeal_hand_four": ("Four of a month in a hand are dealt again", "手四は配り直し"),
        "exhausted_award": ("Dealer's points for an exhausted round", "流れの親の点"),
        "exhausted_passes_deal": ("The deal passes after an exhausted round", "流れで親が替わる"),
    }
)
"""Every point of a rule set, most important first; a test holds it against `Variant`."""
_WORDS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "true": ("yes", "あり"),
        "false": ("no", "なし"),
        "none": ("none", "なし"),
        "transfer": ("the loser pays the winner", "敗者が払う"),
        "sum": ("nobody, the winner's points are added up", "払わず、勝者の点を足す"),
        "one_plus_all": ("times 1 + all declarations of the round", "全こいこい回数＋1倍"),
        "loser_declared": ("times 2 when the loser declared", "敗者のこいこいで2倍"),
        "anyone_declared": ("times 2 when anybody declared", "誰かのこいこいで2倍"),
        "replaces": ("one yaku of its own instead of the two", "二つに代えて一つの役"),
        "adds": ("both count", "両方を足す"),
    }
)


def differences(rules: Rules) -> list[Difference]:
    """List where these rules differ from house with its usual number of rounds."""
    house, own = PRESETS["house"], rules.variant
    found = []
    for field, (label_en, label_ja) in _LABELS.items():
        value = rules.rounds if field == "rounds" else getattr(own, field)
        if value == getattr(house, field):
            continue
        old, new = _written(getattr(house, field)), _written(value)
        (old_en, old_ja), (new_en, new_ja) = _in_words(old), _in_words(new)
        texts = f"{label_en}: {new_en} (house: {old_en})", f"{label_ja}：{new_ja}（標準：{old_ja}）"
        found.append(Difference(field, old, new, *texts))
    return found


def _written(value: object) -> str:
    return "none" if value is None else str(value).lower()


def _in_words(value: str) -> tuple[str, str]:
    return _WORDS.get(value, (value, value))
