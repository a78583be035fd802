"""The results server, `devbench hub`: it stores what runs send and shows it to people, Prometheus and programs.

`db` holds the database, `pages` renders it as HTML, and `web` serves both over HTTP. Each imports only those before it.
"""
