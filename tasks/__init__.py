"""Prefect tasks: each builds a request, makes one durable call, and returns a model."""
