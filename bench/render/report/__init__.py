"""The report: a folder of results as one document, for a browser, a pull request or another program.

`selection` chooses the results of each chapter, `content` shows a chapter, `compose` makes a `document.Report` of all
chapters, and `html` and `markdown` write it. Each section is a module in `sections`. `csv` is separate: it writes every
measured time.
"""
