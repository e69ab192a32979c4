"""The generated parts of the pages: what the code says is what stands there."""

import enum
from dataclasses import dataclass

import pytest

from services.kit.metrics import Metrics
from services.match.domain.errors import REASONS
from services.match.metrics import RelayMetrics
from tools import reference
from tools.reference import PageError, metrics_of, render


def part(name: str) -> str:
    return f"before\n<!-- begin {name} -->\nold\n<!-- end -->\nafter\n"


def rows(name: str) -> list[list[str]]:
    lines = render(part(name)).splitlines()[2:-2]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines[2:]]


def test_a_part_is_replaced_and_the_rest_of_a_page_stays():
    page = render(part("ports"))
    assert page.startswith("before\n<!-- begin ports -->\n| port |")
    assert page.endswith("|\n<!-- end -->\nafter\n")
    assert "old" not in page


def test_writing_twice_changes_nothing():
    once = render(part("settings match") + part("close_codes"))
    assert render(once) == once


@pytest.mark.parametrize("page", ["no part at all", part("weather"), part("settings"), part("settings moon")])
def test_a_part_that_cannot_be_written_is_said(page):
    with pytest.raises(PageError):
        render(page)


def test_settings_say_default_and_bounds():
    found = {row[0]: row[1:] for row in rows("settings gateway")}
    assert found["`KOIKOI_GATEWAY_HTTP_ADDRESS`"] == ["`127.0.0.1:8080`", "Where HTTP listens."]
    assert found["`KOIKOI_GATEWAY_CALL_LIMIT_S`"][1].endswith("At least 0.1. At most 60.0.")
    assert found["`KOIKOI_GATEWAY_TRUSTED_PROXIES`"][0] == "empty"
    assert dict(row[:2] for row in rows("settings match"))["`KOIKOI_MATCH_REDIS_URL`"] == "**must be set**"


def test_a_setting_without_an_explanation_is_said(monkeypatch):
    @dataclass(frozen=True)
    class Silent:
        speed: int = 1

    monkeypatch.setattr("services.lobby.settings.Settings", Silent)
    with pytest.raises(PageError, match="KOIKOI_LOBBY_SPEED"):
        render(part("settings lobby"))


def test_a_reason_has_code_status_advice_and_metadata():
    found = {row[0]: row[1:] for row in rows("reasons lobby")}
    assert found["`ROOM_NOT_FOUND`"][:2] == ["NOT_FOUND", "404"]
    assert found["`ALREADY_IN_ROOM`"][-1] == "`code`, `match_id`"
    assert found["`FIELD_INVALID`"][-2:] == ["no", "`field`, `limit`"]
    assert found["`KEYS_UNAVAILABLE`"][-2] == "yes"
    assert {row[0]: row[-2] for row in rows("own_reasons gateway")}["`BODY_TOO_LARGE`"] == "no"


def test_the_range_of_a_close_code_says_what_to_do():
    found = rows("close_codes")
    assert len(found) == len(REASONS)
    for code, *_, then, keys in found:
        is_closing = code != "-"
        assert then == (("come back" if int(code) < 4500 else "stop") if is_closing else "the connection stays")
        assert ("`close_code`" in keys) is is_closing


def test_metrics_read_from_the_source_are_those_of_the_registry():
    metrics = Metrics("match")
    RelayMetrics(metrics)
    made = {
        family.name + ("_total" if family.type == "counter" else "")
        for family in metrics.registry.collect()
        if family.name.startswith("koikoi_")
    }
    assert {name for name, *_ in metrics_of("match")} == made
    assert ("koikoi_lobby_rooms_total", "counter", ("event",), "Rooms by what happened to them.") in metrics_of("lobby")


def test_an_enum_member_without_an_explanation_is_said(monkeypatch):
    monkeypatch.setattr(reference, "TableReason", Odd)
    with pytest.raises(PageError, match=r"Odd\.SILENT"):
        render(part("reject_reasons"))


class Odd(enum.IntEnum):
    TOLD = 1
    """Is told."""
    SILENT = 2


def test_writing_the_pages_leaves_what_fits(monkeypatch, tmp_path):
    (tmp_path / "page.md").write_text(part("ports"))
    monkeypatch.setattr(reference, "PAGES", ("page.md",))
    monkeypatch.setattr(reference, "ROOT", tmp_path)
    reference.main()
    assert (tmp_path / "page.md").read_text() == render(part("ports"))
    (tmp_path / "page.md").write_text("nothing")
    with pytest.raises(SystemExit, match="no generated part"):
        reference.main()


def test_a_bar_in_a_text_does_not_break_a_row():
    assert reference._row("a|b") == r"| a\|b |"
