"""What leaves Fathom: a report as a page, a document, a bibliography."""
