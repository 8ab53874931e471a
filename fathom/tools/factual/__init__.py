"""Factual services: encyclopedias, code, questions and answers, filings. One file for each."""
