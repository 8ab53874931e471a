"""Runs as the server deals with them: started, read, followed, answered."""
