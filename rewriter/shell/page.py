"""A template and what fills it -> the lines of an HTML page with everything that it needs in it.

`page.html` is around the body of each page. A line `<!-- name -->` stands for the text of that name: `css` and `js` are
the page's own after those that all pages share, and `data` is an object as compressed JSON in base64, which `page.js`
unpacks. Texts are HTML.
"""

import base64
import json
import zlib
from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import files
from typing import Any, Final

from kinst.rewriter.shell.page_policy import Code, page_policy, picture_policy

_HERE: Final = "kinst.rewriter.shell"
_WIDTH: Final = 1 << 10  # characters of the data in a line of the page


def page_lines(
    package: str, name: str, texts: Mapping[str, str], data: Any, pictures: Sequence[Code] = (), more_style: str = ""
) -> Iterator[str]:
    """The lines of a page whose body is `name`.html, with .css and .js, in the folder `pages` of a package. `pictures`:
    the code of those that it shows in frames. `more_style` is behind its .css."""
    code = {kind: page_file(_HERE, f"page.{kind}") + page_file(package, f"{name}.{kind}") for kind in ("css", "js")}
    code["css"] += more_style
    policy = page_policy(Code(f"\n{code['js']}\n", f"\n{code['css']}\n"), pictures)
    filled = {**code, **texts, "policy": f'<meta http-equiv="Content-Security-Policy" content="{policy}">'}
    template = page_file(_HERE, "page.html").replace("<!-- body -->\n", page_file(package, f"{name}.html"))
    for line in template.splitlines():
        part = line.strip().removeprefix("<!--").removesuffix("-->").strip()
        if part == "data":
            yield from _packed(data)
        else:
            yield filled.get(part, line)


def picture_code(package: str, name: str, *, has_style_attributes: bool = False) -> Code:
    """The code of an SVG picture, as `picture_head` and `picture_script` put it in."""
    script, style = (f"\n{page_file(package, f'{name}.{kind}')}" for kind in ("js", "css"))
    return Code(script, style, has_style_attributes)


def picture_head(code: Code) -> str:
    """A picture's policy, where browsers look for it, and its style."""
    policy = f'<meta http-equiv="Content-Security-Policy" content="{picture_policy(code)}"/>'
    head = f'<metadata><head xmlns="http://www.w3.org/1999/xhtml">{policy}</head></metadata>'
    return f"{head}\n<style><![CDATA[{code.style}]]></style>\n"


def picture_script(code: Code) -> str:
    """A picture's script."""
    return f"<script><![CDATA[{code.script}]]></script>\n"


def page_file(package: str, name: str) -> str:
    """A file in the folder `pages` of a package."""
    return files(package).joinpath("pages", name).read_text(encoding="utf-8")


def _packed(data: Any) -> Iterator[str]:
    packed = base64.b64encode(zlib.compress(json.dumps(data, separators=(",", ":")).encode(), 6)).decode()
    for start in range(0, len(packed), _WIDTH):
        yield packed[start : start + _WIDTH]
