"""How roles get their answers: the model client over litellm, and what every backend has in common."""
