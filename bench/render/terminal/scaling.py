"""Temporary."""


def text(study):
    return study.model_dump_json(indent=1)[:6000] + "\n"
