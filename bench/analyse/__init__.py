"""Compute figures, ratios and verdicts from results alone, so that any stored result can be analysed again."""
