"""The documentation, and the generator of the parts that repeat the code.

`python -m docs` writes these parts; `python -m docs --check` fails if one of them is out of date.
"""
