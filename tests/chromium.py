"""A page of ours in headless Chromium: what it shows after a script has used it as a reader would."""

import base64
import hashlib
import json
import os
import re
import shutil
import subprocess
from html import unescape
from pathlib import Path
from typing import Any, Final

import pytest

_NAMES: Final = ("chromium", "chromium-browser", "google-chrome")
_OPTIONS: Final = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-extensions",
    "--hide-scrollbars",
    "--virtual-time-budget=20000",  # ms, which pass as fast as they can
    "--enable-logging=stderr",  # what the console says: each refusal of a policy
    "--dump-dom",
)
_RESULT: Final = re.compile(r'data-result="RESULT(.*?)TLUSER"', re.DOTALL)
# The page is used when it is ready: a script that comes last and waits until `ready` is true.
_SCRIPT: Final = """
const key = (name, node = document.activeElement) =>
  node.dispatchEvent(new KeyboardEvent("keydown", { key: name, bubbles: true, cancelable: true }));
const type = (field, text) => { field.value = text; field.dispatchEvent(new Event("input", { bubbles: true })); };
const settled = () => new Promise(done => setTimeout(() => setTimeout(done, 60), 60));
(async () => {
  let result;
  try {
    for (let turn = 0; turn < 300 && !(%s); turn += 1) await settled();
    result = await (async () => { %s })();
  } catch (error) { result = { error: String(error.stack || error) }; }
  document.documentElement.setAttribute("data-result", "RESULT" + JSON.stringify(result) + "TLUSER");
})();
"""


def used(page: Path, script: str, *, ready: str = "true", refused: int = 0, width: int = 1300) -> Any:
    """What `script`, the body of an async function, returns in a page. The page itself stays as it is.

    Nothing comes from the network: there is none for the browser. The script is let through the page's policy, and
    nothing else: `refused` is how many times the policy refuses something, in frames as well. `width` is that of the
    window in pixels, 500 at the least.
    """
    browser = next(filter(None, map(shutil.which, _NAMES)), None)
    if browser is None:
        pytest.skip("no chromium (apt-get install chromium)")
    using = _SCRIPT % (ready, script)
    digest = base64.b64encode(hashlib.sha256(using.encode()).digest()).decode()
    text, policies = re.subn(r"; script-src ", f"; script-src 'sha256-{digest}' ", page.read_text(), count=1)
    assert policies == 1, "it has no policy"
    code = f"<script><![CDATA[{using}]]></script>\n</svg>"
    if page.suffix != ".svg":
        code = f"<script>{using}</script></body>"
    copy = page.with_name(f"used-{page.name}")
    copy.write_text(code.join(text.rsplit("</svg>" if page.suffix == ".svg" else "</body>", 1)))
    options = [
        *_OPTIONS,
        f"--window-size={width},800",
        f"--user-data-dir={page.parent / 'profile'}",
        "--proxy-server=127.0.0.1:9",
    ]
    done = subprocess.run(
        [browser, *options, copy.as_uri()],
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
        env=os.environ | {"HOME": str(page.parent)},
    )
    shown = done.stdout
    refusals = [line for line in done.stderr.splitlines() if "violates the following Content Security Policy" in line]
    assert len(refusals) == refused, refusals
    found = _RESULT.search(shown)
    assert found is not None, shown[-2000:]
    result = json.loads(unescape(found[1]))
    assert not isinstance(result, dict) or "error" not in result, result["error"]
    return result
