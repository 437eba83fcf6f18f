"""Events of OpenHands."""
