"""The pages of the documentation in a real browser: headless Chromium, over its debugging pipe.

They are skipped where there is no Chromium or where the pages were not built (`make -C docs html`).
"""

import functools
import http.server
import itertools
import json
import os
import shutil
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support import ROOT

HTML = ROOT / "docs" / "_build" / "html"
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "chrome"))), None)
GENERATED = {"generated", "_static", "_sources"}
PAGES = sorted(
    str(page.relative_to(HTML))
    for page in HTML.rglob("*.html")
    if not GENERATED & set(page.relative_to(HTML).parts)
)
# One of each kind of the pages that the build writes; there are hundreds.
PAGES += [
    str(next((HTML / folder).glob("*.html")).relative_to(HTML))
    for folder in ("reference/generated", "certificates/generated")
    if (HTML / folder).is_dir()
]
LONGEST = 60.0  # seconds to wait for anything

pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium"),
    pytest.mark.skipif(not PAGES, reason="the pages are not built: make -C docs html"),
]

# The pictures that are not there, and the width of the page.
STATE = """JSON.stringify({
    missing: [...document.images].filter(i => !(i.complete && i.naturalWidth)).map(i => i.src),
    width: document.documentElement.scrollWidth,
})"""

# The texts of the page whose contrast with what is behind them is below level AA of WCAG 2: 3 for
# large text, of 24 px or more, or 18.66 px and bold, and 4.5 for all other.
CONTRAST = """(() => {
    const sheet = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
    const rgba = color => {  // of any notation
        sheet.clearRect(0, 0, 1, 1);
        sheet.fillStyle = color;
        sheet.fillRect(0, 0, 1, 1);
        const [r, g, b, a] = sheet.getImageData(0, 0, 1, 1).data;
        return [r, g, b, a / 255];
    };
    const over = ([r, g, b, a], below) =>
        [r, g, b].map((v, i) => a * v + (1 - a) * below[i]);
    const light = color => color.map(v => v / 255)
        .map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
        .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
    const behind = element => element === null ? [255, 255, 255]
        : over(rgba(getComputedStyle(element).backgroundColor), behind(element.parentElement));
    const opacity = element => element === null ? 1
        : getComputedStyle(element).opacity * opacity(element.parentElement);
    const found = [];
    for (const e of document.querySelectorAll('body *')) {
        const own = [...e.childNodes].filter(n => n.nodeType === 3 && n.textContent.trim());
        const hidden = !e.checkVisibility({opacityProperty: true, visibilityProperty: true});
        if (!own.length || hidden || e.closest('mjx-container, script, style')) continue;
        const {color, fontSize, fontWeight} = getComputedStyle(e);
        const [r, g, b, alpha] = rgba(color);
        const below = behind(e);
        const [c, d] = [light(over([r, g, b, alpha * opacity(e)], below)), light(below)];
        const ratio = (Math.max(c, d) + 0.05) / (Math.min(c, d) + 0.05);
        const large = parseFloat(fontSize) >= (fontWeight >= 700 ? 18.66 : 24);
        if (ratio < (large ? 3 : 4.5))
            found.push(`${e.tagName} ${ratio.toFixed(2)} ${color} ${e.textContent.trim()}`);
    }
    return JSON.stringify(found.slice(0, 5));
})()"""


class Browser:
    """A tab of headless Chromium. Messages are JSON between zero bytes, on two pipes."""

    def __init__(self, profile: Path) -> None:
        assert CHROMIUM is not None
        to_read, self.to = os.pipe()
        self.from_, to_write = os.pipe()
        flags = ["--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
        flags += ["--remote-debugging-pipe", f"--user-data-dir={profile}", "about:blank"]
        script = f'exec "$0" "$@" 3<&{to_read} 4>&{to_write}'
        self.process = subprocess.Popen(
            ["bash", "-c", script, CHROMIUM, *flags],
            pass_fds=(to_read, to_write),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_read)
        os.close(to_write)
        self.numbers = itertools.count(1)
        self.rest = b""
        self.session: str | None = None
        self.errors: list[str] = []
        self.loaded = False
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self.session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def message(self) -> dict[str, Any]:
        """Wait for the next message."""
        while b"\0" not in self.rest:
            data = os.read(self.from_, 1 << 16)
            assert data, "Chromium has ended"
            self.rest += data
        text, _, self.rest = self.rest.partition(b"\0")
        found: dict[str, Any] = json.loads(text)
        self.note(found.get("method"), found.get("params", {}))
        return found

    def note(self, event: str | None, told: dict[str, Any]) -> None:
        """Keep what the console would show as an error, and that the page is there."""
        if event == "Page.loadEventFired":
            self.loaded = True
        elif event == "Runtime.exceptionThrown":
            self.errors.append(str(told["exceptionDetails"]))
        elif event == "Log.entryAdded" and told["entry"]["level"] == "error":
            self.errors.append(f"{told['entry']['text']} {told['entry'].get('url', '')}")
        elif event == "Runtime.consoleAPICalled" and told["type"] in ("error", "assert"):
            self.errors.append(str(told["args"]))

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """Call a method of the protocol and return its result."""
        number = next(self.numbers)
        request: dict[str, Any] = {"id": number, "method": method, "params": params}
        if self.session is not None:
            request["sessionId"] = self.session
        os.write(self.to, json.dumps(request).encode() + b"\0")
        while (answer := self.message()).get("id") != number:
            pass
        assert "error" not in answer, answer
        result: dict[str, Any] = answer["result"]
        return result

    def open(self, url: str, width: int = 1280, theme: str = "light") -> None:
        """Open a page in a window of this width, and wait until it is loaded."""
        self.errors, self.loaded = [], False
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=900,
            deviceScaleFactor=1,
            mobile=width < 600,
        )
        wishes = {"prefers-color-scheme": theme, "prefers-reduced-motion": "reduce"}
        features = [{"name": name, "value": value} for name, value in wishes.items()]
        self.call("Emulation.setEmulatedMedia", features=features)
        self.call("Page.navigate", url=url)
        while not self.loaded:
            self.message()
        self.value("document.fonts.ready.then(() => 0)")

    def value(self, expression: str) -> Any:
        """Return the value of an expression of JavaScript."""
        answer = self.call(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def wait_for(self, expression: str) -> Any:
        """Wait until an expression is true, and return it."""
        end = time.monotonic() + LONGEST
        while not (value := self.value(expression)):
            assert time.monotonic() < end, expression
            time.sleep(0.05)
        return value

    def close(self) -> None:
        self.process.terminate()
        self.process.wait()
        os.close(self.to)
        os.close(self.from_)


class Quiet(http.server.SimpleHTTPRequestHandler):
    """A server of files that writes no log."""

    def log_message(self, *args: Any) -> None:
        pass


@pytest.fixture(scope="module")
def site() -> Iterator[str]:
    """Serve the pages on this machine."""
    handler = functools.partial(Quiet, directory=str(HTML))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    found = Browser(tmp_path_factory.mktemp("profile"))
    yield found
    found.close()


@pytest.mark.parametrize("page", PAGES)
def test_a_page_opens_without_errors_and_with_its_pictures(
    page: str, browser: Browser, site: str
) -> None:
    browser.open(f"{site}/{page}")
    browser.wait_for("document.readyState === 'complete'")
    assert json.loads(browser.value(STATE))["missing"] == []
    assert browser.errors == []


@pytest.mark.parametrize("page", PAGES)
def test_a_page_fits_a_phone(page: str, browser: Browser, site: str) -> None:
    browser.open(f"{site}/{page}", width=390)
    assert json.loads(browser.value(STATE))["width"] <= 390


@pytest.mark.parametrize("page", PAGES)
def test_a_page_can_be_read_in_both_themes(page: str, browser: Browser, site: str) -> None:
    """All text, code included, has the contrast that level AA of WCAG 2 asks for."""
    for theme in ("light", "dark"):
        browser.open(f"{site}/{page}", theme=theme)
        assert browser.value("document.documentElement.dataset.theme") == theme
        assert json.loads(browser.value(CONTRAST)) == []


def test_search_finds_a_word(browser: Browser, site: str) -> None:
    browser.open(f"{site}/search.html?q=poisoned")
    found = browser.wait_for("document.querySelectorAll('#search-results li a').length")
    assert found >= 1
    assert browser.errors == []


def test_faults_of_a_page_are_seen(browser: Browser, site: str, tmp_path: Path) -> None:
    """A page with each fault, so that the tests above can fail."""
    page = tmp_path / "bad.html"
    page.write_text(
        "<!doctype html><article><img src='none.png'><p style='color: #eee'>faint</p>"
        "<div style='width: 2000px'>wide</div></article><script>throw Error('no')</script>"
    )
    browser.open(page.as_uri(), width=390)
    state = json.loads(browser.value(STATE))
    assert len(state["missing"]) == 1
    assert state["width"] >= 2000
    assert any("no" in error for error in browser.errors)
    assert len(json.loads(browser.value(CONTRAST))) == 1


def test_contrast_is_that_of_the_standard(browser: Browser, tmp_path: Path) -> None:
    """Greys on white: #767676 has 4.54, #777777 4.48, #949494 3.03 and #959595 2.99."""
    page = tmp_path / "greys.html"
    looks = {
        "color: #767676": False,
        "color: #777777": True,
        "color: #949494; font-size: 24px": False,
        "color: #959595; font-size: 24px": True,
        "color: #949494; font-size: 23px": True,
        "color: #949494; font-size: 19px; font-weight: bold": False,
        "color: #949494; font-size: 18px; font-weight: bold": True,
        "color: #0006": True,
        "opacity: 0.4": True,
        "background: #000c; color: #fff": False,
        "background: #0003; color: #fff": True,
        "display: none; color: #fff": False,
    }
    for look, faint in looks.items():
        page.write_text(f"<!doctype html><p style='{look}'>{look}</p>")
        browser.open(page.as_uri())
        assert len(json.loads(browser.value(CONTRAST))) == faint, look
