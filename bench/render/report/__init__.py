"""The report: a folder of results as one document, for a browser, a pull request or another program.

`content` turns the analysis of a chapter into text, tables and charts. `compose` makes a `document.ReportDocument` of
all chapters, which `html` and `markdown` write. Each section of a chapter is a module in `sections`. `csv` is separate:
it writes every measured time.
"""
