from __future__ import annotations

import json
import math
import re
import xml.etree.ElementTree as ElementTree
from html.parser import HTMLParser

import pytest

from bench.helpers import query_set, result
from capdex_bench.evaluate import Result
from capdex_bench.measures import Measure
from capdex_bench.report import browser_data, html_table, report_page
from capdex_bench.runs import Answer
from capdex_bench.suite import Suite
from capdex_bench.svg import bars, lines, reliability, scatter

NASTY = "</script><script>alert(1)</script>"
VOID = {"meta", "input", "path", "rect", "circle", "polyline"}


def suite() -> Suite:
    labels = {"1": {"GET /a": 2, "GET /b": 1}, "2": {}}
    of = query_set(labels, types={"1": "terse", "2": "none"}, group="golden")
    found = result({"1": ["GET /a", NASTY]}, of)
    found.run["1"] = (Answer("GET /a", 0.5, "shop", {"words": 0.25}), Answer(NASTY, 0.25, "shop"))
    other = result({"1": ["GET /b"]}, of, system="other")
    return Suite((found, other), {"command": "capdex bench quality", "seed": 1})


class Balanced(HTMLParser):
    """Fails on an element that is closed out of order or never."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.scripts = 0

    def handle_starttag(self, tag, attrs):
        self.scripts += tag == "script"
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag not in VOID:
            assert self.open.pop() == tag


def test_the_page_is_whole_html_and_fills_every_place():
    page = report_page(suite())
    parser = Balanced()
    parser.feed(page)
    parser.close()
    assert parser.open == []
    assert "{{" not in page
    assert page.count("<svg") == 5


def test_the_page_shows_reliability_with_its_figures_and_counts_of_bins():
    page = report_page(suite())
    assert "Reliability of ours" in page
    # One first match with 0.5, right; two shown, the wrong one with 0.25.
    assert "first (error 0.500, AUROC nan, 1 matches)" not in page
    assert "first (error 0.500, AUROC unknown, 1 match)" in page
    assert "all shown (error 0.375, AUROC 1.000, 2 matches)" in page
    assert "<td>ours</td><td>all shown</td><td>0.2-0.3</td><td>1</td>" in page
    assert "<td>1.000 (1 of 1)</td><td>0.000 (0 of 1)</td>" in page


def test_scores_that_are_no_probabilities_get_no_diagram():
    of = query_set({"1": {"GET /a": 2}}, group="golden")
    beyond = Suite((Result("ours", of, {"1": (Answer("GET /a", 7.0),)}),), {})
    assert "Reliability of" not in report_page(beyond)


def test_golden_and_public_are_pooled_and_other_groups_are_not():
    groups = ("golden", "public", "merged")
    sets = [query_set({"1": {"GET /a": 2}}, name=group, group=group) for group in groups]
    results = tuple(Result("ours", of, {"1": (Answer("GET /a", 0.5),)}) for of in sets)
    page = report_page(Suite(results, {}))
    assert page.count("<h2>golden and public pooled</h2>") == 1
    pooled = page[page.index("golden and public pooled") :]
    assert "first (error 0.500, AUROC unknown, 2 matches)" in pooled
    assert "and public pooled" not in report_page(suite())


def test_the_page_fetches_nothing():
    page = report_page(suite())
    assert not re.search(r"""(?:src|href|action)=|url\(|@import|https?://|fetch\(|XMLHttp""", page)
    assert "default-src 'none'" in page


def test_texts_of_others_cannot_end_the_data_or_start_a_script():
    parser = Balanced()
    parser.feed(report_page(suite()))
    assert parser.scripts == 2


def test_the_browser_holds_labels_values_answers_and_parts():
    data = browser_data(suite(), Measure.parse("nDCG@10"))
    assert data["systems"] == ["ours", "other"]
    first, second = data["queries"]
    assert first["labels"] == {"GET /a": 2, "GET /b": 1}
    assert first["answers"][0][0] == ["GET /a", 0.5, {"words": 0.25}]
    assert first["values"][0] == pytest.approx(3 / (3 + 1 / math.log2(3)))
    assert second["values"] == [None, None]
    assert second["answers"] == [[], []]


def test_the_embedded_data_is_the_browsers_data():
    page = report_page(suite())
    embedded = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    assert json.loads(embedded[1])["queries"][0]["text"] == "text of 1"


def test_a_table_is_escaped():
    made = html_table("| a | b |\n| --- | --- |\n| <i> | x\\|y |\n")
    assert "<td>&lt;i&gt;</td><td>x|y</td>" in made


def svg_of(html: str) -> ElementTree.Element:
    return ElementTree.fromstring(html[: html.index("</svg>") + len("</svg>")])


@pytest.mark.parametrize(
    "html",
    [
        bars("t", {"a & b": {"x": 0.5, "y": math.nan}, "c": {"x": 2.0}}, y_label="<y>"),
        bars("t", {}, y_label="y"),
        lines("t", {"a": [(1, 0.1), (20, 0.9)], "b": []}, x_label="k", y_label="r"),
        lines("t", {}, x_label="k", y_label="r"),
        reliability("t", {"a": [(0.0, 0.0, 1), (1.0, 1.0, 9)], "<b>": []}, x_label="p", y_label="r"),
        reliability("t", {}, x_label="p", y_label="r"),
        scatter("t", {"a": (0.05, 0.5), "b": (120.0, 0.9), "c": (math.nan, 0.1)}, x_label="ms", y_label="q"),
        scatter("t", {}, x_label="ms", y_label="q"),
    ],
)
def test_plots_are_well_formed_and_stay_within_their_box(html):
    root = svg_of(html)
    for element in root.iter():
        for name in ("x", "y", "cx", "cy"):
            if name in element.attrib:
                assert 0 <= float(element.attrib[name]) <= 720
    assert "nan" not in html


def test_a_bar_is_as_high_as_its_value():
    root = svg_of(bars("t", {"a": {"x": 0.8, "y": 0.4}}, y_label=""))
    tall, low = (float(one.attrib["height"]) for one in root.iter("rect"))
    assert tall == pytest.approx(2 * low, abs=0.11)


def test_a_dot_stands_where_its_bin_does_and_shows_its_count():
    root = svg_of(reliability("t", {"a": [(0.5, 0.5, 4), (0.9, 0.5, 16)]}, x_label="", y_label=""))
    small, large = root.iter("circle")
    assert float(large.attrib["r"]) > float(small.attrib["r"])
    assert small.attrib["cy"] == large.attrib["cy"]
    middle = (float(x) for x in re.findall(r"M(\S+) \S+L(\S+) ", diagonal(root))[0])
    assert float(small.attrib["cx"]) == pytest.approx(sum(middle) / 2, abs=0.1)
    assert {"4", "16"} <= {one.text for one in root.iter("text")}


def diagonal(root: ElementTree.Element) -> str:
    (found,) = (one.attrib["d"] for one in root.iter("path") if "L" in one.attrib["d"])
    return found
