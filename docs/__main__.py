"""Write the generated parts of the documentation: `python -m docs [--check]`.

A page holds a generated part between `<!-- generated: NAME -->` and `<!-- end -->`. NAME is a key of
`docs.parts.PARTS`, or a file's path relative to the page; the file is then shown unchanged.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from pathlib import Path

from docs.parts import PARTS

ROOT = Path(__file__).resolve().parent.parent
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
PART = re.compile(r"(<!-- generated: (\S+) -->\n).*?(?=<!-- end -->)", re.DOTALL)
LANGUAGES = {".py": "python", ".toml": "toml", ".json": "json"}


def current(page: Path) -> str:
    """Return a page's text with its generated parts up to date.

    Raises:
        OSError: the page, or a file that it shows, cannot be read.
    """
    return PART.sub(lambda match: match[1] + _part(match[2], page), page.read_text(encoding="utf-8"))


def main(check: bool = False, pages: Iterable[Path] = PAGES) -> int:
    """Rewrite the pages that are out of date, or only report them.

    Args:
        check: report to stderr and change nothing.
        pages: the pages to look at.

    Returns:
        The exit code: 1 if `check` found a page that is out of date, otherwise 0.
    """
    stale = [(page, text) for page in pages if (text := current(page)) != page.read_text(encoding="utf-8")]
    for page, text in stale:
        if check:
            print(f"{page} is out of date. Run: python -m docs", file=sys.stderr)
        else:
            page.write_text(text, encoding="utf-8", newline="\n")
    return 1 if check and stale else 0


def _part(name: str, page: Path) -> str:
    if name in PARTS:
        return PARTS[name]()
    file = page.parent / name
    return f"```{LANGUAGES.get(file.suffix, '')}\n{file.read_text(encoding='utf-8')}```\n"


if __name__ == "__main__":
    sys.exit(main(check="--check" in sys.argv[1:]))
