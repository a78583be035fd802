"""The hub's database: tables, validation of documents, writes, queries, retention, export and import.

`precedence` decides which state of a document counts. `writes` applies it in single statements of SQL, so any number of
senders, and of hubs that share one PostgreSQL, agree. The modules `…_queries` and `comparison_keys` only read.
"""
