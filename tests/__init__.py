"""Tests of Fathom. They talk to real servers over real HTTP, all of them on this machine."""
