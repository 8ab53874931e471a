"""How roles get their answers: a model over litellm, or the extractive backend that needs none."""
