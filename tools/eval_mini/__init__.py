"""Quality of the mini model, measured through the command line of the engine only (docs in __main__.py)."""
