"""What a run is told: settings, environment, models, caps, and what a user types, checked where it comes in."""
