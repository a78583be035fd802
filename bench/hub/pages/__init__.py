"""The hub's pages: the report's parts with links between them, made anew from the database for each request.

A page is a `layout.Page`, which is plain data; `layout.render` writes it down. There is no script but the one that
keeps the page of runs up to date, and without it that page loads itself again.
"""
