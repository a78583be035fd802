"""The report: a folder of results as one document, for a browser, a pull request or another program.

`content` shows the analysis of a chapter, `compose` makes a `document.ReportDocument` of all
chapters, and `html` and `markdown` write it. Each section is a module in `sections`. `csv` is separate: it writes every
measured time.
"""
