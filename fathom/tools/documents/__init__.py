"""The local documents: reading, indexing and searching them."""
