"""The settings of a run: what the user chose, the environment, models, caps, secrets, and checks of what is typed."""
