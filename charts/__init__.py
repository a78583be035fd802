"""The Helm chart, and the source that its values, their schema and their reference are made from."""
