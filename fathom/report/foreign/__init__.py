"""Reports of other systems: read, their sources found or fetched, their claims checked and judged."""
