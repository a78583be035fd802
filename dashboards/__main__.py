"""Write the JSON files of the dashboards: `python -m dashboards [FOLDER]`."""

from __future__ import annotations

import sys
from pathlib import Path

from dashboards import health, live_run, side_by_side
from dashboards.parts import text

FOLDER = Path(__file__).parent.parent / "charts" / "devbench" / "dashboards"
DASHBOARDS = {"side-by-side": side_by_side.dashboard, "live-run": live_run.dashboard, "health": health.dashboard}


def main(folder: Path = FOLDER) -> None:
    """Write each dashboard into the folder."""
    for name, dashboard in DASHBOARDS.items():
        (folder / f"{name}.json").write_text(text(dashboard()), encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
