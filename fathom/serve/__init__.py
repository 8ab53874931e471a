"""One FastAPI application: an API, a page to ask on, and the protocols that clients already speak."""
