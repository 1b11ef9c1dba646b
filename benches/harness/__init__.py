"""The side-by-side benchmark harness. `driver` runs in one environment, `worker` and `startup` in each system's own."""
