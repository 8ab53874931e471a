"""The report as data, and every form of it: Markdown, web page, Word, PDF, BibTeX and RIS."""
