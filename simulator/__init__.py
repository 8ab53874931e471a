"""The run engine under a seeded scheduler, with simulated clocks, disks, stores, models and deaths.

Not shipped; `make simulate SEEDS=1000` runs it, and docs/simulator.md says what it simulates and what not.
"""
