"""The report in a real browser: no errors, the table sorts, learners can be hidden, pictures are there, phones fit."""

import re
import shutil

import pytest
from selenium import webdriver
from selenium.webdriver.common.by import By

from lfd_gym.benchmark import (
    BenchmarkSpec,
    EnvironmentSpec,
    LearnerSpec,
    ProcessEngine,
    ResultsFolder,
    conclusion,
    run_benchmark,
)
from lfd_gym.benchmark.report import write_report

GRID = "lfd_gym/StochasticGridworld-v0"

pytestmark = pytest.mark.skipif(
    shutil.which("chromium") is None or shutil.which("chromedriver") is None,
    reason="needs chromium and chromedriver (Debian: apt-get install chromium chromium-driver)",
)


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    spec = BenchmarkSpec(
        environments=(EnvironmentSpec("grid5", "lfd_gym/StochasticGridworld-v0", 0.9, 30, {"size": 5}),),
        learners=tuple(LearnerSpec(name) for name in ("random", "cutting_plane", "expert", "tabular_bc")),
        n_demonstrations=(2, 20),
        seeds=(0, 1),
    )
    results = run_benchmark(spec, tmp_path_factory.mktemp("run"), ProcessEngine(2), progress_bar=False)
    return write_report(results.path)


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    options = webdriver.ChromeOptions()
    for flag in ("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-background-networking"):
        options.add_argument(flag)
    options.add_argument(f"--user-data-dir={tmp_path_factory.mktemp('profile')}")
    options.binary_location = shutil.which("chromium")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(shutil.which("chromedriver")))
    yield driver
    driver.quit()


#: Labels that would end the page, run a script or load a picture if they were not text.
STRANGE = (
    "<plaintext>",
    "<script>document.title='run'</script>",
    '"><img&src=x&onerror=document.title=1>',
    "a'b&amp;c",
)


def test_labels_are_shown_as_they_are(tmp_path, browser):
    spec = BenchmarkSpec(
        environments=tuple(
            EnvironmentSpec(label.replace("/", "|").replace("=", ":"), GRID, 0.9, 10, {"size": 3}) for label in STRANGE
        ),
        learners=(LearnerSpec("random", label=STRANGE[0]), LearnerSpec("tabular_bc", label="<b>bold<|b>")),
        n_demonstrations=(2,),
        seeds=(0,),
    )
    results = run_benchmark(spec, tmp_path / "run", ProcessEngine(2), progress_bar=False)
    browser.get(write_report(results.path).as_uri())
    assert "run" != browser.title != "1"
    assert [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"] == []
    assert sorted(first_column(browser)) == sorted(learner.label for learner in spec.learners)
    shown = browser.find_element(By.TAG_NAME, "body").text
    assert all(environment.label in shown for environment in spec.environments)
    for tag in ("plaintext", "b"):
        assert browser.find_elements(By.TAG_NAME, tag) == []
    assert browser.find_elements(By.CSS_SELECTOR, "img[src=x], img[onerror]") == []


def first_column(browser):
    return [cell.text for cell in browser.find_elements(By.CSS_SELECTOR, "#summary-table tbody td:first-child")]


def test_page_works_in_a_browser(page, browser):
    browser.set_window_size(1280, 900)
    browser.get(page.as_uri())
    assert [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"] == []
    names = sorted(first_column(browser))
    assert names == ["cutting_plane", "expert", "random", "tabular_bc"]
    header = browser.find_element(By.CSS_SELECTOR, "#summary-table th:first-child button")
    header.click()
    assert first_column(browser) == names
    header.click()
    assert first_column(browser) == names[::-1]
    browser.find_element(By.CSS_SELECTOR, "#summary-table th:nth-child(2) button").click()
    assert first_column(browser)[0] == "random"  # by score, ascending


def test_legend_hides_and_shows_a_learner_in_every_chart(page, browser):
    browser.get(page.as_uri())
    parts = [
        part
        for part in browser.find_elements(By.CSS_SELECTOR, "svg g[id]")
        if "~tabular_bc~" in part.get_attribute("id")
    ]
    others = [
        part for part in browser.find_elements(By.CSS_SELECTOR, "svg g[id]") if "~random~" in part.get_attribute("id")
    ]
    assert len(parts) >= 3
    button = browser.find_element(By.CSS_SELECTOR, '.legend button[data-learner="tabular_bc"]')
    button.click()
    assert button.get_attribute("aria-pressed") == "false"
    assert {part.value_of_css_property("display") for part in parts} == {"none"}
    assert "none" not in {part.value_of_css_property("display") for part in others}
    button.click()
    assert "none" not in {part.value_of_css_property("display") for part in parts}


def test_pictures_are_not_empty(page, browser):
    browser.get(page.as_uri())
    images = browser.find_elements(By.TAG_NAME, "img")
    assert len(images) == 4  # the expert, and where three others differ from it
    assert all(browser.execute_script("return arguments[0].naturalWidth", image) > 50 for image in images)


def test_page_fits_a_phone(page, browser):
    screen = {"width": 400, "height": 900, "deviceScaleFactor": 1, "mobile": True}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
    browser.get(page.as_uri())
    width = browser.execute_script("return document.documentElement.scrollWidth")
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    assert width == 400


def test_the_conclusion_comes_first_and_the_links_to_raw_results_lead_somewhere(page, browser):
    browser.get(page.as_uri())
    first = browser.find_element(By.CSS_SELECTOR, "h1 + p")
    assert first.text == conclusion(ResultsFolder.open(page.parent).rows())
    links = browser.find_elements(By.CSS_SELECTOR, "#again a")
    assert len(links) == 5
    named = [link.get_attribute("href").rsplit(f"{page.parent.name}/", 1)[1] for link in links]
    assert all((page.parent / name).exists() for name in named)


def test_dark_pages_have_light_text_also_in_charts(page, browser):
    def colours():
        browser.get(page.as_uri())
        text = browser.find_element(By.CSS_SELECTOR, "svg text").value_of_css_property("fill")
        paper = browser.find_element(By.TAG_NAME, "body").value_of_css_property("background-color")
        return [sum(int(part) for part in re.findall(r"\d+", colour)[:3]) / 3 for colour in (text, paper)]

    def prefer(scheme):
        feature = {"name": "prefers-color-scheme", "value": scheme}
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})

    prefer("dark")
    text, paper = colours()
    prefer("light")
    assert text > 180
    assert paper < 60
    text, paper = colours()
    assert text < 60
    assert paper > 180
