"""Reading one web page safely: only addresses that the run knows, only public hosts, only so much time and memory."""
