"""What changed between two runs on one question: by what the sources say, and not by how a report words it."""
