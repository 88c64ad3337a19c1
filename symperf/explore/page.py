"""The page: one file of HTML with its styles, scripts and data inside, which asks no network for anything."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..common.version import VERSION

if TYPE_CHECKING:
    from collections.abc import Mapping

STATIC = Path(__file__).parent / "static"
MODULES = (
    *("tape", "model", "units", "dom", "state", "charts", "phase", "stages", "pictures", "detail", "tables"),
    *("controls", "views", "pipeline", "main"),
)
"""Scripts in the order in which each stands behind all that it imports."""
_IMPORT = re.compile(r'^import \{ ([^}]*) \} from "\./([a-z]+)\.js";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export (?:async )?(?:function|const|class) (\w+)", re.MULTILINE)
_TITLE = "symperf explorer"


def script(names: tuple[str, ...] = MODULES) -> str:
    """Modules as one script: each a function of its own, which gives back what it exports."""
    return "\n".join(_closed(name) for name in names)


def _closed(name: str) -> str:
    text = read(f"{name}.js")
    exported = ", ".join(_EXPORT.findall(text))
    body = _IMPORT.sub(r"const { \1 } = module_\2;\n", text).replace("\nexport ", "\n").removeprefix("export ")
    return f"const module_{name} = (() => {{\n{body}return {{ {exported} }};\n}})();"


def read(name: str) -> str:
    """A file of the page as text."""
    return (STATIC / name).read_text(encoding="utf-8")


def page(data: Mapping[str, Any]) -> str:
    """The whole file.

    Scripts run by their hash alone, and nothing is loaded: neither a name in the data nor an address can make the page
    run or fetch anything. What the worker computes with is text of the page itself.

    Args:
        data: what the page knows.
    """
    notice = f"uPlot:\n{read('vendor/uplot.LICENSE')}".replace("--", "- -")
    code = f'"use strict";\n(() => {{\n{script()}\n}})();\n'
    worker = script(("tape", "worker"))
    # A script element ends at "</script", and "<!--" changes how it is read, wherever they stand.
    parts = [_inside(read("vendor/uplot.js")), _inside(code)]
    policy = "; ".join(
        (
            "default-src 'none'",
            "script-src " + " ".join(f"'sha256-{_hash(part)}'" for part in parts),
            "worker-src blob:",
            "style-src 'unsafe-inline'",
            "img-src data: blob:",
            "base-uri 'none'",
            "form-action 'none'",
        )
    )
    names = " ".join(data["models"])
    return "".join(
        (
            '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n',
            f'<meta http-equiv="Content-Security-Policy" content="{html.escape(policy)}">\n',
            '<meta name="viewport" content="width=device-width, initial-scale=1">\n',
            f'<meta name="referrer" content="no-referrer">\n<meta name="generator" content="symperf {VERSION}">\n',
            f'<title>{html.escape(names)} – {_TITLE}</title>\n<link rel="icon" href="data:,">\n',
            f"<style>\n{read('vendor/uplot.css')}\n{read('explorer.css')}</style>\n</head>\n<body>\n",
            read("body.html"),
            f'<script type="application/json" id="data">{_json(data)}</script>\n',
            f'<script type="application/json" id="worker">{_json(worker)}</script>\n',
            f"<!--\n{notice}-->\n",
            *(f"<script>{part}</script>\n" for part in parts),
            "</body>\n</html>\n",
        )
    )


def _json(data: Any) -> str:
    """JSON that may stand in a script element: no text in it can end the element."""
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _inside(code: str) -> str:
    if re.search(r"</script|<!--", code, re.IGNORECASE):
        raise ValueError("a script of the page holds what ends a script element")
    return code


def _hash(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode()
