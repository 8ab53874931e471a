"""HTTP answers as they arrive, for tools and models alike."""
