"""The hub's HTTP server: the API, the addresses of the pages, metrics, authentication and errors."""
