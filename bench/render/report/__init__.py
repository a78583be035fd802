"""The report: a folder of results as one document, for a browser, a pull request or another program.

`selection` chooses the results of each chapter, `content` shows a chapter, and `compose` makes a
`document.ReportDocument` of all chapters, which `html` and `markdown` write. Each section is a module in `sections`.
`csv` is separate: it writes every measured time.
"""
