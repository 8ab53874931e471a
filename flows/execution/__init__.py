"""Where runs are executed: in this process, or by a worker of a work pool, once more after an interruption."""
