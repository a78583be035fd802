"""The hub's pages: the report's tables and charts with links between them, rendered from the database.

Each module returns a `layout.Page`, which is plain data, and `layout.render` makes HTML of it. The only script updates
the page of runs. Without it, that page reloads itself.
"""
