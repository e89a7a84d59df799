"""The page has the content of the summary, is self-contained, and escapes text from the data."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from functools import cache
from html.parser import HTMLParser

import pytest
from msgspec.structs import replace

from subgrove._report.cells import estimate_cell
from subgrove._report.render import page
from subgrove._report.summary import Summary
from tests.report import hand_made

VOID = {"meta", "input", "wbr"}


class Reader(HTMLParser):
    """What a browser would see: elements with their attributes, and all text outside of style and script."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.open: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag, f"</{tag}> closes something else"

    def handle_data(self, data: str) -> None:
        if not {"style", "script"} & set(self.open):
            self.texts.append(data)

    def values(self, name: str) -> list[str]:
        return [attributes[name] or "" for _, attributes in self.elements if name in attributes]


def plain(words: str) -> str:
    """Words without what typesetting adds: one kind of space, one kind of minus."""
    return " ".join(words.replace("\u2212", "-").split())


SUMMARIES = {
    "bike": hand_made.bike_like(),
    "many": hand_made.many_features(100),
    "classes": hand_made.with_classes(),
    "hostile": hand_made.hostile(),
    "odd": hand_made.odd(),
}
each = pytest.mark.parametrize("name", SUMMARIES)


@cache
def written(name: str) -> str:
    return page(SUMMARIES[name])


@cache
def read(name: str) -> Reader:
    return Reader(written(name))


@each
def test_every_element_is_closed(name: str) -> None:
    assert read(name).open == []


@each
def test_the_page_has_no_external_url(name: str) -> None:
    reader = read(name)
    assert all(link.startswith("#") for link in reader.values("href"))
    assert reader.values("src") == reader.values("srcset") == reader.values("action") == []
    assert not re.search(r"https?:|//\w+\.|url\(|@import", written(name))


@each
def test_links_lead_to_places_on_the_page(name: str) -> None:
    places = read(name).values("id")
    assert len(places) == len(set(places))
    assert {link[1:] for link in read(name).values("href")} <= set(places)


@each
def test_the_policy_allows_the_one_style_and_the_one_script_and_nothing_else(name: str) -> None:
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]+)"', written(name))
    rules = dict(rule.split(" ", 1) for rule in policy.replace("&#39;", "'").split("; "))
    (style,) = re.findall(r"<style>(.*?)</style>", written(name), re.DOTALL)
    (script,) = re.findall(r"<script>(.*?)</script>", written(name), re.DOTALL)
    assert rules["default-src"] == "'none'"
    for rule, text in (("style-src", style), ("script-src", script)):
        assert rules[rule] == f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


@each
def test_no_element_has_a_style_or_a_handler_of_its_own(name: str) -> None:
    names = {key for _, attributes in read(name).elements for key in attributes}
    assert "style" not in names
    assert [key for key in names if key.startswith("on")] == []


def test_names_from_the_data_stay_text() -> None:
    reader = read("hostile")
    assert sum(tag == "script" for tag, _ in reader.elements) == 2
    assert not any(tag == "img" for tag, _ in reader.elements)
    text = "".join(reader.texts)
    assert hand_made.NASTY_NAME in text
    assert hand_made.NASTY_LEVEL in text


def test_points_are_json_that_holds_the_curves() -> None:
    (block,) = re.findall(r'id="points">(.*?)</script>', written("hostile"), re.DOTALL)
    found = json.loads(block)
    summary = SUMMARIES["hostile"]
    curves = [line for line in summary.features[1].lines if line.subgroup is not None]
    (inside,) = (one for key, one in found.items() if key.startswith("feature-2") and one["lines"][0]["name"] == "A")
    assert inside["feature"] == summary.features[1].feature
    for drawn, line in zip(inside["lines"], curves, strict=True):
        assert drawn["y"] == pytest.approx(line.y, rel=1e-4)


@each
def test_every_sentence_of_the_summary_is_on_the_page(name: str) -> None:
    text = plain("".join(read(name).texts))
    summary = SUMMARIES[name]
    texts = [summary.title, *summary.highlights, *summary.model.sentences, *summary.cautions, *summary.warnings]
    texts += [*summary.dependence_sentences, *summary.methods.sentences, *summary.data.sentences]
    texts += [one.sentence for one in summary.dependence]
    for feature in summary.features:
        texts += [feature.headline, *feature.story, *feature.effect_sentences]
        # the table of subgroups has the numbers, so their sentences are titles
        several = feature.subgroups if len(feature.subgroups) > 1 else ()
        assert {group.sentence for group in several} <= set(read(name).values("title"))
    assert [sentence for sentence in texts if plain(sentence) not in text] == []


@each
def test_rounded_values_have_exact_ones_in_attributes(name: str) -> None:
    summary = SUMMARIES[name]
    rows = [attributes for tag, attributes in read(name).elements if tag == "tr" and "data-conditional" in attributes]
    assert [float(row["data-conditional"] or "nan") for row in rows] == [
        one.conditional.estimate for one in summary.features
    ]
    assert [float(row["data-marginal"] or "nan") for row in rows] == [one.marginal.estimate for one in summary.features]
    text = "".join(read(name).texts)
    assert all(plain(part) in plain(text) for one in summary.features for part in estimate_cell(one.conditional))


@pytest.mark.parametrize(
    ("verdict", "looks"), [("good", "good"), ("weak", "warn"), ("uncertain", "warn"), ("useless", "bad")]
)
def test_the_verdict_is_shown_as_its_sentence(verdict: str, looks: str) -> None:
    text = page(hand_made.summary_of([hand_made.independent_feature()], verdict))
    assert f'<p class="verdict {looks}" role="note">The verdict on this model is {verdict}.</p>' in text


@pytest.mark.parametrize(("n", "matrix"), [(2, True), (10, True), (11, False), (30, False)])
def test_few_classes_have_a_confusion_matrix_and_many_the_most_frequent_errors(n: int, matrix: bool) -> None:
    model = hand_made.classifier_summary([f"class {at}" for at in range(n)])
    text = page(replace(hand_made.summary_of([hand_made.independent_feature()]), model=model))
    assert ("Confusion matrix" in text) == matrix
    assert ("Most frequent errors" in text) != matrix
    assert text.count('<figure class="recall"') == min(n - 2, 5)  # those of rare classes, the rarest five


def test_the_page_is_small_enough_to_send() -> None:
    assert len(written("many").encode()) < 6e6


def test_the_page_is_small_enough_to_send_even_with_three_classes() -> None:
    """A page of 100 such features takes seconds to make: each further feature takes what the sixth to fifteenth do."""
    features = [hand_made.numeric_feature(f"column_{at}", at, ("a", "b", "c")) for at in range(1, 16)]
    five, fifteen = (len(page(hand_made.summary_of(features[:n])).encode()) for n in (5, 15))
    assert fifteen < 2e6
    assert fifteen + 85 * (fifteen - five) / 10 < 6e6


def test_the_three_most_important_features_are_initially_open() -> None:
    for name in ("many", "bike"):
        found = [a for tag, a in read(name).elements if tag == "details" and a.get("class") == "feature"]
        assert [at for at, attributes in enumerate(found) if "open" in attributes] == [0, 1, 2]


def test_the_same_summary_gives_the_same_bytes() -> None:
    again = Summary.from_json(json.dumps(SUMMARIES["bike"].to_dict()))
    assert page(again) == written("bike")


def test_unknown_fidelity_is_said_once_and_not_called_failed() -> None:
    unknown = hand_made.fidelity("unknown")
    features = [replace(one, fidelity=unknown, marginal_fidelity=unknown) for one in hand_made.bike_like().features]
    reader = Reader(page(hand_made.summary_of(features)))
    assert "failed" not in [text.strip() for text in reader.texts]
    assert [text.strip() for text in reader.texts].count("unknown") == len(features)  # in the facts of each
    assert "".join(reader.texts).count("it is not known") == 1
    assert not {"bad", "failed"} & {word for names in reader.values("class") for word in names.split()}
