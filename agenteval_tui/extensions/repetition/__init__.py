"""How much of a text repeats itself: the metric `Repetition`."""
