"""What changed between two runs on one question, judged by what the sources say and not by the reports' wording."""
