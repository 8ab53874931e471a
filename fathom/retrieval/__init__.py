"""Which texts, passages and sentences bear on a question: ranking, selection, narrowing, and working memory."""
