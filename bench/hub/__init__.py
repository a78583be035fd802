"""The results server, `devbench hub`: it takes what runs send, and shows it to people, Prometheus and programs.

What is final, and what supersedes what, is decided in `precedence`; `writing` puts that into the database in single
statements, so that any number of senders and of hubs on one PostgreSQL agree.
"""
