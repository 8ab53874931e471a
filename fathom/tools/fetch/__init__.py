"""Reading one web page, safely: only addresses the run knows, only public hosts, never more than it can bear."""
