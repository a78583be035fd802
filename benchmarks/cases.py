"""Programs after public reports, whose causes are known. `benchmarks.explain --cases FOLDER` explains them.

The programs are not part of devbench. FOLDER has a folder for each, with `script.py`, `bench.py` (the same program as a
workload), or both.
"""

from __future__ import annotations

CAUSES = {
    "embed": r"(?i)embedding|rewrites",
    "epoch_sleep": r"Slow",
    "fromgen": r"Slowest stage: (from_generator|generator|flat_map|batch)",
    "hist_tb": r"TensorBoard",
    "rl_qlearn": r"(?i)new dataset|(predict|fit) .*(for each|each call|in each step)",
    "seq_aug": r"__getitem__|Python prepares one batch at a time",
    "tiny_epochs": r"(?i)time between epochs|starts each epoch anew",
}
"""What an explanation should say, as a regular expression, by name."""

FILES = ("bench.py", "script.py")
