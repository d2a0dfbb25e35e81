"""The Memory panel: pressure, what takes memory over time, plan and actual, the guard, and the limits."""
