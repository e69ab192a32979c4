"""A second rules engine, written from docs/rules.md alone, to judge the first one.

It shares no code, no data type and no table with `koikoi_sdk.rules`: cards stay strings, a round is one dictionary,
and every preset is spelled out as the table of docs/rules.md section 6 to 10 prints it. Slow and plain on purpose.
Answers have the shape of the referee's (docs/interfaces.md); what is illegal gives `"at": index` without an error text.
"""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]

MONTHS = [f"{month:02d}" for month in range(1, 13)]
DECK = [f"{month}-{index}" for month in MONTHS for index in (1, 2, 3, 4)]

LIGHTS = {"01-1", "03-1", "08-1", "11-1", "12-1"}
RAIN = "11-1"
CUP = "09-1"
ANIMALS = {"02-1", "04-1", "05-1", "06-1", "07-1", "08-2", "09-1", "10-1", "11-2"}
RIBBONS = {"01-2", "02-2", "03-2", "04-2", "05-2", "06-2", "07-2", "09-2", "10-2", "11-3"}
PLAIN = set(DECK) - LIGHTS - ANIMALS - RIBBONS
RED_POEMS = {"01-2", "02-2", "03-2"}
BLUE = {"06-2", "09-2", "10-2"}
BOAR_DEER_BUTTERFLY = {"07-1", "10-1", "06-1"}

#            goko shiko ameshiko sanko
USUAL = (10, 8, 7, 5)

PRESETS: dict[str, Json] = {
    "house": {
        "lights": USUAL, "viewing": True, "set": 5, "growing": True, "both": 10, "voids": False, "cup": "tane",
        "double_at": 8, "factor": "declarations", "teyaku": True, "redeal_hand": False, "award": None, "pays": True,
        "start": 25, "rounds": 6, "after_exhausted": "same", "one_koikoi": False,
    },
    "nintendo": {
        "lights": USUAL, "viewing": True, "set": 5, "growing": True, "both": 10, "voids": True, "cup": "both",
        "double_at": 7, "factor": "loser", "teyaku": True, "redeal_hand": False, "award": None, "pays": False,
        "start": 0, "rounds": 12, "after_exhausted": "other", "one_koikoi": True,
    },
    "sdin": {
        "lights": (15, 10, 8, 6), "viewing": False, "set": 6, "growing": False, "both": None, "voids": False,
        "cup": "both", "double_at": None, "factor": "none", "teyaku": False, "redeal_hand": False, "award": None,
        "pays": False, "start": 0, "rounds": 12, "after_exhausted": "same", "one_koikoi": False,
    },
    "boardgameland": {
        "lights": USUAL, "viewing": True, "set": 5, "growing": False, "both": None, "voids": False, "cup": "tane",
        "double_at": 7, "factor": "anybody", "teyaku": False, "redeal_hand": True, "award": None, "pays": False,
        "start": 0, "rounds": 6, "after_exhausted": "same", "one_koikoi": False,
    },
    "wikipedia_ja": {
        "lights": USUAL, "viewing": False, "set": 5, "growing": False, "both": None, "voids": False, "cup": "both",
        "double_at": None, "factor": "none", "teyaku": True, "redeal_hand": False, "award": None, "pays": False,
        "start": 0, "rounds": 12, "after_exhausted": "same", "one_koikoi": False,
    },
    "wikipedia_en": {
        "lights": USUAL, "viewing": True, "set": 5, "growing": False, "both": 10, "voids": False, "cup": "both",
        "double_at": 7, "factor": "loser", "teyaku": False, "redeal_hand": False, "award": "dealer", "pays": False,
        "start": 0, "rounds": 12, "after_exhausted": "same", "one_koikoi": False,
    },
}  # fmt: skip


def rules_of(preset: str, overrides: Json) -> Json:
    """Give the switches of a preset with the overrides of a request applied."""
    rules = dict(PRESETS[preset])
    for name, value in overrides.items():
        rules["viewing" if name == "hanami_tsukimi" else name] = value
    return rules


# -- yaku (section 6)


def yaku_of(rules: Json, captured: list[str]) -> list[list[Any]]:
    """List the yaku of captured cards in canonical order."""
    held = set(captured)
    found: list[list[Any]] = []

    def add(name: str, points: int) -> None:
        found.append([name, points])

    lights = held & LIGHTS
    goko, shiko, ameshiko, sanko = rules["lights"]
    if len(lights) == 5:
        add("goko", goko)
    elif len(lights) == 4 and RAIN in lights:
        add("ameshiko", ameshiko)
    elif len(lights) == 4:
        add("shiko", shiko)
    elif len(lights) == 3 and RAIN not in lights:
        add("sanko", sanko)
    if rules["viewing"] and {"03-1", CUP} <= held:
        add("hanami", 5)
    if rules["viewing"] and {"08-1", CUP} <= held:
        add("tsukimi", 5)

    animals, ribbons = held & ANIMALS, held & RIBBONS
    plain = held & PLAIN
    if rules["cup"] == "both" and CUP in held:
        plain = plain | {CUP}
    trio, red, blue = held >= BOAR_DEER_BUTTERFLY, held >= RED_POEMS, held >= BLUE
    if trio:
        add("inoshikacho", rules["set"] + (len(animals - BOAR_DEER_BUTTERFLY) if rules["growing"] else 0))
    if red and blue and rules["both"] is not None:
        add("akatan_aotan", rules["both"] + (len(ribbons - RED_POEMS - BLUE) if rules["growing"] else 0))
    else:
        if red:
            add("akatan", rules["set"] + (len(ribbons - RED_POEMS) if rules["growing"] else 0))
        if blue:
            add("aotan", rules["set"] + (len(ribbons - BLUE) if rules["growing"] else 0))
    if len(animals) >= 5 and not (rules["voids"] and trio):
        add("tane", len(animals) - 4)
    if len(ribbons) >= 5 and not (rules["voids"] and (red or blue)):
        add("tan", len(ribbons) - 4)
    if len(plain) >= 10:
        add("kasu", len(plain) - 9)
    return found


def total(yaku: list[list[Any]]) -> int:
    """Add the points of a list of yaku."""
    return sum(points for _, points in yaku)


def answer_yaku(request: Json) -> Json:
    """Answer a `yaku` request."""
    yaku = yaku_of(rules_of(request["preset"], request["overrides"]), request["captured"])
    return {"points": total(yaku), "yaku": yaku}


# -- deal, redeal, hand yaku (sections 3 and 4)


def by_month(cards: list[str]) -> dict[str, int]:
    """Count the cards of each month that occurs."""
    return {month: sum(card[:2] == month for card in cards) for month in {card[:2] for card in cards}}


def teyaku_of(hand: list[str]) -> str | None:
    """Name the hand yaku of eight cards."""
    counts = sorted(by_month(hand).values())
    if 4 in counts:
        return "teshi"
    return "kuttsuki" if counts == [2, 2, 2, 2] else None


def new_round(rules: Json, deck: list[str], dealer: int, points_before: list[int]) -> Json:
    """Deal a round and settle what the deal alone decides."""
    hands: list[list[str]] = [[], []]
    hands[1 - dealer] = list(deck[0:8])
    hands[dealer] = list(deck[16:24])
    game: Json = {
        "rules": rules, "dealer": dealer, "points": list(points_before), "hands": hands, "field": list(deck[8:16]),
        "stock": list(deck[24:48]), "captures": [[], []], "phase": "play", "turn": 1, "mover": dealer, "drawn": None,
        "koikoi": [0, 0], "threshold": [0, 0], "result": None,
    }  # fmt: skip
    why = []
    if 4 in by_month(game["field"]).values():
        why.append("field")
    if rules["redeal_hand"] and any(4 in by_month(hand).values() for hand in hands):
        why.append("hand")
    if why:
        game["turn"] = 0
        finish(game, "redeal", None, dealer)
        game["result"]["why"] = why
        return game
    names = [teyaku_of(hand) for hand in hands] if rules["teyaku"] else [None, None]
    if names != [None, None]:
        winner = dealer if names[dealer] else 1 - dealer
        finish(game, "teyaku", winner, winner, [[names[winner], 6]], 6)
        game["result"]["teyaku"] = names
    return game


def finish(
    game: Json, kind: str, winner: int | None, next_dealer: int, yaku: list[list[Any]] | None = None, base: int = 0,
    doubling: int = 1, factor: int = 1, award: int = 0,
) -> None:  # fmt: skip
    """End the round: work out score, payment and the points after it (sections 8 to 10)."""
    score = base * doubling * factor + award
    delta, payment = [0, 0], 0
    if winner is not None:
        payment = score
        if game["rules"]["pays"]:
            payment = min(score, game["points"][1 - winner])
            delta[1 - winner] = -payment
        delta[winner] = payment
    game["phase"] = "over"
    game["result"] = {
        "kind": kind, "winner": winner, "yaku": yaku or [], "koikoi": list(game["koikoi"]), "base": base,
        "threshold_mult": doubling, "koikoi_mult": factor, "score": score, "payment": payment, "delta": delta,
        "points_after": [game["points"][0] + delta[0], game["points"][1] + delta[1]], "next_dealer": next_dealer,
    }  # fmt: skip


# -- turns (sections 5 and 7)


def matching(game: Json, card: str) -> list[str]:
    """List the field cards of the month of a card."""
    return sorted(other for other in game["field"] if other[:2] == card[:2])


def options_of(game: Json) -> list[str]:
    """List what the player at a decision may say."""
    last_turn = not game["hands"][0] and not game["hands"][1]
    if last_turn or (game["rules"]["one_koikoi"] and sum(game["koikoi"]) > 0):
        return ["shobu"]
    return ["shobu", "koikoi"]


def legal_of(game: Json) -> list[list[Any]]:
    """List the legal actions in canonical order."""
    if game["phase"] == "over":
        return []
    if game["phase"] == "decision":
        return [[word] for word in options_of(game)]
    if game["phase"] == "draw_choice":
        return [["take", card] for card in matching(game, game["drawn"])]
    legal: list[list[Any]] = []
    for card in sorted(game["hands"][game["mover"]]):
        targets = matching(game, card)
        legal += [["play", card, target] for target in (targets if len(targets) == 2 else [None])]
    return legal


def resolve(game: Json, source: str, card: str, target: str | None) -> Json:
    """Put a card on the field or let it capture; the caller has checked the target."""
    found = matching(game, card)
    if len(found) == 2:
        found = [other for other in found if other == target]
    gained = sorted([*found, card]) if found else []
    if not found:
        game["field"].append(card)
    for other in found:
        game["field"].remove(other)
    game["captures"][game["mover"]] += gained
    return {"from": source, "card": card, "captured": gained}


def act(game: Json, action: list[Any]) -> list[Json]:
    """Apply one of the legal actions; give the events."""
    me = game["mover"]
    if action == ["shobu"]:
        stop(game)
        return []
    if action == ["koikoi"]:
        game["koikoi"][me] += 1
        game["threshold"][me] = total(yaku_of(game["rules"], game["captures"][me]))
        pass_on(game)
        return []
    if action[0] == "take":
        events = [resolve(game, "stock", game["drawn"], action[1])]
        game["drawn"] = None
        evaluate(game)
        return events
    game["hands"][me].remove(action[1])
    events = [resolve(game, "hand", action[1], action[2])]
    top = game["stock"].pop(0)
    if len(matching(game, top)) == 2:
        game["drawn"] = top
        game["phase"] = "draw_choice"
        return events
    events.append(resolve(game, "stock", top, None))
    evaluate(game)
    return events


def evaluate(game: Json) -> None:
    """See whether the finished turn asks for a decision."""
    me = game["mover"]
    if total(yaku_of(game["rules"], game["captures"][me])) > game["threshold"][me]:
        game["phase"] = "decision"
    else:
        pass_on(game)


def pass_on(game: Json) -> None:
    """Give the turn to the other player, or end the exhausted round (section 9)."""
    if game["hands"][0] or game["hands"][1]:
        game["phase"] = "play"
        game["mover"] = 1 - game["mover"]
        game["turn"] += 1
        return
    dealer = game["dealer"]
    if game["rules"]["award"] == "dealer":
        finish(game, "exhausted", dealer, dealer, award=1)
    else:
        finish(game, "exhausted", None, dealer if game["rules"]["after_exhausted"] == "same" else 1 - dealer)


def stop(game: Json) -> None:
    """Score the round for the player who says shobu (section 8)."""
    rules, me = game["rules"], game["mover"]
    yaku = yaku_of(rules, game["captures"][me])
    base = total(yaku)
    doubling = 2 if rules["double_at"] is not None and base >= rules["double_at"] else 1
    mine, yours = game["koikoi"][me], game["koikoi"][1 - me]
    factors = {
        "none": 1,
        "declarations": 1 + mine + yours,
        "anybody": 2 if mine or yours else 1,
        "loser": 2 if yours else 1,
    }
    finish(game, "shobu", me, me, yaku, base, doubling, factors[rules["factor"]])


# -- answers


def state_of(game: Json) -> Json:
    """Describe a round the way the referee prints it (section 11)."""
    rules, over = game["rules"], game["phase"] == "over"
    yaku = [yaku_of(rules, pile) for pile in game["captures"]]
    decision = None
    if game["phase"] == "decision":
        me = game["mover"]
        decision = {"player": me, "yaku": yaku[me], "base": total(yaku[me]), "options": options_of(game)}
    return {
        "phase": game["phase"], "turn": game["turn"], "to_move": None if over else game["mover"],
        "field": sorted(game["field"]), "hands": [sorted(hand) for hand in game["hands"]],
        "captures": [sorted(pile) for pile in game["captures"]], "stock_left": len(game["stock"]),
        "drawn": game["drawn"], "koikoi": list(game["koikoi"]), "base": [total(found) for found in yaku],
        "legal": legal_of(game), "decision": decision,
    }  # fmt: skip


def answer_round(request: Json) -> Json:
    """Answer a `round` request."""
    rules = rules_of(request["preset"], request["overrides"])
    game = new_round(rules, request["deck"], request["dealer"], request["points_before"])
    answer: Json = {"initial": state_of(game), "steps": [], "result": None}
    for index, action in enumerate(request["actions"]):
        if action not in legal_of(game):
            answer["at"] = index
            break
        player, events = game["mover"], act(game, action)
        answer["steps"].append({"player": player, "action": action, "events": events, "state": state_of(game)})
    answer["result"] = game["result"]
    return answer


def answer_match(request: Json) -> Json:
    """Answer a `match` request (section 10); it stops at a round that breaks the rules."""
    rules = rules_of(request["preset"], request["overrides"])
    last = request.get("rounds_total", rules["rounds"])
    points = [rules["start"]] * 2
    dealer = request["first_dealer"]
    answer: Json = {"rounds": [], "trajectory": [points], "final": None}
    for number, played in enumerate(request["rounds"], 1):
        result = play_round(rules, played, dealer, points) if answer["final"] is None else None
        if result is None:
            return answer | {"at": number - 1}
        points, round_dealer, dealer = result["points_after"], dealer, result["next_dealer"]
        result |= {"round_no": number, "dealer": round_dealer}
        answer["rounds"].append({"result": result, "points_after": points})
        answer["trajectory"].append(points)
        bust = rules["pays"] and 0 in points
        if bust or number == last:
            winner = None if points[0] == points[1] else int(points[1] > points[0])
            answer["final"] = {
                "points": points, "winner": winner, "draw": winner is None, "reason": "bust" if bust else "rounds",
                "rounds_played": number,
            }  # fmt: skip
    return answer


def play_round(rules: Json, played: Json, dealer: int, points: list[int]) -> Json | None:
    """Play one round of a match: every deck but the last must be a redeal, and the actions must end it."""
    games = [new_round(rules, deck, dealer, points) for deck in played["decks"]]
    void = [game["result"] is not None and game["result"]["kind"] == "redeal" for game in games]
    if not games or void != [True] * (len(games) - 1) + [False]:
        return None
    for action in played["actions"]:
        if action not in legal_of(games[-1]):
            return None
        act(games[-1], action)
    result: Json | None = games[-1]["result"]
    return result and result | {"redeals": len(games) - 1}
