"""How documents are shown: on a terminal, in a report, on the hub's pages."""
