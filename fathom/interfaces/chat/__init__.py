"""The protocol of OpenAI's API, for clients that speak it: chat completions, responses and the list of models."""
