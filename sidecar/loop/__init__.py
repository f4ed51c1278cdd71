"""Work on the event loop: polling, deadlines, long work in slices, and reads side by side. Pure: timing_wheel.py."""
