"""The report: a folder of results as one document, for a browser, a pull request or another program.

`gather` chooses what is shown, `compose` makes a `parts.Report` of it, which is plain data, and `html` and `markdown`
write that down. A section is a module of `sections`. `raw` is apart: every time that was measured, unsummarised.
"""
