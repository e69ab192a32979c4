"""Requests for `koikoi referee`, made with the oracle: every preset and switch, every kind of deal, every way to end.

A generator plays its rounds with `rules_oracle`, so whatever it calls legal or illegal is the oracle's opinion.
Deals that chance gives too seldom (hand yaku, four or three of a month on the field, pairs, many lights) are built.
"""

from __future__ import annotations

from random import Random

from tests.property.rules_oracle import (
    ANIMALS,
    DECK,
    LIGHTS,
    MONTHS,
    PLAIN,
    PRESETS,
    RIBBONS,
    Json,
    act,
    legal_of,
    matching,
    new_round,
    rules_of,
)

# How many cards of one month each go to the field, to one hand and to the other; the rest of the deck is random.
DEALS = [
    ([], [], []),
    ([4], [], []),
    ([4, 4], [], []),
    ([3], [], []),
    ([3, 3], [], []),
    ([2, 2, 2, 2], [], []),
    ([], [4], []),
    ([], [4, 4], []),
    ([], [4, 2, 2], []),
    ([], [2, 2, 2, 2], []),
    ([], [3, 3, 2], []),
    ([], [3, 2, 2, 1], []),
    ([], [2, 2, 2, 1, 1], []),
    ([], [4], [4]),
    ([], [4], [2, 2, 2, 2]),
    ([], [2, 2, 2, 2], [2, 2, 2, 2]),
    ([4], [4], []),
    ([4], [2, 2, 2, 2], []),
    ([4], [4], [4]),
]
DOUBLE_AT = [None, 1, 5, 6, 7, 8, 10, 255]


def overrides(chance: Random) -> Json:
    drawn = {
        "hanami_tsukimi": chance.choice([True, False]),
        "double_at": chance.choice(DOUBLE_AT),
        "cup": chance.choice(["tane", "both"]),
        "rounds": chance.choice([1, 3, 6, 12]),
    }
    return {name: value for name, value in drawn.items() if chance.random() < 0.5}


def dealt(chance: Random) -> list[str]:
    """Shuffle a deck: two thirds of them built after DEALS, a sixth with many precious cards in play."""
    months = chance.sample(MONTHS, 12)
    precious = chance.sample(sorted(LIGHTS | ANIMALS | RIBBONS), 18)
    fixed = [precious[:6], precious[6:12], precious[12:]] if chance.random() < 0.5 else [[], [], []]
    if chance.random() < 2 / 3:
        fixed = [
            [card for count in counts for card in chance.sample(_month(months.pop()), count)]
            for counts in chance.choice(DEALS)
        ]
    taken = {card for part in fixed for card in part}
    rest = [card for card in chance.sample(DECK, len(DECK)) if card not in taken]
    field, one, other = [chance.sample(full, 8) for full in [part + _take(rest, 8 - len(part)) for part in fixed]]
    hands = [one, other] if chance.random() < 0.5 else [other, one]
    return [*hands[0], *field, *hands[1], *rest]


def _month(month: str) -> list[str]:
    return [card for card in DECK if card.startswith(month)]


def _take(rest: list[str], count: int) -> list[str]:
    return [rest.pop() for _ in range(count)]


def played(chance: Random, game: Json) -> list[list[str | None]]:
    """Play a round to its end, mostly capturing; how often it says koi-koi is drawn once."""
    boldness = chance.choice([0, 0.5, 0.9, 1])
    actions = []
    while legal := legal_of(game):
        action = chance.choice(legal)
        if legal == [["shobu"], ["koikoi"]]:
            action = legal[chance.random() < boldness]
        elif game["phase"] == "play" and chance.random() < 0.6:
            action = chance.choice([other for other in legal if matching(game, other[1])] or legal)
        actions.append(action)
        act(game, action)
    return actions


def illegal(chance: Random, game: Json) -> list[str | None]:
    """Give an action that looks like one but is not legal now."""
    mine, yours = game["hands"][game["mover"]], game["hands"][1 - game["mover"]]
    card, target = chance.choice(mine or DECK), chance.choice(game["field"] or DECK)
    candidates = [
        ["shobu"],
        ["koikoi"],
        ["take", target],
        ["take", game["drawn"] or card],
        ["play", card, None],
        ["play", card, target],
        ["play", card, chance.choice(matching(game, card) or [card])],
        ["play", chance.choice(yours or DECK), None],
        ["play", target, None],
        ["play", "13-1", None],
        ["draw"],
    ]
    return chance.choice([action for action in candidates if action not in legal_of(game)])


def yaku_request(chance: Random) -> Json:
    pool = [sorted(LIGHTS | ANIMALS | RIBBONS), sorted(PLAIN)]
    captured = [card for cards in pool for card in chance.sample(cards, chance.randint(0, len(cards)))]
    preset = chance.choice(list(PRESETS))
    return {"op": "yaku", "preset": preset, "overrides": overrides(chance), "captured": captured}


def round_request(chance: Random) -> Json:
    """Give a round: whole, broken off, or stopped by an illegal action, perhaps after its end."""
    preset, switches, deck, dealer = (
        chance.choice(list(PRESETS)),
        overrides(chance),
        dealt(chance),
        chance.randint(0, 1),
    )
    stake = chance.choice([1, 2, 5, 25, 49])
    game = new_round(rules_of(preset, switches), deck, dealer, [stake, 50 - stake])
    actions = played(chance, game)
    if chance.random() < 0.4:
        actions = actions[: chance.randint(0, len(actions))]
        game = new_round(rules_of(preset, switches), deck, dealer, [stake, 50 - stake])
        for action in actions:
            act(game, action)
        if chance.random() < 0.7:
            actions = [*actions, illegal(chance, game), ["shobu"]]
    return {
        "op": "round",
        "preset": preset,
        "overrides": switches,
        "deck": deck,
        "dealer": dealer,
        "points_before": [stake, 50 - stake],
        "actions": actions,
    }


def match_request(chance: Random) -> Json:
    """Give a match of 1 to 12 rounds; every third one is spoiled somewhere."""
    preset, switches = chance.choice(["house", *PRESETS]), overrides(chance)
    rules, dealer, last = rules_of(preset, switches), chance.randint(0, 1), chance.choice([1, 2, 3, 6, 12])
    request: Json = {"op": "match", "preset": preset, "overrides": switches, "rounds_total": last}
    request |= {"first_dealer": dealer, "rounds": []}
    points = [rules["start"]] * 2
    while len(request["rounds"]) < last and not (rules["pays"] and 0 in points):
        decks = [dealt(chance)]
        while _is_redeal(game := new_round(rules, decks[-1], dealer, points)):
            decks.append(dealt(chance))
        request["rounds"].append({"decks": decks, "actions": played(chance, game)})
        points, dealer = game["result"]["points_after"], game["result"]["next_dealer"]
    if chance.random() < 1 / 3:
        _spoil(chance, request)
    return request


def _is_redeal(game: Json) -> bool:
    return game["result"] is not None and game["result"]["kind"] == "redeal"


def _spoil(chance: Random, request: Json) -> None:
    rounds = request["rounds"]
    entry = chance.choice(rounds)
    match chance.randrange(7):
        case 0:
            entry["actions"] = entry["actions"][:-1]
        case 1:
            entry["actions"] = [*entry["actions"], ["shobu"]]
        case 2:
            entry["decks"] = [*entry["decks"], dealt(chance)]
        case 3:
            entry["decks"] = []
        case 4:
            rounds.append(entry)
        case 5:
            rounds.pop()
        case 6:
            del request["rounds_total"]
