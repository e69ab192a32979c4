"""The pages fit the code, and every link between them leads somewhere."""

import re
from pathlib import Path

import pytest
from koikoi_sdk.rules import variant

from tests.architecture.source import ROOT
from tools.reference import PAGES, render

LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ +(.+?) *$", re.MULTILINE)
FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
PROSE = sorted(
    path for pattern in ("*.md", "docs/**/*.md", "services/*/README.md", "sdk/**/*.md") for path in ROOT.glob(pattern)
)


def links_of(path: Path) -> list[str]:
    text = FENCE.sub("", path.read_text(encoding="utf-8"))
    return [link for link in LINK.findall(text) if not link.startswith(("http://", "https://", "mailto:"))]


def anchors_of(path: Path) -> set[str]:
    """Return the anchors of a page's headings, by the rule of the usual Git hosts."""
    headings = HEADING.findall(FENCE.sub("", path.read_text(encoding="utf-8")))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("name", PAGES)
def test_generated_parts_fit_the_code(name):
    page = (ROOT / name).read_text(encoding="utf-8")
    assert render(page) == page, f"{name} does not fit the code: run `make docs` and commit the result"


@pytest.mark.parametrize("path", PROSE, ids=name_of)
def test_relative_links_lead_somewhere(path):
    lost = []
    for link in links_of(path):
        name, _, anchor = link.partition("#")
        target = (path.parent / name).resolve() if name else path
        if not target.exists() or (anchor and anchor not in anchors_of(target)):
            lost.append(link)
    assert not lost


def test_links_were_found():
    """The two tests above would pass on nothing, too."""
    assert len(links_of(ROOT / "README.md")) >= 8
    assert "start-here" not in anchors_of(ROOT / "docs" / "errors.md")
    assert "lobby" in anchors_of(ROOT / "docs" / "errors.md")


def test_every_decision_has_its_own_number_and_its_three_parts():
    pages = sorted((ROOT / "docs" / "adr").glob("*.md"))
    numbers = [page.name[:4] for page in pages]
    assert numbers == [f"{number:04d}" for number in range(1, len(pages) + 1)]
    for page in pages:
        text = page.read_text(encoding="utf-8")
        assert text.startswith(f"# {int(page.name[:4])}. "), page.name
        assert all(part in text for part in ("**Context.**", "**Choice.**", "**Cost.**")), page.name


def test_the_page_for_players_has_the_points_of_the_house_rules():
    text = (ROOT / "docs" / "how-to-play.md").read_text(encoding="utf-8")
    house = variant("house")
    told = {name: int(points) for name, points in re.findall(r"\((\w+)\) \|[^|]*\| (\d+)", text)}
    assert told == {
        "goko": house.goko,
        "shiko": house.shiko,
        "ameshiko": house.ameshiko,
        "sanko": house.sanko,
        "hanami": house.viewing,
        "tsukimi": house.viewing,
        "inoshikacho": house.inoshikacho,
        "akatan": house.ribbons,
        "aotan": house.ribbons,
        "tane": 1,
        "tan": 1,
        "kasu": 1,
        "teshi": house.teyaku,
        "kuttsuki": house.teyaku,
    }
