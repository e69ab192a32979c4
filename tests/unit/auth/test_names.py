"""What a person may be called: a table of names, and properties of every accepted one."""

import random
import unicodedata

import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st

from services.auth.domain.errors import DisplayNameInvalid, FieldInvalid
from services.auth.domain.names import (
    MAX_NAME_BYTES,
    generate_display_name,
    normalise_device_name,
    normalise_display_name,
)

FLAG = "\U0001f1ef\U0001f1f5"

ACCEPTED = {
    "a": "a",
    "花子": "花子",
    "たろう": "たろう",
    "José": "José",
    "Jose\u0301": "José",  # decomposed becomes composed
    "ﾊﾅｺ": "ハナコ",  # half-width katakana
    "Ｔａｒｏ　８": "Taro 8",  # full-width, ideographic space
    "a\u00a0b": "a b",  # no-break space becomes a plain one
    "a\u2003b": "a b",  # em space
    "ﬁsh": "fish",  # ligature
    "①": "1",
    "㍿": "株式会社",
    "K": "K",  # kelvin sign
    "עברית": "עברית",
    "محمد": "محمد",
    "हिन्दी": "हिन्दी",
    "ไทยน้ำ": unicodedata.normalize("NFKC", "ไทยน้ำ"),
    "한국어": "한국어",
    "\u1112\u1161\u11ab": "한",  # jamo compose
    "e\u0323\u0302": "ệ",
    "x\u0301\u0302\u0303": "x\u0301\u0302\u0303",  # three marks in a row
    "🎴": "🎴",
    "🎴" * 20: "🎴" * 20,
    "👍🏽": "👍🏽",  # skin tone is a visible modifier
    FLAG: FLAG,
    FLAG * 20: FLAG * 20,  # 160 bytes, 20 graphemes
    "a" * 20: "a" * 20,
    "花" * 20: "花" * 20,
    "e\u0301" * 20: "é" * 20,
    "O'Brien-Smith Jr.": "O'Brien-Smith Jr.",
    "<b>&amp;": "<b>&amp;",  # not ours to escape
    "ẞß": "ẞß",
}

REFUSED = {
    "": "length",
    "a" * 21: "length",
    "花" * 21: "length",
    "㍿" * 6: "length",  # grows to 24 characters
    FLAG * 21: "length",
    "🎴" * 21: "length",
    "a" * (MAX_NAME_BYTES + 1): "size",
    "花" * 67: "size",  # 201 bytes
    "\ufdfa" * 20: "size",  # each becomes 18 characters
    "x" * 100_000: "size",
    " ": "spaces",
    " a": "spaces",
    "a ": "spaces",
    "a  b": "spaces",
    "a\u3000\u3000b": "spaces",
    "\u00a0a": "spaces",
    "a\u1680b": "spaces",  # ogham space mark looks like a line
    "\u00a8a": "spaces",  # spacing diaeresis normalises to space + mark
    "a\tb": "invisible",
    "a\nb": "invisible",
    "a\rb": "invisible",
    "a\x00b": "invisible",
    "a\x1bb": "invisible",
    "a\x7fb": "invisible",
    "a\x85b": "invisible",
    "a\u2028b": "invisible",
    "a\u2029b": "invisible",
    "a\u200bb": "invisible",  # zero width space
    "a\u200cb": "invisible",
    "a\u200db": "invisible",  # zero width joiner
    "👨\u200d👩\u200d👧": "invisible",  # joined emoji need it; refused with a clear reason
    "a\u2060b": "invisible",
    "a\ufeffb": "invisible",
    "a\u00adb": "invisible",  # soft hyphen
    "a\u034fb": "invisible",  # combining grapheme joiner
    "a\u061cb": "invisible",  # Arabic letter mark
    "a\u200eb": "invisible",
    "a\u200fb": "invisible",
    "a\u202ab": "invisible",
    "a\u202eb": "invisible",  # right-to-left override
    "a\u2066b\u2069": "invisible",
    "\u202dabc\u202c": "invisible",
    "a\u206ab": "invisible",
    "a\u180eb": "invisible",  # Mongolian vowel separator
    "a\u180bb": "invisible",
    "❤\ufe0f": "invisible",  # variation selector
    "a\U000e0101b": "invisible",
    "a\U000e0041b": "invisible",  # tag character
    "\u115f": "invisible",  # Hangul choseong filler
    "\u1160": "invisible",
    "\u3164": "invisible",  # Hangul filler
    "\uffa0": "invisible",  # half-width Hangul filler
    "a\u17b4b": "invisible",  # Khmer inherent vowel
    "\u2800": "invisible",  # braille blank
    "\U0001d159": "invisible",  # musical null notehead
    "\U0001d173": "invisible",  # musical format control
    "\U00016fe4": "invisible",
    "\ufffc": "invisible",
    "\ufffd": "invisible",
    "a\ue000b": "invisible",  # private use
    "a\U000f0000b": "invisible",
    "a\u0378b": "invisible",  # unassigned
    "a\U000e0fffb": "invisible",
    "a\ufffeb": "invisible",  # noncharacter
    "a\ud800b": "invisible",  # lone surrogate
    "\u0301a": "marks",
    "\u0903a": "marks",  # spacing mark
    "\u20dda": "marks",
    "x\u0301\u0302\u0303\u0304": "marks",
    "Z" + "\u0335" * 40 + "algo": "marks",
}


@pytest.mark.parametrize(("typed", "stored"), ACCEPTED.items(), ids=ascii)
def test_a_good_name_is_stored_in_nfkc(typed: str, stored: str):
    assert normalise_display_name(typed) == stored
    assert normalise_display_name(stored) == stored


@pytest.mark.parametrize(("typed", "rule"), REFUSED.items(), ids=lambda value: ascii(value)[:40])
def test_a_bad_name_is_refused_with_the_rule_it_breaks(typed: str, rule: str):
    with pytest.raises(DisplayNameInvalid) as refusal:
        normalise_display_name(typed)
    assert refusal.value.metadata["rule"] == rule
    assert refusal.value.field == "display_name"


@given(st.text(max_size=60))
def test_whatever_is_accepted_is_short_visible_and_stable(typed: str):
    try:
        name = normalise_display_name(typed)
    except DisplayNameInvalid:
        return
    assert unicodedata.is_normalized("NFKC", name)
    assert 1 <= len(regex.findall(r"\X", name)) <= 20
    assert len(name.encode()) <= MAX_NAME_BYTES
    assert not regex.search(r"[\p{C}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]", name)
    assert normalise_display_name(name) == name


def test_a_device_name_may_be_empty_and_has_forty_characters():
    assert normalise_device_name("") == ""
    assert normalise_device_name("花" * 40) == "花" * 40
    for bad, rule in (("花" * 41, "length"), ("a\u202eb", "invisible"), ("a" * 401, "size"), (" ", "spaces")):
        with pytest.raises(FieldInvalid) as refusal:
            normalise_device_name(bad)
        assert refusal.value.metadata == {"field": "device_name", "rule": rule, "limit": "40"}


def test_generated_names_obey_the_rules():
    chance = random.Random(7)
    names = {generate_display_name(chance.randrange) for _ in range(3000)}
    assert len(names) > 2900
    assert all(normalise_display_name(name) == name for name in names)
    assert generate_display_name(lambda _: 0) == "雪見の鶴10"
    assert len(generate_display_name(lambda bound: bound - 1)) <= 20
